//===- Tuning.cpp - Measures what a search has found ----------------------===//
//
// See Tuning.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Tuning.h"

#include "codegen/package/PartialFolder.h"
#include "codegen/plan/Plan.h"
#include "support/InputFile.h"
#include "support/Json.h"
#include "tools/pipewright/TrialRun.h"

#include <algorithm>

namespace pipewright::tool {

/// The first steps touch memory for the first time.
static constexpr int64_t warmUp = 2, steps = 7;

/// The median of the steps in a program's log; fails where there are too few.
static llvm::Expected<double> medianStep(const std::string &log) {
  llvm::Expected<FileBuffer> file = readTextFile(log);
  if (!file)
    return file.takeError();
  std::vector<double> seconds;
  llvm::SmallVector<llvm::StringRef> lines;
  (*file)->getBuffer().split(lines, '\n');
  for (llvm::StringRef line : lines) {
    llvm::Expected<llvm::json::Value> step = parseJson(line);
    if (!step) {
      llvm::consumeError(step.takeError());
      continue;
    }
    const llvm::json::Object *all = step->getAsObject();
    if (std::optional<double> time = all && all->getInteger("step")
                                         ? all->getNumber("seconds")
                                         : std::nullopt)
      seconds.push_back(*time);
  }
  if (static_cast<int64_t>(seconds.size()) < steps)
    return option::fail("it made ", seconds.size(), " of ", steps, " steps");
  seconds.erase(seconds.begin(), seconds.begin() + warmUp);
  auto middle = seconds.begin() + static_cast<int64_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

/// Builds the program of one and runs it.
static llvm::Expected<double> measure(const ConfigurationSearch &search,
                                      size_t number,
                                      const codegen::PartialFolder &folder) {
  const std::string name = std::to_string(number);
  auto options =
      readCompileOptions(search.valuesOf(search.all()[number]), nullptr);
  if (!options)
    return options.takeError();
  const std::string log = folder.pathOf("steps-" + name + ".jsonl");
  if (llvm::Error error = runTrial(
          std::move(*options), "--tune",
          "the program of " + search.optionsOf(search.all()[number]), folder,
          name, {"--steps", std::to_string(steps), "--log", log}))
    return std::move(error);
  return medianStep(log);
}

llvm::Expected<size_t> tune(const ConfigurationSearch &search, size_t count,
                            llvm::raw_ostream &os) {
  auto folder = codegen::PartialFolder::createTemporary("pipewright-tune-");
  if (!folder)
    return folder.takeError();
  size_t best = 0;
  double shortest = 0;
  for (size_t number = 0; number < std::min(count, search.all().size());
       ++number) {
    llvm::Expected<double> step = measure(search, number, *folder);
    if (!step)
      return step.takeError();
    const Configuration &one = search.all()[number];
    os << "measured " << codegen::formatSeconds(*step) << ", predicted "
       << codegen::formatSeconds(one.step) << ": " << search.optionsOf(one)
       << "\n";
    os.flush();
    if (number == 0 || *step < shortest) {
      shortest = *step;
      best = number;
    }
  }
  os << "taken: " << search.optionsOf(search.all()[best]) << "\n";
  return best;
}

} // namespace pipewright::tool
