//===- DeviceCollectiveScenarios.cpp - Collectives between GPUs -----------===//

#include "test/conformance/CollectiveCases.h"
#include "test/conformance/DeviceScenarios.h"
#include "test/conformance/Limits.h"

#include "runtime/core/Error.h"
#include "runtime/core/Mesh.h"

#include <algorithm>
#include <deque>
#include <thread>

using namespace pipewright::runtime;

namespace {
/// One collective of one member, with its memory.
struct Exchange {
  Exchange(Bench &bench, const Collective &given, int64_t member, uint64_t salt)
      : bench(bench), what(given), member(member), salt(salt) {
    data = bench.putBytes(rangeBefore(what, member, salt, numbers()));
  }

  /// NCCL adds in an order of its own.
  Numbers numbers() const {
    return std::string(bench.links.name()).find("nccl") != std::string::npos
               ? Numbers::Small
               : Numbers::Rough;
  }
  void give(int64_t group, CUstream stream) {
    done = bench.event();
    bench.links.collect(group, what, data, stream, done);
  }
  void expectDone(const std::string &where) {
    const std::string wanted = rangeAfter(what, member, salt, numbers());
    check(bench.getBytes(data, static_cast<int64_t>(wanted.size())) == wanted,
          "the " + what.text() + " over " + std::to_string(what.members()) +
              " members has the bits of the plain loop " + where);
  }

  Bench &bench;
  const Collective what;
  const int64_t member;
  const uint64_t salt;
  void *data = nullptr;
  CUevent done = nullptr;
};
} // namespace

static int64_t memberOf(const std::vector<int64_t> &members, int64_t rank) {
  const auto found = std::find(members.begin(), members.end(), rank);
  return found == members.end() ? -1 : found - members.begin();
}

/// All kinds, types and lengths, in groups of every size.
static void everyKind(Bench &b) {
  std::vector<std::vector<int64_t>> groups;
  for (const int64_t size : {1, 2, 3, 4, 8}) {
    std::vector<int64_t> members;
    for (int64_t i = 0; i < size; ++i)
      members.push_back(b.size() - 1 - i);
    if (size <= b.size())
      groups.push_back(members);
  }
  b.links.connectGroups(groups);
  for (size_t g = 0; g < groups.size(); ++g) {
    const int64_t member = memberOf(groups[g], b.rank());
    if (member < 0)
      continue;
    std::deque<Exchange> all;
    for (const Collective &what :
         collectiveCases(static_cast<int64_t>(groups[g].size()))) {
      all.emplace_back(b, what, member, all.size());
      all.back().give(static_cast<int64_t>(g), b.compute());
    }
    b.finish();
    for (Exchange &each : all)
      each.expectDone("one after the other");
  }
}

/// The groups of a mesh at once, on streams of their own, with transfers
/// between the same GPUs beside them.
static void severalGroups(Bench &b) {
  const Mesh mesh = {b.size() / 4, 2, 2};
  std::vector<std::vector<int64_t>> groups;
  for (const Axis axis : allAxes)
    for (std::vector<int64_t> &group : mesh.groups(axis))
      groups.push_back(std::move(group));
  b.links.connectGroups(groups);
  const int64_t next = (b.rank() + 1) % b.size();
  const int64_t last = (b.rank() + b.size() - 1) % b.size();
  for (int64_t step = 0; step < 3; ++step) {
    b.links.compareSizes(step == 0);
    std::deque<Exchange> all;
    b.send(next, b.put({step, b.rank()}), 2);
    void *received = b.put({-1, -1});
    for (const CollectiveKind kind :
         {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter})
      for (size_t g = 0; g < groups.size(); ++g) {
        const auto size = static_cast<int64_t>(groups[g].size());
        const int64_t member = memberOf(groups[g], b.rank());
        if (member < 0)
          continue;
        all.emplace_back(
            b,
            Collective{kind, step == 1 ? ElementType::BF16 : ElementType::F32,
                       evenBounds(999, size)},
            member, all.size());
        // In place of streams of links that are not there.
        all.back().give(static_cast<int64_t>(g),
                        b.stream(b.size() + static_cast<int64_t>(g), true));
      }
    b.receive(last, received, 2);
    b.finish();
    for (Exchange &each : all)
      each.expectDone("beside other groups");
    check(b.get(received, 2) == std::vector<int64_t>{step, last},
          "a transfer arrives beside collectives");
  }
}

