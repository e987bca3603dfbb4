//===- Transport.cpp - What every transport says on failure ---------------===//

#include "runtime/transport/Transport.h"
#include "runtime/core/Error.h"

using namespace pipewright::runtime;

void Transport::failDeadline(int64_t peer, const std::string &what) const {
  fail("rank ", rank(), " waits for ",
       peer < 0 ? "another rank" : "rank " + std::to_string(peer), ": ", what,
       " (nothing came within ", deadlineSeconds, " s; --timeout changes it)");
}

void Transport::failSizes(int64_t from, int64_t to, int64_t sent,
                          int64_t expected) {
  fail("rank ", from, " sends ", sent, " bytes to rank ", to,
       ", which expects ", expected, " bytes");
}
