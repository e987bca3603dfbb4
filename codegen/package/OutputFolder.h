//===- OutputFolder.h - A folder that appears whole or not ------*- C++ -*-===//
//
// Files are written to a folder beside the wanted one, which takes its place
// when all is done. Whatever fails, nothing half-written is left behind.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_PACKAGE_OUTPUTFOLDER_H
#define PIPEWRIGHT_CODEGEN_PACKAGE_OUTPUTFOLDER_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace pipewright::codegen {

class OutputFolder {
public:
  /// Refuses a path that exists and is not a folder of ours (has no
  /// plan.json), and one that cannot be written.
  static llvm::Expected<OutputFolder> create(llvm::StringRef path);
  OutputFolder(OutputFolder &&other);
  OutputFolder &operator=(OutputFolder &&) = delete;
  /// Removes what was written, unless it was committed.
  ~OutputFolder();

  /// Where files are written until `commit`.
  const std::string &temporary() const { return work; }
  std::string pathOf(llvm::StringRef name) const;

  /// Writes a file, folders above it included.
  llvm::Error write(llvm::StringRef name, llvm::StringRef text);
  llvm::Error
  write(llvm::StringRef name,
        llvm::function_ref<void(llvm::raw_ostream &)> writeContents);
  /// Copies a folder's files that `accept` says yes to.
  llvm::Error copyFolder(llvm::StringRef source, llvm::StringRef name,
                         llvm::function_ref<bool(llvm::StringRef)> accept);

  /// The folder takes its place; an older one of ours is removed.
  llvm::Error commit();

private:
  OutputFolder(std::string wanted, std::string work)
      : wanted(std::move(wanted)), work(std::move(work)) {}

  std::string wanted, work;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_PACKAGE_OUTPUTFOLDER_H
