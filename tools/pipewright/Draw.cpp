//===- Draw.cpp - Pictures, pages and traces of schedules -----------------===//
//
// See Draw.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Draw.h"

#include "codegen/package/PartialFolder.h"
#include "codegen/package/RunTool.h"
#include "passes/schedules/drawing/Html.h"
#include "passes/schedules/drawing/Svg.h"
#include "passes/schedules/files/ChromeTrace.h"
#include "support/InputFile.h"
#include "support/Text.h"
#include "tools/pipewright/OutputFile.h"

#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <optional>

using namespace pipewright;
using namespace pipewright::tool;

using enum OptionSpelling::Kind;

static llvm::Error readMeasured(const OptionSpelling &row,
                                const OptionValues &given,
                                DrawOptions &options) {
  if (llvm::Error error =
          option::file(&DrawOptions::measured)(row, given, options))
    return error;
  if (!options.measured.empty() && options.html.empty() &&
      options.trace.empty())
    return option::fail("--measured goes with --html or --trace, which show it "
                        "beside the prediction");
  return llvm::Error::success();
}

/// An option of pictures is a mistake without one.
static llvm::Error needsPicture(const OptionSpelling &row,
                                const DrawOptions &options) {
  return options.hasPicture()
             ? llvm::Error::success()
             : option::fail("--", row.name, " goes with --svg or --pdf");
}

static llvm::Error readTitle(const OptionSpelling &row,
                             const OptionValues &given, DrawOptions &options) {
  if (!given.isGiven(row.name))
    return llvm::Error::success();
  options.style.title = given[row.name].str();
  return needsPicture(row, options);
}

static llvm::Error readNoLegend(const OptionSpelling &row,
                                const OptionValues &given,
                                DrawOptions &options) {
  options.style.hasLegend = !given.isSet(row.name);
  return options.style.hasLegend ? llvm::Error::success()
                                 : needsPicture(row, options);
}

static llvm::Error readWidth(const OptionSpelling &row,
                             const OptionValues &given, DrawOptions &options) {
  constexpr int64_t least = 200, most = 10000;
  if (!given.isGiven(row.name))
    return llvm::Error::success();
  int64_t width = 0;
  if (given[row.name].getAsInteger(10, width) || width < least || width > most)
    return option::fail("--", row.name, " expects a whole number from ", least,
                        " to ", most, ", but got '",
                        text::shortened(given[row.name], 48), "'");
  options.style.width = static_cast<double>(width);
  return needsPicture(row, options);
}

static llvm::Error readGrey(const OptionSpelling &row,
                            const OptionValues &given, DrawOptions &options) {
  options.style.isGrey = given.isSet(row.name);
  return options.style.isGrey ? needsPicture(row, options)
                              : llvm::Error::success();
}

const std::vector<OptionRow<DrawOptions>> &tool::drawRows() {
  static const std::vector<OptionRow<DrawOptions>> rows = under<
      OptionRow<DrawOptions>>(
      Heading::Drawing,
      {{{"svg", "FILE.svg", "Draw it to scale; several on one time axis"},
        option::file(&DrawOptions::svg)},
       {{"pdf", "FILE.pdf",
         "The same as a PDF, made by rsvg-convert (of Debian's librsvg2-bin)"},
        option::file(&DrawOptions::pdf)},
       {{"html", "FILE.html",
         "Write an interactive page; several on one time axis"},
        option::file(&DrawOptions::html)},
       {{"title", "TEXT",
         "Above the picture, instead of the name; an empty one leaves out all "
         "words above the legend"},
        readTitle},
       {{.name = "no-legend", .help = "Draw no legend", .kind = Flag},
        readNoLegend},
       {{"width", "PIXELS",
         "Of the picture, 96 to an inch; what numbers need unless given"},
        readWidth},
       {{.name = "grey",
         .help =
             "Draw for print without colours: shades say kinds, bars at the "
             "foot which stage of the rank",
         .kind = Flag},
        readGrey},
       {{.name = "trace",
         .valueName = "FILE.json",
         .help = "Write the predicted step as a Chrome trace",
         .verbs = Plan},
        option::file(&DrawOptions::trace)},
       {{.name = "measured",
         .valueName = "TRACE.json",
         .help = "A program's own --trace, shown beside the prediction by "
                 "--html and --trace",
         .verbs = Plan},
        readMeasured}});
  return rows;
}

