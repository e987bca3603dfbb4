//===- Manifest.h - Which files of a folder we wrote ------------*- C++ -*-===//
//
// Lies in every output folder. A file that it lists, of the size and with the
// hash that it says, was written by us and by nobody since; every other file is
// the user's.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_PACKAGE_MANIFEST_H
#define PIPEWRIGHT_CODEGEN_PACKAGE_MANIFEST_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace pipewright::codegen {

class Manifest {
public:
  /// Its own name in the folder.
  static constexpr const char *fileName = "pipewright.manifest";

  /// Lists all regular files of a folder, those of its subfolders too.
  static llvm::Expected<Manifest> of(llvm::StringRef folder);
  /// Fails on a text that we did not write.
  static llvm::Expected<Manifest> parse(llvm::StringRef text);
  /// That of a folder; none where it has none. Fails on one that we did not
  /// write.
  static llvm::Expected<std::optional<Manifest>> read(llvm::StringRef folder);

  std::string toText() const;

  /// Whether a file of the folder is as we wrote it; `path` is relative, with
  /// '/' between its parts. The manifest itself is.
  bool matches(llvm::StringRef folder, llvm::StringRef path) const;
  bool lists(llvm::StringRef path) const {
    return path == fileName || files.count(path.str());
  }

private:
  struct File {
    uint64_t bytes = 0;
    std::string hash;
  };
  static std::optional<File> describe(const std::string &path);

  std::map<std::string, File> files;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_PACKAGE_MANIFEST_H
