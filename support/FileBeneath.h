//===- FileBeneath.h - Files that a model names -----------------*- C++ -*-===//
//
// A model may come from anywhere, and with it the names of the files that it
// wants read. Only those in its folder are.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_SUPPORT_FILEBENEATH_H
#define PIPEWRIGHT_SUPPORT_FILEBENEATH_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace pipewright {

/// Where `location`, a relative path from a model, really is. Fails where it,
/// or a link on its way, leads out of the folder.
llvm::Expected<std::string> findBeneath(const std::string &folder,
                                        llvm::StringRef location);

} // namespace pipewright

#endif // PIPEWRIGHT_SUPPORT_FILEBENEATH_H
