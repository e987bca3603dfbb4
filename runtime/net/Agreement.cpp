//===- Agreement.cpp - What ranks make sure of before they start ----------===//

#include "runtime/net/Agreement.h"
#include "runtime/core/Error.h"
#include "runtime/core/Hash.h"
#include "runtime/core/ProcessName.h"
#include "runtime/net/Gather.h"

#include <string>
#include <unistd.h>

using namespace pipewright::runtime;

void pipewright::runtime::checkAgreement(Transport &transport,
                                         std::string_view text,
                                         std::string_view what,
                                         std::string_view remedy) {
  const std::vector<uint64_t> hashes = gatherToAll(transport, hashOf(text));
  std::string others;
  int64_t count = 0;
  for (size_t r = 1; r < hashes.size(); ++r)
    if (hashes[r] != hashes[0])
      others += (count++ ? ", " : "") + processName(static_cast<int64_t>(r));
  if (count)
    fail(others,
         count > 1 ? " do not have the same " : " does not have the same ",
         what, " as ", processName(0), ": ", remedy);
}

void pipewright::runtime::checkSameLinks(
    Transport &transport,
    const std::vector<std::pair<int64_t, int64_t>> &links) {
  std::string text;
  for (const auto &[from, to] : links)
    text += std::to_string(from) + ">" + std::to_string(to) + " ";
  checkAgreement(transport, text, "links");
}

void pipewright::runtime::checkSameGroups(
    Transport &transport, const std::vector<std::vector<int64_t>> &groups) {
  std::string text;
  for (const std::vector<int64_t> &members : groups) {
    for (const int64_t member : members)
      text += std::to_string(member) + " ";
    text += "; ";
  }
  checkAgreement(transport, text, "groups");
}

RankOnHost pipewright::runtime::findRankOnHost(Transport &transport) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  const uint64_t own = hashOf(name);
  RankOnHost place = {0, 0};
  const std::vector<uint64_t> hosts = gatherToAll(transport, own);
  for (int64_t r = 0; r < transport.size(); ++r) {
    if (hosts[r] != own)
      continue;
    place.index += r < transport.rank();
    ++place.count;
  }
  return place;
}
