//===- WeightSource.cpp - Named tensors in one file or several ------------===//

#include "runtime/io/WeightSource.h"
#include "runtime/core/Error.h"
#include "runtime/core/Hash.h"
#include "runtime/io/JsonFile.h"

#include <filesystem>
#include <set>

using namespace pipewright::runtime;
namespace fs = std::filesystem;

/// Of an index: a line for each tensor.
static constexpr int64_t mostIndexBytes = 256 << 20;

/// The files that an index names, which are beside it.
static std::set<std::string> filesOfIndex(const std::string &path) {
  static constexpr char kind[] = "index of safetensors";
  const auto index = readJson(path, kind, mostIndexBytes);
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

WeightSource::WeightSource(const std::string &path) : path(path) {
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
}

void WeightSource::add(const std::string &file) {
  files.push_back(std::make_shared<SafetensorsReader>(file));
  for (const std::string &name : files.back()->names())
    if (!readers.emplace(name, files.back().get()).second)
      fail("'", path, "' has tensor '", name, "' in two files");
}

TensorView WeightSource::find(const std::string &name, ElementType type,
                              const std::vector<int64_t> &shape) const {
  const auto found = readers.find(name);
  if (found == readers.end())
    fail("'", path, "' has no tensor '", name, "'");
  return found->second->find(name, type, shape);
}

TensorView WeightSource::view(const std::string &name) const {
  const auto found = readers.find(name);
  if (found == readers.end())
    fail("'", path, "' has no tensor '", name, "'");
  return found->second->view(name);
}

std::vector<std::string> WeightSource::names() const {
  std::vector<std::string> all;
  for (const auto &[name, reader] : readers)
    all.push_back(name);
  return all;
}

uint64_t WeightSource::fingerprint() const {
  Hash hash;
  for (const auto &file : files)
    hash.addWord(file->fingerprint());
  return hash.value();
}
