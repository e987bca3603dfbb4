//===- LinkProbes.cpp - What links between ranks carry --------------------===//
//
// First each pair of ranks alone, one behind the other, while the rest waits;
// then all links of all rings of an axis at once. Slow networks get fewer and
// shorter messages, so that all of it takes some 20 seconds at most.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/LinkProbes.h"

#include <algorithm>
#include <chrono>
#include <memory>

using namespace pipewright::runtime;

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

static constexpr int64_t longest = linkSizes.back(), pingBytes = sizeof(double);
static constexpr int warmUp = 10, roundTrips = 101, repetitions = 9;
/// For all pairs of ranks, and for one of them at most.
static constexpr double pairSeconds = 15, mostSeconds = 1.5;
/// For all links at once.
static constexpr double togetherSeconds = 3;

namespace {

/// Two ranks that have links to each other, and what these are.
struct Pair {
  Axis axis;
  MeasuredLink there, back;
  /// Which size messages had that were sent together.
  size_t togetherSize = 0;
};

class LinkProbes {
public:
  LinkProbes(Transport &transport, const Mesh &mesh);

  std::vector<MeasuredLink> measure();

private:
  void measureAlone(Pair &pair, double seconds);
  void measureTogether(Axis axis);
  /// Half a round trip, on the first rank of the two.
  double latency(int64_t peer, bool isFirst);
  /// Seconds until a message has come and its receiver has said so, less what
  /// saying takes.
  double oneWay(int64_t peer, bool sends, int64_t bytes, double latency);
  double bothWays(int64_t peer, int64_t bytes, double latency);
  /// What the first rank has, on both.
  double share(int64_t peer, bool isFirst, double number);

  int64_t self() const { return transport.rank(); }
  char *out() { return memory.get(); }
  char *in() { return memory.get() + longest; }

  Transport &transport;
  std::vector<Pair> pairs;
  /// What is sent, then what is received.
  const std::unique_ptr<char[]> memory;
};

} // namespace

LinkProbes::LinkProbes(Transport &transport, const Mesh &mesh)
    : transport(transport), memory(new char[2 * longest]()) {
  for (const Axis axis : {Axis::Pipe, Axis::Data})
    for (const std::vector<int64_t> &ring : mesh.groups(axis)) {
      const size_t size = ring.size();
      // Two are neighbours once.
      for (size_t i = 0; i < (size == 2 ? 1 : size == 1 ? 0 : size); ++i) {
        const int64_t from = ring[i], to = ring[(i + 1) % size];
        const bool isOfReplicas = axis == Axis::Data;
        pairs.push_back(
            {axis, {from, to, isOfReplicas}, {to, from, isOfReplicas}});
      }
    }
}

double LinkProbes::share(int64_t peer, bool isFirst, double number) {
  // Not in line with what is measured.
  const Line line(peer, Lane::Collectives);
  if (isFirst) {
    transport.postSend(line, &number, pingBytes);
    transport.waitSend(line);
  } else {
    transport.postReceive(line, &number, pingBytes);
    transport.waitReceive(line);
  }
  return number;
}

double LinkProbes::latency(int64_t peer, bool isFirst) {
  std::vector<double> halves;
  for (int trip = -warmUp; trip < roundTrips; ++trip) {
    const auto begin = Clock::now();
    share(peer, isFirst, 0);
    share(peer, !isFirst, 0);
    if (trip >= 0)
      halves.push_back(secondsSince(begin) / 2);
  }
  return share(peer, isFirst, summarize(halves).median);
}

double LinkProbes::oneWay(int64_t peer, bool sends, int64_t bytes,
                          double latency) {
  if (!sends)
    transport.postReceive(peer, in(), bytes);
  // The receive is posted now.
  share(peer, !sends, 0);
  const auto begin = Clock::now();
  if (sends) {
    transport.postSend(peer, out(), bytes);
    transport.waitSend(peer);
  } else {
    transport.waitReceive(peer);
  }
  share(peer, !sends, 0);
  const double seconds = secondsSince(begin);
  return std::max(seconds - 2 * latency, seconds / 2);
}

double LinkProbes::bothWays(int64_t peer, int64_t bytes, double latency) {
  transport.postReceive(peer, in(), bytes);
  const bool isFirst = self() < peer;
  share(peer, isFirst, 0);
  share(peer, !isFirst, 0);
  const auto begin = Clock::now();
  transport.postSend(peer, out(), bytes);
  transport.waitReceive(peer);
  const double seconds = secondsSince(begin);
  transport.waitSend(peer);
  return std::max(seconds - latency, seconds / 2);
}

