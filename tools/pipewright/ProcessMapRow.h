//===- ProcessMapRow.h - In which order processes are numbered --*- C++ -*-===//
//
// The option of all commands that know a machine.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_PROCESSMAPROW_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_PROCESSMAPROW_H

#include "runtime/core/Mesh.h"
#include "tools/pipewright/OptionTable.h"

#include <optional>

namespace pipewright::tool {

/// `--process-map`, and what a command makes of `auto`.
OptionSpelling processMapSpelling(llvm::StringRef automatic);
/// Where several are tried.
inline constexpr llvm::StringLiteral kShortestProcessMap =
    "the one with the shortest step, where there are several hosts or ranks "
    "are not alike";

/// None: auto.
llvm::Error readProcessMap(const OptionSpelling &row, const OptionValues &given,
                           std::optional<runtime::ProcessMap> &map);
/// The same, where nothing but links depends on it, which --machine says.
llvm::Error readProcessMapOfMachine(const OptionSpelling &row,
                                    const OptionValues &given,
                                    std::optional<runtime::ProcessMap> &map);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_PROCESSMAPROW_H
