//===- BestWeights.cpp - The weights that did best on held-out data -------===//

#include "runtime/train/BestWeights.h"
#include "runtime/core/Error.h"
#include "runtime/core/Text.h"
#include "runtime/io/Safetensors.h"
#include "runtime/io/Source.h"
#include "runtime/net/Gather.h"
#include "runtime/train/WeightFiles.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

using namespace pipewright::runtime;

// Of the file's notes.
static constexpr char byKey[] = "best_by", valueKey[] = "best_value",
                      stepKey[] = "best_step";

std::string pipewright::runtime::pathOfBest(const std::string &save) {
  constexpr std::string_view ending = ".safetensors";
  const bool hasEnding = save.ends_with(ending);
  return save.substr(0, save.size() - (hasEnding ? ending.size() : 0)) +
         ".best" + std::string(ending);
}

/// All digits that tell a double from its neighbors.
static std::string textOf(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

BestWeights::BestWeights(const Options &options, Worker &rank, bool resumes)
    : options(options), rank(rank), path(pathOfBest(options.save)) {
  if (!resumes || rank.transport().rank() != 0 ||
      !std::filesystem::exists(path))
    return;
  const auto notes = SafetensorsReader(path).notes();
  const auto by = notes.find(byKey), reached = notes.find(valueKey),
             at = notes.find(stepKey);
  if (by == notes.end() || reached == notes.end() || at == notes.end())
    fail("--keep-best: '", path,
         "' does not say what it has reached: move it to another name");
  if (by->second != nameOfBest(options))
    fail("--keep-best ", nameOfBest(options), ": '", path,
         "' has the weights that were best by ", by->second,
         ": go on with that, or move the file to another name");
  value = std::strtod(reached->second.c_str(), nullptr);
  step = parseInteger("best_step", at->second, 0);
}

bool BestWeights::isBetter(double now) const {
  if (std::isnan(now))
    return false;
  const bool moreIsBetter = options.keepBest != Options::Best::Loss &&
                            options.bestMetric != Metric::Perplexity;
  return !value || (moreIsBetter ? now > *value : now < *value);
}

std::string BestWeights::compare(int64_t done, const Evaluation &evaluation) {
  double now = evaluation.loss;
  if (options.keepBest == Options::Best::Metric)
    now = evaluation.values({options.bestMetric}).front().second;
  const bool speaks = rank.transport().rank() == 0;
  const double better = gatherNumbers(
      rank.transport(), {speaks && isBetter(now) ? 1.0 : 0.0})[0][0];
  if (better == 0)
    return "";
  const std::string trouble = writeWeights(rank, path,
                                           {{byKey, nameOfBest(options)},
                                            {valueKey, textOf(now)},
                                            {stepKey, std::to_string(done)}});
  if (trouble.empty()) {
    value = now;
    step = done;
  }
  return speaks ? trouble : "";
}

std::string BestWeights::summary() const {
  if (!value)
    return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", *value);
  return path + " (" + nameOfBest(options) + " " + text + " after step " +
         std::to_string(step) + ")";
}
