//===- Batches.cpp - A data set as the steps of a program see it ----------===//

#include "runtime/train/Batches.h"
#include "runtime/core/Error.h"

#include <cstring>

using namespace pipewright::runtime;

/// Where no label is ignored it is the number of a micro-batch's labels, which
/// f32 has exactly.
float Batches::divisorOf(int64_t input, int64_t microBatch) {
  const int64_t begin = microBatch / together * together;
  const auto [known, isNew] = divisors.try_emplace({input, begin}, 1.0f);
  if (!isNew)
    return known->second;
  const LabelCount &counted = dataset.slot(input).info.counted;
  const int64_t size = program.microBatchSize;
  const int64_t copies = dataset.slot(counted.input).batched ? size : 1;
  int64_t count = 0;
  for (int64_t m = begin; m < begin + together; ++m)
    for (int64_t i = 0; i < copies; ++i)
      count += dataset.countLabels(counted, order(m * size + i));
  if (count > 0)
    known->second = static_cast<float>(static_cast<double>(count) / together);
  return known->second;
}

void Batches::load(int64_t input, int64_t microBatch, void *destination,
                   int64_t bytes) {
  const InputSlot &slot = dataset.slot(input);
  microBatch =
      first + program.numberInBatch(microBatch, share.replica, share.replicas);
  if (!slot.info.isData()) {
    const float divisor = divisorOf(input, microBatch);
    std::memcpy(destination, &divisor, sizeof divisor);
    return;
  }
  const int64_t copies = slot.batched ? program.microBatchSize : 1;
  if (bytes != copies * slot.sampleBytes())
    fail("input '", slot.info.name, "' has ", copies * slot.sampleBytes(),
         " bytes in a micro-batch, but its buffer ", bytes);
  for (int64_t i = 0; i < copies; ++i)
    dataset.read(input, order(microBatch * program.microBatchSize + i),
                 static_cast<char *>(destination) + i * slot.sampleBytes());
}

void Batches::store(int64_t output, int64_t microBatch, const void *source,
                    int64_t bytes) {
  if (outputs.empty())
    return;
  std::vector<char> &kept = outputs.at(output);
  kept.resize(program.microBatches * bytes);
  std::memcpy(kept.data() + microBatch * bytes, source, bytes);
}
