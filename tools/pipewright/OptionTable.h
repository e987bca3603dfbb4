//===- OptionTable.h - Options as rows --------------------------*- C++ -*-===//
//
// All that there is to say of an option stands in its row: what it is called,
// which commands have it, how its value is read, and what plan.json repeats of
// it. A row cannot be made without saying the last.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPTIONTABLE_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPTIONTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::tool {

struct CompileOptions;

/// The commands of pipewright, as sets.
enum Verb : unsigned {
  Compile = 1,
  Plan = 2,
  Train = 4,
  Schedules = 8,
  Check = 16,
  /// Those that compile a model.
  Models = Compile | Plan | Train,
  All = Models | Schedules | Check,
};

using VerbCommands = std::vector<std::pair<Verb, llvm::cl::SubCommand *>>;

/// Registers an option of LLVM's for some commands.
struct InCommands {
  const VerbCommands &commands;
  unsigned verbs;
  template <class Option>
  void apply(Option &option) const {
    for (const auto &[verb, command] : commands)
      if (verbs & verb)
        option.addSubCommand(*command);
  }
};

class OptionValues;
struct OptionRow;

/// What plan.json repeats of an option, if anything.
using Record = std::function<std::optional<llvm::json::Value>(
    const OptionRow &, const OptionValues &, const CompileOptions &)>;

/// The text, be it empty.
Record recordText();
/// The text or texts, where there are any.
Record recordGiven();
Record recordFlag();
/// A number that the options have.
Record recordNumber(int64_t CompileOptions::*member);
/// Of what changes nothing that is compiled, or stands elsewhere in plan.json.
Record recordNothing();

struct OptionRow {
  enum Kind { Value, List, Flag };

  std::string name;
  /// Empty for a flag.
  std::string valueName = {}, help = {};
  Record record;
  /// Checks what was given and puts it into the options; null for what the
  /// command itself asks for. Rows are read in their order.
  std::function<llvm::Error(const OptionValues &, CompileOptions &)> read;
  /// The value that holds unless one is given.
  std::string standard = {};
  unsigned verbs = Models;
  Kind kind = Value;
  /// In plan.json; the name with underscores unless it says another.
  std::string key = {};
};

/// The options of a model, in the order in which they are read.
const std::vector<OptionRow> &optionRows();

/// The values of all rows, registered with LLVM's command line.
class OptionValues {
public:
  OptionValues(llvm::ArrayRef<OptionRow> rows, const VerbCommands &commands);

  /// The text of an option with one value.
  llvm::StringRef operator[](llvm::StringRef name) const;
  /// The texts of one that may be given again, and where on the command line
  /// each stands.
  llvm::ArrayRef<std::string> all(llvm::StringRef name) const;
  unsigned position(llvm::StringRef name, unsigned index) const;
  bool isSet(llvm::StringRef flag) const;
  /// Whether an option with one value was given at all.
  bool isGiven(llvm::StringRef name) const;

  /// The same with another value of one option.
  OptionValues with(llvm::StringRef name, llvm::StringRef value) const;

private:
  struct Cell {
    std::unique_ptr<llvm::cl::opt<std::string>> value;
    std::unique_ptr<llvm::cl::list<std::string>> list;
    std::unique_ptr<llvm::cl::opt<bool>> flag;
  };
  const Cell &cell(llvm::StringRef name) const;

  std::shared_ptr<std::map<std::string, Cell, std::less<>>> cells;
  std::map<std::string, std::string, std::less<>> replaced;
};

llvm::cl::OptionCategory &compileCategory();

namespace option {
/// The error that says all of it.
template <class... Parts>
llvm::Error fail(const Parts &...parts) {
  std::string text;
  llvm::raw_string_ostream os(text);
  (os << ... << parts);
  return llvm::createStringError(text);
}
} // namespace option

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPTIONTABLE_H
