//===- Profile.h - What each module of a model takes ------------*- C++ -*-===//
//
// `pipewright profile`: times for `--balance time:FILE`. A program that has a
// stage for each module is trained for some steps on one rank of this machine,
// so that what is measured are the kernels that a pipeline runs.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_PROFILE_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_PROFILE_H

#include "tools/pipewright/Options.h"

#include <string>
#include <utility>
#include <vector>

namespace pipewright::tool {

/// What of a model was measured, in its order: a module's name and the seconds
/// of its forward and backward of one micro-batch.
using ModuleTimes = std::vector<std::pair<std::string, double>>;

/// Measures the model of a command line and writes the file that -o names.
/// Options that the measurement decides
/// itself, such as --ranks, are refused.
llvm::Error profileModel(const OptionValues &given);

/// What such a file says; errors name it.
llvm::Expected<ModuleTimes> readModuleTimes(llvm::StringRef path);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_PROFILE_H
