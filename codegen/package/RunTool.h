//===- RunTool.h - Other programs that we run -------------------*- C++ -*-===//
//
// Without a shell, by absolute path. A tool never outlives us: it ends when we
// are killed, and an interruption (Interruption.h) ends it with all that it has
// started itself.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_PACKAGE_RUNTOOL_H
#define PIPEWRIGHT_CODEGEN_PACKAGE_RUNTOOL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <sys/types.h>

namespace pipewright::codegen {

/// A tool that was started. Must be waited for.
class Tool {
public:
  /// `command` begins with the path of the tool, which runs in `folder`; what
  /// it prints goes to `log`.
  static llvm::Expected<Tool> start(llvm::ArrayRef<std::string> command,
                                    const std::string &log,
                                    const std::string &folder);
  /// Whether it ended well.
  bool wait();

private:
  explicit Tool(pid_t process) : process(process) {}
  pid_t process;
};

/// Runs a program of ours to its end, in our place: it has our terminal, and
/// signals go to it. When we are killed it is told to end (SIGTERM). Returns
/// its exit code; one that a signal has ended has 128 more than the signal.
llvm::Expected<int> runInOurPlace(llvm::ArrayRef<std::string> command);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_PACKAGE_RUNTOOL_H
