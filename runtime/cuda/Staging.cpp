//===- Staging.cpp - Where inputs wait for the GPU ------------------------===//

#include "runtime/cuda/Staging.h"
#include "runtime/core/Error.h"
#include "runtime/io/Source.h"

using namespace pipewright::runtime;

int64_t Staging::bytesOfStep(const Program &program, int64_t rank) {
  int64_t bytes = 0;
  for (int64_t input : program.ranks[rank].inputs) {
    const InputInfo &info = program.inputs.at(input);
    bytes += padded(elementCount(info.shape) * byteWidth(info.type));
  }
  return bytes * program.microBatches;
}

void Staging::reserve(int64_t bytes) { memory = PinnedMemory(bytes); }

void Staging::begin(const BatchIo &io) {
  if (prefetched != &io)
    rewind();
  prefetched = nullptr;
}

void Staging::rewind() {
  used = 0;
  loaded.clear();
}

const Staging::Piece &Staging::load(BatchIo &io, int64_t input,
                                    int64_t microBatch, int64_t bytes) {
  // Loaded before, or wanted by two stages of the rank.
  for (const Piece &piece : loaded)
    if (piece.input == input && piece.microBatch == microBatch &&
        piece.bytes == bytes)
      return piece;
  if (used + bytes > memory.bytes())
    fail("a step asks for more input than the program says: ", used + bytes,
         " bytes, but ", memory.bytes(), " are reserved");
  char *data = memory.data() + used;
  used += padded(bytes);
  io.load(input, microBatch, data, bytes);
  return loaded.emplace_back(Piece{input, microBatch, bytes, data});
}

void Staging::prefetch(BatchIo &next, const Staging &now) {
  rewind();
  for (const Piece &piece : now.loaded)
    load(next, piece.input, piece.microBatch, piece.bytes);
  prefetched = &next;
}
