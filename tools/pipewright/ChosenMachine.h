//===- ChosenMachine.h - A machine that the user names ----------*- C++ -*-===//
//
// `--machine`: predictions and what is decided by them are for a machine that
// may not be here.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHOSENMACHINE_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHOSENMACHINE_H

#include "passes/planning/MachineModel.h"

#include "llvm/Support/Error.h"

#include <map>
#include <optional>
#include <string>

namespace pipewright::tool {

struct ChosenMachine {
  /// For people: `h100`, or the processor that a file is of.
  std::string name;
  MachineModel model;
};

/// `--machine here`: the core at hand, as it was measured.
inline constexpr llvm::StringLiteral kMachineHere = "here";

/// A machine by its name, the one at hand, or what a file that `pipewright
/// machine show -o` has written says of a precision. Errors name the option,
/// what the machine has figures of where it has none of the precision, and of a
/// file the figure that is missing or no number above 0.
llvm::Expected<ChosenMachine> chooseMachine(llvm::StringRef text,
                                            Precision precision);

/// The same where only links and memory are asked for: of the first precision
/// that there are figures of.
llvm::Error readLinks(llvm::StringRef text,
                      std::optional<ChosenMachine> &machine);

/// The same of all precisions that there are figures of.
struct ChosenMachines {
  std::string name;
  MachineModels models;
};
llvm::Expected<ChosenMachines> chooseMachine(llvm::StringRef text);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHOSENMACHINE_H
