//===- Agreement.h - What ranks make sure of before they start -*- C++ -*-===//
//
// Ranks that run different programs exchange wrong bytes, or wait for each
// other for ever. These functions find out first. Every rank calls them, at the
// same place; they return or throw on all ranks alike.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_AGREEMENT_H
#define PIPEWRIGHT_RUNTIME_NET_AGREEMENT_H

#include "runtime/net/Transport.h"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace pipewright::runtime {

/// Throws an Error on every rank unless all ranks give the same text (the
/// program's name and plan): it names the ranks that differ from rank 0, `what`
/// they differ in, and the way out.
void checkAgreement(Transport &transport, std::string_view text,
                    std::string_view what = "program",
                    std::string_view remedy =
                        "start every rank from a copy of the same folder");

/// The same for the links, (from, to), that ranks are about to make.
void checkSameLinks(Transport &transport,
                    const std::vector<std::pair<int64_t, int64_t>> &links);

/// And for groups, lists of ranks.
void checkSameGroups(Transport &transport,
                     const std::vector<std::vector<int64_t>> &groups);

/// Which one of the ranks of its host a rank is, in their order.
struct RankOnHost {
  int64_t index = 0;
  int64_t count = 1;
};
RankOnHost findRankOnHost(Transport &transport);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_AGREEMENT_H
