//===- Options.cpp - What the user asked for ------------------------------===//
//
// Every value is checked here, before the model is even opened, and a bad one
// is named together with what would be right. The options themselves are rows
// in OptionRows.cpp.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Options.h"

#include "llvm/ADT/STLExtras.h"

namespace cl = llvm::cl;

namespace pipewright::tool {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

using option::fail;

llvm::Error readCount(llvm::StringRef option, llvm::StringRef text,
                      int64_t &count) {
  constexpr int64_t most = 1 << 20;
  if (text.getAsInteger(10, count) || count < 1 || count > most)
    return fail("--", option, " expects a whole number from 1 to ", most,
                ", but got '", text, "'");
  return llvm::Error::success();
}

std::string listOf(llvm::ArrayRef<llvm::StringRef> choices) {
  std::string list;
  for (auto [index, choice] : llvm::enumerate(choices)) {
    if (index > 0)
      list += index + 1 == choices.size() ? " or " : ", ";
    list += choice;
  }
  return list;
}

llvm::Error readChoice(llvm::StringRef option, llvm::StringRef text,
                       llvm::ArrayRef<llvm::StringRef> choices) {
  if (llvm::is_contained(choices, text))
    return llvm::Error::success();
  return fail("--", option, " expects ", listOf(choices), ", but got '", text,
              "'");
}

//===----------------------------------------------------------------------===//
// All options
//===----------------------------------------------------------------------===//

OptionSet::OptionSet(const VerbCommands &commands)
    : values(optionRows(), commands),
      model(cl::Positional, cl::desc("MODEL.onnx"), cl::cat(compileCategory()),
            InCommands{commands, Models}) {}

bool isTrainOption(llvm::StringRef word, bool &takesNext) {
  takesNext = false;
  if (!word.consume_front("-"))
    return false;
  word.consume_front("-");
  for (const OptionRow &row : optionRows())
    if ((row.verbs & Train) && row.name == word.split('=').first) {
      takesNext = row.kind != OptionRow::Flag && !word.contains('=');
      return true;
    }
  return false;
}

llvm::Expected<CompileOptions>
OptionSet::check(llvm::StringRef schedule) const {
  if (model.empty())
    return fail("expects a model: pipewright COMMAND MODEL.onnx ...");
  CompileOptions options;
  options.import.modelPath = model;
  const OptionValues given =
      schedule.empty() ? values : values.with("schedule", schedule);
  for (const OptionRow &row : optionRows())
    if (row.read)
      if (llvm::Error error = row.read(given, options))
        return std::move(error);
  for (const OptionRow &row : optionRows())
    if (auto value = row.record(row, given, options))
      options.given[row.key] = std::move(*value);
  return options;
}

} // namespace pipewright::tool
