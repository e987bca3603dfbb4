//===- ProcessMapRow.cpp - In which order processes are numbered ----------===//
//
// See ProcessMapRow.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/ProcessMapRow.h"

using namespace pipewright;
using namespace pipewright::tool;

OptionSpelling tool::processMapSpelling(llvm::StringRef automatic) {
  return {
      "process-map", "ORDER",
      ("In which order processes are numbered, as launchers fill hosts in "
       "it: replicas of a rank beside each other, ranks of pipelines, or "
       "pairs: ranks of pipelines in the order 0, P-1, 1, P-2, ...; auto: " +
       automatic)
          .str(),
      "auto"};
}

llvm::Error tool::readProcessMap(const OptionSpelling &row,
                                 const OptionValues &given,
                                 std::optional<runtime::ProcessMap> &map) {
  std::vector<std::pair<llvm::StringRef, std::optional<runtime::ProcessMap>>>
      words = {{"auto", std::nullopt}};
  for (const runtime::ProcessMap each : runtime::allProcessMaps)
    words.push_back({nameOf(each), each});
  return option::readWord<std::optional<runtime::ProcessMap>>(
      row.name, given[row.name], words, map);
}

llvm::Error
tool::readProcessMapOfMachine(const OptionSpelling &row,
                              const OptionValues &given,
                              std::optional<runtime::ProcessMap> &map) {
  if (given.isGiven(row.name) && !given.isGiven("machine"))
    return option::fail(
        "--", row.name,
        " goes with --machine, which says what hosts there are");
  return readProcessMap(row, given, map);
}
