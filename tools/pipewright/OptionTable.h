//===- OptionTable.h - Options as rows --------------------------*- C++ -*-===//
//
// All that there is to say of an option stands in its row: what it is called,
// which commands have it, and how its value is read. A table is a list of rows
// whose values go into the same struct.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPTIONTABLE_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPTIONTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::tool {

/// The commands of pipewright, as sets.
enum Verb : unsigned {
  Compile = 1,
  Plan = 2,
  Train = 4,
  Schedules = 8,
  Check = 16,
  Machine = 32,
  Ops = 64,
  Checkpoint = 128,
  Autopsy = 256,
  Export = 512,
  Estimate = 1024,
  Profile = 2048,
  Preflight = 4096,
  /// Those that compile a model.
  Models = Compile | Plan | Train | Profile | Preflight,
  /// Those that hand to its program what they do not know themselves.
  Runs = Train | Preflight,
  All = Models | Schedules | Check | Machine | Ops | Checkpoint | Autopsy |
        Export | Estimate,
};

using VerbCommands = std::vector<std::pair<Verb, llvm::cl::SubCommand *>>;

/// Under which heading --help lists an option. Those for experts are listed by
/// --help-all alone.
enum class Heading {
  Model,
  Pipeline,
  Training,
  Target,
  Output,
  Drawing,
  Expert
};

/// How an option is spelt.
struct OptionSpelling {
  /// `Word` and `Words` stand without a dash; their names are for the usage.
  enum Kind { Value, List, Flag, Word, Words };

  std::string name;
  /// Empty for a flag and for words.
  std::string valueName = {}, help = {};
  /// The value that holds unless one is given.
  std::string defaultValue = {};
  Kind kind = Value;
  /// The commands that have it; those of its table unless the row says others.
  unsigned verbs = 0;
  /// That of its table unless the row says another.
  std::optional<Heading> heading = {};
  /// The commands that have it only to say what to do instead: their --help
  /// does not list it.
  unsigned refusedBy = 0;

  bool isWord() const { return kind == Word || kind == Words; }
  bool takesValue() const { return kind == Value || kind == List; }
};

inline OptionSpelling under(Heading heading, OptionSpelling spelling) {
  spelling.heading = heading;
  return spelling;
}

inline OptionSpelling refusedBy(unsigned verbs, OptionSpelling spelling) {
  spelling.refusedBy = verbs;
  return spelling;
}

class OptionValues;

/// Checks what was given for a row and puts it into the options. Rows are read
/// in their order. It is null where the row of another option reads this one,
/// too.
template <class Options>
using ReadOption = std::function<llvm::Error(const OptionSpelling &,
                                             const OptionValues &, Options &)>;

template <class Options>
struct OptionRow {
  OptionSpelling spelling;
  ReadOption<Options> read;
};

/// The rows under a heading, where they say none themselves.
template <class Row>
std::vector<Row> under(Heading heading, std::vector<Row> rows) {
  for (Row &row : rows)
    if (!row.spelling.heading)
      row.spelling.heading = heading;
  return rows;
}

/// The values of options, registered with LLVM's command line. What stands on
/// that line is read by CommandWords.h first, so that LLVM's reader sees
/// nothing that it would have to complain of.
class OptionValues {
public:
  /// `verbs` are the commands that have the rows.
  template <class Row>
  OptionValues(const std::vector<Row> &rows, const VerbCommands &commands,
               unsigned verbs) {
    for (const Row &row : rows)
      add(row.spelling, commands, verbs);
  }

  /// The options of a command, in the order of their rows.
  std::vector<OptionSpelling> of(Verb verb) const;

  /// The text of an option with one value.
  llvm::StringRef operator[](llvm::StringRef name) const;
  /// The texts of one that may be given again, and where on the command line
  /// each stands.
  llvm::ArrayRef<std::string> all(llvm::StringRef name) const;
  unsigned position(llvm::StringRef name, unsigned index) const;
  bool isSet(llvm::StringRef flag) const;
  /// Whether an option was given at all, here or by `with`.
  bool isGiven(llvm::StringRef name) const;

  /// The same with another value of one option.
  OptionValues with(llvm::StringRef name, llvm::StringRef value) const;
  /// The same with these values for options that were not given.
  OptionValues
  withDefaults(const std::map<std::string, std::string> &values) const;

private:
  struct Cell {
    std::shared_ptr<llvm::cl::opt<std::string>> value;
    std::shared_ptr<llvm::cl::list<std::string>> list;
    std::shared_ptr<llvm::cl::opt<bool>> flag;
  };
  void add(OptionSpelling option, const VerbCommands &commands, unsigned verbs);
  const Cell &cell(llvm::StringRef name) const;

  std::map<std::string, Cell, std::less<>> cells;
  std::vector<OptionSpelling> spellings;
  std::map<std::string, std::string, std::less<>> replaced;
};

/// What was given for all rows; fails on the first bad value.
template <class Options, class Row>
llvm::Expected<Options> readOptions(const std::vector<Row> &rows,
                                    const OptionValues &given) {
  Options options;
  for (const Row &row : rows)
    if (row.read)
      if (llvm::Error error = row.read(row.spelling, given, options))
        return std::move(error);
  return options;
}

llvm::cl::OptionCategory &compileCategory();