/// What comes after the collective on other streams waits for it.
static void inOrder(Bench &b) {
  std::vector<int64_t> members;
  for (int64_t r = 0; r < b.size(); ++r)
    members.push_back(r);
  b.links.connectGroups({members});
  const Collective gather = {CollectiveKind::AllGather, ElementType::F32,
                             evenBounds(3000, b.size())};
  for (int64_t step = 0; step < 10; ++step) {
    b.links.compareSizes(step == 0);
    Exchange one(b, gather, b.rank(), step);
    one.give(0, b.stream(0, true));
    void *copy = b.putBytes(std::string(12000, '\0'));
    b.wait(b.compute(), one.done);
    PIPEWRIGHT_CUDA(cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(copy),
                                      reinterpret_cast<CUdeviceptr>(one.data),
                                      12000, b.compute()));
    b.finish();
    check(b.getBytes(copy, 12000) ==
              rangeAfter(gather, b.rank(), step, one.numbers()),
          "who waits for the event sees all parts");
  }
}

static void wrongSize(Bench &b) {
  b.links.connectGroups({{1, 0}});
  if (b.rank() > 1)
    return b.control.barrier();
  const Collective what = {CollectiveKind::AllReduce, ElementType::F32,
                           evenBounds(b.rank() == 0 ? 100 : 60, 2)};
  Exchange one(b, what, 1 - b.rank(), 1);
  const std::string error = errorOf([&] {
    one.give(0, b.compute());
    b.links.settle(one.done);
  });
  check(error.find("all-reduce of 100 f32 numbers") != std::string::npos &&
            error.find("all-reduce of 60 f32 numbers") != std::string::npos &&
            error.find("rank 0 gives") != std::string::npos &&
            error.find("rank 1 gives") != std::string::npos,
        "all members see what differs, but: " + error);
  b.control.barrier();
  b.links.abort();
}

/// Who waits, for whom, in which collective.
static void missingMember(Bench &b) {
  b.links.connectGroups({{0, 1}});
  if (b.rank() != 0)
    return;
  b.links.setDeadline(0.2);
  b.control.setDeadline(0.2);
  Exchange one(
      b, {CollectiveKind::ReduceScatter, ElementType::BF16, evenBounds(64, 2)},
      0, 1);
  const std::string error = errorOf([&] {
    one.give(0, b.compute());
    b.links.settle(one.done);
  });
  check(error.find("rank 0 waits for rank 1") != std::string::npos &&
            error.find("reduce-scatter of 64 bf16 numbers") !=
                std::string::npos,
        "a deadline says who waits for whom, but: " + error);
  b.links.abort();
  b.control.setDeadline(hangSeconds);
}

static void nonsense(Bench &b) {
  b.links.connectGroups({{b.size() - 1}});
  const Collective two = {
      CollectiveKind::AllReduce, ElementType::F32, {0, 1, 2}};
  const std::string outside = errorOf(
      [&] { b.links.collect(1, two, nullptr, b.compute(), b.event()); });
  check(outside.find("is in no group of number 1") != std::string::npos,
        "a group that is not there is refused, but: " + outside);
  const std::string other = errorOf(
      [&] { b.links.collect(0, two, nullptr, b.compute(), b.event()); });
  check(other.find(b.rank() == b.size() - 1
                       ? "but its group has 1"
                       : "is in no group of number 0") != std::string::npos,
        "what is no collective of the group is refused, but: " + other);
}

const std::vector<DeviceScenario> &
pipewright::runtime::deviceCollectiveScenarios() {
  static const std::vector<DeviceScenario> all = {
      {"everyKind", everyKind},
      {"severalGroups", severalGroups},
      {"inOrder", inOrder},
      {"wrongSize", wrongSize},
      {"missingMember", missingMember},
      {"nonsense", nonsense}};
  return all;
}
