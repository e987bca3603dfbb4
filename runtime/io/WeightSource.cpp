//===- WeightSource.cpp - Named tensors in one file or several ------------===//

#include "runtime/io/WeightSource.h"
#include "runtime/core/Error.h"
#include "runtime/core/Hash.h"
#include "runtime/io/JsonFile.h"

#include <filesystem>
#include <regex>
#include <set>

using namespace pipewright::runtime;
namespace fs = std::filesystem;

/// Of an index: a line for each tensor.
static constexpr int64_t maxIndexBytes = 256 << 20;

/// The files that an index names, which are beside it.
static std::set<std::string> filesOfIndex(const std::string &path) {
  static constexpr char kind[] = "index of safetensors";
  const auto index = readJson(path, kind, maxIndexBytes);
  std::set<std::string> files;
  try {
    for (const auto &[tensor, name] : index.at("weight_map").items())
      files.insert(name.get<std::string>());
  } catch (const nlohmann::json::exception &error) {
    fail("'", path, "' is no ", kind, ": ", error.what());
  }
  for (const std::string &name : files)
    if (!isFileName(name))
      fail("'", path, "' names a file that is not beside it");
  return files;
}

WeightSource::WeightSource(const std::string &path,
                           const std::vector<std::string> &renames)
    : path(path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (const CheckpointFile &file : readManifest(path).files)
      add(path + "/" + file.name);
  } else if (path.ends_with(".json")) {
    const fs::path folder = fs::path(path).parent_path();
    for (const std::string &name : filesOfIndex(path))
      add((folder / name).string());
  } else {
    add(path);
  }
  for (const std::string &rule : renames)
    rename(rule);
}

void WeightSource::add(const std::string &file) {
  files.push_back(std::make_shared<SafetensorsReader>(file));
  for (const std::string &name : files.back()->names())
    if (!readers.emplace(name, FileTensor{files.back().get(), name}).second)
      fail("'", path, "' has tensor '", name, "' in two files");
}

static std::regex parseRegex(const std::string &rule, size_t equals) {
  if (equals == std::string::npos || equals == 0)
    fail("--weights-rename expects FROM=TO, but got '", rule, "'");
  try {
    return std::regex(rule.substr(0, equals), std::regex::extended);
  } catch (const std::regex_error &error) {
    fail("--weights-rename: '", rule.substr(0, equals),
         "' is no regular expression: ", error.what());
  }
}

void WeightSource::rename(const std::string &rule) {
  // The library's search calls itself for each character.
  constexpr size_t longest = 4096;
  const size_t equals = rule.find('=');
  const std::regex from = parseRegex(rule, equals);
  const std::string to = rule.substr(equals + 1);
  std::map<std::string, FileTensor> renamed;
  bool matches = false;
  for (const auto &[name, place] : readers) {
    const bool found = name.size() <= longest && std::regex_search(name, from);
    matches |= found;
    const std::string now =
        found ? std::regex_replace(name, from, to,
                                   std::regex_constants::format_first_only)
              : name;
    if (!renamed.emplace(now, place).second)
      fail("--weights-rename ", rule, ": two tensors of '", path,
           "' are then called '", now, "'");
  }
  if (!matches)
    fail("--weights-rename ", rule, " matches no tensor of '", path, "'");
  readers = std::move(renamed);
}

TensorView WeightSource::find(const std::string &name, ElementType type,
                              const std::vector<int64_t> &shape) const {
  const auto found = readers.find(name);
  if (found == readers.end())
    fail("'", path, "' has no tensor '", name, "'");
  return found->second.reader->find(found->second.name, type, shape);
}

TensorView WeightSource::view(const std::string &name) const {
  const auto found = readers.find(name);
  if (found == readers.end())
    fail("'", path, "' has no tensor '", name, "'");
  return found->second.reader->view(found->second.name);
}

std::vector<std::string> WeightSource::names() const {
  std::vector<std::string> all;
  for (const auto &[name, place] : readers)
    all.push_back(name);
  return all;
}

uint64_t WeightSource::fingerprint() const {
  Hash hash;
  for (const auto &file : files)
    hash.addWord(file->fingerprint());
  return hash.value();
}
