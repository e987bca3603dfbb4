//===- Transport.cpp - What every transport says on failure ---------------===//

#include "runtime/net/Transport.h"

#include <algorithm>

using namespace pipewright::runtime;

Sign Transport::makeSign(Sign::What what, int64_t peer, int64_t bytes,
                         int64_t progress) const {
  Sign sign;
  sign.progress = progress;
  sign.what = what;
  sign.peer = peer;
  sign.bytes = bytes;
  sign.step = flight.step();
  const std::string last = flight.lastText(5);
  std::copy_n(last.begin(), std::min(last.size(), sizeof sign.operations - 1),
              sign.operations);
  return sign;
}

void pipewright::runtime::failDeadline(int64_t self, int64_t peer,
                                       const std::string &what,
                                       double seconds) {
  std::ostringstream text;
  text << "rank " << self << " waits for "
       << (peer < 0 ? "another rank" : "rank " + std::to_string(peer)) << ": "
       << what << " (nothing came within " << seconds
       << " s; --timeout changes it)";
  throw DeadlinePassed(text.str());
}

void pipewright::runtime::failSizes(int64_t from, int64_t to, int64_t sent,
                                    int64_t expected) {
  fail("rank ", from, " sends ", sent, " bytes to rank ", to,
       ", which expects ", expected, " bytes");
}
