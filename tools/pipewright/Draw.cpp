//===- Draw.cpp - Pictures, pages and traces of schedules -----------------===//
//
// See Draw.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Draw.h"

#include "passes/schedules/drawing/Html.h"
#include "passes/schedules/drawing/Svg.h"
#include "passes/schedules/files/ChromeTrace.h"
#include "tools/pipewright/OutputFile.h"

#include <optional>

using namespace pipewright;
using namespace pipewright::tool;

/// A file to read or to write.
static ReadOption<DrawOptions> file(std::string DrawOptions::*place) {
  return [=](const OptionSpelling &row, const OptionValues &given,
             DrawOptions &options) {
    options.*place = given[row.name].str();
    return given.isGiven(row.name) && given[row.name].empty()
               ? option::fail("--", row.name,
                              " expects a file, but got an empty name")
               : llvm::Error::success();
  };
}

static llvm::Error readMeasured(const OptionSpelling &row,
                                const OptionValues &given,
                                DrawOptions &options) {
  if (llvm::Error error = file(&DrawOptions::measured)(row, given, options))
    return error;
  if (!options.measured.empty() && options.html.empty() &&
      options.trace.empty())
    return option::fail("--measured goes with --html or --trace, which show it "
                        "beside the prediction");
  return llvm::Error::success();
}

const std::vector<OptionRow<DrawOptions>> &tool::drawRows() {
  static const std::vector<OptionRow<DrawOptions>> rows = {
      {{"svg", "FILE.svg", "Draw the schedule to scale"},
       file(&DrawOptions::svg)},
      {{"html", "FILE.html", "Draw it as a page to zoom and ask"},
       file(&DrawOptions::html)},
      {{.name = "trace",
        .valueName = "FILE.json",
        .help = "Write the predicted step as a Chrome trace",
        .verbs = Plan},
       file(&DrawOptions::trace)},
      {{.name = "measured",
        .valueName = "TRACE.json",
        .help = "A program's own --trace, shown beside the prediction by "
                "--html and --trace",
        .verbs = Plan},
       readMeasured}};
  return rows;
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
    if (llvm::Error error =
            writeOutput(options.svg, [&](llvm::raw_ostream &os) {
              os << schedules::drawSvg(picture);
            }))
      return error;
  if (!options.html.empty()) {
    llvm::Expected<std::string> page = schedules::drawHtml(picture);
    if (!page)
      return page.takeError();
    if (llvm::Error error = writeOutput(
            options.html, [&](llvm::raw_ostream &os) { os << *page; }))
      return error;
  }
  if (options.trace.empty())
    return llvm::Error::success();
  return writeOutput(options.trace, [&](llvm::raw_ostream &os) {
    schedules::writeChromeTrace(os, picture.schedule, picture.simulation,
                                picture.measured);
  });
}

llvm::Error tool::drawSchedules(llvm::ArrayRef<SimulatedSchedule> all,
                                const DrawOptions &options) {
  if (!options.any())
    return llvm::Error::success();
  if (all.size() != 1)
    return option::fail("--svg and --html draw one schedule, but got ",
                        all.size());
  return writeDrawings(all.front().picture(), options);
}
