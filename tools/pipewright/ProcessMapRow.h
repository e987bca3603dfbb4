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

/// `--process-map`; where `isPlanned`, what `auto` is depends on plans.
OptionSpelling processMapSpelling(bool isPlanned = false);

/// None: auto.
llvm::Error readProcessMap(const OptionSpelling &row, const OptionValues &given,
                           std::optional<runtime::ProcessMap> &map);
/// The same, where nothing but links depends on it, which --machine says.
llvm::Error readProcessMapOfMachine(const OptionSpelling &row,
                                    const OptionValues &given,
                                    std::optional<runtime::ProcessMap> &map);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_PROCESSMAPROW_H
