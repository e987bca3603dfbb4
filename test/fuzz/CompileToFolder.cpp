//===- CompileToFolder.cpp - All of the compiler behind a frontend --------===//

#include "test/fuzz/CompileToFolder.h"

#include "test/fuzz/InputFile.h"
#include "tools/pipewright/Compile.h"
#include "tools/pipewright/LevelText.h"

#include "llvm/Support/CommandLine.h"

#include <csignal>
#include <sys/resource.h>

using namespace pipewright;

/// A model of few bytes may ask for weights of many.
static void limitFiles() {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = {64 << 20, 64 << 20};
  setrlimit(RLIMIT_FSIZE, &limit);
}

static const tool::OptionValues &standardOptions() {
  static llvm::cl::SubCommand command("compile");
  static const tool::OptionValues values(
      tool::compileRows(), {{tool::Compile, &command}}, tool::Models);
  return values;
}

int fuzz::compileToFolder(const frontend::ImportOptions &model, int ranks) {
  static const TemporaryFolder folder;
  static const bool isLimited = (limitFiles(), true);
  (void)isLimited;
  auto text = tool::readLevelText(model.modelPath);
  if (!text)
    return llvm::consumeError(text.takeError()), 1;
  auto options =
      tool::readCompileOptions(standardOptions()
                                   .with("model", model.modelPath)
                                   .with("o", folder.path("out"))
                                   .with("ranks", std::to_string(ranks)),
                               std::move(*text));
  // Text of a later level has ranks already.
  if (!options)
    return llvm::consumeError(options.takeError()), 1;
  options->import = model;
  options->build = false;
  return tool::compileModel(*options);
}
