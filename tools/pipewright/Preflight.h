//===- Preflight.h - A program's ranks, measured on this machine -*- C++
//-*-===//
//
// `pipewright preflight`: a program is compiled and measures its ranks as
// threads of this machine, instead of training (runtime/train/Preflight.h).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_PREFLIGHT_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_PREFLIGHT_H

#include "tools/pipewright/Options.h"

#include <string>
#include <vector>

namespace pipewright::tool {

/// Measures the ranks that a command line asks for and writes the file that -o
/// names; `arguments` are the program's. Returns the exit code: 1 where a rank
/// or a link is behind the others.
llvm::Expected<int> runPreflight(const OptionValues &given,
                                 llvm::ArrayRef<std::string> arguments);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_PREFLIGHT_H
