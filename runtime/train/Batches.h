//===- Batches.h - A data set as the steps of a program see it -*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_BATCHES_H
#define PIPEWRIGHT_RUNTIME_TRAIN_BATCHES_H

#include "runtime/io/Dataset.h"
#include "runtime/rank/Worker.h"

#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace pipewright::runtime {

/// What one replica takes of each batch: consecutive micro-batches of those of
/// each update.
struct Share {
  int64_t replica = 0;
  int64_t replicas = 1;

  static Share of(const Worker &rank) {
    return {rank.replica(), rank.wholeProgram().replicas};
  }
};

/// Loads the samples of one step that are this replica's, and keeps its outputs
/// when asked to. Counts the labels that its losses divide by, which are those
/// of all replicas.
class Batches : public BatchIo {
public:
  /// Which sample stands at a position of the batch.
  using Order = std::function<int64_t(int64_t position)>;

  /// Losses divide by the labels of so many micro-batches together; by default
  /// of those of one update.
  Batches(const Program &program, const Dataset &dataset, Share share,
          int64_t dividedTogether = 0)
      : program(program), dataset(dataset), share(share),
        together(dividedTogether ? dividedTogether
                                 : share.replicas * program.microBatches /
                                       program.updates) {}

  /// Begins another step.
  void setOrder(Order newOrder) {
    order = std::move(newOrder);
    first = 0;
    divisors.clear();
  }
  /// The sample at a position of the batch.
  int64_t sampleAt(int64_t position) const { return order(position); }
  /// Begins another step of several that losses divide by together: one that
  /// stands at this micro-batch of the order that is set.
  void moveTo(int64_t microBatch) { first = microBatch; }
  /// Filled by `store`, one per output of the program; leave empty for none.
  std::vector<std::vector<char>> outputs;

  /// The next step's, when there is one.
  Batches *following = nullptr;

  /// Of all replicas.
  int64_t batchSamples() const { return share.replicas * ownSamples(); }
  /// Those of this replica, and the position of each in the batch.
  int64_t ownSamples() const {
    return program.microBatches * program.microBatchSize;
  }
  int64_t ownPosition(int64_t sample) const {
    const int64_t size = program.microBatchSize;
    return program.numberInBatch(sample / size, share.replica, share.replicas) *
               size +
           sample % size;
  }

  void load(int64_t input, int64_t microBatch, void *destination,
            int64_t bytes) override;
  void store(int64_t output, int64_t microBatch, const void *source,
             int64_t bytes) override;
  bool wants(int64_t, int64_t) override { return !outputs.empty(); }
  BatchIo *next() override { return following; }

private:
  float divisorOf(int64_t input, int64_t microBatch);

  const Program &program;
  const Dataset &dataset;
  const Share share;
  const int64_t together;
  Order order;
  /// Where in the order the step begins.
  int64_t first = 0;
  /// The key is the input and the first of the micro-batches that share it.
  std::map<std::pair<int64_t, int64_t>, float> divisors;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_BATCHES_H
