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

#include "runtime/Runtime.h"

#include <cstdlib>
#include <deque>
#include <map>
#include <sstream>
#include <string>

namespace flip {

using pipewright::runtime::Buffer;
using pipewright::runtime::Rank;

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

inline void at(const char *kind, Rank &rank, Buffer buffer) {
  const Place &place = Place::ofEnvironment();
  if (place.kind != kind || place.rank != rank.number() ||
      place.step != rank.step() || rank.replica() != 0)
    return;
  // A rank is a thread.
  static thread_local int64_t count = 0;
  if (count++ != place.nth)
    return;
  const int64_t byte = place.offset % buffer.bytes + place.bit / 8;
  rank.data<unsigned char>(buffer)[byte] ^= 1 << place.bit % 8;
}

inline void beforeTask(Rank &rank) {
  at("task", rank, {0, rank.program().arenaBytes});
}

inline void postSend(Rank &rank, int64_t peer, Buffer buffer) {
  at("sent", rank, buffer);
  rank.postSend(peer, buffer);
}

inline std::deque<Buffer> &postedFrom(int64_t peer) {
  static thread_local std::map<int64_t, std::deque<Buffer>> all;
  return all[peer];
}

inline void postReceive(Rank &rank, int64_t peer, Buffer buffer) {
  postedFrom(peer).push_back(buffer);
  rank.postReceive(peer, buffer);
}

inline void waitReceive(Rank &rank, int64_t peer) {
  rank.waitReceive(peer);
  at("received", rank, postedFrom(peer).front());
  postedFrom(peer).pop_front();
}

} // namespace flip
