//===- PackedOrder.cpp - The tasks of a rank in few bytes -------*- C++ -*-===//
//
// See PackedOrder.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/PackedOrder.h"

#include "llvm/ADT/DenseMap.h"

#include <cstring>

using namespace pipewright::schedules;

PackedOrder::PackedOrder(llvm::ArrayRef<Task> tasks) {
  // Maps kind, stage and overlap to the number of a series.
  llvm::DenseMap<int64_t, int32_t> numbers;
  std::vector<bool> hasStep;
  std::vector<int32_t> last;
  std::vector<int32_t> numberOf(tasks.size());
  for (auto [i, task] : llvm::enumerate(tasks)) {
    int64_t key =
        (task.stage * int64_t(numTaskKinds) + static_cast<int64_t>(task.kind)) *
            2 +
        task.overlapsNext;
    int32_t number = static_cast<int32_t>(series.size());
    auto [found, isNew] = numbers.try_emplace(key, number);
    number = numberOf[i] = found->second;
    if (isNew) {
      series.push_back({task, 1});
      hasStep.push_back(false);
    } else if (!hasStep[number]) {
      series[number].step = task.microBatch - series[number].next.microBatch;
      hasStep[number] = true;
    }
  }

  code.reserve(tasks.size());
  std::vector<Series> expected = series;
  for (auto [i, task] : llvm::enumerate(tasks)) {
    int32_t number = numberOf[i];
    Series &own = expected[number];
    if (number < writtenOut && own.next == task) {
      code.push_back(static_cast<uint8_t>(number));
    } else {
      int32_t words[] = {number, task.microBatch};
      uint8_t bytes[sizeof(words)];
      std::memcpy(bytes, words, sizeof(words));
      code.push_back(writtenOut);
      code.insert(code.end(), std::begin(bytes), std::end(bytes));
    }
    own.next.microBatch = task.microBatch + own.step;
  }
  code.shrink_to_fit();
  readNext();
  readNext();
}

void PackedOrder::readNext() {
  if (at == code.size())
    return;
  int32_t number = code[at++];
  if (number == writtenOut) {
    int32_t words[2];
    std::memcpy(words, &code[at], sizeof(words));
    at += sizeof(words);
    number = words[0];
    series[number].next.microBatch = words[1];
  }
  Series &own = series[number];
  read[numRead++] = own.next;
  own.next.microBatch += own.step;
}

void PackedOrder::advance() {
  read[0] = read[1];
  --numRead;
  readNext();
}

int64_t PackedOrder::bytes() const {
  return static_cast<int64_t>(code.capacity() +
                              series.capacity() * sizeof(Series));
}
