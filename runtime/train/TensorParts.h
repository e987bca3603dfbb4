//===- TensorParts.h - Tensors that replicas have parts of -----*- C++ -*-===//
//
// With ZeRO a replica has its part of a stage's flat range. Most tensors lie in
// one part, some begin in one and end in another.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_TENSORPARTS_H
#define PIPEWRIGHT_RUNTIME_TRAIN_TENSORPARTS_H

#include "runtime/core/Program.h"

#include <cstdint>
#include <functional>

namespace pipewright::runtime {

class Worker;

/// Copies bytes of this replica's part, which begins at 0, to memory.
using ReadOwnPart =
    std::function<void(int64_t begin, int64_t bytes, void *destination)>;

/// Puts a tensor together in `whole`, on the replica `home`; elsewhere it is
/// not used. All replicas of the rank call it alike, between steps.
void collectParts(Worker &rank, const TensorInfo &tensor, int64_t home,
                  const ReadOwnPart &read, char *whole);

/// Gives all replicas what each has of `copy`, which is of `original` and has
/// as many elements: of the original they have a part each. All replicas of the
/// rank call it alike, between steps.
void shareParts(Worker &rank, const TensorInfo &original,
                const TensorInfo &copy);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_TENSORPARTS_H
