//===- UserFiles.h - What a new output folder takes over --------*- C++ -*-===//
//
// An output folder is replaced as a whole, so that it is the old one or the new
// one at any moment. What others have put into it, or changed in it, goes over
// into the new one before: by hard links, so that it is in both while they
// change places.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_PACKAGE_USERFILES_H
#define PIPEWRIGHT_CODEGEN_PACKAGE_USERFILES_H

#include "codegen/package/Manifest.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::codegen {

/// One file or folder of the user's. Paths are relative to their folders.
struct UserFile {
  std::string path;
  /// Where it goes: another name if a file of the new folder has its own.
  std::string target;
  bool isFolder = false;
  /// We wrote it once, but somebody has changed it since.
  bool isChanged = false;

  bool isInTheWay() const { return path != target; }
};

/// All that is in `folder` and not as its manifest says, folders before what is
/// in them. `replacement` is what they are to go into; empty: not known yet.
llvm::Expected<std::vector<UserFile>>
findUserFiles(const std::string &folder, const std::string &replacement);

/// Device and number: what stays the same whatever names a file has.
using FileIdentity = std::pair<uint64_t, uint64_t>;

/// Makes the files appear in `replacement` as well. Those that cannot be linked
/// are left to `moveRest`. Returns what was linked.
llvm::Expected<std::set<FileIdentity>>
linkUserFiles(const std::vector<UserFile> &files, const std::string &folder,
              const std::string &replacement);

/// Removes `old`, a folder that `present` has replaced or was to replace; what
/// is in it, not as its manifest says, and not in `present`, goes there. A file
/// of `linked` was replaced in `old` after it was linked: so it is here.
llvm::Error moveRest(const std::string &old, const std::string &present,
                     const std::set<FileIdentity> &linked = {});

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_PACKAGE_USERFILES_H
