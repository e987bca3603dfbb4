//===- OptionTable.cpp - Options as rows ----------------------------------===//
//
// See OptionTable.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/OptionTable.h"

#include "support/NearWords.h"
#include "support/Text.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>

namespace cl = llvm::cl;

using namespace pipewright;
using namespace pipewright::tool;

cl::OptionCategory &pipewright::tool::compileCategory() {
  static cl::OptionCategory category("Compilation");
  return category;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

namespace {

/// Makes an option of LLVM's be what a row says.
struct AsSpelled {
  const OptionSpelling &spelling;
  const VerbCommands &commands;
  /// LLVM keeps no copy of it.
  llvm::StringRef name;

  void apply(cl::Option &option) const {
    option.addCategory(compileCategory());
    if (spelling.isWord())
      option.setFormattingFlag(cl::Positional);
    else
      option.setArgStr(name);
    for (const auto &[verb, command] : commands)
      if (spelling.verbs & verb)
        option.addSubCommand(*command);
  }
};

} // namespace

void OptionValues::add(OptionSpelling spelling, const VerbCommands &commands,
                       unsigned verbs) {
  assert(spelling.heading && "an option that --help would not list");
  auto [place, isNew] = cells.try_emplace(spelling.name);
  assert(isNew && "two options of one name");
  Cell &cell = place->second;
  if (!spelling.verbs)
    spelling.verbs = verbs;
  AsSpelled form{spelling, commands, place->first};
  switch (spelling.kind) {
  case OptionSpelling::Value:
  case OptionSpelling::Word:
    cell.value = std::make_shared<cl::opt<std::string>>(
        form, cl::init(spelling.defaultValue));
    break;
  case OptionSpelling::List:
  case OptionSpelling::Words:
    cell.list = std::make_shared<cl::list<std::string>>(form);
    break;
  case OptionSpelling::Flag:
    cell.flag = std::make_shared<cl::opt<bool>>(form);
    break;
  }
  spellings.push_back(std::move(spelling));
}

std::vector<OptionSpelling> OptionValues::of(Verb verb) const {
  std::vector<OptionSpelling> all;
  llvm::copy_if(spellings, std::back_inserter(all),
                [&](const OptionSpelling &one) { return one.verbs & verb; });
  return all;
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
  return replaced.contains(flag) || *cell(flag).flag;
}
bool OptionValues::isGiven(llvm::StringRef name) const {
  if (replaced.contains(name))
    return true;
  const Cell &found = cell(name);
  if (found.flag)
    return *found.flag;
  return found.list ? !found.list->empty()
                    : found.value->getNumOccurrences() > 0;
}

OptionValues OptionValues::with(llvm::StringRef name,
                                llvm::StringRef value) const {
  OptionValues other = *this;
  other.replaced[name.str()] = value.str();
  return other;
}

OptionValues OptionValues::withDefaults(
    const std::map<std::string, std::string> &values) const {
  OptionValues other = *this;
  for (const auto &[name, value] : values)
    if (!isGiven(name))
      other.replaced[name] = value;
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

std::optional<option::Amount> option::readAmount(llvm::StringRef text) {
  static constexpr std::pair<llvm::StringLiteral, int64_t> units[] = {
      {"B", 1},
      {"bytes", 1},
      {"kB", 1000},
      {"MB", 1000'000},
      {"GB", 1000'000'000},
      {"TB", 1000'000'000'000},
      {"KiB", 1 << 10},
      {"MiB", 1 << 20},
      {"GiB", 1 << 30},
      {"TiB", int64_t(1) << 40}};
  llvm::StringRef digits =
      text.take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
  llvm::StringRef name = text.drop_front(digits.size()).trim();
  auto *unit = llvm::find_if(units, [&](const auto &known) {
    return known.first.equals_insensitive(name);
  });
  Amount amount;
  amount.isBytes = unit != std::end(units);
  int64_t factor = amount.isBytes ? unit->second : 1;
  if (amount.isBytes && digits.contains('.')) {
    double number = 0;
    constexpr double most = 1e18;
    if (!llvm::to_float(digits, number) ||
        number * static_cast<double>(factor) > most)
      return std::nullopt;
    amount.number = std::llround(number * static_cast<double>(factor));
    return amount;
  }
  if (digits.getAsInteger(10, amount.number) ||
      (!name.empty() && !amount.isBytes) ||
      amount.number > std::numeric_limits<int64_t>::max() / factor)
    return std::nullopt;
  amount.number *= factor;
  return amount;
}

llvm::Error option::readBytes(llvm::StringRef option, llvm::StringRef text,
                              int64_t least, int64_t &bytes,
                              llvm::StringRef orElse) {
  std::optional<Amount> amount = readAmount(text);
  if (!amount || !amount->isBytes || amount->number < least)
    return fail("--", option,
                " expects a number of bytes with its unit, such as 16GB, "
                "1.5GiB or 512B",
                orElse.empty() ? "" : ", or ", orElse, ", but got '",
                text::shortened(text), "'");
  bytes = amount->number;
  return llvm::Error::success();
}

llvm::Error option::readSizes(const OptionSpelling &row, Given given,
                              llvm::StringMap<int64_t> &sizes) {
  int64_t size = 0;
  for (llvm::StringRef dim : given.all(row.name)) {
    auto [name, text] = dim.rsplit('=');
    if (name.empty() || text.empty() || !dim.contains('='))
      return fail("--", row.name, " expects NAME=N, but got '", dim, "'");
    if (llvm::Error error =
            readCount((row.name + " " + name).str(), text, size))
      return error;
    if (!sizes.try_emplace(name, size).second)
      return fail("--", row.name, " gives dimension '", name, "' twice");
  }
  return llvm::Error::success();
}

llvm::Error option::readChoice(llvm::StringRef option, llvm::StringRef text,
                               llvm::ArrayRef<llvm::StringRef> choices) {
  if (llvm::is_contained(choices, text))
    return llvm::Error::success();
  return fail("--", option, " expects ", text::listOf(choices), ", but got '",
              text::shortened(text, 64), "'", text::didYouMean(text, choices));
}
