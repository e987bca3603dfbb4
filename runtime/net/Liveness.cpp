//===- Liveness.cpp - Who lives, and who waits for whom -------------------===//

#include "runtime/net/Liveness.h"

#include "runtime/core/ProcessName.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>

using namespace pipewright::runtime;

static double secondsOf(Liveness::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// What came from elsewhere, without what a terminal would obey.
static std::string printable(const char *text, size_t most) {
  std::string clean(text, strnlen(text, most));
  for (char &c : clean)
    if (c < ' ' || c > '~')
      c = '?';
  return clean;
}

Sign::WaitReason pipewright::runtime::waitOf(Lane lane, bool isSend) {
  if (lane == Lane::Control)
    return Sign::Barrier;
  if (lane == Lane::Transfers)
    return isSend ? Sign::Send : Sign::Receive;
  return Sign::Collective;
}

std::string pipewright::runtime::waitText(int64_t what, int64_t bytes) {
  if (what == Sign::Collective)
    return "part of " + std::to_string(bytes) + " bytes of a collective";
  if (what != Sign::Send && what != Sign::Receive)
    return "end of the step";
  return (what == Sign::Send ? "send of " : "receive of ") +
         std::to_string(bytes) + " bytes";
}

std::string pipewright::runtime::describe(int64_t rank, const Sign &sign) {
  std::ostringstream text;
  text << processName(rank);
  if (sign.waits())
    text << " waits for "
         << (sign.peer < 0 ? "all others" : processName(sign.peer)) << ": "
         << waitText(sign.reason, sign.bytes);
  else
    text << " works";
  const std::string operations =
      printable(sign.operations, sizeof sign.operations);
  if (sign.step >= 0)
    text << " (step " << sign.step + 1 << (operations.empty() ? "" : ", after ")
         << operations << ")";
  return text.str();
}

Liveness::Liveness(int64_t self, int64_t size, Clock::time_point now)
    : self(self), ranks(size), changed(now) {
  for (PeerState &known : ranks)
    known.heard = known.told = now;
}

void Liveness::hear(int64_t rank, const Sign &sign, Clock::time_point now) {
  PeerState &known = ranks[rank];
  if (sign.progress != known.sign.progress ||
      sign.reason != known.sign.reason || sign.peer != known.sign.peer)
    changed = now;
  known.sign = sign;
  known.heard = known.told = now;
}

int64_t Liveness::findSilent(double seconds, Clock::time_point now) const {
  for (int64_t rank = 0; rank < static_cast<int64_t>(ranks.size()); ++rank)
    if (rank != self && !ranks[rank].ended &&
        secondsOf(now - ranks[rank].heard) > seconds)
      return rank;
  return -1;
}

bool Liveness::isStuck(double seconds) const {
  // An old Sign may be of a wait that has ended since.
  return std::all_of(ranks.begin(), ranks.end(), [&](const PeerState &known) {
    return known.ended ||
           (known.sign.waits() && secondsOf(known.told - changed) > seconds);
  });
}

std::string Liveness::describeAll(Clock::time_point now) const {
  std::string all = describe(self, ranks[self].sign);
  for (int64_t rank = 0; rank < static_cast<int64_t>(ranks.size()); ++rank) {
    const PeerState &known = ranks[rank];
    if (rank == self)
      continue;
    all += "; " + describe(rank, known.sign);
    if (known.ended)
      all += ", and has ended";
    else if (const double age = secondsOf(now - known.told); age > 2) {
      char ago[48];
      std::snprintf(ago, sizeof ago, ", %.0f s ago", age);
      all += ago;
    }
  }
  return all;
}

std::string pipewright::runtime::silentText(int64_t self, int64_t silent,
                                            double seconds,
                                            const std::string &all) {
  std::ostringstream text;
  text << processName(self) << " has heard nothing from " << processName(silent)
       << " for " << seconds
       << " s (was it stopped, or its machine or the network cut off? "
          "--timeout changes the time): "
       << all;
  return text.str();
}

std::string pipewright::runtime::stuckText(double seconds,
                                           const std::string &all) {
  std::ostringstream text;
  text << all << "; all wait, and none has come further for " << seconds
       << " s: the program is stuck (--timeout changes the time)";
  return text.str();
}
