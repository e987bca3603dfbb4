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

#include "llvm/ADT/STLExtras.h"

#include <set>

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

static std::string lastLineOf(const std::string &path) {
  llvm::Expected<FileBuffer> text = readTextFile(path);
  if (!text) {
    llvm::consumeError(text.takeError());
    return "";
  }
  llvm::StringRef all = (*text)->getBuffer().trim();
  return all.substr(all.rfind('\n') + 1).str();
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
  const std::string printed = folder.pathOf("printed-" + name.str());
  std::set<std::string> withoutLimit;
  while (true) {
    std::vector<std::string> command = {options.output + "/train", "--save",
                                        "none"};
    llvm::append_range(command, arguments);
    for (const std::string &input : *inputs) {
      command.push_back("--data");
      command.push_back(input +
                        (withoutLimit.contains(input) ? "=ones" : "=random"));
    }
    auto tool = codegen::Tool::start(command, printed, folder.path());
    if (!tool)
      return tool.takeError();
    if (tool->wait())
      return llvm::Error::success();
    const std::string last = lastLineOf(printed);
    // Only the program knows which integers an input takes.
    auto isMeant = [&](const std::string &input) {
      return llvm::StringRef(last).contains("'" + input +
                                            "' has no known limit");
    };
    auto meant = llvm::find_if(*inputs, isMeant);
    if (meant == inputs->end() || !withoutLimit.insert(*meant).second)
      return option::fail(asked, ": ", what, " did not run to its end: ", last);
  }
}

} // namespace pipewright::tool
