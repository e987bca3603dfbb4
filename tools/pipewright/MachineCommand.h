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
  /// Shows what was measured before, or a machine by its name; measures anew;
  /// or lists the names.
  enum class Verb { Show, Measure, List };
  Verb verb = Verb::Show;
  bool asJson = false;
  /// Of another machine than the one here, or its file.
  std::optional<std::string> name;
  /// Where the figures are written to, as JSON; empty: nowhere.
  std::string output;
};

const std::vector<OptionRow<MachineOptions>> &machineRows();

/// Prints the figures, or the machines that are known by name. Fails where what
/// is measured cannot be kept.
llvm::Error runMachine(const MachineOptions &options);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_MACHINECOMMAND_H
