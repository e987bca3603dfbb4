//===- Batches.cpp - A data set as the steps of a program see it ----------===//

#include "runtime/train/Batches.h"
#include "runtime/core/Error.h"

#include <cstring>

using namespace pipewright::runtime;

void Batches::load(int64_t input, int64_t microBatch, void *destination,
                   int64_t bytes) {
  const InputSlot &slot = dataset.slot(input);
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
