//===- Metrics.cpp - What people ask of a classifier ----------------------===//

#include "runtime/train/Metrics.h"
#include "runtime/core/Error.h"
#include "runtime/io/Source.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace pipewright::runtime;

static constexpr std::pair<const char *, Metric> names[] = {
    {"accuracy", Metric::Accuracy},
    {"top5", Metric::Top5},
    {"perplexity", Metric::Perplexity}};

std::vector<Metric> pipewright::runtime::parseMetrics(const char *option,
                                                      const std::string &text) {
  std::vector<Metric> metrics;
  for (const std::string &part : splitCommas(text)) {
    const auto found =
        std::find_if(std::begin(names), std::end(names),
                     [&](const auto &name) { return part == name.first; });
    if (found == std::end(names))
      fail(option,
           " expects accuracy, top5 or perplexity, or several with "
           "commas, but got '",
           part, "'");
    metrics.push_back(found->second);
  }
  return metrics;
}

const char *pipewright::runtime::nameOfMetric(Metric metric) {
  for (const auto &[name, each] : names)
    if (each == metric)
      return name;
  return "";
}

//===----------------------------------------------------------------------===//
// Labels and logits
//===----------------------------------------------------------------------===//

static std::vector<int64_t> without(const Table<int64_t> &shape, size_t axis) {
  std::vector<int64_t> rest;
  for (size_t i = 0; i < shape.size(); ++i)
    if (i != axis)
      rest.push_back(shape[i]);
  return rest;
}

/// The dimension of an output that is the classes of these labels; -1: none.
static int64_t classAxis(const OutputInfo &output, const InputInfo &labels) {
  const std::vector<int64_t> shape(labels.shape.begin(), labels.shape.end());
  const int64_t last = static_cast<int64_t>(output.shape.size()) - 1;
  if (output.type != ElementType::F32 || last < 1 || output.shape[last] < 1)
    return -1;
  if (last > 1 && without(output.shape, 1) == shape)
    return 1;
  return elementCount(without(output.shape, last)) == elementCount(shape) ? last
                                                                          : -1;
}

const LabelCount *pipewright::runtime::findLabels(const Program &program) {
  for (const InputInfo &input : program.inputs)
    if (!input.isData())
      return &input.counted;
  return nullptr;
}

Classification pipewright::runtime::findClassification(const Program &program) {
  const LabelCount *labels = findLabels(program);
  if (!labels)
    fail("--metrics: the program's loss has no labels of classes; only "
         "perplexity, of the loss, can be computed");
  Classification found = {.labels = labels->input, .ignored = labels->ignored};
  for (size_t i = 0; i < program.outputs.size(); ++i)
    if (const int64_t axis =
            classAxis(program.outputs[i], program.inputs[found.labels]);
        found.logits < 0 && axis >= 0) {
      found.logits = static_cast<int64_t>(i);
      found.axis = axis;
    }
  if (found.logits < 0)
    fail("--metrics: no output of the program has logits for each label of "
         "input '",
         program.inputs[found.labels].name, "'");
  return found;
}

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

static bool needsLogits(const std::vector<Metric> &metrics) {
  return std::any_of(metrics.begin(), metrics.end(), [](Metric metric) {
    return metric != Metric::Perplexity;
  });
}

void pipewright::runtime::checkMetrics(const Program &program,
                                       const std::vector<Metric> &metrics) {
  if (needsLogits(metrics))
    findClassification(program);
}

MetricIo::MetricIo(const Program &program, BatchIo &batches,
                   const std::vector<Metric> &metrics)
    : program(program), batches(batches),
      samples(program.microBatches * program.microBatchSize) {
  if (needsLogits(metrics))
    classes = findClassification(program);
}

void MetricIo::store(int64_t output, int64_t microBatch, const void *source,
                     int64_t bytes) {
  if (batches.wants(output, microBatch))
    batches.store(output, microBatch, source, bytes);
  if (output == classes.logits)
    count(microBatch, static_cast<const float *>(source));
}

void MetricIo::count(int64_t microBatch, const float *logits) {
  const InputInfo &input = program.inputs[classes.labels];
  std::vector<int64_t> labels(
      elementCount({input.shape.begin(), input.shape.end()}));
  batches.load(classes.labels, microBatch, labels.data(),
               static_cast<int64_t>(labels.size() * sizeof(int64_t)));
  const Table<int64_t> &shape = program.outputs[classes.logits].shape;
  const int64_t count = shape[classes.axis];
  // Logits of one label are `stride` apart.
  int64_t stride = 1;
  for (size_t i = classes.axis + 1; i < shape.size(); ++i)
    stride *= shape[i];
  const int64_t perSample =
      static_cast<int64_t>(labels.size()) / program.microBatchSize;
  for (size_t i = 0; i < labels.size(); ++i) {
    const int64_t number = static_cast<int64_t>(i), label = labels[i];
    const int64_t sample =
        microBatch * program.microBatchSize + number / perSample;
    if (label == classes.ignored || label < 0 || label >= count ||
        sample >= samples)
      continue;
    const float *row =
        logits + number / stride * stride * count + number % stride;
    const float own = row[label * stride];
    int64_t before = std::isnan(own) ? count : 0;
    for (int64_t c = 0; c < count; ++c)
      before += row[c * stride] > own || (row[c * stride] == own && c < label);
    sums.counted += 1;
    sums.right += before == 0;
    sums.amongFive += before < 5;
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

std::vector<std::pair<std::string, double>>
Evaluation::values(const std::vector<Metric> &metrics) const {
  std::vector<std::pair<std::string, double>> all;
  for (const auto &[name, metric] : names)
    if (std::find(metrics.begin(), metrics.end(), metric) != metrics.end())
      all.emplace_back(name, metric == Metric::Perplexity ? std::exp(loss)
                             : metric == Metric::Accuracy
                                 ? right / counted
                                 : amongFive / counted);
  return all;
}

std::string
pipewright::runtime::evaluationText(const Evaluation &evaluation,
                                    const std::vector<Metric> &metrics) {
  char text[64] = "no loss";
  if (!std::isnan(evaluation.loss))
    std::snprintf(text, sizeof text, "loss %.4f", evaluation.loss);
  std::string line = text;
  for (const auto &[name, value] : evaluation.values(metrics)) {
    const bool isRatio = name != "perplexity";
    std::snprintf(text, sizeof text, isRatio ? "   %s %.1f %%" : "   %s %.4g",
                  name.c_str(), isRatio ? 100 * value : value);
    line += text;
  }
  return line;
}
