//===- CheckpointFolder.cpp - Checkpoints of a run on disk ----------------===//

#include "runtime/io/CheckpointFolder.h"
#include "runtime/core/Error.h"
#include "runtime/core/Hash.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/DataFile.h"
#include "runtime/io/JsonFile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

using namespace pipewright::runtime;
namespace fs = std::filesystem;

static constexpr const char *formatName = "pipewright checkpoint 1";
static constexpr const char *manifestName = "manifest.json";
static constexpr const char *prefix = "step-";
static constexpr const char *temporarySuffix = ".tmp";

/// Of a manifest: one line for each rank.
static constexpr int64_t maxManifestBytes = 16 << 20;

//===----------------------------------------------------------------------===//
// One checkpoint
//===----------------------------------------------------------------------===//

static uint64_t checksumOf(const std::string &path) {
  DataFile file(path);
  constexpr int64_t pieceBytes = 4 << 20;
  std::vector<char> piece(std::min(file.bytes(), pieceBytes));
  StreamHash hash;
  for (int64_t at = 0; at < file.bytes(); at += pieceBytes) {
    const int64_t now = std::min(pieceBytes, file.bytes() - at);
    file.read(at, now, piece.data());
    hash.addBytes(piece.data(), now);
  }
  return hash.value();
}

bool pipewright::runtime::isFileName(const std::string &name) {
  return !name.empty() && name.size() < 256 && name[0] != '.' &&
         std::all_of(
             name.begin(), name.end(),
             [](unsigned char c) {
               return std::isalnum(c) || c == '-' || c == '.' || c == '_';
             });
}

static CheckpointManifest parseManifest(const nlohmann::json &json) {
  CheckpointManifest manifest;
  manifest.model = json.at("model").get<std::string>();
  manifest.optimizer = json.at("optimizer").get<std::string>();
  manifest.step = wholeNumber(json.at("step"));
  manifest.samples = wholeNumber(json.at("samples"));
  if (const auto skipped = json.find("skipped"); skipped != json.end())
    manifest.skipped = wholeNumber(*skipped);
  if (manifest.skipped > manifest.step)
    fail("it skipped ", manifest.skipped, " of ", manifest.step, " steps");
  manifest.seed = json.at("seed").get<uint64_t>();
  manifest.shuffled = json.at("shuffled").get<bool>();
  manifest.plan = readChecksum(json.at("plan"));
  for (const auto &file :
       json.at("files").get_ref<const nlohmann::json::array_t &>()) {
    manifest.files.push_back({file.at("name").get<std::string>(),
                              wholeNumber(file.at("bytes")),
                              readChecksum(file.at("checksum"))});
    if (!isFileName(manifest.files.back().name))
      fail("a file in it has a name that no file of a checkpoint has");
  }
  return manifest;
}

static std::string textOf(const CheckpointManifest &manifest) {
  auto files = nlohmann::ordered_json::array();
  for (const CheckpointFile &file : manifest.files)
    files.push_back({{"name", file.name},
                     {"bytes", file.bytes},
                     {"checksum", checksumText(file.checksum)}});
  const nlohmann::ordered_json json = {{"format", formatName},
                                       {"model", manifest.model},
                                       {"optimizer", manifest.optimizer},
                                       {"step", manifest.step},
                                       {"skipped", manifest.skipped},
                                       {"samples", manifest.samples},
                                       {"seed", manifest.seed},
                                       {"shuffled", manifest.shuffled},
                                       {"plan", checksumText(manifest.plan)},
                                       {"files", files}};
  return json.dump(1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

static void checkFile(const std::string &folder, const CheckpointFile &file) {
  const std::string path = folder + "/" + file.name;
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error)
    fail("'", path, "' cannot be read: ", error.message());
  if (static_cast<int64_t>(bytes) != file.bytes)
    fail("'", path, "' has ", bytes, " bytes, but had ", file.bytes,
         " when it was written");
}

CheckpointManifest
pipewright::runtime::readManifest(const std::string &folder) {
  return readFormat(folder + "/" + manifestName, "manifest of a checkpoint",
                    maxManifestBytes, formatName, parseManifest);
}

CheckpointManifest
pipewright::runtime::readCheckpoint(const std::string &folder) {
  const CheckpointManifest manifest = readManifest(folder);
  for (const CheckpointFile &each : manifest.files) {
    checkFile(folder, each);
    if (checksumOf(folder + "/" + each.name) != each.checksum)
      fail("'", folder, "/", each.name,
           "' is damaged: its checksum is not what it was when it was written");
  }
  return manifest;
}

//===----------------------------------------------------------------------===//
// All of a run
//===----------------------------------------------------------------------===//

/// The name is only on the disk when the folder is.
static void synchronize(const std::string &folder) {
  const int descriptor =
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    fail("cannot read '", folder, "': ", strerror(errno));
  const bool done = fsync(descriptor) == 0 || errno == EINVAL;
  const int why = errno;
  close(descriptor);
  if (!done)
    fail("cannot write '", folder, "': ", strerror(why));
}

static void renameFolder(const std::string &from, const std::string &to) {
  if (rename(from.c_str(), to.c_str()) != 0)
    fail("cannot rename '", from, "' to '", to, "': ", strerror(errno));
}

/// False where the file system cannot do that at once.
static bool exchangeFolders(const std::string &one, const std::string &other) {
  return renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(),
                   RENAME_EXCHANGE) == 0;
}

