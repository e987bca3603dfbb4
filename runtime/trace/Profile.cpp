//===- Profile.cpp - Where the time of steps goes -------------------------===//

#include "runtime/trace/Profile.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <sstream>

using namespace pipewright::runtime;

void Profile::add(const CallCost &call, double seconds) {
  Row &row = rows[call.name];
  ++row.calls;
  row.seconds += seconds;
  row.bytes += call.bytes;
  row.operations += call.operations;
}

void Profile::endSteps(int64_t count, double seconds) {
  steps += count;
  stepSeconds += seconds;
}

/// Numbers first: names have blanks.
std::string Profile::toText() const {
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  for (const auto &[name, row] : rows)
    text << row.calls << ' ' << row.seconds << ' ' << row.bytes << ' '
         << row.operations << ' ' << name << '\n';
  return text.str();
}

void Profile::merge(const std::string &text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Row other;
    std::string name;
    words >> other.calls >> other.seconds >> other.bytes >> other.operations >>
        std::ws;
    std::getline(words, name);
    Row &row = rows[name];
    row.calls += other.calls;
    row.seconds += other.seconds;
    row.bytes += other.bytes;
    row.operations += other.operations;
  }
}

/// "| 12.3 ", or an empty column where nothing is known.
static std::string column(const char *pattern, double value, bool known) {
  char text[64] = "";
  if (known)
    std::snprintf(text, sizeof text, pattern, value);
  return std::string("| ") + text + " ";
}

std::string Profile::table(int64_t ranks) const {
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return a.second.seconds != b.second.seconds
               ? a.second.seconds > b.second.seconds
               : a.first < b.first;
  });
  double all = 0;
  for (const auto &[name, row] : sorted)
    all += row.seconds;
  const double count = static_cast<double>(std::max<int64_t>(steps, 1));
  std::string text = "| call | calls | ms | share | GB/s | TFLOP/s |\n"
                     "|---|---|---|---|---|---|\n";
  for (const auto &[name, row] : sorted) {
    const bool timed = row.seconds > 0;
    text +=
        "| `" + name + "` " +
        column("%.6g", static_cast<double>(row.calls) / count, true) +
        column("%.3f", row.seconds / count * 1e3, true) +
        column("%.1f %%", all > 0 ? row.seconds / all * 100 : 0, true) +
        column("%.0f", row.bytes / row.seconds / 1e9, timed && row.bytes > 0) +
        column("%.1f", row.operations / row.seconds / 1e12,
               timed && row.operations > 0) +
        "|\n";
  }
  char line[256];
  std::snprintf(line, sizeof line,
                "\nA step took %.3f ms (without CUDA graphs), calls on %lld "
                "rank%s %.3f ms of it together; the mean of %lld.\n",
                stepSeconds / count * 1e3, static_cast<long long>(ranks),
                ranks == 1 ? "" : "s", all / count * 1e3,
                static_cast<long long>(steps));
  return text + line;
}
