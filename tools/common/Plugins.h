//===- Plugins.h - Shared objects that add to the compiler ------*- C++ -*-===//
//
// A plugin adds schedules, targets or passes. It is loaded before the command
// line is read, because it may add to that.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_COMMON_PLUGINS_H
#define PIPEWRIGHT_TOOLS_COMMON_PLUGINS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace pipewright::tool {

/// The option that names plugins.
inline constexpr llvm::StringLiteral kPluginOption = "load-pass-plugin";

/// Loads the plugins that a command line names, up to `--`. Fails on the first
/// that cannot be loaded or brings nothing: going on without it would only fail
/// later, and less clearly. With `removes` their names are taken off the line.
llvm::Error loadPlugins(llvm::SmallVectorImpl<const char *> &words,
                        bool removes = false);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_COMMON_PLUGINS_H
