//===- Memory.cpp - Filling, copying and adding buffers -------------------===//

#include "runtime/calls/Memory.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/Rank.h"

#include <cstring>

using namespace pipewright::runtime;

template <>
void pipewright::runtime::zero(Rank &rank, Buffer buffer) {
  if (!buffer)
    return;
  char *data = rank.data<char>(buffer);
  parallelFor(threadsFor(rank.threads(), buffer.bytes / 4), buffer.bytes,
              [&](int64_t begin, int64_t end, int64_t) {
                std::memset(data + begin, 0, end - begin);
              });
  rank.poll();
}

template <>
void pipewright::runtime::copy(Rank &rank, Buffer source, Buffer destination) {
  if (!source)
    return;
  const char *from = rank.data<char>(source);
  char *to = rank.data<char>(destination.at(0, source.bytes));
  parallelFor(threadsFor(rank.threads(), source.bytes / 4), source.bytes,
              [&](int64_t begin, int64_t end, int64_t) {
                std::memmove(to + begin, from + begin, end - begin);
              });
  rank.poll();
}

template <>
void pipewright::runtime::setValues(Rank &rank, const void *values,
                                    Buffer destination) {
  if (destination)
    std::memcpy(rank.data<char>(destination), values, destination.bytes);
}

template <>
void pipewright::runtime::accumulate(Rank &rank, Buffer source,
                                     Buffer destination) {
  const float *from = rank.data<float>(source);
  float *to = rank.data<float>(destination);
  const int64_t elements = source.bytes / 4;
  parallelFor(threadsFor(rank.threads(), elements), elements,
              [&](int64_t begin, int64_t end, int64_t) {
                for (int64_t i = begin; i < end; ++i)
                  to[i] += from[i];
              });
  rank.poll();
}

template <>
void pipewright::runtime::fill(Rank &rank, float value, Buffer buffer) {
  float *to = rank.data<float>(buffer);
  const int64_t elements = buffer.bytes / 4;
  for (int64_t i = 0; i < elements; ++i)
    to[i] = value;
  rank.poll();
}
