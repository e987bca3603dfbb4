//===- AutopsyCommand.h - Where a run stands or stopped ---------*- C++ -*-===//
//
// `pipewright autopsy OUT`: reads what the flight recorders of all ranks have
// left (flight-rank*.ring) beside the plan of the program, and says which rank
// stands where, who waits for which task of whom, and what the plan says comes
// next.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_AUTOPSYCOMMAND_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_AUTOPSYCOMMAND_H

#include "tools/pipewright/OptionTable.h"

namespace pipewright::tool {

struct AutopsyOptions {
  /// Where the recorders write: the program's folder, or that of --flight.
  std::string folder;
  /// The plan; empty: plan.json in the folder.
  std::string plan;
};

const std::vector<OptionRow<AutopsyOptions>> &autopsyRows();

/// Fails where there is nothing to look at, or it is of another plan.
llvm::Error runAutopsy(const AutopsyOptions &options);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_AUTOPSYCOMMAND_H
