//===- Staging.cpp - Where inputs wait for the GPU ------------------------===//

#include "runtime/cuda/Staging.h"
#include "runtime/core/Error.h"

using namespace pipewright::runtime;

void Staging::reserve(int64_t bytes) { memory = PinnedMemory(bytes); }

void Staging::begin(const BatchIo &io) {
  if (prefetched != &io)
    rewind();
  prefetched = nullptr;
}

void Staging::rewind() {
  used = 0;
  pieces.clear();
}

const void *Staging::load(BatchIo &io, int64_t input, int64_t microBatch,
                          int64_t bytes) {
  // Loaded before, or wanted by two stages of the rank.
  for (const Piece &piece : pieces)
    if (piece.input == input && piece.microBatch == microBatch &&
        piece.bytes == bytes)
      return piece.data;
  if (used + bytes > memory.bytes())
    fail("a step asks for more input than the program says: ", used + bytes,
         " bytes, but ", memory.bytes(), " are reserved");
  char *data = memory.data() + used;
  used += padded(bytes);
  io.load(input, microBatch, data, bytes);
  pieces.push_back({input, microBatch, bytes, data});
  return data;
}

void Staging::prefetch(BatchIo &next, const Staging &now) {
  rewind();
  for (const Piece &piece : now.pieces)
    load(next, piece.input, piece.microBatch, piece.bytes);
  prefetched = &next;
}
