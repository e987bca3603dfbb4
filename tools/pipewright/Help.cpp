//===- Help.cpp - What --help prints --------------------------------------===//

#include "tools/pipewright/Help.h"

#include "llvm/ADT/SmallVector.h"

using namespace pipewright;
using namespace pipewright::tool;

static constexpr size_t leftWidth = 30, maxWidth = 100;

void pipewright::tool::printRow(llvm::raw_ostream &os, llvm::StringRef left,
                                llvm::StringRef text) {
  os << "  " << left;
  size_t column = left.size() + 2;
  auto goTo = [&](size_t wanted) {
    if (column >= wanted) {
      os << "\n";
      column = 0;
    }
    os.indent(wanted - column);
    column = wanted;
  };
  if (!text.empty())
    goTo(leftWidth);
  llvm::SmallVector<llvm::StringRef> words;
  text.split(words, ' ', -1, /*KeepEmpty=*/false);
  bool isFirst = true;
  for (llvm::StringRef word : words) {
    if (!isFirst && column + 1 + word.size() > maxWidth) {
      goTo(leftWidth);
      isFirst = true;
    }
    os << (isFirst ? "" : " ") << word;
    column += word.size() + !isFirst;
    isFirst = false;
  }
  os << "\n";
}

void pipewright::tool::printHelp(llvm::raw_ostream &os) {
  os << "pipewright: pipelined training programs from ONNX models\n\n";
  for (const Command &command : allCommands())
    printRow(os, (command.name + " " + command.words).str(), command.help);
  os << R"(
A program for a pipeline of two workers, a step of which trains on 8 micro-batches:

  pipewright compile model.onnx -o out --ranks 2 --micro-batches 8 --loss softmax-cross-entropy
  out/train --data tokens=bytes:text.txt --steps 1000

pipewright COMMAND --help lists the options of a command, out/train --help those of a program;
pipewright --version says what this one was built with.
)";
}

/// In the order in which they are printed.
static constexpr std::pair<Heading, llvm::StringRef> headings[] = {
    {Heading::Model, "model"},       {Heading::Pipeline, "pipeline"},
    {Heading::Training, "training"}, {Heading::Target, "target"},
    {Heading::Output, "output"},     {Heading::Drawing, "drawing"},
    {Heading::Expert, "expert"}};

static void printOption(llvm::raw_ostream &os, const OptionSpelling &option) {
  std::string left = (option.name.size() == 1 ? "-" : "--") + option.name;
  if (option.takesValue())
    left += " " + option.valueName;
  std::string text = option.help;
  if (!option.defaultValue.empty())
    text += " (default: " + option.defaultValue + ")";
  printRow(os, left, text);
}

void pipewright::tool::printHelp(llvm::raw_ostream &os, const Command &command,
                                 llvm::ArrayRef<OptionSpelling> options,
                                 bool isAll) {
  os << "pipewright " << command.name << (command.words.empty() ? "" : " ")
     << command.words << " [options]\n\n"
     << command.help << ".\n";
  auto isListed = [&](const OptionSpelling &option) {
    return !option.isWord() && !(option.refusedBy & command.verb);
  };
  for (const auto &[heading, title] : headings) {
    if (heading == Heading::Expert && !isAll)
      continue;
    bool isFirst = true;
    for (const OptionSpelling &option : options) {
      if (option.heading != heading || !isListed(option))
        continue;
      os << (isFirst ? "\n" + title.str() + ":\n" : "");
      isFirst = false;
      printOption(os, option);
    }
  }
  size_t rest = llvm::count_if(options, [&](const OptionSpelling &option) {
    return option.heading == Heading::Expert && isListed(option);
  });
  if (!isAll && rest > 0)
    os << "\n--help-all lists " << rest << " more, for experts\n";
}
