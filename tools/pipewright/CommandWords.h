//===- CommandWords.h - The words of a command line -------------*- C++ -*-===//
//
// Reads the words before LLVM does, so that whoever mistypes one gets one line
// that names the way out, in the words of this project.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_COMMANDWORDS_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_COMMANDWORDS_H

#include "tools/pipewright/OptionTable.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace pipewright::tool {

/// A command, as people see it.
struct Command {
  Verb verb;
  llvm::StringRef name;
  /// What stands behind it: `MODEL.onnx`.
  llvm::StringRef words;
  llvm::StringRef help;
};

/// The commands, in the order in which one needs them.
llvm::ArrayRef<Command> allCommands();
/// "compile, plan or check"
std::string namesOfCommands();

/// What a command line asks for.
struct CommandWords {
  /// Null where --help or --version stands alone.
  const Command *command = nullptr;
  bool asksHelp = false, asksAllHelp = false, asksVersion = false;
  /// The words behind the command, each of which its options know: names in our
  /// spelling, each with its value in the same word (`--ranks=4`).
  std::vector<std::string> ours;
  /// The words behind `train` or `preflight` that its program gets.
  std::vector<std::string> programs;
};

/// Fails on the first word that nobody knows. `optionsOf` gives the options of
/// a command, `takesOther` says of an option that is not among them whether
/// somebody else (a plugin) has registered it with LLVM.
llvm::Expected<CommandWords> readCommandWords(
    llvm::ArrayRef<llvm::StringRef> words,
    llvm::function_ref<std::vector<OptionSpelling>(Verb)> optionsOf,
    llvm::function_ref<bool(Verb, llvm::StringRef)> takesOther);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_COMMANDWORDS_H
