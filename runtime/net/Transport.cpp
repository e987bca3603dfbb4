//===- Transport.cpp - What every transport does alike --------------------===//

#include "runtime/net/Transport.h"
#include "runtime/core/ProcessName.h"
#include "runtime/net/Collectives.h"

#include <algorithm>

using namespace pipewright::runtime;

//===----------------------------------------------------------------------===//
// What all ranks do together
//===----------------------------------------------------------------------===//

/// Gives `count` values to every other rank, and gets as many from each, which
/// lie in `all` one after the other.
void Transport::exchangeWithAll(const double *own, double *all, int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(double));
  auto forOthers = [&](auto &&body) {
    for (int64_t r = 0; r < size(); ++r)
      if (r != rank())
        body(r, Line(r, Lane::Control));
  };
  forOthers([&](int64_t r, Line line) {
    postReceive(line, all + r * count, bytes);
    postSend(line, own, bytes);
  });
  forOthers([&](int64_t, Line line) { waitReceive(line); });
  forOthers([&](int64_t, Line line) { waitSend(line); });
}

void Transport::addErrand(Errand &errand) {
  common->errands.push_back(&errand);
}

void Transport::removeErrand(Errand &errand) {
  std::erase(common->errands, &errand);
}

Transport::ErrandsRest::ErrandsRest(Transport &transport)
    : rests(transport.common->errandsRest), before(rests) {
  rests = true;
}

Transport::ErrandsRest::~ErrandsRest() { rests = before; }

void Transport::advanceErrands() {
  if (common->errandsRest)
    return;
  const ErrandsRest rest(*this);
  for (Errand *errand : common->errands)
    if (!errand->advance())
      return;
}

std::unique_ptr<Collectives>
Transport::openShared(const std::vector<int64_t> &members) {
  (void)members;
  return nullptr;
}

void Transport::barrier() { exchangeWithAll(nullptr, nullptr, 0); }

void Transport::sumToAll(double *values, int64_t count) {
  std::vector<double> &all = common->parts;
  all.resize(count * size());
  double *own = all.data() + rank() * count;
  std::copy_n(values, count, own);
  exchangeWithAll(own, all.data(), count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = 0;
    for (int64_t r = 0; r < size(); ++r)
      values[i] += all[r * count + i];
  }
}

//===----------------------------------------------------------------------===//
// What they say
//===----------------------------------------------------------------------===//

Sign Transport::makeSign(Sign::WaitReason what, int64_t peer, int64_t bytes,
                         int64_t progress) const {
  Sign sign;
  sign.progress = progress;
  sign.reason = what;
  sign.peer = peer;
  sign.bytes = bytes;
  sign.step = common->flight.step();
  const std::string last = common->flight.lastText(5);
  std::copy_n(last.begin(), std::min(last.size(), sizeof sign.operations - 1),
              sign.operations);
  return sign;
}

void pipewright::runtime::failDeadline(int64_t self, int64_t peer,
                                       const std::string &what,
                                       double seconds) {
  std::ostringstream text;
  text << processName(self) << " waits for "
       << (peer < 0 ? "another rank" : processName(peer)) << ": " << what
       << " (nothing came within " << seconds << " s; --timeout changes it)";
  throw DeadlinePassed(text.str());
}

std::string pipewright::runtime::sizesText(int64_t from, int64_t to,
                                           int64_t sent, int64_t expected) {
  return processName(from) + " sends " + std::to_string(sent) + " bytes to " +
         processName(to) + ", which expects " + std::to_string(expected) +
         " bytes";
}

void pipewright::runtime::failSizes(int64_t from, int64_t to, int64_t sent,
                                    int64_t expected) {
  fail(sizesText(from, to, sent, expected));
}