void LinkProbes::measureAlone(Pair &pair, double seconds) {
  const bool isFirst = self() == pair.there.from;
  if (!isFirst && self() != pair.there.to)
    return;
  const int64_t peer = isFirst ? pair.there.to : pair.there.from;
  const double least = latency(peer, isFirst);
  // What is the same on both is told by the first.
  if (isFirst)
    pair.there.latency = pair.back.latency = least;
  // By the sender, from the size before.
  double rate = 0;
  int64_t largest = 0;
  for (size_t size = 0; size < linkSizes.size(); ++size) {
    const int64_t bytes = linkSizes[size];
    double count = repetitions;
    if (rate > 0)
      count = std::min(count, seconds / 4 * rate / bytes);
    // The first message touches memory.
    for (MeasuredLink *link : {&pair.there, &pair.back}) {
      const bool sends = self() == link->from;
      std::vector<double> times;
      for (int i = size == 0 ? -1 : 0; i < static_cast<int>(count); ++i)
        if (const double time = oneWay(peer, sends, bytes, least); i >= 0)
          times.push_back(time);
      if (!times.empty() && sends)
        link->alone[size] = bytes / summarize(times).median;
    }
    if (count >= 1) {
      largest = bytes;
      rate = share(peer, isFirst, pair.there.alone[size]);
    }
  }
  // On its receiver.
  std::vector<double> times;
  const double count =
      std::min<double>(repetitions, seconds / 4 * rate / largest);
  for (int i = 0; i < std::max(1, static_cast<int>(count)); ++i)
    times.push_back(bothWays(peer, largest, least));
  (isFirst ? pair.back : pair.there).bothWays =
      largest / summarize(times).median;
}

void LinkProbes::measureTogether(Axis axis) {
  /// Links to this rank, and the times of each.
  std::vector<std::pair<MeasuredLink *, std::vector<double>>> coming;
  std::vector<int64_t> peers;
  double slowest = 0;
  for (Pair &pair : pairs)
    for (MeasuredLink *link : {&pair.there, &pair.back}) {
      if (pair.axis != axis)
        continue;
      if (link->to == self()) {
        coming.push_back({link, {}});
        peers.push_back(link->from);
      }
      if (link->from == self())
        slowest = std::max(slowest, 1 / link->alone[0]);
    }
  // Of an axis all ranks have links, or none.
  if (peers.empty())
    return;
  // All have to send messages of one size, and equally many.
  std::vector<double> all(transport.size());
  all[self()] = slowest;
  transport.sumToAll(all.data(), transport.size());
  const double perByte = *std::max_element(all.begin(), all.end());
  size_t size = 1;
  double count = togetherSeconds / (4 * perByte * linkSizes[size]);
  if (count < 2)
    count = togetherSeconds / (4 * perByte * linkSizes[size = 0]);
  for (Pair &pair : pairs)
    if (pair.axis == axis)
      pair.togetherSize = size;
  const int64_t bytes = linkSizes[size];
  const int times = std::clamp(static_cast<int>(count), 2, repetitions);
  for (int time = 0; time < times; ++time) {
    transport.barrier();
    const auto begin = Clock::now();
    for (size_t i = 0; i < peers.size(); ++i)
      transport.postReceive(peers[i], in() + i * bytes, bytes);
    for (const int64_t peer : peers)
      transport.postSend(peer, out(), bytes);
    // Only the first wait ends when its message has come, so that each link is
    // the first one in its turn.
    for (size_t i = 0; i < peers.size(); ++i) {
      const size_t turn = (i + time) % peers.size();
      transport.waitReceive(peers[turn]);
      if (i == 0)
        coming[turn].second.push_back(secondsSince(begin));
    }
    for (const int64_t peer : peers)
      transport.waitSend(peer);
  }
  for (auto &[link, seconds] : coming)
    link->together = bytes / summarize(seconds).median;
}

/// Everything that a rank may have measured.
static auto numbersOf(MeasuredLink &link) {
  return std::array<double *, 6>{&link.latency,  &link.alone[0],
                                 &link.alone[1], &link.alone[2],
                                 &link.bothWays, &link.together};
}

std::vector<MeasuredLink> LinkProbes::measure() {
  const double seconds =
      std::min(mostSeconds, pairSeconds / std::max<size_t>(1, pairs.size()));
  for (Pair &pair : pairs) {
    transport.barrier();
    measureAlone(pair, seconds);
  }
  for (const Axis axis : {Axis::Pipe, Axis::Data})
    measureTogether(axis);
  std::vector<MeasuredLink> links;
  for (const Pair &pair : pairs) {
    links.push_back(pair.there);
    links.push_back(pair.back);
  }
  // Each number was measured by one rank.
  std::vector<double> numbers;
  for (MeasuredLink &link : links)
    for (const double *number : numbersOf(link))
      numbers.push_back(*number);
  if (!numbers.empty())
    transport.sumToAll(numbers.data(), numbers.size());
  size_t next = 0;
  for (size_t i = 0; i < links.size(); ++i) {
    MeasuredLink &link = links[i];
    for (double *number : numbersOf(link))
      *number = numbers[next++];
    const double alone = link.alone[pairs[i / 2].togetherSize];
    if (link.together > 0)
      link.contention = alone / link.together;
  }
  return links;
}

std::vector<MeasuredLink>
pipewright::runtime::measureLinks(Transport &transport, const Mesh &mesh) {
  return LinkProbes(transport, mesh).measure();
}
