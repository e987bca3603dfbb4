//===- OutputFolder.h - A folder that appears whole or not ------*- C++ -*-===//
//
// Files are written to a folder beside the wanted one, which takes its place
// when all is done, in one step of the file system. Whatever fails, and
// whenever the process is killed, the wanted folder is the old one or the new
// one; what is left beside it goes with the next folder that is made there.
//
// In an older folder of ours (it has a manifest, Manifest.h) only the files
// that we wrote are replaced. All others go over into the new folder.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_PACKAGE_OUTPUTFOLDER_H
#define PIPEWRIGHT_CODEGEN_PACKAGE_OUTPUTFOLDER_H

#include "codegen/package/PartialFolder.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace pipewright::codegen {

/// What is done about files that somebody else wrote or changed and that have
/// the name of one of ours.
enum class InTheWay {
  /// Fail, and name them.
  Refuse,
  /// Keep them as NAME.kept.
  Rename
};

class OutputFolder {
public:
  /// Removes what dead processes have left beside the path. Refuses a path that
  /// is no folder, or cannot be written, and, unless told to rename, a folder
  /// that is not ours or whose files somebody has changed. A path that is a
  /// link stands for the folder that it leads to.
  static llvm::Expected<OutputFolder>
  create(llvm::StringRef path, InTheWay inTheWay = InTheWay::Refuse);
  OutputFolder(OutputFolder &&other) = default;
  OutputFolder &operator=(OutputFolder &&) = delete;
  /// Removes what was written, unless it was committed.
  ~OutputFolder() = default;

  /// Where files are written until `commit`: an absolute path.
  std::string temporary() const { return partial.pathOf("building"); }
  std::string pathOf(llvm::StringRef name) const;
  /// What the folder will be, an absolute path without links.
  const std::string &place() const { return wanted; }
  bool renames() const { return inTheWay == InTheWay::Rename; }

  /// Writes a file, folders above it included.
  llvm::Error write(llvm::StringRef name, llvm::StringRef text);
  llvm::Error
  write(llvm::StringRef name,
        llvm::function_ref<void(llvm::raw_ostream &)> writeContents);
  /// Copies a folder's files that `accept` says yes to.
  llvm::Error copyFolder(llvm::StringRef source, llvm::StringRef name,
                         llvm::function_ref<bool(llvm::StringRef)> accept);

  /// The folder, with a manifest of what is in it, takes its place.
  llvm::Error commit();

private:
  OutputFolder(std::string given, std::string wanted, PartialFolder partial,
               InTheWay inTheWay)
      : given(std::move(given)), wanted(std::move(wanted)),
        partial(std::move(partial)), inTheWay(inTheWay) {}

  llvm::Error finish();
  llvm::Error takeOver();
  llvm::Error replace();
  llvm::Error replaceInTwoSteps();
  llvm::Error placeFailure(int reason) const;

  std::string given, wanted;
  PartialFolder partial;
  InTheWay inTheWay;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_PACKAGE_OUTPUTFOLDER_H
