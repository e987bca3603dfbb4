//===- PartialFolder.h - Where unfinished work lies -------------*- C++ -*-===//
//
// A new folder PREFIX followed by six random characters. Its process holds a
// lock in it, so that another process can tell a live one from what a dead one
// has left; no process id is part of this, since containers share these.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_PACKAGE_PARTIALFOLDER_H
#define PIPEWRIGHT_CODEGEN_PACKAGE_PARTIALFOLDER_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace pipewright::codegen {

class PartialFolder {
public:
  static llvm::Expected<PartialFolder> create(llvm::StringRef prefix);
  /// The same among the system's temporary files, where it first removes what
  /// dead processes have left under that name. The error says where.
  static llvm::Expected<PartialFolder> createTemporary(llvm::StringRef name);
  PartialFolder(PartialFolder &&other);
  PartialFolder &operator=(PartialFolder &&) = delete;
  /// Removes the folder and all that is in it.
  ~PartialFolder();

  const std::string &path() const { return name; }
  std::string pathOf(llvm::StringRef entry) const {
    return name + "/" + entry.str();
  }

  /// While the folder holds what is not ours, neither the destructor nor an
  /// interruption removes it.
  void setKept(bool kept);

  /// Removes what dead processes have left of the same prefix. `rescue` is
  /// called before, with the folder's path, to take out what is not ours; it
  /// says whether the rest may go.
  static void removeDead(llvm::StringRef prefix,
                         llvm::function_ref<bool(const std::string &)> rescue);

private:
  PartialFolder(std::string name, int lock)
      : name(std::move(name)), lock(lock) {}

  std::string name;
  int lock;
  bool isKept = false;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_PACKAGE_PARTIALFOLDER_H
