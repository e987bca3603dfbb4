//===- Check.h - Proves or refuses a schedule from a file -------*- C++ -*-===//
//
// `pipewright check FILE`: no model, no compilation; of use to whoever has a
// schedule of any origin.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHECK_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHECK_H

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace pipewright::tool {

/// The subcommand's options, and what it does with them.
class CheckCommand {
public:
  explicit CheckCommand(llvm::cl::SubCommand &command);
  ~CheckCommand();

  /// Prints what was proven, or fails with what is wrong.
  llvm::Error run() const;

private:
  struct Options;
  std::unique_ptr<Options> options;
};

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHECK_H
