//===- OptionTable.cpp - Options as rows ----------------------------------===//
//
// See OptionTable.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/OptionTable.h"

#include "support/Text.h"
#include "tools/pipewright/Options.h"

#include "llvm/ADT/StringExtras.h"

namespace cl = llvm::cl;

using namespace pipewright::tool;

cl::OptionCategory &pipewright::tool::compileCategory() {
  static cl::OptionCategory category("Compilation");
  return category;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// An option of some commands, as LLVM has it.
template <class Option>
static std::unique_ptr<Option> makeOption(const OptionRow &row,
                                          const VerbCommands &commands) {
  return std::make_unique<Option>(llvm::StringRef(row.name), cl::desc(row.help),
                                  cl::value_desc(row.valueName),
                                  cl::cat(compileCategory()),
                                  InCommands{commands, row.verbs});
}

OptionValues::OptionValues(llvm::ArrayRef<OptionRow> rows,
                           const VerbCommands &commands)
    : cells(std::make_shared<std::map<std::string, Cell, std::less<>>>()) {
  for (const OptionRow &row : rows) {
    Cell &cell = (*cells)[row.name];
    switch (row.kind) {
    case OptionRow::Value:
      cell.value = makeOption<cl::opt<std::string>>(row, commands);
      cell.value->setInitialValue(row.standard);
      break;
    case OptionRow::List:
      cell.list = makeOption<cl::list<std::string>>(row, commands);
      break;
    case OptionRow::Flag:
      cell.flag = makeOption<cl::opt<bool>>(row, commands);
      break;
    }
  }
}

const OptionValues::Cell &OptionValues::cell(llvm::StringRef name) const {
  auto found = cells->find(name);
  assert(found != cells->end() && "an option without a row");
  return found->second;
}

llvm::StringRef OptionValues::operator[](llvm::StringRef name) const {
  auto other = replaced.find(name);
  return other != replaced.end() ? llvm::StringRef(other->second)
                                 : cell(name).value->getValue();
}
llvm::ArrayRef<std::string> OptionValues::all(llvm::StringRef name) const {
  return *cell(name).list;
}
unsigned OptionValues::position(llvm::StringRef name, unsigned index) const {
  return cell(name).list->getPosition(index);
}
bool OptionValues::isSet(llvm::StringRef flag) const {
  return *cell(flag).flag;
}
bool OptionValues::isGiven(llvm::StringRef name) const {
  return cell(name).value->getNumOccurrences() > 0;
}

OptionValues OptionValues::with(llvm::StringRef name,
                                llvm::StringRef value) const {
  OptionValues other = *this;
  other.replaced[name.str()] = value.str();
  return other;
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

Record pipewright::tool::recordText() {
  return [](const OptionRow &row, const OptionValues &values,
            const CompileOptions &) -> std::optional<llvm::json::Value> {
    return text::printable(values[row.name]);
  };
}

Record pipewright::tool::recordGiven() {
  return [](const OptionRow &row, const OptionValues &values,
            const CompileOptions &) -> std::optional<llvm::json::Value> {
    if (row.kind == OptionRow::Value) {
      if (values[row.name].empty())
        return std::nullopt;
      return text::printable(values[row.name]);
    }
    llvm::json::Array all;
    for (const std::string &one : values.all(row.name))
      all.push_back(text::printable(one));
    if (all.empty())
      return std::nullopt;
    return all;
  };
}

Record pipewright::tool::recordFlag() {
  return [](const OptionRow &row, const OptionValues &values,
            const CompileOptions &) -> std::optional<llvm::json::Value> {
    return values.isSet(row.name);
  };
}

Record pipewright::tool::recordNumber(int64_t CompileOptions::*member) {
  return
      [=](const OptionRow &, const OptionValues &,
          const CompileOptions &options) -> std::optional<llvm::json::Value> {
        return options.*member;
      };
}

Record pipewright::tool::recordNothing() {
  return [](const OptionRow &, const OptionValues &,
            const CompileOptions &) -> std::optional<llvm::json::Value> {
    return std::nullopt;
  };
}
