//===- OutputFolder.cpp - Fuzz target: what lies in an output folder ------===//
//
// The bytes are a small program that fills the folder: files, folders, links
// (out of it, too), changes to what we wrote, a manifest. Then we write there
// again. Every file of the user must be where it was, or beside it as
// NAME.kept, and nothing outside may have changed; a refusal changes nothing.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/InputFile.h"

#include "codegen/package/OutputFolder.h"

#include <fstream>
#include <iterator>
#include <map>
#include <set>

using namespace pipewright;
using namespace pipewright::codegen;
namespace fs = std::filesystem;

/// Contents of files, targets of links, by path; folders are left out, as empty
/// ones are nobody's work.
using Image = std::map<std::string, std::string>;

static Image imageOf(const fs::path &root) {
  Image image;
  if (!fs::is_directory(root))
    return image;
  for (const auto &entry : fs::recursive_directory_iterator(root)) {
    std::string &content =
        image[entry.path().lexically_relative(root).string()];
    if (entry.is_symlink()) {
      content = "link to " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      std::ifstream file(entry.path(), std::ios::binary);
      content = {std::istreambuf_iterator<char>(file), {}};
    } else {
      image.erase(entry.path().lexically_relative(root).string());
    }
  }
  return image;
}

static void require(bool condition, const char *what, const std::string &path) {
  if (condition)
    return;
  llvm::errs() << "error: " << what << ": " << path << "\n";
  std::abort();
}

/// As a compilation does; what went wrong, or nothing.
static std::string compileTo(const fs::path &out, InTheWay inTheWay,
                             const char *text) {
  auto folder = OutputFolder::create(out.string(), inTheWay);
  if (!folder)
    return llvm::toString(folder.takeError());
  for (const char *name : {"plan.json", "src/main.cpp", "train"})
    if (llvm::Error error = folder->write(name, text))
      return llvm::toString(std::move(error));
  if (llvm::Error error = folder->commit())
    return llvm::toString(std::move(error));
  return "";
}

/// Does what three bytes and the rest of the input say; adds the names that are
/// the user's from then on.
static void disturb(const fs::path &root, const uint8_t *operation,
                    const std::string &rest, std::set<std::string> &users) {
  static const char *const names[] = {
      "plan.json",    "train",          "src/main.cpp",
      "src",          "notes.txt",      "trained.safetensors",
      "src/notes.md", "plan.json.kept", "deep/er/file",
      "deep",         "train.kept",     "pipewright.manifest"};
  const std::string name = names[operation[1] % std::size(names)];
  const fs::path path = root / "out" / name;
  std::error_code error;
  switch (operation[0] % 7) {
  case 0:
  case 1: // A file in the place of whatever is there.
    fs::remove_all(path, error);
    fs::create_directories(path.parent_path(), error);
    if (!(std::ofstream(path, std::ios::binary)
          << "user's " << int(operation[2])))
      return;
    error.clear();
    break;
  case 2:
    fs::remove_all(path, error);
    return;
  case 3:
    fs::create_directories(path, error);
    return;
  case 4: { // Links to what lies outside, to a neighbour, to nothing.
    static const char *const targets[] = {"../outside", "../outside/keep",
                                          "plan.json", "nowhere"};
    fs::create_directories(path.parent_path(), error);
    fs::create_symlink(targets[operation[2] % 4], path, error);
    break;
  }
  case 5: // The same file as one outside.
    fs::create_directories(path.parent_path(), error);
    fs::create_hard_link(root / "outside" / "keep", path, error);
    break;
  default:
    fs::create_directories(root / "out", error);
    if (!fs::is_symlink(root / "out" / "pipewright.manifest"))
      std::ofstream(root / "out" / "pipewright.manifest", std::ios::binary)
          << rest;
    return;
  }
  // Links are not made where something is already.
  if (!error)
    users.insert(name);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const fuzz::TemporaryFolder folder;
  static int64_t inputs = 0;
  if (size < 1)
    return 0;
  const fs::path root = folder.path("run" + std::to_string(inputs++ % 2));
  fs::remove_all(root);
  fs::create_directories(root / "outside");
  std::ofstream(root / "outside" / "keep") << "kept";
  if (data[0] & 1)
    require(compileTo(root / "out", InTheWay::Refuse, "first").empty(),
            "an empty place is refused", root.string());
  std::set<std::string> users;
  size_t at = 1;
  for (int count = 0; count < 12 && at + 3 <= size; ++count, at += 3)
    disturb(root, data + at,
            {reinterpret_cast<const char *>(data) + at + 3, size - at - 3},
            users);

  const Image before = imageOf(root / "out"),
              outside = imageOf(root / "outside");
  const std::string refused =
      compileTo(root / "out", data[0] & 2 ? InTheWay::Rename : InTheWay::Refuse,
                "second");
  const Image after = imageOf(root / "out");
  require(imageOf(root / "outside") == outside, "a file outside has changed",
          root.string());
  if (!refused.empty()) {
    require(after == before, "a refusal has changed the folder", refused);
    return 0;
  }
  for (const std::string &name : users) {
    auto old = before.find(name);
    // One that lies behind a link is not in the folder; a manifest is ours.
    if (old == before.end() || name == "pipewright.manifest")
      continue;
    bool isThere = false;
    for (const auto &[path, content] : after)
      isThere |= content == old->second &&
                 (path == name || path.starts_with(name + ".kept"));
    require(isThere, "a file of the user is gone", name);
  }
  return 0;
}
