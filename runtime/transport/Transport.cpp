//===- Transport.cpp - What every transport says on failure ---------------===//

#include "runtime/transport/Transport.h"

using namespace pipewright::runtime;

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
