//===- OptionTable.cpp - Options as rows ----------------------------------===//
//
// See OptionTable.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/OptionTable.h"

namespace cl = llvm::cl;

using namespace pipewright::tool;

cl::OptionCategory &pipewright::tool::compileCategory() {
  static cl::OptionCategory category("Compilation");
  return category;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

namespace {

/// Makes an option of LLVM's be what a row says. LLVM keeps no copy of its
/// texts.
struct AsSpelled {
  const OptionSpelling &spelling;
  const VerbCommands &commands;
  unsigned verbs;

  void apply(cl::Option &option) const {
    bool isWord = spelling.kind == OptionSpelling::Word ||
                  spelling.kind == OptionSpelling::Words;
    option.setDescription(isWord ? spelling.name : spelling.help);
    option.setValueStr(spelling.valueName);
    option.addCategory(compileCategory());
    if (isWord)
      option.setFormattingFlag(cl::Positional);
    else
      option.setArgStr(spelling.name);
    for (const auto &[verb, command] : commands)
      if (verbs & verb)
        option.addSubCommand(*command);
  }
};

} // namespace

void OptionValues::add(const OptionSpelling &spelling,
                       const VerbCommands &commands, unsigned verbs) {
  Cell &cell = cells[spelling.name];
  cell.verbs = spelling.verbs ? spelling.verbs : verbs;
  AsSpelled form{spelling, commands, cell.verbs};
  switch (spelling.kind) {
  case OptionSpelling::Value:
  case OptionSpelling::Word:
    cell.value = std::make_shared<cl::opt<std::string>>(
        form, cl::init(spelling.standard));
    break;
  case OptionSpelling::List:
  case OptionSpelling::Words:
    cell.list = std::make_shared<cl::list<std::string>>(form);
    break;
  case OptionSpelling::Flag:
    cell.flag = std::make_shared<cl::opt<bool>>(form);
    break;
  }
}

bool OptionValues::isOption(llvm::StringRef word, Verb verb,
                            bool &takesNext) const {
  takesNext = false;
  if (!word.consume_front("-"))
    return false;
  word.consume_front("-");
  auto found = cells.find(word.split('=').first);
  if (found == cells.end() || !(found->second.verbs & verb))
    return false;
  takesNext = !found->second.flag && !word.contains('=');
  return true;
}

const OptionValues::Cell &OptionValues::cell(llvm::StringRef name) const {
  auto found = cells.find(name);
  assert(found != cells.end() && "an option without a row");
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
// Readers
//===----------------------------------------------------------------------===//

llvm::Error option::readCount(llvm::StringRef option, llvm::StringRef text,
                              int64_t &count) {
  constexpr int64_t most = 1 << 20;
  if (text.getAsInteger(10, count) || count < 1 || count > most)
    return fail("--", option, " expects a whole number from 1 to ", most,
                ", but got '", text, "'");
  return llvm::Error::success();
}

std::string option::listOf(llvm::ArrayRef<llvm::StringRef> choices) {
  std::string list;
  for (auto [index, choice] : llvm::enumerate(choices)) {
    if (index > 0)
      list += index + 1 == choices.size() ? " or " : ", ";
    list += choice;
  }
  return list;
}

llvm::Error option::readChoice(llvm::StringRef option, llvm::StringRef text,
                               llvm::ArrayRef<llvm::StringRef> choices) {
  if (llvm::is_contained(choices, text))
    return llvm::Error::success();
  return fail("--", option, " expects ", listOf(choices), ", but got '", text,
              "'");
}
