//===- Batches.h - A data set as the steps of a program see it -*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_BATCHES_H
#define PIPEWRIGHT_RUNTIME_TRAIN_BATCHES_H

#include "runtime/core/Rank.h"
#include "runtime/io/Dataset.h"

#include <functional>
#include <vector>

namespace pipewright::runtime {

/// Loads the samples of one step, and keeps its outputs when asked to.
class Batches : public BatchIo {
public:
  Batches(const Program &program, const Dataset &dataset)
      : program(program), dataset(dataset) {}

  /// Which sample stands at a position of the batch.
  std::function<int64_t(int64_t position)> order;
  /// Filled by `store`, one per output of the program; leave empty for none.
  std::vector<std::vector<char>> outputs;

  /// The next step's, when there is one.
  Batches *following = nullptr;

  int64_t batchSamples() const {
    return program.microBatches * program.microBatchSize;
  }

  void load(int64_t input, int64_t microBatch, void *destination,
            int64_t bytes) override;
  void store(int64_t output, int64_t microBatch, const void *source,
             int64_t bytes) override;
  bool wants(int64_t, int64_t) override { return !outputs.empty(); }
  BatchIo *next() override { return following; }

private:
  const Program &program;
  const Dataset &dataset;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_BATCHES_H
