//===- FigureTable.cpp - Schedules side by side ---------------------------===//
//
// A figure is one entry of `columns`; the formats go through them.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/FigureTable.h"

#include "codegen/plan/Plan.h"
#include "support/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::tool;

namespace {

struct Row {
  const SimulatedSchedule &schedule;
  Figures figures;
};

/// How people read a number.
enum class Show { Plain, Time, Percent, Bytes };

struct Column {
  /// In data; the heading for people has hyphens.
  llvm::StringLiteral key;
  Show show;
  double (*value)(const Row &);
  /// Stands below tables for people; empty: the key says it.
  llvm::StringLiteral meaning = "";
  /// In tables for people, left out where all rows have this value.
  std::optional<double> usual = std::nullopt;
  /// Left out for people where all rows have the same value, which stands above
  /// the table.
  bool standsAbove = false;
};

} // namespace

/// All but the name, which comes first, and what each rank keeps.
static const Column columns[] = {
    {"ranks", Show::Plain,
     [](const Row &row) -> double { return row.schedule.schedule.ranks; }, "",
     std::nullopt, /*standsAbove=*/true},
    {"stages", Show::Plain,
     [](const Row &row) -> double {
       return row.schedule.schedule.stages / row.schedule.schedule.copies;
     }},
    {"micro_batches", Show::Plain,
     [](const Row &row) -> double {
       return row.schedule.schedule.microBatches;
     },
     "", std::nullopt, /*standsAbove=*/true},
    {"step", Show::Time, [](const Row &row) { return row.figures.step; },
     "last end minus first start over all ranks"},
    {"span", Show::Time, [](const Row &row) { return row.figures.span; },
     "the longest rank, from its own first start to its last end"},
    {"busiest", Show::Time, [](const Row &row) { return row.figures.busiest; },
     "the work of the rank that has most"},
    {"bubble", Show::Percent, [](const Row &row) { return row.figures.bubble; },
     "the share of ranks x step in which no task runs"},
    {"activations", Show::Plain,
     [](const Row &row) { return row.figures.activations; },
     "the most that a rank keeps at a time, in what its share of the model "
     "keeps of one micro-batch"},
    {"stashes", Show::Plain,
     [](const Row &row) -> double { return row.figures.stashes; },
     "the same in pairs of stage and micro-batch"},
    {"stash_bytes", Show::Bytes,
     [](const Row &row) -> double { return row.figures.stashBytes; }, "", 0},
    {"messages", Show::Plain,
     [](const Row &row) -> double { return row.figures.messages; },
     "from rank to rank in a step"},
    {"copies", Show::Plain,
     [](const Row &row) -> double { return row.schedule.schedule.copies; }, "",
     1},
    {"versions", Show::Plain,
     [](const Row &row) -> double { return row.figures.versions; }, "", 1},
    {"sums", Show::Plain,
     [](const Row &row) -> double { return row.figures.sums; },
     "of gradients over replicas in a step, on the rank that has most", 0},
    {"gathers", Show::Plain,
     [](const Row &row) -> double { return row.figures.gathers; },
     "of weights, each of a stage, from replicas, likewise", 0},
    {"exposed", Show::Time, [](const Row &row) { return row.figures.exposed; },
     "how much sooner the step would end if what runs beside tasks took no "
     "time",
     0}};

/// As people read it.
static std::string shown(const Column &column, const Row &row) {
  double value = column.value(row);
  switch (column.show) {
  case Show::Plain:
    return numberText(value);
  case Show::Time:
    return row.schedule.inSeconds ? codegen::formatSeconds(value)
                                  : numberText(value);
  case Show::Percent:
    return llvm::formatv("{0:F1} %", 100 * value);
  case Show::Bytes:
    return codegen::formatBytes(static_cast<int64_t>(value));
  }
  llvm_unreachable("unknown way to show a number");
}

