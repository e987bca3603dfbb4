//===- Draw.cpp - Pictures, pages and traces of schedules -----------------===//
//
// See Draw.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Draw.h"

#include "passes/schedules/drawing/Html.h"
#include "passes/schedules/drawing/Svg.h"
#include "passes/schedules/files/ChromeTrace.h"
#include "passes/schedules/files/FilePolicy.h"
#include "tools/pipewright/Options.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

#include <optional>

using namespace pipewright;
using namespace pipewright::tool;
namespace cl = llvm::cl;

struct DrawOptionSet::Storage {
  Storage(cl::SubCommand &plan, cl::SubCommand &list)
      : svg("svg", cl::desc("Draw the schedule to scale"),
            cl::value_desc("FILE.svg"), cl::sub(plan), cl::sub(list),
            cl::cat(compileCategory())),
        html("html", cl::desc("Draw it as a page to zoom and ask"),
             cl::value_desc("FILE.html"), cl::sub(plan), cl::sub(list),
             cl::cat(compileCategory())),
        trace("trace", cl::desc("Write the predicted step as a Chrome trace"),
              cl::value_desc("FILE.json"), cl::sub(plan),
              cl::cat(compileCategory())),
        measured("measured",
                 cl::desc("A program's own --trace, shown beside the "
                          "prediction by --html and --trace"),
                 cl::value_desc("TRACE.json"), cl::sub(plan),
                 cl::cat(compileCategory())) {}

  cl::opt<std::string> svg, html, trace, measured;
};

DrawOptionSet::DrawOptionSet(cl::SubCommand &plan, cl::SubCommand &list)
    : storage(std::make_unique<Storage>(plan, list)) {}
DrawOptionSet::~DrawOptionSet() = default;

llvm::Expected<DrawOptions> DrawOptionSet::check() const {
  for (const cl::opt<std::string> *file :
       {&storage->svg, &storage->html, &storage->trace, &storage->measured})
    if (file->getNumOccurrences() && file->empty())
      return llvm::createStringError("--" + file->ArgStr +
                                     " expects a file, but got an empty name");
  DrawOptions options{storage->svg, storage->html, storage->trace,
                      storage->measured};
  if (!options.measured.empty() && options.html.empty() &&
      options.trace.empty())
    return llvm::createStringError("--measured goes with --html or --trace, "
                                   "which show it beside the prediction");
  return options;
}

static llvm::Error
writeFile(llvm::StringRef path,
          llvm::function_ref<void(llvm::raw_ostream &)> write) {
  auto failed = [&](std::error_code error) {
    return llvm::createStringError("cannot write '" + path +
                                   "': " + error.message());
  };
  std::error_code error;
  llvm::ToolOutputFile file(path, error, llvm::sys::fs::OF_None);
  if (error)
    return failed(error);
  write(file.os());
  file.os().flush();
  if (file.os().has_error()) {
    error = file.os().error();
    file.os().clear_error();
    return failed(error);
  }
  file.keep();
  return llvm::Error::success();
}

llvm::Error tool::writeDrawings(schedules::Picture picture,
                                const DrawOptions &options) {
  std::optional<schedules::MeasuredTrace> measured;
  if (!options.measured.empty()) {
    auto trace = schedules::readChromeTrace(options.measured);
    if (!trace)
      return trace.takeError();
    if (llvm::Error error = schedules::checkTrace(*trace, picture.schedule))
      return llvm::createStringError("trace '" + options.measured + "' " +
                                     llvm::toString(std::move(error)));
    measured = std::move(*trace);
    picture.measured = &*measured;
  }
  if (!options.svg.empty())
    if (llvm::Error error = writeFile(options.svg, [&](llvm::raw_ostream &os) {
          os << schedules::drawSvg(picture);
        }))
      return error;
  if (!options.html.empty()) {
    llvm::Expected<std::string> page = schedules::drawHtml(picture);
    if (!page)
      return page.takeError();
    if (llvm::Error error = writeFile(
            options.html, [&](llvm::raw_ostream &os) { os << *page; }))
      return error;
  }
  if (options.trace.empty())
    return llvm::Error::success();
  return writeFile(options.trace, [&](llvm::raw_ostream &os) {
    schedules::writeChromeTrace(os, picture.schedule, picture.simulation,
                                picture.measured);
  });
}

llvm::Error tool::drawSchedule(llvm::ArrayRef<std::string> names,
                               const ScheduleSizes &sizes,
                               const DrawOptions &options) {
  if (names.size() != 1)
    return llvm::createStringError(
        "--svg and --html draw one schedule, but got " +
        std::to_string(names.size()) +
        " names; see 'pipewright schedules' for all of them");
  auto choice = schedules::chooseSchedule(names.front());
  if (!choice)
    return choice.takeError();
  llvm::Expected<schedules::Schedule> schedule =
      (*choice)->build(sizedOptions(*choice, sizes));
  if (!schedule)
    return schedule.takeError();
  auto costs = schedules::TaskCosts::uniform(schedule->stages, 1, 2);
  auto simulation = schedules::simulate(*schedule, costs);
  if (!simulation)
    return simulation.takeError();
  // Of a file, its name is enough.
  schedules::Picture picture{llvm::sys::path::filename(names.front()).str(),
                             *schedule, *simulation, costs};
  picture.unitTimes = true;
  return writeDrawings(picture, options);
}
