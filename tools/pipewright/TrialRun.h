//===- TrialRun.h - Programs that are run to be measured --------*- C++ -*-===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_TRIALRUN_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_TRIALRUN_H

#include "codegen/package/PartialFolder.h"
#include "tools/pipewright/Options.h"

#include <string>
#include <vector>

namespace pipewright::tool {

/// Compiles a model to a program in `folder`, which is called `name`, and
/// trains on random data (ones where integers have no known limit); `arguments`
/// are the program's, such as --steps. Nothing is saved. Fails where the
/// program does not run to its end; `asked` is who wanted it and `what` is run,
/// for messages: "--tune", "the program".
llvm::Error runTrial(CompileOptions options, llvm::StringRef asked,
                     llvm::StringRef what, const codegen::PartialFolder &folder,
                     llvm::StringRef name,
                     const std::vector<std::string> &arguments);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_TRIALRUN_H
