//===- GroupTransport.cpp - Some ranks of a transport ---------------------===//

#include "runtime/net/GroupTransport.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
#include "runtime/net/Collectives.h"

#include <algorithm>
#include <utility>

using namespace pipewright::runtime;

GroupTransport::GroupTransport(Transport &whole, std::vector<int64_t> given)
    : Transport(PartOf{whole}), whole(whole), members(std::move(given)) {
  for (int64_t i = 0; i < size(); ++i) {
    const int64_t member = members[i];
    if (member < 0 || member >= whole.size())
      fail("a group has rank ", member, " as a member, but there are ",
           whole.size(), " ranks");
    if (std::count(members.begin(), members.end(), member) > 1)
      fail("a group has rank ", member, " as a member twice");
    if (member == whole.rank())
      self = i;
  }
  if (self < 0)
    fail(processName(whole.rank()), " uses a group that it is no member of");
}

std::unique_ptr<Collectives>
GroupTransport::openShared(const std::vector<int64_t> &some) {
  std::vector<int64_t> inWhole;
  for (const int64_t member : some)
    inWhole.push_back(members.at(member));
  return whole.openShared(inWhole);
}
