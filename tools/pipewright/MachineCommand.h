//===- MachineCommand.h - What predictions are made for ---------*- C++ -*-===//
//
// `pipewright machine show|measure`: the figures of a core of this machine, by
// which CPU programs are predicted.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_MACHINECOMMAND_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_MACHINECOMMAND_H

#include "tools/pipewright/OptionTable.h"

#include <optional>

namespace pipewright::tool {

struct MachineOptions {
  /// Rather than show what was measured before.
  bool measures = false;
  bool asJson = false;
  /// Of another machine than the one here, or its file.
  std::optional<std::string> name;
  /// Where the figures are written to, as JSON; empty: nowhere.
  std::string output;
};

const std::vector<OptionRow<MachineOptions>> &machineRows();

/// Prints the figures; `measure` measures them again and keeps them. Fails
/// where they cannot be kept.
llvm::Error runMachine(const MachineOptions &options);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_MACHINECOMMAND_H
