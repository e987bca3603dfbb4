//===- Platform.h - What the ranks of a process compute on -----*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_PLATFORM_H
#define PIPEWRIGHT_RUNTIME_TRAIN_PLATFORM_H

#include "runtime/core/Rank.h"
#include "runtime/net/Transport.h"
#include "runtime/train/Options.h"
#include "runtime/train/Threads.h"

#include <memory>
#include <string>

namespace pipewright::runtime {

/// The ranks of this process, or of a process beside others.
class Platform {
public:
  virtual ~Platform() = default;

  /// Makes the rank that the transport is of; its own thread calls this.
  virtual std::unique_ptr<Rank> createRank(Transport &transport) = 0;
  /// What each rank has, for users: "2 threads each".
  virtual std::string describe() const = 0;
};

/// Sets what libraries read from the environment when they start. The first
/// thing that a program does, for MPI may start them.
void prepareEnvironment(const Program &program, const Options &options);

/// For a process that has all ranks as threads. Throws an Error when the
/// machine has not what the program needs.
std::unique_ptr<Platform> createThreadPlatform(const Program &program,
                                               const Options &options);
/// For a process that is one rank; all processes call it together.
std::unique_ptr<Platform> createProcessPlatform(const Program &program,
                                                const Options &options,
                                                Transport &transport);

/// The text of --dry-run.
std::string dryRunText(const Program &program, const Options &options);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_PLATFORM_H
