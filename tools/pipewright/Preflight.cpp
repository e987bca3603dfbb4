//===- Preflight.cpp - A program's ranks, measured on this machine --------===//
//
// See Preflight.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Preflight.h"

#include "codegen/package/PartialFolder.h"
#include "codegen/package/RunTool.h"
#include "tools/pipewright/Compile.h"
#include "tools/pipewright/LevelText.h"
#include "tools/pipewright/Messages.h"
#include "tools/pipewright/OutputFile.h"

namespace pipewright::tool {

llvm::Expected<int> runPreflight(const OptionValues &given,
                                 llvm::ArrayRef<std::string> arguments) {
  if (given["o"].empty())
    return option::fail("preflight expects -o FILE.json, which it writes");
  if (llvm::Error error = checkOutput(given["o"]))
    return std::move(error);
  auto text = readLevelText(given["model"]);
  if (!text)
    return text.takeError();
  auto options = readCompileOptions(given, std::move(*text));
  if (!options)
    return options.takeError();
  if (options->emission != Emission::Program || !options->build)
    return option::fail("preflight runs a program: leave out what keeps "
                        "compile from building one");
  if (options->target->name() != "cpu")
    return option::fail("preflight measures ranks that are CPUs, not --target ",
                        options->target->name(),
                        ": tools/check-gpu measures GPUs");
  auto folder =
      codegen::PartialFolder::createTemporary("pipewright-preflight-");
  if (!folder)
    return folder.takeError();
  options->output = folder->pathOf("program");
  if (int code = compileModel(*options, /*isTemporary=*/true))
    return code;
  std::vector<std::string> command = {options->output + "/train", "--preflight",
                                      given["o"].str()};
  llvm::append_range(command, arguments);
  auto code = codegen::runInOurPlace(command);
  if (!code)
    return code.takeError();
  return *code == 0 ? 0 : 1;
}

} // namespace pipewright::tool
