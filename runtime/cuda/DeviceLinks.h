//===- DeviceLinks.h - How GPUs of ranks reach each other ------*- C++ -*-===//
//
// Transfers between GPU memories, and collectives of groups of them, enqueued
// on streams. A directed link is one FIFO: the n-th send meets the n-th
// receive; and so is a group: the n-th collectives of its members are one.
// Rendezvous is assumed: a send may not complete before its receive has begun,
// nor a member of a collective before all others have. The control plane
// (barrier, sums, text) is a Transport beside it. A DeviceLinks belongs to one
// rank and is used by its thread alone, except for `abort`.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_DEVICELINKS_H
#define PIPEWRIGHT_RUNTIME_CUDA_DEVICELINKS_H

#include "runtime/net/Collectives.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// cuda.h declares them the same way; only files that implement this need it.
struct CUstream_st;
struct CUevent_st;

namespace pipewright::runtime {

class DeviceLinks {
public:
  virtual ~DeviceLinks() = default;

  /// What users call it: "nccl", "cuda-local", "cuda-ipc".
  virtual const char *name() const = 0;

  /// Whether a transfer that waits for its peer keeps the GPU busy: whatever
  /// makes the driver wait for an idle GPU then waits for the peer as well.
  virtual bool occupiesGpu() const { return false; }
  /// How many multiprocessors the transfers of all links hold if all of them
  /// wait at once.
  virtual int64_t multiprocessorsHeld() const { return 0; }

  /// Makes all links of the program, (from, to), in one order on all ranks,
  /// and exchanges one element over each. Every rank calls it, with the same
  /// list. Throws an Error within the deadline if a rank never comes.
  virtual void
  connect(const std::vector<std::pair<int64_t, int64_t>> &links) = 0;

  /// Makes all groups, lists of ranks, in one order on all ranks, and runs a
  /// collective of each kind in each. Every rank calls it, with the same lists.
  virtual void
  connectGroups(const std::vector<std::vector<int64_t>> &groups) = 0;

  /// All that transfers read and write from now on: one allocation of the GPU,
  /// which stays until the links are gone. Every rank calls it, once, behind
  /// connect.
  virtual void share(void *memory, int64_t bytes) = 0;

  /// Enqueue a transfer on the stream and record `done` behind it; never block
  /// the host. `bytes` must agree at both ends.
  virtual void send(int64_t peer, const void *data, int64_t bytes,
                    CUstream_st *stream, CUevent_st *done) = 0;
  virtual void receive(int64_t peer, void *data, int64_t bytes,
                       CUstream_st *stream, CUevent_st *done) = 0;

  /// Enqueues a collective of a group, by its number in connectGroups, as send
  /// and receive do; `data` is this member's range. All members give the
  /// group's collectives in one order. Sums are binary trees over the members
  /// over cuda-local, as on CPUs; over NCCL in an order of its own, so that
  /// they have the same bits for certain in groups of two alone.
  virtual void collect(int64_t group, const Collective &what, void *data,
                       CUstream_st *stream, CUevent_st *done) = 0;

  /// Whether `done` of a transfer that was given has been recorded, for as long
  /// as anybody asks; until then the event tells what was before. Null: it has.
  /// Any thread may look.
  virtual std::shared_ptr<const std::atomic<bool>> recorded(CUevent_st *done) {
    (void)done;
    return nullptr;
  }

  /// Returns once `done` of what was given to send, receive or collect may be
  /// waited for by streams: at once (NCCL), or when the peers have posted their
  /// side (cuda-local, cuda-ipc). Throws an Error when the deadline passes: who
  /// waits for whom.
  virtual void settle(CUevent_st *done) = 0;

  /// The same for every transfer that was given. To be called at the end of
  /// each step or evaluation, before the host waits for the GPU: it is where
  /// both ends find out that one of them has given more than the other. Once
  /// the streams are idle afterwards, all transfers are over.
  virtual void settleAll() = 0;

  /// The same for every collective that was given, at any place of a step:
  /// then no message of theirs is under way over the control plane.
  virtual void settleGroups() = 0;

  /// Throws an Error that names the link if any has failed. Cheap: called
  /// while the host waits for the GPU.
  virtual void check() = 0;

  /// Ends all transfers, so that waiting streams and ranks come free. May be
  /// called by any thread.
  virtual void abort() = 0;

  /// Whether both ends compare the sizes of each transfer (on at first). Over
  /// NCCL, where a size that differs is a hang, or bytes that are lost, this
  /// makes settle wait for the peer, as it always does elsewhere; so it is for
  /// the first run of each generated function: all later ones give the same
  /// transfers. All ranks change it at the same place, behind settleAll.
  virtual void compareSizes(bool on) { comparing = on; }

  /// Seconds after which a wait gives up.
  virtual void setDeadline(double seconds) { deadlineSeconds = seconds; }

protected:
  double deadlineSeconds = 60;
  bool comparing = true;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_DEVICELINKS_H
