//===- InputFile.h - The bytes of an input as a file -----------*- C++ -*-===//
//
// What reads files is fuzzed through a file: one per process, in a temporary
// folder of its own, so that nothing else is ever beside it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_FUZZ_INPUTFILE_H
#define PIPEWRIGHT_TEST_FUZZ_INPUTFILE_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>

namespace pipewright::fuzz {

/// Goes away with the process, unless it crashes. In memory where there is such
/// a place: a disk that has to be waited for is a hundred times slower.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string name =
        (folderAbove() / "pipewright-fuzz-").string() + std::string(6, 'X');
    if (!mkdtemp(name.data())) {
      std::perror("cannot make a temporary folder");
      std::exit(1);
    }
    root = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::string path(const std::string &name) const {
    return (root / name).string();
  }
  void write(const std::string &name, const void *data, size_t size) const {
    FILE *file = std::fopen(path(name).c_str(), "wb");
    if (!file || std::fwrite(data, 1, size, file) != size ||
        std::fclose(file) != 0) {
      std::perror("cannot write an input");
      std::exit(1);
    }
  }

private:
  static std::filesystem::path folderAbove() {
    if (const char *chosen = std::getenv("PIPEWRIGHT_FUZZ_FOLDER"))
      return chosen;
    return access("/dev/shm", W_OK) == 0
               ? "/dev/shm"
               : std::filesystem::temp_directory_path();
  }

  std::filesystem::path root;
};

/// The path of a file that holds exactly these bytes until the next call.
inline std::string inputFile(const uint8_t *data, size_t size,
                             const char *name = "input") {
  static const TemporaryFolder folder;
  folder.write(name, data, size);
  return folder.path(name);
}

} // namespace pipewright::fuzz

#endif // PIPEWRIGHT_TEST_FUZZ_INPUTFILE_H
