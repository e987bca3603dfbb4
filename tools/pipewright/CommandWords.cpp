//===- CommandWords.cpp - The words of a command line ---------------------===//

#include "tools/pipewright/CommandWords.h"

#include "support/NearWords.h"
#include "support/Text.h"
#include "tools/pipewright/FieldWords.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

using namespace pipewright;
using namespace pipewright::tool;
using option::fail;

llvm::ArrayRef<Command> pipewright::tool::allCommands() {
  static constexpr Command commands[] = {
      {Compile, "compile", "MODEL", "Make a training program of a model"},
      {Plan, "plan", "MODEL", "Show what would be decided, without code"},
      {Train, "train", "MODEL",
       "Compile to a temporary folder and run the program; options that are "
       "not "
       "listed here are the program's"},
      {Profile, "profile", "MODEL",
       "Measure the modules of a model, for --balance time:FILE.json"},
      {Preflight, "preflight", "MODEL",
       "Measure the ranks of a program as threads of this machine, say which "
       "are behind, and write a file for --machine; options that are not "
       "listed here are the program's"},
      {Export, "export", "MODEL", "Write the model with trained weights"},
      {Schedules, "schedules", "[NAME[,NAME...]]...",
       "List the schedules, or draw some of them"},
      {Check, "check", "FILE", "Prove or refuse a schedule made elsewhere"},
      {Estimate, "estimate", "",
       "Say whether micro-batches should be larger, by times of one stage"},
      {Machine, "machine", "show|measure|list",
       "Show what predictions are made for, measure it again, or list the "
       "machines that are known by name"},
      {Checkpoint, "checkpoint", "show|verify|export|diff DIR [DIR]",
       "Look at checkpoints that a program has written"},
      {Autopsy, "autopsy", "OUT",
       "Say where each rank of a run stands, or stopped"},
      {Ops, "ops", "", "List the operators that models may have"}};
  return commands;
}

std::string pipewright::tool::namesOfCommands() {
  llvm::SmallVector<llvm::StringRef> names;
  for (const Command &command : allCommands())
    names.push_back(command.name);
  return text::listOf(names);
}

namespace {

/// One reading.
class Reader {
public:
  Reader(const Command &command, std::vector<OptionSpelling> options,
         llvm::function_ref<bool(Verb, llvm::StringRef)> takesOther)
      : command(command), options(std::move(options)), takesOther(takesOther) {
    result.command = &command;
  }

  llvm::Error read(llvm::ArrayRef<llvm::StringRef> words);

  CommandWords result;

private:
  llvm::Error readOption(llvm::StringRef word,
                         llvm::ArrayRef<llvm::StringRef> behind, size_t &taken);
  llvm::Error takeWord(llvm::StringRef word);
  llvm::Error take(const OptionSpelling &option,
                   std::optional<llvm::StringRef> value);
  const OptionSpelling *find(llvm::StringRef name) const;
  llvm::Error unknown(llvm::StringRef name, const FieldWord *field) const;

  const Command &command;
  std::vector<OptionSpelling> options;
  llvm::function_ref<bool(Verb, llvm::StringRef)> takesOther;
  /// What was given for options that have one value.
  llvm::StringMap<std::string> given;
  std::string firstWord;
};

} // namespace

const OptionSpelling *Reader::find(llvm::StringRef name) const {
  for (const OptionSpelling &option : options)
    if (!option.isWord() && option.name == name)
      return &option;
  return nullptr;
}

static std::string dashed(llvm::StringRef name) {
  return (name.size() == 1 ? "-" : "--") + name.str();
}

llvm::Error Reader::unknown(llvm::StringRef name,
                            const FieldWord *field) const {
  std::string shown = text::shortened(dashed(name), 64);
  if (field && !field->advice.empty())
    return fail("there is no ", shown, ": ", field->advice);
  llvm::SmallVector<llvm::StringRef> names;
  for (const OptionSpelling &option : options)
    if (!option.isWord())
      names.push_back(option.name);
  std::string near = text::didYouMean(spelled(name), names, "--");
  return fail("unknown option ", shown,
              near.empty()
                  ? ("; see pipewright " + command.name + " --help").str()
                  : near);
}

/// An option with one value may stand once, so that no value is lost.
llvm::Error Reader::take(const OptionSpelling &option,
                         std::optional<llvm::StringRef> value) {
  std::string name = dashed(option.name);
  auto [place, isFirst] = given.try_emplace(option.name, value.value_or(""));
  if (!option.takesValue()) {
    if (value)
      return fail(name, " takes no value, but got '", text::shortened(*value),
                  "'");
    if (isFirst)
      result.ours.push_back(name);
    return llvm::Error::success();
  }
  if (!value)
    return fail(name, " expects ", option.valueName, ", but nothing follows");
  if (!isFirst && option.kind == OptionSpelling::Value)
    return fail(name, " is given twice, as '",
                text::shortened(place->getValue()), "' and as '",
                text::shortened(*value), "'");
  result.ours.push_back((name + "=" + *value).str());
  return llvm::Error::success();
}

