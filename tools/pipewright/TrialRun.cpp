//===- TrialRun.cpp - Programs that are run to be measured ----------------===//
//
// See TrialRun.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/TrialRun.h"

#include "codegen/package/RunTool.h"
#include "support/InputFile.h"
#include "support/Json.h"
#include "tools/pipewright/Compile.h"
#include "tools/pipewright/Messages.h"

namespace pipewright::tool {

/// What a program reads, by the plan beside it.
static llvm::Expected<std::vector<std::string>>
inputsOf(const std::string &program) {
  llvm::Expected<FileBuffer> file = readTextFile(program + "/plan.json");
  if (!file)
    return file.takeError();
  llvm::Expected<llvm::json::Value> plan = parseJson((*file)->getBuffer());
  if (!plan)
    return plan.takeError();
  std::vector<std::string> names;
  if (const llvm::json::Object *all = plan->getAsObject())
    if (const llvm::json::Array *inputs = all->getArray("inputs"))
      for (const llvm::json::Value &input : *inputs)
        names.push_back(input.getAsString().value_or("").str());
  return names;
}

llvm::Error runTrial(CompileOptions options, llvm::StringRef asked,
                     llvm::StringRef what, const codegen::PartialFolder &folder,
                     llvm::StringRef name,
                     const std::vector<std::string> &arguments) {
  if (options.emission != Emission::Program || !options.build)
    return option::fail(asked, " runs programs: leave out what keeps compile "
                               "from building one");
  options.output = folder.pathOf("program-" + name.str());
  if (compileModel(options, /*isTemporary=*/true) != 0)
    return codegen::diagnosed();
  auto inputs = inputsOf(options.output);
  if (!inputs)
    return inputs.takeError();
  std::vector<std::string> command = {options.output + "/train", "--save",
                                      "none"};
  llvm::append_range(command, arguments);
  for (const std::string &input : *inputs) {
    command.push_back("--data");
    command.push_back(input + "=random");
  }
  const std::string printed = folder.pathOf("printed-" + name.str());
  auto tool = codegen::Tool::start(command, printed, folder.path());
  if (!tool)
    return tool.takeError();
  if (tool->wait())
    return llvm::Error::success();
  llvm::Expected<FileBuffer> text = readTextFile(printed);
  llvm::StringRef last;
  if (text)
    last = (*text)->getBuffer().trim().rsplit('\n').second;
  else
    llvm::consumeError(text.takeError());
  return option::fail(asked, ": ", what, " did not run to its end: ", last);
}

} // namespace pipewright::tool
