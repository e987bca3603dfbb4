//===- InputFile.h - Files that others have written ------------*- C++ -*-===//
//
// What we are given to read may be anything. Only regular files are read: a
// pipe or a device may never end. The compiler reads no file in another way;
// tools/checks/source sees to it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_SUPPORT_INPUTFILE_H
#define PIPEWRIGHT_SUPPORT_INPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdint>
#include <memory>

namespace pipewright {

using FileBuffer = std::unique_ptr<llvm::MemoryBuffer>;

/// The most bytes of a file that is parsed as text.
inline constexpr uint64_t kMaxTextBytes = uint64_t(256) << 20;

/// What is asked of a file beside that it is a regular one.
struct InputRules {
  uint64_t maxBytes = UINT64_MAX;
  /// Whether the path itself may be a link.
  bool followsLinks = true;
  /// Whether only this user may have written it.
  bool isOurs = false;
};

/// A whole regular file; errors go on after the name of the file.
llvm::Expected<FileBuffer> readRegularFile(llvm::StringRef path,
                                           const InputRules &rules = {});

/// The same of at most kMaxTextBytes, in memory of its own, with a zero behind
/// it: a file that changes while it is parsed changes nothing.
llvm::Expected<FileBuffer> readTextFile(llvm::StringRef path,
                                        bool followsLinks = true);

} // namespace pipewright

#endif // PIPEWRIGHT_SUPPORT_INPUTFILE_H