static std::string heading(const Column &column) {
  std::string text = column.key.str();
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

static bool isAlike(const Column &column, llvm::ArrayRef<Row> rows) {
  return llvm::all_of(rows, [&](const Row &row) {
    return column.value(row) == column.value(rows.front());
  });
}

/// What people see in the table itself.
static std::vector<const Column *> shownColumns(llvm::ArrayRef<Row> rows) {
  std::vector<const Column *> all;
  for (const Column &column : columns) {
    bool isUsual = column.usual && llvm::all_of(rows, [&](const Row &row) {
                     return column.value(row) == *column.usual;
                   });
    if (!isUsual && !(column.standsAbove && isAlike(column, rows)))
      all.push_back(&column);
  }
  return all;
}

/// `4 ranks, 8 micro-batches; F=1 B=2 I=1 W=1 of a rank's share`
static std::string aboveTable(llvm::ArrayRef<Row> rows) {
  std::vector<std::string> words;
  for (const Column &column : columns)
    if (column.standsAbove && isAlike(column, rows))
      words.push_back(shown(column, rows.front()) + " " + heading(column));
  std::string text = llvm::join(words, ", ");
  bool sameTimes = llvm::all_of(rows, [&](const Row &row) {
    return row.schedule.times == rows.front().schedule.times;
  });
  if (sameTimes)
    text += (text.empty() ? "" : "; ") + rows.front().schedule.times;
  return text;
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

static void printText(llvm::raw_ostream &os, llvm::ArrayRef<Row> rows) {
  std::vector<const Column *> all = shownColumns(rows);
  std::vector<std::vector<std::string>> lines(rows.size() + 1);
  lines[0].push_back("schedule");
  for (const Column *column : all)
    lines[0].push_back(heading(*column));
  for (auto [line, row] : llvm::zip(llvm::drop_begin(lines), rows)) {
    line.push_back(text::shortened(row.schedule.name, 40));
    for (const Column *column : all)
      line.push_back(shown(*column, row));
  }
  std::vector<size_t> widths(lines[0].size());
  for (const auto &line : lines)
    for (auto [width, cell] : llvm::zip(widths, line))
      width = std::max(width, cell.size());
  os << aboveTable(rows) << "\n\n";
  for (const auto &line : lines) {
    os << llvm::left_justify(line[0], widths[0]);
    for (size_t i = 1; i < line.size(); ++i)
      os << "  " << llvm::right_justify(line[i], widths[i]);
    os << "\n";
  }
  os << "\n";
  for (const Column *column : all)
    if (!column->meaning.empty())
      os << column->key << ": " << column->meaning << "\n";
}

static void printLatex(llvm::raw_ostream &os, llvm::ArrayRef<Row> rows) {
  std::vector<const Column *> all = shownColumns(rows);
  os << "% " << text::comment(aboveTable(rows)) << "\n";
  for (const Column *column : all)
    if (!column->meaning.empty())
      os << "% " << column->key << ": " << column->meaning << "\n";
  os << "% \\usepackage{booktabs}\n\\begin{tabular}{l"
     << std::string(all.size(), 'r') << "}\n\\toprule\nschedule";
  for (const Column *column : all)
    os << " & " << heading(*column);
  os << " \\\\\n\\midrule\n";
  for (const Row &row : rows) {
    os << text::latex(row.schedule.name);
    for (const Column *column : all)
      os << " & " << text::latex(shown(*column, row));
    os << " \\\\\n";
  }
  os << "\\bottomrule\n\\end{tabular}\n";
}

/// All digits that matter, none that do not.
static std::string exact(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.12g", value);
  return buffer;
}

static void printCsv(llvm::raw_ostream &os, llvm::ArrayRef<Row> rows) {
  os << "schedule";
  for (const Column &column : columns)
    os << "," << column.key;
  os << ",stashes_of_ranks,times\n";
  for (const Row &row : rows) {
    os << text::csv(row.schedule.name);
    for (const Column &column : columns)
      os << "," << exact(column.value(row));
    os << ",";
    llvm::interleave(row.figures.stashesOfRanks, os, " ");
    os << "," << text::csv(row.schedule.times) << "\n";
  }
}

static void printJson(llvm::raw_ostream &os, llvm::ArrayRef<Row> rows) {
  llvm::json::Array list;
  for (const Row &row : rows) {
    llvm::json::Object object{
        {"schedule", text::printable(row.schedule.name)},
        {"times", text::printable(row.schedule.times)},
        {"stashes_of_ranks", llvm::json::Array(row.figures.stashesOfRanks)}};
    for (const Column &column : columns)
      object[column.key] = column.value(row);
    list.push_back(std::move(object));
  }
  os << llvm::formatv("{0:1}", llvm::json::Value(std::move(list))) << "\n";
}

static constexpr struct {
  llvm::StringLiteral name;
  void (*print)(llvm::raw_ostream &, llvm::ArrayRef<Row>);
} formats[] = {{"text", printText},
               {"csv", printCsv},
               {"latex", printLatex},
               {"json", printJson}};

std::vector<llvm::StringRef> tool::tableFormats() {
  std::vector<llvm::StringRef> names;
  for (const auto &format : formats)
    names.push_back(format.name);
  return names;
}

void tool::printTable(llvm::raw_ostream &os, llvm::StringRef format,
                      llvm::ArrayRef<SimulatedSchedule> schedules) {
  std::vector<Row> rows;
  for (const SimulatedSchedule &schedule : schedules)
    rows.push_back({schedule, schedule.figures()});
  for (const auto &[name, print] : formats)
    if (name == format)
      print(os, rows);
}
