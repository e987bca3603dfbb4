//===- Files.h - A temporary folder for one test ---------------*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_UNIT_RUNTIME_FILES_H
#define PIPEWRIGHT_TEST_UNIT_RUNTIME_FILES_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace pipewright::runtime {

/// Removed with all that is in it.
class Folder {
public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() /
                        ("pipewright-" + std::string(6, 'X')))
                           .string();
    root = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(root); }

  std::string path(const std::string &name) const {
    return (root / name).string();
  }
  void write(const std::string &name, const std::string &text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  std::string read(const std::string &name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool exists(const std::string &name) const {
    return std::filesystem::exists(path(name));
  }
  /// Number of files, to see that nothing half-written stays.
  int64_t count() const {
    return std::distance(std::filesystem::directory_iterator(root), {});
  }

private:
  std::filesystem::path root;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_UNIT_RUNTIME_FILES_H
