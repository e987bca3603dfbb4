//===- Metrics.h - What people ask of a classifier -------------*- C++ -*-===//
//
// Counted on the rank that has the logits, of evaluations alone.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_METRICS_H
#define PIPEWRIGHT_RUNTIME_TRAIN_METRICS_H

#include "runtime/rank/Worker.h"

#include <string>
#include <utility>
#include <vector>

namespace pipewright::runtime {

enum class Metric { Accuracy, Top5, Perplexity };

/// Reads names between commas; throws an Error that names the option.
std::vector<Metric> parseMetrics(const char *option, const std::string &text);
const char *nameOfMetric(Metric metric);

/// Which input has the labels of the loss, and which of them count; null where
/// none has.
const LabelCount *findLabels(const Program &program);

/// Labels, and the logits over their classes.
struct Classification {
  int64_t labels = -1;
  /// Labels of this value do not count.
  int64_t ignored = INT64_MIN;
  int64_t logits = -1;
  /// The dimension of the logits that is the classes.
  int64_t axis = 0;
};

/// Throws an Error, which says what is missing, unless the program counts the
/// labels of an input for its loss and has an output with logits for each.
Classification findClassification(const Program &program);

/// Throws an Error where the program cannot compute a metric.
void checkMetrics(const Program &program, const std::vector<Metric> &metrics);

/// Sums over labels, or their mean loss and ratios: 0 to 1.
struct Evaluation {
  double loss = 0;
  double right = 0, amongFive = 0;
  double counted = 0;

  /// Name and value of each metric.
  std::vector<std::pair<std::string, double>>
  values(const std::vector<Metric> &metrics) const;
};
/// "loss 1.8258   accuracy 45.1 %   perplexity 6.21"
std::string evaluationText(const Evaluation &evaluation,
                           const std::vector<Metric> &metrics);

/// Loads what another BatchIo loads, and counts how often logits are right.
class MetricIo : public BatchIo {
public:
  /// Counts nothing if no metric needs logits.
  MetricIo(const Program &program, BatchIo &batches,
           const std::vector<Metric> &metrics);

  /// Samples of the step that count: those behind them fill it up.
  void setSamples(int64_t count) { samples = count; }
  /// What was counted since the beginning; the loss is not among it.
  const Evaluation &counts() const { return sums; }

  void load(int64_t input, int64_t microBatch, void *destination,
            int64_t bytes) override {
    batches.load(input, microBatch, destination, bytes);
  }
  void store(int64_t output, int64_t microBatch, const void *source,
             int64_t bytes) override;
  bool wants(int64_t output, int64_t microBatch) override {
    return output == classes.logits || batches.wants(output, microBatch);
  }

private:
  void count(int64_t microBatch, const float *logits);

  const Program &program;
  BatchIo &batches;
  Classification classes;
  int64_t samples;
  Evaluation sums;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_METRICS_H
