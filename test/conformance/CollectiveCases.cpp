//===- CollectiveCases.cpp - Collectives, and what must come of them ------===//

#include "test/conformance/CollectiveCases.h"

#include "runtime/core/BFloat16.h"
#include "runtime/core/Philox.h"

#include <cmath>
#include <cstring>

using namespace pipewright::runtime;

/// Parts of all lengths, and some of none.
static std::vector<int64_t> unevenBounds(int64_t members) {
  std::vector<int64_t> bounds = {0};
  for (int64_t m = 0; m < members; ++m)
    bounds.push_back(bounds.back() + (m % 3 == 1 ? 0 : 90 * m + 3));
  return bounds;
}

std::vector<Collective> pipewright::runtime::collectiveCases(int64_t members) {
  // Parts of several blocks of the sum, where members are few.
  const int64_t large = (members < 4 ? 1030 : 130) * members + 1;
  std::vector<Collective> cases;
  for (const CollectiveFacts &facts : allCollectives)
    for (const ElementType type : {ElementType::F32, ElementType::BF16}) {
      for (const int64_t count : {int64_t(0), int64_t(1), 16 * members, large})
        cases.push_back(
            {facts.kind, type, evenBounds(count, members), count % members});
      cases.push_back({facts.kind, type, unevenBounds(members), members - 1});
    }
  return cases;
}

static float numberOf(int64_t member, int64_t index, uint64_t salt,
                      Numbers numbers) {
  const auto words = philox(salt, static_cast<uint64_t>(member),
                            static_cast<uint32_t>(index), 0, 5);
  if (numbers == Numbers::Small)
    return static_cast<float>(words[0] % 15) - 7;
  const float value = static_cast<int32_t>(words[0]) * 0x1p-31f;
  return std::ldexp(value, static_cast<int>(words[1] % 12));
}

/// The number of a member's range, as its type has it.
static float storedOf(const Collective &collective, int64_t member,
                      int64_t index, uint64_t salt, Numbers numbers) {
  const float value = numberOf(member, index, salt, numbers);
  return collective.type == ElementType::BF16 ? widen(narrow(value)) : value;
}

static std::string bytesOf(const Collective &collective,
                           const std::vector<float> &values) {
  const int64_t width = byteWidth(collective.type);
  std::string bytes(values.size() * width, '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const BFloat16 half = narrow(values[i]);
    const void *from = &values[i];
    if (collective.type == ElementType::BF16)
      from = &half;
    std::memcpy(bytes.data() + i * width, from, width);
  }
  return bytes;
}

std::string pipewright::runtime::rangeBefore(const Collective &collective,
                                             int64_t member, uint64_t salt,
                                             Numbers numbers) {
  std::vector<float> values;
  for (int64_t i = 0; i < collective.count(); ++i)
    values.push_back(storedOf(collective, member, i, salt, numbers));
  return bytesOf(collective, values);
}

/// A binary tree: the largest power of two that leaves something, and the rest.
template <class Of>
static float sumOf(const Of &of, int64_t begin, int64_t end) {
  if (begin + 1 == end)
    return of(begin);
  int64_t left = 1;
  while (2 * left < end - begin)
    left *= 2;
  return sumOf(of, begin, begin + left) + sumOf(of, begin + left, end);
}

std::string pipewright::runtime::rangeAfter(const Collective &collective,
                                            int64_t member, uint64_t salt,
                                            Numbers numbers) {
  const std::vector<int64_t> &bounds = collective.bounds;
  std::vector<float> values;
  for (int64_t i = 0; i < collective.count(); ++i) {
    int64_t owner = 0;
    while (i >= bounds[owner + 1])
      ++owner;
    auto of = [&](int64_t m) {
      return storedOf(collective, m, i, salt, numbers);
    };
    float value = of(member);
    if (collective.kind == CollectiveKind::Broadcast)
      value = of(collective.root);
    else if (collective.kind == CollectiveKind::AllGather)
      value = of(owner);
    else if (collective.kind == CollectiveKind::AllReduce ||
             (collective.kind == CollectiveKind::Reduce ? collective.root
                                                        : owner) == member)
      value = sumOf(of, 0, collective.members());
    values.push_back(value);
  }
  return bytesOf(collective, values);
}
