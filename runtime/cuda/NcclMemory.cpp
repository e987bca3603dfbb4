//===- NcclMemory.cpp - What NCCL takes of a GPU --------------------------===//

#include "runtime/cuda/NcclMemory.h"

#include <algorithm>
#include <cstdlib>

using namespace pipewright::runtime;

/// As NCCL reads it: the user's, or its own default.
static int64_t bufferBytes(const char *variable, int64_t otherwise) {
  const char *text = std::getenv(variable);
  const int64_t bytes = text ? std::atoll(text) : 0;
  return bytes > 0 ? bytes : otherwise;
}

/// A connection has a buffer for each of NCCL's protocols.
static int64_t channelBytes() {
  return bufferBytes("NCCL_BUFFSIZE", 4 << 20) +
         bufferBytes("NCCL_LL_BUFFSIZE", 512 << 10) +
         bufferBytes("NCCL_LL128_BUFFSIZE", 4800 << 10);
}

int64_t pipewright::runtime::ncclBuffersOf(
    int64_t rank, const std::vector<std::pair<int64_t, int64_t>> &links,
    const std::vector<std::vector<int64_t>> &groups, bool isOneHost) {
  int64_t channels = 0;
  for (const auto &[from, to] : links)
    if (to == rank || (from == rank && !isOneHost))
      channels += linkCtas;
  for (const std::vector<int64_t> &members : groups)
    if (members.size() > 1 && std::count(members.begin(), members.end(), rank))
      channels += groupCtas * (isOneHost ? 1 : 2);
  return channels * channelBytes();
}