namespace option {

using Given = const OptionValues &;

/// The error that says all of it.
template <class... Parts>
llvm::Error fail(const Parts &...parts) {
  std::string text;
  llvm::raw_string_ostream os(text);
  (os << ... << parts);
  return llvm::createStringError(text);
}

/// A whole number from 1 to 2^20; the error names the option.
llvm::Error readCount(llvm::StringRef option, llvm::StringRef text,
                      int64_t &count);

/// A number with or without a unit of bytes: `16GB`, `1.5 MiB`, `3`; whether in
/// capitals does not count.
struct Amount {
  int64_t number = 0;
  bool isBytes = false;
};
/// Nothing for any other text, or where so many bytes cannot be counted.
std::optional<Amount> readAmount(llvm::StringRef text);

/// A number of bytes with its unit; the error names the option, and what else
/// it may be.
llvm::Error readBytes(llvm::StringRef option, llvm::StringRef text,
                      int64_t least, int64_t &bytes,
                      llvm::StringRef orElse = "");

/// Sizes of dimensions, NAME=N.
llvm::Error readSizes(const OptionSpelling &row, const OptionValues &given,
                      llvm::StringMap<int64_t> &sizes);

/// One of some words; the error names the option and all of them.
llvm::Error readChoice(llvm::StringRef option, llvm::StringRef text,
                       llvm::ArrayRef<llvm::StringRef> choices);

/// The word of ours that a text stands for, as the value of an option: that
/// text in our spelling, or what others' word means (FieldWords.h).
std::string wordMeantBy(llvm::StringRef option, llvm::StringRef text);

/// Words, and what each stands for.
template <class Value>
using Words = llvm::ArrayRef<std::pair<llvm::StringRef, Value>>;

template <class Value>
llvm::SmallVector<llvm::StringRef> choicesOf(Words<Value> words) {
  return llvm::to_vector(llvm::make_first_range(words));
}

/// What a word stands for; the error names the option and all words.
template <class Value, class Place>
llvm::Error readWord(llvm::StringRef option, llvm::StringRef text,
                     Words<Value> words, Place &place) {
  std::string meant = wordMeantBy(option, text);
  for (const auto &[word, value] : words)
    if (meant == word)
      place = value;
  if (llvm::is_contained(choicesOf(words), meant))
    return llvm::Error::success();
  return readChoice(option, text, choicesOf(words));
}

//===----------------------------------------------------------------------===//
// Ways to read a row. A place is a member of the options, or a function from
// the options to a reference.
//===----------------------------------------------------------------------===//

/// Puts what `valueOf` takes from the command line into a place.
template <class Place, class ValueOf>
auto put(Place place, ValueOf valueOf) {
  return
      [=](const OptionSpelling &row, const OptionValues &given, auto &options) {
        std::invoke(place, options) = valueOf(given, row.name);
        return llvm::Error::success();
      };
}

template <class Place>
auto anyText(Place place) {
  return put(place, [](Given given, llvm::StringRef name) {
    return given[name].str();
  });
}

/// All texts of one that may be given again.
template <class Place>
auto allTexts(Place place) {
  return put(place, [](Given given, llvm::StringRef name) {
    return given.all(name).vec();
  });
}

template <class Place>
auto flag(Place place) {
  return put(place, std::mem_fn(&OptionValues::isSet));
}

/// A flag against something: `--no-build`.
template <class Place>
auto flagAgainst(Place place) {
  return put(place, std::not_fn(&OptionValues::isSet));
}

/// What `read(name, text, options)` makes of a row that was given.
template <class Options>
ReadOption<Options> ifGiven(llvm::Error (*read)(llvm::StringRef name,
                                                llvm::StringRef text,
                                                Options &options)) {
  return [=](const OptionSpelling &row, Given given, Options &options) {
    return given.isGiven(row.name) ? read(row.name, given[row.name], options)
                                   : llvm::Error::success();
  };
}

/// The name of a file to read or to write.
template <class Place>
auto file(Place place, const char *what = "a file") {
  return [=](const OptionSpelling &row, Given given, auto &options) {
    std::invoke(place, options) = given[row.name].str();
    return given.isGiven(row.name) && given[row.name].empty()
               ? fail(row.name.size() == 1 ? "-" : "--", row.name, " expects ",
                      what, ", but got an empty name")
               : llvm::Error::success();
  };
}

/// A count, if it was given.
template <class Place>
auto count(Place place) {
  return [=](const OptionSpelling &row, const OptionValues &given,
             auto &options) -> llvm::Error {
    if (!given.isGiven(row.name) && row.defaultValue.empty())
      return llvm::Error::success();
    int64_t number = 0;
    if (llvm::Error error = readCount(row.name, given[row.name], number))
      return error;
    std::invoke(place, options) = number;
    return llvm::Error::success();
  };
}

/// What one of some words stands for, if it was given.
template <class Value, class Place>
auto oneOf(Words<Value> words, Place place) {
  return [words = words.vec(), place](const OptionSpelling &row, Given given,
                                      auto &options) -> llvm::Error {
    if (!given.isGiven(row.name) && row.defaultValue.empty())
      return llvm::Error::success();
    return readWord<Value>(row.name, given[row.name], words,
                           std::invoke(place, options));
  };
}

/// One of some words, if it was given.
template <class Place>
auto oneOf(llvm::ArrayRef<llvm::StringRef> choices, Place place) {
  std::vector<std::pair<llvm::StringRef, std::string>> words;
  for (llvm::StringRef choice : choices)
    words.push_back({choice, choice.str()});
  return oneOf<std::string>(words, place);
}

} // namespace option

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_OPTIONTABLE_H
