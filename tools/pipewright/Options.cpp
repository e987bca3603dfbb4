//===- Options.cpp - What the user asked for ------------------------------===//
//
// Every value is checked here, before the model is even opened, and a bad one
// is named together with what would be right. The options themselves are rows
// in OptionRows.cpp.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Options.h"

#include "support/Text.h"

namespace pipewright::tool {

//===----------------------------------------------------------------------===//
// What plan.json repeats
//===----------------------------------------------------------------------===//

Recorded recordText(const OptionSpelling &row, const OptionValues &given,
                    const CompileOptions &) {
  return text::printable(given[row.name]);
}

Recorded recordGiven(const OptionSpelling &row, const OptionValues &given,
                     const CompileOptions &options) {
  if (row.kind != OptionSpelling::List)
    return given[row.name].empty() ? std::nullopt
                                   : recordText(row, given, options);
  llvm::json::Array all;
  for (const std::string &one : given.all(row.name))
    all.push_back(text::printable(one));
  if (all.empty())
    return std::nullopt;
  return all;
}

Recorded recordFlag(const OptionSpelling &row, const OptionValues &given,
                    const CompileOptions &) {
  return given.isSet(row.name);
}

Recorded recordNothing(const OptionSpelling &, const OptionValues &,
                       const CompileOptions &) {
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

llvm::Expected<CompileOptions> readCompileOptions(const OptionValues &given) {
  auto options = readOptions<CompileOptions>(compileRows(), given);
  if (!options)
    return options;
  for (const auto &[spelling, record, read, key] : compileRows())
    if (auto value = record(spelling, given, *options))
      options->given[key] = std::move(*value);
  return options;
}

} // namespace pipewright::tool
