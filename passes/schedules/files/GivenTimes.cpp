//===- GivenTimes.cpp - What tasks take, said by hand ---------------------===//
//
// See GivenTimes.h. Whatever stands in a text or a file, the answer is times
// that can be simulated, or one error that names the place.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/files/GivenTimes.h"

#include "passes/schedules/files/PlanValues.h"
#include "support/InputFile.h"
#include "support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::schedules::plan;
using llvm::StringRef;

/// Kinds in the order in which messages name them.
static constexpr std::pair<TaskKind, double StageCosts::*> timesByKind[] = {
    {TaskKind::Forward, &StageCosts::forward},
    {TaskKind::Backward, &StageCosts::backward},
    {TaskKind::InputGradient, &StageCosts::inputGradient},
    {TaskKind::WeightGradient, &StageCosts::weightGradient},
    {TaskKind::Recompute, &StageCosts::recompute},
    {TaskKind::Update, &StageCosts::update}};
static_assert(std::size(timesByKind) == numTaskKinds);

static constexpr llvm::StringLiteral stageKey = "stage";
static constexpr size_t maxRows = 1 << 20;

static std::vector<StringRef> keys() {
  // Letters live as long as the program does.
  static const std::vector<std::string> letters = [] {
    std::vector<std::string> all;
    for (auto [kind, place] : timesByKind)
      all.push_back({letterOf(kind)});
    return all;
  }();
  return {letters.begin(), letters.end()};
}

static std::optional<TaskKind> kindOf(StringRef key) {
  for (auto [kind, place] : timesByKind)
    if (key.size() == 1 && key[0] == letterOf(kind))
      return kind;
  return std::nullopt;
}

static constexpr std::pair<llvm::StringLiteral, double> units[] = {
    // The longer ones first, as texts end in them.
    {"ms", 1e-3},
    {"us", 1e-6},
    {"s", 1}};

std::optional<GivenTime> pipewright::schedules::parseTime(StringRef text) {
  constexpr size_t longest = 64;
  if (text.size() > longest)
    return std::nullopt;
  GivenTime time;
  double unit = 1;
  StringRef number = text;
  for (auto [word, seconds] : units) {
    if (!number.consume_back(word))
      continue;
    std::tie(unit, time.hasUnit) = std::pair(seconds, true);
    number = number.rtrim(' ');
    break;
  }
  if (number.getAsDouble(time.value))
    return std::nullopt;
  time.value *= unit;
  return time.value >= 0 && time.value <= maxSeconds ? std::optional(time)
                                                     : std::nullopt;
}

std::pair<double, llvm::StringLiteral>
pipewright::schedules::scaledSeconds(double seconds) {
  const double size = std::abs(seconds);
  if (size >= 1)
    return {seconds, "s"};
  if (size >= 1e-3)
    return {seconds * 1e3, "ms"};
  return {seconds * 1e6, "us"};
}

