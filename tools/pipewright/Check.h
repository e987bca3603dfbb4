//===- Check.h - Proves or refuses a schedule from a file -------*- C++ -*-===//
//
// `pipewright check FILE`: no model, no compilation; of use to whoever has a
// schedule of any origin.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHECK_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHECK_H

#include "tools/pipewright/ChosenMachine.h"
#include "tools/pipewright/Draw.h"

#include "passes/schedules/Channels.h"
#include "passes/schedules/ReplicaWorks.h"

#include <optional>

namespace pipewright::tool {

/// What a rank may keep.
struct MemoryLimit {
  int64_t number = 0;
  bool isBytes = false;
  /// As it was given.
  std::string text;
  /// Of each rank, where they differ; empty: `number` is for all.
  std::vector<int64_t> ofRanks = {};

  /// Behind `no rank keeps more`.
  std::string inWords() const {
    if (!ofRanks.empty())
      return "stashes " + text;
    return "than " + text + (isBytes ? "" : " stashes");
  }
};

struct CheckOptions {
  std::string file;
  /// The layouts to judge messages on.
  std::vector<schedules::Channels> layouts;
  std::optional<MemoryLimit> limit;
  /// Copies of all ranks; what the file says unless given.
  std::optional<int64_t> replicas;
  /// How processes are numbered; unless given as the file says, or as is usual
  /// on the machine.
  std::optional<runtime::ProcessMap> processMap;
  /// Adds what they do together.
  std::optional<schedules::Sharding> sharding;
  /// Whose links messages take, and whose memory is a limit.
  std::optional<ChosenMachine> machine;
  /// The file to write the schedule to; empty for none.
  std::string write;
  bool withMessages = false, sendWaits = true;
};

const std::vector<OptionRow<CheckOptions>> &checkRows();

/// Prints what was proven, or fails with what is wrong. An order that can run
/// is drawn, whatever is wrong with its messages.
llvm::Error checkFile(const CheckOptions &options, const DrawOptions &drawings);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHECK_H
