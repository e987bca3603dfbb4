//===- FirstExchange.cpp - The first use of links by copies ---------------===//

#include "runtime/cuda/FirstExchange.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
#include "runtime/cuda/Patience.h"

using namespace pipewright::runtime;

static constexpr int64_t elementBytes = sizeof(int64_t);

int64_t pipewright::runtime::firstExchangeBytes(size_t links) {
  return 2 * static_cast<int64_t>(links) * elementBytes;
}

void pipewright::runtime::exchangeFirst(
    DeviceLinks &links, int64_t self,
    const std::vector<std::pair<int64_t, int64_t>> &own, CUdeviceptr memory,
    double deadline) {
  CUstream stream = nullptr;
  EventPool events(CU_EVENT_DISABLE_TIMING);
  PIPEWRIGHT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  // Of each link what is sent, then what is received.
  std::vector<int64_t> values(2 * own.size(), -1);
  for (size_t i = 0; i < own.size(); ++i)
    values[2 * i] = own[i].first << 32 | own[i].second;
  const int64_t bytes = firstExchangeBytes(own.size());
  copyToDevice(memory, values.data(), bytes);
  for (size_t i = 0; i < own.size(); ++i) {
    const auto [from, to] = own[i];
    const CUdeviceptr sent = memory + 2 * i * elementBytes;
    if (from == self)
      links.send(to, reinterpret_cast<void *>(sent), elementBytes, stream,
                 events.take());
    if (to == self)
      links.receive(from, reinterpret_cast<void *>(sent + elementBytes),
                    elementBytes, stream, events.take());
  }
  links.settleAll();
  for (const Patience patience(deadline);
       cudaDriver().cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
       patience.pause()) {
    links.check();
    if (patience.isOver())
      fail(processName(self), ": the first exchange over ", links.name(),
           " does not end within ", deadline, " s (--timeout changes it)");
  }
  PIPEWRIGHT_CUDA(cuMemcpyDtoH(values.data(), memory, bytes));
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i].second == self && values[2 * i + 1] != values[2 * i])
      fail(processName(self), ": a copy from the GPU of ",
           processName(own[i].first), " over ", links.name(),
           " brings wrong bytes; is peer access between GPUs broken?");
  PIPEWRIGHT_CUDA(cuStreamDestroy(stream));
}
