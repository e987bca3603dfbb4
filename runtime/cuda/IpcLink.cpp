//===- IpcLink.cpp - One end of a link between processes ------------------===//

#include "runtime/cuda/IpcLink.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
#include "runtime/net/Transport.h"

#include <algorithm>
#include <cstring>
#include <new>

using namespace pipewright::runtime;

IpcLink::IpcLink(int64_t self, int64_t from, int64_t to)
    : ranks{from, to}, end(self == from ? 0 : 1) {
  for (CUevent &event : own)
    PIPEWRIGHT_CUDA(
        cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  PIPEWRIGHT_CUDA(cuEventCreate(&last, CU_EVENT_DISABLE_TIMING));
  PIPEWRIGHT_CUDA(cuStreamCreate(&completion, CU_STREAM_NON_BLOCKING));
}

void IpcLink::failBroken() const {
  fail(
      processName(ranks[end]), ": what ", processName(peer()),
      " says of a transfer over cuda-ipc makes no sense: its memory is broken");
}

// --- Connecting --------------------------------------------------------------

IpcLink::Offer IpcLink::makeOffer() {
  Offer offer = {};
  if (isSender()) {
    memory = SharedMemory::create(sizeof(IpcBoard));
    board = new (memory.data()) IpcBoard;
    std::strncpy(offer.board, memory.name().c_str(), sizeof offer.board - 1);
  }
  for (int64_t i = 0; i < ipcSlots; ++i)
    PIPEWRIGHT_CUDA(cuIpcGetEventHandle(&offer.events[i], own[i]));
  return offer;
}

void IpcLink::accept(const Offer &offer) {
  if (!isSender()) {
    const std::string name(offer.board,
                           strnlen(offer.board, sizeof offer.board));
    memory = SharedMemory::open(name, sizeof(IpcBoard));
    board = static_cast<IpcBoard *>(memory.data());
  }
  for (int64_t i = 0; i < ipcSlots; ++i)
    PIPEWRIGHT_CUDA(cuIpcOpenEventHandle(&others[i], offer.events[i]));
}

void IpcLink::shareMemory(CUdeviceptr address, int64_t bytes) {
  shared = address;
  sharedBytes = bytes;
}

void IpcLink::acceptMemory(const MemoryOffer &offer) {
  if (offer.bytes <= 0)
    failBroken();
  PIPEWRIGHT_CUDA(cuIpcOpenMemHandle(&opened, offer.handle,
                                     CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  openedBytes = offer.bytes;
}

void IpcLink::closeMemory() {
  if (opened)
    PIPEWRIGHT_CUDA(cuIpcCloseMemHandle(opened));
  opened = shared = 0;
  openedBytes = sharedBytes = 0;
}

void IpcLink::close() {
  closeMemory();
  const Driver &driver = cudaDriver();
  for (CUevent event : others)
    driver.cuEventDestroy(event);
  board->closed[end] = 1;
}

void IpcLink::release() {
  const Driver &driver = cudaDriver();
  for (CUevent event : own)
    driver.cuEventDestroy(event);
  driver.cuEventDestroy(last);
  driver.cuStreamDestroy(completion);
}

// --- Transfers ---------------------------------------------------------------

static bool isWithin(const IpcBoard::Part &part, int64_t bytes) {
  return part.offset >= 0 && part.bytes >= 0 && part.offset <= bytes &&
         part.bytes <= bytes - part.offset;
}

std::shared_ptr<IpcTransfer> IpcLink::give(CUdeviceptr data, int64_t bytes,
                                           CUstream stream, CUevent done) {
  const auto transfer = std::make_shared<IpcTransfer>();
  // An empty one may be nowhere.
  const int64_t offset = bytes ? static_cast<int64_t>(data - shared) : 0;
  transfer->part = {offset, bytes};
  transfer->stream = stream;
  transfer->done = done;
  if (!isWithin(transfer->part, sharedBytes))
    fail(processName(ranks[end]), ": a transfer of ", bytes,
         " bytes is not within the memory that is shared over cuda-ipc");
  transfer->number = begun++;
  pending.push_back(transfer);
  advance();
  return transfer;
}

void IpcLink::advance() {
  completeMet();
  while (!pending.empty() && hasRoom()) {
    const std::shared_ptr<IpcTransfer> next = pending.front();
    pending.pop_front();
    arrive(next);
  }
}

/// Both are done with the transfer that had the slot of the next one.
bool IpcLink::hasRoom() const {
  const int64_t number = pending.front()->number;
  return number - ipcSlots <
         std::min<int64_t>(completed, board->completed[1 - end]);
}

void IpcLink::arrive(const std::shared_ptr<IpcTransfer> &transfer) {
  IpcBoard::Slot &slot = board->slots[transfer->number % ipcSlots];
  const int64_t before = 2 * (transfer->number / ipcSlots);
  slot.parts[end] = transfer->part;
  // Both may come at the same time: it is recorded before anybody hears of it.
  if (slot.arrivals == before)
    PIPEWRIGHT_CUDA(
        cuEventRecord(own[transfer->number % ipcSlots], transfer->stream));
  const int64_t arrivals = slot.arrivals.fetch_add(1);
  if (arrivals == before) {
    waiting.push_back(transfer);
    return;
  }
  if (arrivals != before + 1)
    failBroken();
  // Of all earlier ones both had come before the first came to this one.
  completeMet();
  if (!waiting.empty())
    failBroken();
  transfer->error = findDifference(*transfer);
  if (transfer->error.empty())
    enqueue(*transfer, slot.parts[1 - end]);
  slot.met = transfer->number + 1;
  finish(*transfer);
}

/// This end has come second.
void IpcLink::enqueue(IpcTransfer &transfer, const IpcBoard::Part &other) {
  const IpcBoard::Part theirs = other;
  if (!isWithin(theirs, openedBytes) || theirs.bytes != transfer.part.bytes)
    failBroken();
  const int64_t slot = transfer.number % ipcSlots;
  const CUstream stream = transfer.stream;
  PIPEWRIGHT_CUDA(cuStreamWaitEvent(stream, others[slot], 0));
  if (isLastOther)
    PIPEWRIGHT_CUDA(cuStreamWaitEvent(stream, last, 0));
  const CUdeviceptr here = shared + transfer.part.offset;
  const CUdeviceptr there = opened + theirs.offset;
  if (theirs.bytes)
    PIPEWRIGHT_CUDA(cuMemcpyDtoDAsync(isSender() ? there : here,
                                      isSender() ? here : there, theirs.bytes,
                                      stream));
  PIPEWRIGHT_CUDA(cuEventRecord(own[slot], stream));
  PIPEWRIGHT_CUDA(cuEventRecord(transfer.done, stream));
  isLastOther = false;
}

/// Transfers that the other end has enqueued since.
void IpcLink::completeMet() {
  while (!waiting.empty()) {
    IpcTransfer &transfer = *waiting.front();
    const int64_t slot = transfer.number % ipcSlots;
    if (board->slots[slot].met < transfer.number + 1)
      return;
    transfer.error = findDifference(transfer);
    if (transfer.error.empty()) {
      PIPEWRIGHT_CUDA(cuStreamWaitEvent(completion, others[slot], 0));
      PIPEWRIGHT_CUDA(cuEventRecord(transfer.done, completion));
      PIPEWRIGHT_CUDA(cuEventRecord(last, completion));
      isLastOther = true;
      behind = transfer.stream;
    }
    finish(transfer);
    waiting.pop_front();
  }
}

void IpcLink::finish(IpcTransfer &transfer) {
  completed = transfer.number + 1;
  board->completed[end] = completed;
  transfer.met = true;
}

std::string IpcLink::findDifference(const IpcTransfer &transfer) const {
  const auto &parts = board->slots[transfer.number % ipcSlots].parts;
  const int64_t other = parts[1 - end].bytes, mine = transfer.part.bytes;
  if (mine == other)
    return "";
  return isSender() ? sizesText(ranks[0], ranks[1], mine, other)
                    : sizesText(ranks[0], ranks[1], other, mine);
}

void IpcLink::catchUp() {
  if (behind)
    PIPEWRIGHT_CUDA(cuStreamWaitEvent(behind, last, 0));
  behind = nullptr;
}
