//===- Staging.cpp - Where inputs wait for the GPU ------------------------===//

#include "runtime/device/Staging.h"

using namespace pipewright::runtime;

void Staging::begin(const BatchIo &io, int64_t bytes) {
  if (prefetched != &io)
    rewind();
  prefetched = nullptr;
  reserve(bytes);
}

void Staging::rewind() {
  chunk = 0;
  used = 0;
  pieces.clear();
  given = 0;
}

void Staging::reserve(int64_t bytes) {
  if (total || !bytes)
    return;
  chunks.emplace_back(bytes);
  total = bytes;
}

const void *Staging::load(BatchIo &io, int64_t input, int64_t microBatch,
                          int64_t bytes) {
  if (given < pieces.size()) {
    const Piece &piece = pieces[given];
    if (piece.input == input && piece.microBatch == microBatch &&
        piece.bytes == bytes)
      return pieces[given++].data;
    // Not what was expected: the rest is of no use, but its room is taken.
    pieces.resize(given);
  }
  ++given;
  return add(io, input, microBatch, bytes);
}

void Staging::prefetch(BatchIo &next, const Staging &now) {
  rewind();
  for (const Piece &piece : now.pieces)
    add(next, piece.input, piece.microBatch, piece.bytes);
  prefetched = &next;
}

const void *Staging::add(BatchIo &io, int64_t input, int64_t microBatch,
                         int64_t bytes) {
  void *data = take(bytes);
  io.load(input, microBatch, data, bytes);
  pieces.push_back({input, microBatch, bytes, data});
  return data;
}

void *Staging::take(int64_t bytes) {
  while (chunk < chunks.size() && used + bytes > chunks[chunk].bytes()) {
    ++chunk;
    used = 0;
  }
  if (chunk == chunks.size()) {
    chunks.emplace_back(padded(bytes));
    total += padded(bytes);
  }
  char *piece = chunks[chunk].data() + used;
  used += padded(bytes);
  return piece;
}