/// As a person would write it.
static std::string compact(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

std::string GivenTime::describe() const {
  if (!hasUnit)
    return compact(value);
  auto [number, unit] = scaledSeconds(value);
  return compact(number) + unit.str();
}

static llvm::Error refuseTime(StringRef text) {
  return refuse("expects a number from 0 to {0:E0}, with or without s, ms or "
                "us, but got '{1}'",
                maxSeconds, text::shortened(text, 48));
}

namespace {

using Row = std::map<TaskKind, double>;

/// Whether times have units: all or none.
class Units {
public:
  llvm::Error add(const GivenTime &time) {
    if (inSeconds && !time.fits(*inSeconds))
      return refuse("has times with and without a unit: {0} and {1}", first,
                    time.describe());
    if (!inSeconds && time.value > 0) {
      inSeconds = time.hasUnit;
      first = time.describe();
    }
    return llvm::Error::success();
  }
  bool areSeconds() const { return inSeconds.value_or(false); }

private:
  std::optional<bool> inSeconds;
  std::string first;
};

} // namespace

/// Fills in what follows from what is given. A backward is one time or two.
static llvm::Expected<StageCosts> complete(const Row &row) {
  auto has = [&](TaskKind kind) { return row.contains(kind); };
  if (!has(TaskKind::Forward))
    return refuse("expects F, the time of a forward");
  if (has(TaskKind::InputGradient) != has(TaskKind::WeightGradient))
    return refuse("expects I and W together, the two halves of a backward");
  bool isSplit = has(TaskKind::InputGradient);
  if (!isSplit && !has(TaskKind::Backward))
    return refuse("expects B, the time of a backward, or I and W, its halves");
  StageCosts costs;
  for (auto [kind, place] : timesByKind)
    if (has(kind))
      costs.*place = row.at(kind);
  if (!isSplit)
    costs.inputGradient = costs.weightGradient = costs.backward / 2;
  if (!has(TaskKind::Backward))
    costs.backward = costs.inputGradient + costs.weightGradient;
  if (!has(TaskKind::Recompute))
    costs.recompute = costs.forward;
  return costs;
}

//===----------------------------------------------------------------------===//
// On the command line
//===----------------------------------------------------------------------===//

llvm::Expected<GivenTimes> pipewright::schedules::parseTimes(StringRef text) {
  Row row;
  Units units;
  llvm::SmallVector<StringRef> words;
  text.split(words, ',');
  for (StringRef word : words) {
    auto [key, number] = word.split('=');
    std::optional<TaskKind> kind = kindOf(key);
    if (!kind)
      return refuse("does not know the task '{0}'; expects {1}, as in "
                    "F=1,I=.9,W=1.1",
                    text::shortened(key, 48), llvm::join(keys(), ", "));
    std::optional<GivenTime> time = parseTime(number);
    if (!time)
      return refuse("{0} {1}", key, llvm::toString(refuseTime(number)));
    if (llvm::Error error = units.add(*time))
      return std::move(error);
    if (!row.try_emplace(*kind, time->value).second)
      return refuse("has {0} twice", key);
  }
  llvm::Expected<StageCosts> costs = complete(row);
  if (!costs)
    return costs.takeError();
  return GivenTimes{{*costs}, "", units.areSeconds()};
}

//===----------------------------------------------------------------------===//
// In a file
//===----------------------------------------------------------------------===//

namespace {

/// A table, line by line.
class CsvTable {
public:
  CsvTable(StringRef path, Units &units) : path(path), units(units) {}

  llvm::Expected<std::vector<StageCosts>> read(StringRef text);

private:
  llvm::Error readHeader(StringRef text);
  llvm::Error readRow(StringRef text);
  /// An error of the line that is being read.
  llvm::Error at(llvm::Error error) const {
    return refuse("{0}:{1}: {2}", path, line, llvm::toString(std::move(error)));
  }

  StringRef path;
  Units &units;
  /// What each column has; none: the number of the stage.
  std::vector<std::optional<TaskKind>> columns;
  std::vector<StageCosts> rows;
  size_t line = 0;
};

} // namespace

static llvm::SmallVector<StringRef> cellsOf(StringRef text) {
  llvm::SmallVector<StringRef> cells;
  text.split(cells, ',');
  for (StringRef &cell : cells)
    cell = cell.trim();
  return cells;
}

llvm::Error CsvTable::readHeader(StringRef text) {
  llvm::SmallVector<StringRef> cells = cellsOf(text);
  for (auto [i, cell] : llvm::enumerate(cells)) {
    std::optional<TaskKind> kind = kindOf(cell);
    if (!kind && cell != stageKey)
      return refuse("does not know the column '{0}'; expects {1}, {2}",
                    text::shortened(cell, 48), stageKey,
                    llvm::join(keys(), ", "));
    if (llvm::is_contained(columns, kind))
      return refuse("has the column '{0}' twice", cell);
    columns.push_back(kind);
  }
  return llvm::Error::success();
}

llvm::Error CsvTable::readRow(StringRef text) {
  llvm::SmallVector<StringRef> cells = cellsOf(text);
  if (cells.size() != columns.size())
    return refuse("expects {0} cells, as in the header, but got {1}",
                  columns.size(), cells.size());
  if (rows.size() == maxRows)
    return refuse("expects at most {0} rows", maxRows);
  Row row;
  for (auto [kind, cell] : llvm::zip(columns, cells)) {
    size_t stage = 0;
    if (!kind && (cell.getAsInteger(10, stage) || stage != rows.size()))
      return refuse("expects stage {0}, but got '{1}'", rows.size(),
                    text::shortened(cell, 48));
    if (!kind)
      continue;
    std::optional<GivenTime> time = parseTime(cell);
    if (!time)
      return refuse("column {0} {1}", letterOf(*kind),
                    llvm::toString(refuseTime(cell)));
    if (llvm::Error error = units.add(*time))
      return error;
    row[*kind] = time->value;
  }
  llvm::Expected<StageCosts> costs = complete(row);
  if (!costs)
    return costs.takeError();
  rows.push_back(*costs);
  return llvm::Error::success();
}

llvm::Expected<std::vector<StageCosts>> CsvTable::read(StringRef text) {
  // Some programs begin a file with a byte order mark.
  text.consume_front("\xef\xbb\xbf");
  while (!text.empty()) {
    StringRef content;
    std::tie(content, text) = text.split('\n');
    ++line;
    if (content.trim().empty())
      continue;
    llvm::Error error =
        columns.empty() ? readHeader(content) : readRow(content);
    if (error)
      return at(std::move(error));
  }
  return std::move(rows);
}

static llvm::Expected<std::vector<StageCosts>>
readJson(StringRef text, StringRef path, Units &units) {
  llvm::Expected<llvm::json::Value> value = parseJson(text);
  if (!value)
    return refuse("{0}: {1}", path, llvm::toString(value.takeError()));
  if (std::string key = findRepeatedKey(text); !key.empty())
    return refuse("{0}: has '{1}' twice", path, text::shortened(key));
  JsonPath root{nullptr, path};
  if (const llvm::json::Array *list = value->getAsArray();
      list && list->size() > maxRows)
    return refuseAt(root, "expects at most {0} rows", maxRows);
  std::vector<StageCosts> rows;
  auto readRow = [&](const llvm::json::Value &value, const JsonPath &place,
                     size_t number) -> llvm::Error {
    Row row;
    int64_t stage = 0, here = number;
    std::vector<Field> fields = {{stageKey, integer(stage, {here, here})}};
    for (StringRef key : keys())
      fields.push_back(
          {key,
           [&, key](const llvm::json::Value &value,
                    const JsonPath &at) -> llvm::Error {
             std::optional<GivenTime> time;
             if (auto text = value.getAsString())
               time = parseTime(*text);
             double &seconds = row[*kindOf(key)];
             if (!time || !time->hasUnit) {
               if (llvm::Error error = readSeconds(value, at, seconds))
                 return error;
               time = {seconds};
             }
             seconds = time->value;
             if (llvm::Error error = units.add(*time))
               return refuseAt(at, "{0}", llvm::toString(std::move(error)));
             return llvm::Error::success();
           }});
    if (llvm::Error error = readObject(value, place, fields))
      return error;
    llvm::Expected<StageCosts> costs = complete(row);
    if (!costs)
      return refuseAt(place, "{0}", llvm::toString(costs.takeError()));
    rows.push_back(*costs);
    return llvm::Error::success();
  };
  if (llvm::Error error = readEach(*value, root, readRow))
    return std::move(error);
  return rows;
}

llvm::Expected<GivenTimes>
pipewright::schedules::readStageTimes(StringRef path) {
  bool isJson = path.ends_with_insensitive(".json");
  if (!isJson && !path.ends_with_insensitive(".csv"))
    return refuse("expects a file that ends in .csv or .json, but got '{0}'",
                  path);
  llvm::Expected<FileBuffer> buffer = readTextFile(path);
  if (!buffer)
    return refuse("{0}: {1}", path, llvm::toString(buffer.takeError()));
  StringRef text = (*buffer)->getBuffer();
  Units units;
  auto rows =
      isJson ? readJson(text, path, units) : CsvTable(path, units).read(text);
  if (!rows)
    return rows.takeError();
  if (rows->empty())
    return refuse("{0}: expects a row for each stage, but there is none", path);
  return GivenTimes{std::move(*rows), path.str(), units.areSeconds()};
}

//===----------------------------------------------------------------------===//
// Of stages
//===----------------------------------------------------------------------===//

GivenTimes GivenTimes::units() {
  return {{{.forward = 1,
            .backward = 2,
            .inputGradient = 1,
            .weightGradient = 1,
            .recompute = 1}},
          ""};
}

int64_t GivenTimes::stagesPerRow(const Schedule &shape) const {
  int64_t stages = shape.stages / shape.copies;
  int64_t count = rows.size();
  return file.empty() || count >= stages ? 1 : stages / count;
}

llvm::Expected<TaskCosts> GivenTimes::costsOf(const Schedule &shape) const {
  int64_t stages = shape.stages / shape.copies;
  int64_t count = rows.size();
  if (!file.empty() && count % stages != 0 && stages % count != 0)
    return refuse("{0} has {1} row{2}, but the schedule has {3} stage{4}; "
                  "expects a row for each, or a divisor or multiple of {3} "
                  "rows, to be spread over stages or summed",
                  file, count, count == 1 ? "" : "s", stages,
                  stages == 1 ? "" : "s");
  int64_t perStage = file.empty() ? 1 : std::max<int64_t>(1, count / stages);
  int64_t perRow = stagesPerRow(shape);
  double share =
      file.empty() ? static_cast<double>(shape.ranks) / stages : 1.0 / perRow;
  TaskCosts costs;
  costs.stages.resize(shape.stages);
  for (int64_t stage = 0; stage < shape.stages; ++stage)
    for (auto [kind, place] : timesByKind) {
      double sum = 0;
      for (int64_t i = 0; i < perStage; ++i)
        sum += rows[file.empty() ? 0 : stage % stages / perRow * perStage + i].*
               place;
      costs.stages[stage].*place = sum * share;
    }
  return costs;
}

std::string GivenTimes::describe() const {
  if (!file.empty())
    return llvm::sys::path::filename(file).str();
  std::vector<std::string> words;
  for (auto [kind, place] : timesByKind) {
    double time = rows.front().*place;
    bool isUsual =
        (kind == TaskKind::Recompute && time == rows.front().forward) ||
        (kind == TaskKind::Update && time == 0);
    if (!isUsual)
      words.push_back(llvm::formatv("{0}={1}", letterOf(kind),
                                    GivenTime{time, inSeconds}.describe()));
  }
  return llvm::join(words, " ");
}
