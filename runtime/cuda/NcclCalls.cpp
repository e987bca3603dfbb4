//===- NcclCalls.cpp - Communicators, and calls that do not hang ----------===//

#include "runtime/cuda/NcclCalls.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <thread>
#include <vector>

using namespace pipewright::runtime;

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

NcclCalls::NcclCalls(Transport &control) : control(control) { nccl(); }

void NcclCalls::failCall(const NcclCommunicator &communicator,
                         ncclResult_t result) {
  const char *last = nccl().ncclGetLastError(nullptr);
  const std::string detail = last && *last ? std::string(": ") + last : "";
  if (result == ncclRemoteError)
    for (const Patience patience(reasonSeconds); !patience.isOver();
         patience.pause())
      control.poll();
  fail(processName(control.rank()), ", ", communicator.text, ": NCCL reports ",
       ncclErrorText(result), detail);
}

void NcclCalls::call(const NcclCommunicator &communicator,
                     const std::function<ncclResult_t()> &body) {
  ncclResult_t result = ncclSuccess;
  {
    std::lock_guard<std::timed_mutex> lock(mutex);
    if (aborted)
      failAborted();
    result = body();
  }
  if (!isFine(result))
    failCall(communicator, result);
}

void NcclCalls::callAside(const NcclCommunicator &communicator,
                          const std::string &what, double deadline,
                          const std::function<ncclResult_t()> &body) {
  CUcontext context = nullptr;
  PIPEWRIGHT_CUDA(cuCtxGetCurrent(&context));
  const auto end = std::make_shared<std::promise<ncclResult_t>>();
  std::future<ncclResult_t> result = end->get_future();
  call(communicator, [&] {
    occupied = true;
    std::thread([context, body, end] {
      cudaDriver().cuCtxSetCurrent(context);
      end->set_value(body());
    }).detach();
    return ncclSuccess;
  });
  const Patience patience(deadline);
  while (result.wait_for(std::chrono::seconds(0)) !=
         std::future_status::ready) {
    if (patience.isOver())
      failDeadline(control.rank(), communicator.peer,
                   what + " on " + communicator.text, deadline);
    control.poll();
    patience.pause();
  }
  call(communicator, [&] {
    occupied = false;
    return result.get();
  });
}

void NcclCalls::make(NcclCommunicator &communicator, const std::string &what,
                     double deadline,
                     const std::function<ncclResult_t(ncclComm_t *)> &body) {
  const auto handle = std::make_shared<ncclComm_t>(nullptr);
  callAside(communicator, what, deadline,
            [handle, body] { return body(handle.get()); });
  communicator.handle = *handle;
  // In progress where NCCL_COMM_BLOCKING=0 is set.
  waitUntilReady(communicator, what, deadline);
}

ncclResult_t NcclCalls::stateOf(const NcclCommunicator &communicator) {
  ncclResult_t state = ncclSuccess;
  call(communicator, [&] {
    return nccl().ncclCommGetAsyncError(communicator.handle, &state);
  });
  if (!isFine(state))
    failCall(communicator, state);
  return state;
}

void NcclCalls::waitUntilReady(const NcclCommunicator &communicator,
                               const std::string &what, double deadline) {
  const Patience patience(deadline);
  while (stateOf(communicator) == ncclInProgress) {
    if (patience.isOver())
      failDeadline(control.rank(), communicator.peer,
                   what + " on " + communicator.text, deadline);
    control.poll();
    patience.pause();
  }
}

void NcclCalls::waitUntilExchanged(const NcclCommunicator &communicator,
                                   CUstream stream, double deadline) {
  const Patience patience(deadline);
  while (cudaDriver().cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
    waitUntilReady(communicator, "the first exchange", deadline);
    if (patience.isOver())
      failDeadline(control.rank(), communicator.peer,
                   "the first exchange on " + communicator.text, deadline);
    patience.pause();
  }
}

void NcclCalls::check() {
  for (const NcclCommunicator &each : communicators)
    if (each.handle)
      stateOf(each);
}

//===----------------------------------------------------------------------===//
// The first exchange
//===----------------------------------------------------------------------===//

NcclWarmUp::NcclWarmUp(size_t places) : streams(places) {
  PIPEWRIGHT_CUDA(cuMemAlloc(&memory, places * spacing));
  // One stream for each: on one stream a receive that waits would hold up the
  // send that its peer waits for.
  for (CUstream &stream : streams)
    PIPEWRIGHT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

NcclWarmUp::~NcclWarmUp() {
  // What NCCL still holds back would make these wait for ever.
  if (std::uncaught_exceptions())
    return;
  for (CUstream stream : streams)
    cudaDriver().cuStreamDestroy(stream);
  cudaDriver().cuMemFree(memory);
}

//===----------------------------------------------------------------------===//
// Ending
//===----------------------------------------------------------------------===//

/// Aborting a communicator frees its memory, for which the driver waits until
/// the whole GPU is idle: until the kernels of the other communicators have
/// ended, which those do when they are aborted as well. So all are aborted at
/// once, each by a thread of its own. Where one does not come to an end, the
/// error that led here must still be heard.
static std::future<void> abortAll(const std::vector<ncclComm_t> &comms) {
  struct Count {
    explicit Count(size_t left) : left(left) {}
    std::atomic<size_t> left;
    std::promise<void> ended;
  };
  const auto count = std::make_shared<Count>(comms.size());
  if (comms.empty())
    count->ended.set_value();
  for (ncclComm_t comm : comms)
    std::thread([comm, count] {
      nccl().ncclCommAbort(comm);
      if (--count->left == 0)
        count->ended.set_value();
    }).detach();
  return count->ended.get_future();
}

/// The longest that an abort may hold up the end of the program.
static std::chrono::duration<double> abortPatience(double deadline) {
  return std::chrono::duration<double>(std::clamp(deadline, 0.5, 10.0));
}

void NcclCalls::abort(double deadline) {
  const auto patience = abortPatience(deadline);
  {
    // Held by a call of NCCL that does not return: nothing can be done.
    std::unique_lock<std::timed_mutex> lock(mutex, patience);
    if (!lock || aborted)
      return;
    aborted = true;
    if (occupied)
      return;
  }
  // No other thread calls NCCL from here on.
  std::vector<ncclComm_t> comms;
  for (const NcclCommunicator &each : communicators)
    if (each.handle)
      comms.push_back(each.handle);
  abortAll(comms).wait_for(patience);
}

/// All ends of each communicator, in the order that all ranks have: they wait
/// for each other.
void NcclCalls::finalize(double deadline) {
  std::vector<ncclComm_t> comms;
  for (const NcclCommunicator &each : communicators)
    comms.push_back(each.handle);
  if (!comms.empty())
    callAside(communicators.front(), "the end", deadline, [comms] {
      ncclResult_t result = ncclSuccess;
      for (size_t i = 0; i < comms.size() && isFine(result); ++i)
        result = nccl().ncclCommFinalize(comms[i]);
      return result;
    });
  for (const NcclCommunicator &each : communicators)
    waitUntilReady(each, "the end", deadline);
  std::lock_guard<std::timed_mutex> lock(mutex);
  for (const NcclCommunicator &each : communicators)
    nccl().ncclCommDestroy(each.handle);
  aborted = true;
}

void NcclCalls::end(double deadline) {
  bool isWell = !aborted && !std::uncaught_exceptions();
  for (const NcclCommunicator &each : communicators)
    isWell &= each.handle != nullptr;
  try {
    if (isWell)
      finalize(deadline);
  } catch (const std::exception &) {
    // All work is done; whoever broke the link says so itself.
  }
  abort(deadline);
}
