//===- OptionRows.h - The options of a generated program --------*- C++ -*-===//
//
// One row for each: its name, its line of help, and what it sets.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_OPTIONROWS_H
#define PIPEWRIGHT_RUNTIME_TRAIN_OPTIONROWS_H

#include "runtime/train/Options.h"

#include <functional>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// One option: `name` begins with "--"; `argument` is empty for a flag.
struct OptionRow {
  const char *name;
  const char *argument;
  const char *help;
  std::function<void(Options &, const std::string &)> apply;
  /// Whether it may differ from rank to rank: patience, cores, cards, and files
  /// that only one rank writes or that hosts keep in other places.
  bool isOwn = false;
  /// Taken, but without a meaning here.
  bool isHidden = false;
  /// The argument may be left out.
  bool isOptional = false;
};

/// All of a program for that platform, in the order of --help.
std::vector<OptionRow> optionRowsOf(const Platform &platform);

/// Throws an Error where there are more threads than a placement can name.
void checkThreadsPerRank(const Options &options);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_OPTIONROWS_H
