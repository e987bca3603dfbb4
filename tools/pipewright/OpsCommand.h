//===- OpsCommand.h - The operators that models may have --------*- C++ -*-===//
//
// `pipewright ops`: the operators of ONNX that are imported.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPSCOMMAND_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPSCOMMAND_H

#include "tools/pipewright/OptionTable.h"

namespace pipewright::tool {

struct OpsOptions {
  bool asJson = false;
  bool asMarkdown = false;
};

const std::vector<OptionRow<OpsOptions>> &opsRows();

/// Prints one operator in each line, by name, with what compiles it.
void printOps(const OpsOptions &options);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPSCOMMAND_H
