//===- TemporaryRoot.h - A temporary folder for one test --------*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_UNIT_CODEGEN_TEMPORARYROOT_H
#define PIPEWRIGHT_TEST_UNIT_CODEGEN_TEMPORARYROOT_H

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <string>
#include <unistd.h>

namespace pipewright::test {

/// Removed with all that is in it.
class TemporaryRoot {
public:
  enum class Where { OnDisk, InMemory };

  /// In memory, if there is such a place: for many small writes.
  explicit TemporaryRoot(Where where = Where::OnDisk) {
    if (where == Where::InMemory && access("/dev/shm", W_OK) == 0) {
      std::string name = "/dev/shm/pipewright-" + std::string(6, 'X');
      if (mkdtemp(name.data()))
        root = name;
    }
    if (root.empty())
      llvm::sys::fs::createUniqueDirectory("pipewright", root);
  }
  TemporaryRoot(const TemporaryRoot &) = delete;
  TemporaryRoot &operator=(const TemporaryRoot &) = delete;
  ~TemporaryRoot() { llvm::sys::fs::remove_directories(root); }

  std::string path(llvm::StringRef name) const {
    return (root + "/" + name).str();
  }
  bool exists(llvm::StringRef name) const {
    return llvm::sys::fs::exists(path(name));
  }
  /// Folders above it are made.
  void write(llvm::StringRef name, llvm::StringRef text) const {
    llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path(name)));
    std::error_code error;
    llvm::raw_fd_ostream(path(name), error) << text;
  }
  /// Empty if it is not there.
  std::string read(llvm::StringRef name) const {
    auto buffer = llvm::MemoryBuffer::getFile(path(name));
    return buffer ? (*buffer)->getBuffer().str() : "";
  }
  size_t entries(llvm::StringRef name = ".") const {
    std::error_code error;
    size_t count = 0;
    for (llvm::sys::fs::directory_iterator it(path(name), error), end;
         it != end; it.increment(error))
      ++count;
    return count;
  }

private:
  llvm::SmallString<128> root;
};

} // namespace pipewright::test

#endif // PIPEWRIGHT_TEST_UNIT_CODEGEN_TEMPORARYROOT_H