/// `taken` is how many of the words behind belong to it.
llvm::Error Reader::readOption(llvm::StringRef word,
                               llvm::ArrayRef<llvm::StringRef> behind,
                               size_t &taken) {
  auto [name, text] = word.ltrim('-').split('=');
  std::optional<llvm::StringRef> value;
  if (word.contains('='))
    value = text;
  std::string ours = spelled(name);
  if (ours == "h" || ours == "help" || ours == "help-all") {
    result.asksHelp = true;
    result.asksAllHelp |= ours == "help-all";
    return llvm::Error::success();
  }
  if (ours == "version") {
    result.asksVersion = true;
    return llvm::Error::success();
  }
  const OptionSpelling *option = find(name);
  if (!option)
    option = find(ours);
  const FieldWord *field = option ? nullptr : findFieldWord(ours);
  if (field && !field->ours.empty())
    option = find(field->ours);
  if (option) {
    if (option->takesValue() && !value && !behind.empty()) {
      value = behind.front();
      taken = 1;
    }
    return take(*option, value);
  }
  if (takesOther(command.verb, name)) {
    result.ours.push_back(word.str());
    return llvm::Error::success();
  }
  if (!(command.verb & Runs))
    return unknown(name, field);
  result.programs.push_back(word.str());
  return llvm::Error::success();
}

/// A word that is no option: a model, or what the program of `train` takes.
llvm::Error Reader::takeWord(llvm::StringRef word) {
  const OptionSpelling *place = nullptr;
  for (const OptionSpelling &option : options)
    if (option.isWord())
      place = &option;
  bool hasRoom = place && (place->kind == OptionSpelling::Words ||
                           (firstWord.empty() && result.programs.empty()));
  if (hasRoom) {
    firstWord = word.str();
    result.ours.push_back(word.str());
    return llvm::Error::success();
  }
  if (!place && !(command.verb & Runs))
    return fail(command.name, " takes no word, but got '",
                text::shortened(word), "'");
  if (!(command.verb & Runs))
    return fail("expects one ", place->name, ", but got '",
                text::shortened(firstWord), "' and '", text::shortened(word),
                "'", find("o") ? "; where it goes is -o OUT" : "");
  result.programs.push_back(word.str());
  return llvm::Error::success();
}

llvm::Error Reader::read(llvm::ArrayRef<llvm::StringRef> words) {
  while (!words.empty()) {
    llvm::StringRef word = words.front();
    words = words.drop_front();
    if (word == "--" && (command.verb & Runs)) {
      llvm::append_range(result.programs, words);
      break;
    }
    size_t taken = 0;
    bool isOption = word.size() > 1 && word.starts_with("-");
    if (llvm::Error error =
            isOption ? readOption(word, words, taken) : takeWord(word))
      return error;
    words = words.drop_front(taken);
  }
  return llvm::Error::success();
}

static llvm::Expected<const Command *> findCommand(llvm::StringRef word) {
  llvm::SmallVector<llvm::StringRef> names;
  std::string ours = spelled(word);
  if (llvm::StringRef meant = commandMeantBy(ours); !meant.empty())
    ours = meant.str();
  for (const Command &command : allCommands()) {
    if (command.name == ours)
      return &command;
    names.push_back(command.name);
  }
  std::string shown = text::shortened(word, 64);
  if (word.ends_with(".onnx") || word.ends_with(".mlir"))
    return fail("expects a command before the model: pipewright compile ",
                shown, " -o OUT ...");
  if (word.starts_with("-"))
    return fail("expects a command before ", shown, ": ", namesOfCommands());
  std::string near = text::didYouMean(word, names);
  return fail("unknown command '", shown, "'",
              near.empty() ? "; expects " + namesOfCommands() : near);
}

llvm::Expected<CommandWords> pipewright::tool::readCommandWords(
    llvm::ArrayRef<llvm::StringRef> words,
    llvm::function_ref<std::vector<OptionSpelling>(Verb)> optionsOf,
    llvm::function_ref<bool(Verb, llvm::StringRef)> takesOther) {
  CommandWords top;
  if (words.empty())
    return top;
  std::string first = spelled(words.front().ltrim('-'));
  top.asksHelp =
      first == "help" || first == "help-all" || words.front() == "-h";
  top.asksVersion = first == "version" || words.front() == "-V";
  // `pipewright help compile` is `pipewright compile --help`.
  if (top.asksHelp && words.size() > 1) {
    auto command = findCommand(words[1]);
    if (!command)
      return command.takeError();
    top.command = *command;
    top.asksAllHelp = first == "help-all";
  }
  if (top.asksHelp || top.asksVersion)
    return top;
  auto command = findCommand(words.front());
  if (!command)
    return command.takeError();
  Reader reader(**command, optionsOf((*command)->verb), takesOther);
  if (llvm::Error error = reader.read(words.drop_front()))
    return std::move(error);
  return std::move(reader.result);
}
