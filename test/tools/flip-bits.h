//===- flip-bits.h - One wrong bit in a generated program ------*- C++ -*-===//
//
// The launcher flip-bits puts these calls into a generated program. The
// environment variable FLIP says where one bit flips, once:
//
//   task RANK STEP NTH OFFSET BIT      in the arena, before the NTH task
//   sent RANK STEP NTH OFFSET BIT      in the NTH message, before it is sent
//   received RANK STEP NTH OFFSET BIT  in the NTH message, when it is there
//
// RANK is one of the first replica. NTH counts from 0 over all runs of the
// step.
//
//===----------------------------------------------------------------------===//

#ifdef FLIP_ON_DEVICE
#include "runtime/DeviceRuntime.h"
#else
#include "runtime/Runtime.h"
#endif

#include <cstdlib>
#include <deque>
#include <dlfcn.h>
#include <map>
#include <sstream>
#include <string>

namespace flip {

using pipewright::runtime::Buffer;

struct Place {
  std::string kind;
  int64_t rank = -1, step = 0, nth = 0, offset = 0, bit = 0;

  static const Place &ofEnvironment() {
    static const Place place = [] {
      Place read;
      if (const char *text = std::getenv("FLIP"))
        std::istringstream(text) >> read.kind >> read.rank >> read.step >>
            read.nth >> read.offset >> read.bit;
      return read;
    }();
    return place;
  }
};

#ifdef FLIP_ON_DEVICE

using pipewright::runtime::DeviceRank;
using pipewright::runtime::Stream;

/// By the driver that the program has loaded; its headers are not here.
inline void waitForCompute(DeviceRank &rank) {
  static void *const driver = dlopen("libcuda.so.1", RTLD_NOW);
  using Wait = int (*)(CUstream_st *);
  static const auto wait =
      reinterpret_cast<Wait>(dlsym(driver, "cuStreamSynchronize"));
  wait(rank.computeStream());
}

#else

inline void waitForCompute(pipewright::runtime::Rank &) {}

#endif

template <class Rank>
void at(const char *kind, Rank &rank, Buffer buffer) {
  const Place &place = Place::ofEnvironment();
  if (place.kind != kind || place.rank != rank.number() ||
      place.step != rank.step() || rank.replica() != 0)
    return;
  // A rank is a thread.
  static thread_local int64_t count = 0;
  if (count++ != place.nth)
    return;
  const int64_t byte = place.offset % buffer.bytes + place.bit / 8;
  waitForCompute(rank);
  unsigned char value = 0;
  rank.read(buffer.at(byte, 1), &value);
  value ^= 1 << place.bit % 8;
  rank.write(buffer.at(byte, 1), &value);
}

template <class Rank>
void beforeTask(Rank &rank) {
  at("task", rank, {0, rank.program().arenaBytes});
}

template <class Rank, class... Event>
void postSend(Rank &rank, int64_t peer, Buffer buffer, Event... event) {
  at("sent", rank, buffer);
  rank.postSend(peer, buffer, event...);
}

/// Messages of each peer, and on a GPU what is recorded behind them.
struct Posted {
  Buffer buffer;
  int64_t event = -1;
};
inline std::map<int64_t, std::deque<Posted>> &posted() {
  static thread_local std::map<int64_t, std::deque<Posted>> all;
  return all;
}

template <class Rank>
void isThere(Rank &rank, std::deque<Posted> &messages) {
  at("received", rank, messages.front().buffer);
  messages.pop_front();
}

template <class Rank, class... Event>
void postReceive(Rank &rank, int64_t peer, Buffer buffer, Event... event) {
  posted()[peer].push_back({buffer, event...});
  rank.postReceive(peer, buffer, event...);
}

template <class Rank>
void waitReceive(Rank &rank, int64_t peer) {
  rank.waitReceive(peer);
  isThere(rank, posted()[peer]);
}

#ifdef FLIP_ON_DEVICE

/// Whoever waits for a message has those before it, too.
inline void wait(DeviceRank &rank, Stream stream, int64_t event) {
  rank.wait(stream, event);
  if (!(stream == pipewright::runtime::compute))
    return;
  for (auto &[peer, messages] : posted()) {
    size_t count = 0;
    for (size_t i = 0; i < messages.size(); ++i)
      if (messages[i].event == event)
        count = i + 1;
    while (count-- > 0)
      isThere(rank, messages);
  }
}

#endif

} // namespace flip
