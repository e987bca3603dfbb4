//===- Interruption.h - Ctrl-C and kill clean up ----------------*- C++ -*-===//
//
// A compilation that is told to end (SIGINT, SIGTERM, SIGHUP, or SIGUSR1,
// SIGUSR2, SIGXCPU by a batch system whose time is over) kills the tools
// that it runs, removes the folders that it was writing, says so, and ends by
// the same signal. Until `handleInterruption` was called nothing of this
// happens, but folders and tools may be named all the same.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_PACKAGE_INTERRUPTION_H
#define PIPEWRIGHT_CODEGEN_PACKAGE_INTERRUPTION_H

#include <string>
#include <sys/types.h>

namespace pipewright::codegen {

/// Called once, at the start. A signal that is ignored stays so (nohup).
void handleInterruption();

/// What PartialFolder calls the file that says whose a folder is.
inline constexpr const char *lockName = "lock";

/// Removes a folder and all that is in it, its lock last; follows no link.
/// Calls nothing that a signal handler may not. False if something stays.
bool removeTree(const char *path);

/// Folders that an interruption removes.
void nameFolder(const std::string &path);
void forgetFolder(const std::string &path);

/// Process groups that an interruption kills.
void nameTool(pid_t group);
void forgetTool(pid_t group);

/// While one exists, signals go to this process and do not end us.
class PassSignalsOn {
public:
  explicit PassSignalsOn(pid_t process);
  ~PassSignalsOn();
  PassSignalsOn(const PassSignalsOn &) = delete;
  PassSignalsOn &operator=(const PassSignalsOn &) = delete;
};

/// While one exists, an interruption waits; the destructor lets it happen.
class DeferInterruption {
public:
  DeferInterruption();
  ~DeferInterruption();
  DeferInterruption(const DeferInterruption &) = delete;
  DeferInterruption &operator=(const DeferInterruption &) = delete;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_PACKAGE_INTERRUPTION_H
