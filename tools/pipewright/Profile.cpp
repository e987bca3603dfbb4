//===- Profile.cpp - What each module of a model takes --------------------===//
//
// See Profile.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Profile.h"

#include "codegen/plan/Plan.h"
#include "passes/pipe/staged/ModelCut.h"
#include "passes/schedules/files/ChromeTrace.h"
#include "passes/schedules/files/PlanValues.h"
#include "support/InputFile.h"
#include "support/Json.h"
#include "support/Text.h"
#include "tools/pipewright/Compilation.h"
#include "tools/pipewright/Messages.h"
#include "tools/pipewright/OutputFile.h"
#include "tools/pipewright/TrialRun.h"

#include "llvm/Support/FormatVariadic.h"

namespace pipewright::tool {

/// The first steps touch memory for the first time.
static constexpr int64_t warmUp = 3, steps = 10;

/// The modules of the model that ranks would share.
static llvm::Expected<std::vector<std::string>>
modulesOf(const CompileOptions &options) {
  Compilation compilation(options);
  if (failed(compilation.open()))
    return codegen::diagnosed();
  auto names = pipe::namesOfLayers(compilation.module());
  if (failed(names))
    return codegen::diagnosed();
  return *names;
}

/// A step's medians, with all that its tasks do but updates.
static double secondsOf(const schedules::MeasuredTimes &times) {
  double seconds = 0;
  for (auto [kind, time] : llvm::enumerate(times))
    if (static_cast<schedules::TaskKind>(kind) != schedules::TaskKind::Update &&
        time > 0)
      seconds += time;
  return seconds;
}

llvm::Error profileModel(const OptionValues &given) {
  for (const OptionSpelling &option : given.of(Verb::Profile))
    if ((option.refusedBy & Verb::Profile) && given.isGiven(option.name))
      return option::fail("profile expects no --", option.name,
                          ": it measures one rank with a stage for each "
                          "module of the model");
  if (given["o"].empty())
    return option::fail("profile expects -o FILE.json, which it writes");
  if (llvm::Error error = checkOutput(given["o"]))
    return error;
  auto whole = readCompileOptions(given, nullptr);
  if (!whole)
    return whole.takeError();
  auto modules = modulesOf(*whole);
  if (!modules)
    return modules.takeError();
  auto options = readCompileOptions(
      given.with("ranks", "1")
          .with("loops", std::to_string(modules->size()))
          .with("schedule", modules->size() > 1 ? "interleaved" : "gpipe")
          .with("balance", "deepspeed-uniform"),
      nullptr);
  if (!options)
    return options.takeError();
  auto folder = codegen::PartialFolder::createTemporary("pipewright-profile-");
  if (!folder)
    return folder.takeError();
  const std::string trace = folder->pathOf("trace.json");
  if (llvm::Error error =
          runTrial(std::move(*options), "profile", "the program", *folder, "0",
                   {"--steps", std::to_string(warmUp + steps), "--trace", trace,
                    "--trace-steps", std::to_string(steps)}))
    return error;
  auto measured = schedules::readChromeTrace(trace);
  if (!measured)
    return measured.takeError();
  auto times = schedules::medianTimes(*measured, modules->size());
  if (!times)
    return times.takeError();
  llvm::json::Array all;
  for (auto [name, one] : llvm::zip_equal(*modules, *times))
    all.push_back(
        llvm::json::Object{{"module", name}, {"seconds", secondsOf(one)}});
  const llvm::json::Value file =
      llvm::json::Object{{"modules", std::move(all)}};
  if (llvm::Error error = writeOutput(given["o"], [&](llvm::raw_ostream &os) {
        os << llvm::formatv("{0:2}", file) << "\n";
      }))
    return error;
  llvm::outs() << "wrote " << text::printable(given["o"])
               << "; compile --balance time:" << text::printable(given["o"])
               << "\n";
  return llvm::Error::success();
}

llvm::Expected<ModuleTimes> readModuleTimes(llvm::StringRef path) {
  llvm::Expected<FileBuffer> text = readTextFile(path);
  if (!text)
    return option::fail("'", path, "' ", llvm::toString(text.takeError()));
  llvm::Expected<llvm::json::Value> file = parseJson((*text)->getBuffer());
  if (!file)
    return option::fail("'", path, "': ", llvm::toString(file.takeError()));
  const llvm::json::Object *all = file->getAsObject();
  const llvm::json::Array *modules = all ? all->getArray("modules") : nullptr;
  if (!modules || modules->empty())
    return option::fail("'", path,
                        "' expects a list 'modules', as pipewright profile "
                        "writes it");
  ModuleTimes times;
  for (auto [number, module] : llvm::enumerate(*modules)) {
    const llvm::json::Object *one = module.getAsObject();
    auto name = one ? one->getString("module") : std::nullopt;
    auto seconds = one ? one->getNumber("seconds") : std::nullopt;
    if (!name || !seconds ||
        !(*seconds >= 0 && *seconds <= schedules::plan::maxSeconds))
      return option::fail("'", path,
                          "' expects 'module' and 'seconds' from 0 to 1E+9 in "
                          "modules[",
                          number, "]");
    times.emplace_back(name->str(), *seconds);
  }
  if (llvm::none_of(llvm::make_second_range(times),
                    [](double seconds) { return seconds > 0; }))
    return option::fail("'", path,
                        "' expects a module that takes more than 0 seconds");
  return times;
}

} // namespace pipewright::tool