static void removeFolder(const std::string &folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error)
    fail("cannot remove '", folder, "': ", error.message());
}

/// The step that a folder's name says, if it is one of ours.
static std::optional<int64_t> stepOf(std::string name,
                                     const std::string &suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix))
    return std::nullopt;
  name =
      name.substr(strlen(prefix), name.size() - strlen(prefix) - suffix.size());
  // As we write it: no signs, no zeros in front, within 63 bits.
  const bool isNumber =
      !name.empty() && name.size() <= 18 &&
      std::all_of(name.begin(), name.end(),
                  [](unsigned char c) { return std::isdigit(c); }) &&
      (name[0] != '0' || name == "0");
  return isNumber ? std::optional<int64_t>(std::stoll(name)) : std::nullopt;
}

/// The names in a folder; nothing where it cannot be read.
static std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    names.push_back(it->path().filename().string());
  return names;
}

CheckpointFolder::~CheckpointFolder() {
  if (lock >= 0)
    close(lock);
}

void CheckpointFolder::open() {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    fail("--checkpoint: cannot make the folder '", path,
         "': ", error.message());
  const std::string name = path + "/lock";
  lock = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (lock < 0)
    fail("--checkpoint: cannot write '", name, "': ", strerror(errno));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0)
    fail("--checkpoint: another run writes to '", path,
         "': wait until it has ended, or give a folder of its own");
  for (const std::string &left : namesIn(path))
    if (stepOf(left, temporarySuffix))
      removeFolder(path + "/" + left);
}

std::vector<int64_t> CheckpointFolder::steps() const {
  std::vector<int64_t> found;
  for (const std::string &name : namesIn(path))
    if (const auto step = stepOf(name, ""))
      found.push_back(*step);
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<int64_t>
CheckpointFolder::newest(int64_t atMost,
                         std::vector<std::string> &skipped) const {
  std::vector<int64_t> all = steps();
  std::reverse(all.begin(), all.end());
  for (const int64_t step : all) {
    if (step > atMost)
      continue;
    try {
      if (readCheckpoint(folderOf(step)).step == step)
        return step;
      skipped.push_back("'" + folderOf(step) + "' is of another step");
    } catch (const Error &error) {
      skipped.push_back(error.what());
    }
  }
  return std::nullopt;
}

std::string CheckpointFolder::folderOf(int64_t step) const {
  return path + "/" + prefix + std::to_string(step);
}

std::string CheckpointFolder::temporaryOf(int64_t step) const {
  return folderOf(step) + temporarySuffix;
}

std::string CheckpointFolder::begin(int64_t step) const {
  const std::string folder = temporaryOf(step);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    fail("cannot make the folder '", folder, "': ", error.message());
  return folder;
}

void CheckpointFolder::abandon(int64_t step) const {
  std::error_code error;
  fs::remove_all(temporaryOf(step), error);
}

/// What was in the way of a checkpoint.
std::string CheckpointFolder::displaced() const {
  return path + "/" + prefix + "0" + temporarySuffix;
}

void CheckpointFolder::commit(const CheckpointManifest &manifest) const {
  const std::string made = temporaryOf(manifest.step),
                    wanted = folderOf(manifest.step);
  for (const CheckpointFile &file : manifest.files)
    checkFile(made, file);
  const std::string text = textOf(manifest);
  AtomicFile file(made + "/" + manifestName);
  file.write(text.data(), text.size());
  file.commit();
  synchronize(made);
  // One of the same step is there where a damaged one was passed over, or one
  // of another plan was taken over.
  std::error_code error;
  const bool isThere = fs::exists(wanted, error);
  const bool isExchanged = isThere && exchangeFolders(made, wanted);
  if (isThere && !isExchanged) {
    removeFolder(displaced());
    renameFolder(wanted, displaced());
  }
  if (!isExchanged)
    renameFolder(made, wanted);
  synchronize(path);
}

/// Under a temporary name first: half a checkpoint is never taken for one.
void CheckpointFolder::prune(int64_t last, int64_t keep) const {
  removeFolder(temporaryOf(last));
  removeFolder(displaced());
  std::vector<int64_t> all = steps();
  std::erase_if(all, [&](int64_t step) { return step > last; });
  for (size_t i = 0; i + keep < all.size(); ++i) {
    renameFolder(folderOf(all[i]), temporaryOf(all[i]));
    removeFolder(temporaryOf(all[i]));
  }
}