//===----------------------------------------------------------------------===//
// PDF
//===----------------------------------------------------------------------===//

/// A library that draws PDF would be one more to build with; a program that
/// does it is on most machines of people who write papers.
static constexpr llvm::StringLiteral converter = "rsvg-convert";

static llvm::Error writePdf(const std::string &svg, const std::string &path) {
  auto program = llvm::sys::findProgramByName(converter);
  if (!program)
    return option::fail("--pdf expects the program '", converter,
                        "', but it is not there (Debian: apt install "
                        "librsvg2-bin); --svg FILE.svg needs nothing");
  llvm::SmallString<128> prefix;
  llvm::sys::path::system_temp_directory(/*erasedOnReboot=*/true, prefix);
  llvm::sys::path::append(prefix, "pipewright-pdf-");
  auto folder = codegen::PartialFolder::create(prefix);
  if (!folder)
    return folder.takeError();
  std::string from = folder->pathOf("picture.svg"),
              to = folder->pathOf("picture.pdf"), log = folder->pathOf("log");
  if (llvm::Error error =
          writeOutput(from, [&](llvm::raw_ostream &os) { os << svg; }))
    return error;
  auto tool = codegen::Tool::start({*program, "-f", "pdf", "-o", to, from}, log,
                                   folder->path());
  if (!tool)
    return tool.takeError();
  if (!tool->wait()) {
    auto words = readTextFile(log);
    std::string said = words ? (*words)->getBuffer().trim().str()
                             : llvm::toString(words.takeError());
    return option::fail("--pdf: ", *program,
                        " failed: ", text::shortened(said, 300));
  }
  auto pdf = readRegularFile(to);
  if (!pdf)
    return option::fail("--pdf: the file of ", *program, " ",
                        llvm::toString(pdf.takeError()));
  return writeOutput(path,
                     [&](llvm::raw_ostream &os) { os << (*pdf)->getBuffer(); });
}

//===----------------------------------------------------------------------===//
// Drawings
//===----------------------------------------------------------------------===//

/// A page of all, or a trace of the only one, with what a run of that measured.
static llvm::Error
writePages(llvm::MutableArrayRef<schedules::Picture> pictures,
           const DrawOptions &options) {
  schedules::Picture &picture = pictures.front();
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
  if (!options.html.empty()) {
    llvm::Expected<std::string> page = schedules::drawHtml(pictures);
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

llvm::Error
tool::writeDrawings(llvm::MutableArrayRef<schedules::Picture> pictures,
                    const DrawOptions &options) {
  if (pictures.size() != 1 &&
      (!options.trace.empty() || !options.measured.empty()))
    return option::fail(options.trace.empty() ? "--measured" : "--trace",
                        " shows one schedule, but got ", pictures.size(),
                        "; --svg, --pdf and --html draw several");
  if (!options.html.empty() || !options.trace.empty())
    if (llvm::Error error = writePages(pictures, options))
      return error;
  if (!options.hasPicture())
    return llvm::Error::success();
  std::string svg = schedules::drawSvg(pictures, options.style);
  if (!options.svg.empty())
    if (llvm::Error error =
            writeOutput(options.svg, [&](llvm::raw_ostream &os) { os << svg; }))
      return error;
  return options.pdf.empty() ? llvm::Error::success()
                             : writePdf(svg, options.pdf);
}

llvm::Error tool::drawSchedules(llvm::ArrayRef<SimulatedSchedule> all,
                                const DrawOptions &options) {
  if (!options.any())
    return llvm::Error::success();
  std::vector<schedules::Picture> pictures;
  for (const SimulatedSchedule &simulated : all)
    pictures.push_back(simulated.picture());
  return writeDrawings(pictures, options);
}
