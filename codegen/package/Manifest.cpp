//===- Manifest.cpp - Which files of a folder we wrote --------------------===//
//
// JSON for people and for us. Paths in it are only compared with those that are
// found in the folder, never opened, so a hostile manifest reaches nothing.
//
//===----------------------------------------------------------------------===//

#include "codegen/package/Manifest.h"

#include "support/InputFile.h"
#include "support/Json.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <filesystem>
#include <sys/stat.h>

namespace fs = std::filesystem;

namespace pipewright::codegen {

/// The mark by which we know our own, and the version of what follows it.
static constexpr const char *mark = "output folder of pipewright";
static constexpr int64_t format = 1;

/// What is no regular file is nobody's but the user's.
std::optional<Manifest::File> Manifest::describe(const std::string &path) {
  llvm::Expected<FileBuffer> buffer =
      readRegularFile(path, {.followsLinks = false});
  if (!buffer) {
    llvm::consumeError(buffer.takeError());
    return std::nullopt;
  }
  llvm::StringRef bytes = (*buffer)->getBuffer();
  llvm::XXH128_hash_t hash =
      llvm::xxh3_128bits(llvm::arrayRefFromStringRef(bytes));
  return File{bytes.size(), llvm::utohexstr(hash.high64, true, 16) +
                                llvm::utohexstr(hash.low64, true, 16)};
}

llvm::Expected<Manifest> Manifest::of(llvm::StringRef folder) {
  Manifest manifest;
  std::error_code error;
  fs::recursive_directory_iterator it(folder.str(), error), end;
  for (; !error && it != end; it.increment(error)) {
    if (it->symlink_status().type() != fs::file_type::regular)
      continue;
    std::string path =
        it->path().lexically_relative(folder.str()).generic_string();
    std::optional<File> file = describe(it->path().string());
    if (!file)
      return llvm::createStringError("cannot read '" + it->path().string() +
                                     "'");
    manifest.files[path] = *file;
  }
  if (error)
    return llvm::createStringError("cannot list '" + folder +
                                   "': " + error.message());
  return manifest;
}

std::string Manifest::toText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("mark", mark);
    json.attribute("format", format);
    json.attribute("note", "pipewright replaces these files, as long as they "
                           "are as it wrote them, and no others");
    json.attributeArray("files", [&] {
      for (const auto &[path, file] : files)
        json.object([&] {
          json.attribute("path", path);
          json.attribute("bytes", file.bytes);
          json.attribute("xxh3", file.hash);
        });
    });
  });
  os << "\n";
  return text;
}

llvm::Expected<Manifest> Manifest::parse(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> json = parseJson(text);
  if (!json)
    return json.takeError();
  const llvm::json::Object *top = json->getAsObject();
  if (!top || top->getString("mark") != llvm::StringRef(mark))
    return llvm::createStringError("it was not written by pipewright");
  if (top->getInteger("format") != format)
    return llvm::createStringError("it is of another version of pipewright");
  const llvm::json::Array *list = top->getArray("files");
  if (!list)
    return llvm::createStringError("it lists no files");
  Manifest manifest;
  for (const llvm::json::Value &value : *list) {
    const llvm::json::Object *entry = value.getAsObject();
    auto path = entry ? entry->getString("path") : std::nullopt;
    auto bytes = entry ? entry->getInteger("bytes") : std::nullopt;
    auto hash = entry ? entry->getString("xxh3") : std::nullopt;
    if (!path || !bytes || *bytes < 0 || !hash)
      return llvm::createStringError(
          "an entry has not a path, a number of bytes and a hash");
    manifest.files[path->str()] = {static_cast<uint64_t>(*bytes), hash->str()};
  }
  return manifest;
}

llvm::Expected<std::optional<Manifest>> Manifest::read(llvm::StringRef folder) {
  std::string path = (folder + "/" + fileName).str();
  struct stat status;
  if (lstat(path.c_str(), &status) != 0)
    return std::nullopt;
  if (!S_ISREG(status.st_mode))
    return llvm::createStringError("it is not a file");
  llvm::Expected<FileBuffer> buffer =
      readTextFile(path, /*followsLinks=*/false);
  if (!buffer)
    return buffer.takeError();
  llvm::Expected<Manifest> manifest = parse((*buffer)->getBuffer());
  if (!manifest)
    return manifest.takeError();
  return std::optional<Manifest>(std::move(*manifest));
}

bool Manifest::matches(llvm::StringRef folder, llvm::StringRef path) const {
  if (path == fileName)
    return true;
  auto known = files.find(path.str());
  if (known == files.end())
    return false;
  std::string file = (folder + "/" + path).str();
  struct stat status;
  // Sizes differ more cheaply than hashes do.
  if (lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<uint64_t>(status.st_size) != known->second.bytes)
    return false;
  std::optional<File> found = describe(file);
  return found && found->hash == known->second.hash;
}

} // namespace pipewright::codegen
