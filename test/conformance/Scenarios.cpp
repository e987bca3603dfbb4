//===- Scenarios.cpp - What every transport must do -----------------------===//

#include "test/conformance/Scenarios.h"
#include "runtime/core/Error.h"
#include "runtime/core/Text.h"
#include "test/conformance/Checks.h"
#include "test/conformance/Limits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <thread>

using namespace pipewright::runtime;

static int64_t bytesOf(const std::vector<int64_t> &values) {
  return static_cast<int64_t>(values.size() * sizeof(int64_t));
}

/// Everyone to the next, several sizes in flight at once.
static void ring(Transport &t) {
  const int64_t next = (t.rank() + 1) % t.size();
  const int64_t last = (t.rank() + t.size() - 1) % t.size();
  std::vector<std::vector<int64_t>> sent, received;
  for (int64_t round = 0; round < 8; ++round) {
    sent.push_back(pattern(1 << (2 * round), 1000 * t.rank() + round));
    received.push_back(pattern(1 << (2 * round), 0));
  }
  for (int64_t round = 0; round < 8; ++round) {
    t.postReceive(last, received[round].data(), bytesOf(received[round]));
    t.postSend(next, sent[round].data(), bytesOf(sent[round]));
  }
  for (int64_t round = 0; round < 8; ++round) {
    t.waitReceive(last);
    t.waitSend(next);
    check(received[round] == pattern(1 << (2 * round), 1000 * last + round),
          "what arrives is what the last rank sent");
  }
}

/// 32 MiB both ways at once; sends posted before receives.
static void large(Transport &t) {
  if (t.rank() > 1)
    return;
  const int64_t peer = 1 - t.rank();
  const auto sent = pattern(4 << 20, t.rank());
  std::vector<int64_t> received(4 << 20);
  t.postSend(peer, sent.data(), bytesOf(sent));
  t.postReceive(peer, received.data(), bytesOf(received));
  for (int i = 0; i < 10; ++i)
    t.poll();
  t.waitReceive(peer);
  t.waitSend(peer);
  check(received == pattern(4 << 20, peer), "every byte arrives");
}

static void zeroSize(Transport &t) {
  if (t.rank() == 0) {
    t.postSend(1, nullptr, 0);
    t.waitSend(1);
  } else if (t.rank() == 1) {
    t.postReceive(0, nullptr, 0);
    t.waitReceive(0);
  }
}

/// The n-th send meets the n-th receive, whatever their sizes.
static void order(Transport &t) {
  if (t.rank() > 1)
    return;
  std::vector<std::vector<int64_t>> messages;
  for (int64_t i = 0; i < 20; ++i)
    messages.push_back(pattern(i % 3 == 0 ? 20000 : i, t.rank() ? 0 : i));
  for (auto &message : messages)
    if (t.rank() == 0)
      t.postSend(1, message.data(), bytesOf(message));
    else
      t.postReceive(0, message.data(), bytesOf(message));
  for (int64_t i = 0; i < 20; ++i)
    if (t.rank() == 0) {
      t.waitSend(1);
    } else {
      t.waitReceive(0);
      check(messages[i] == pattern(messages[i].size(), i),
            "message " + std::to_string(i) + " arrives in its place");
    }
}

static void toItself(Transport &t) {
  const auto sent = pattern(1000, t.rank());
  std::vector<int64_t> received(1000);
  t.postSend(t.rank(), sent.data(), bytesOf(sent));
  t.postReceive(t.rank(), received.data(), bytesOf(received));
  t.waitSend(t.rank());
  t.waitReceive(t.rank());
  check(received == sent, "a rank can send to itself");
}

/// Even the smallest send waits for its receive.
static void noBuffering(Transport &t) {
  int64_t value = 7;
  if (t.rank() == 0) {
    t.postSend(1, &value, sizeof value);
    t.setDeadline(0.3);
    const std::string error = errorOf([&] { t.waitSend(1); });
    check(error.rfind("rank 0 waits for rank 1: send of 8 bytes", 0) == 0,
          "a send without receive does not complete, but: " + error);
    t.setDeadline(hangSeconds);
  }
  t.barrier();
  if (t.rank() == 1) {
    value = 0;
    t.postReceive(0, &value, sizeof value);
    t.waitReceive(0);
    check(value == 7, "it arrives once the receive is there");
  }
  if (t.rank() == 0)
    t.waitSend(1);
}

static void mismatch(Transport &t, int64_t sent, int64_t expected) {
  std::vector<char> data(std::max(sent, expected));
  if (t.rank() > 1)
    return;
  const std::string error = errorOf([&] {
    if (t.rank() == 0) {
      t.postSend(1, data.data(), sent);
      t.waitSend(1);
    } else {
      t.postReceive(0, data.data(), expected);
      t.waitReceive(0);
    }
  });
  check(error.find("expects") != std::string::npos &&
            error.find(std::to_string(expected) + " bytes") !=
                std::string::npos,
        "both ends see sizes that differ, but: " + error);
}

static void receiveTooSmall(Transport &t) { mismatch(t, 100, 60); }
static void receiveTooLarge(Transport &t) { mismatch(t, 60, 100); }

/// Who waits, for whom, for what.
static void deadline(Transport &t) {
  std::vector<char> data(4096);
  if (t.rank() == 0) {
    t.postReceive(1, data.data(), 4096);
    t.setDeadline(0.3);
    const auto start = std::chrono::steady_clock::now();
    const std::string error = errorOf([&] { t.waitReceive(1); });
    check(error.rfind("rank 0 waits for rank 1: receive of 4096 bytes", 0) == 0,
          "a deadline says who waits for whom, but: " + error);
    check(std::chrono::steady_clock::now() - start < soon,
          "the deadline is kept");
    t.setDeadline(hangSeconds);
  }
  t.barrier();
  // Let the receive end, so that its memory may go.
  if (t.rank() == 1) {
    t.postSend(0, data.data(), 4096);
    t.waitSend(0);
  }
  if (t.rank() == 0)
    check(errorOf([&] { t.waitReceive(1); }) == "no error",
          "a wait can be repeated after its deadline");
  t.barrier();
}

static void sums(Transport &t) {
  for (int round = 0; round < 3; ++round) {
    double values[2] = {1.0 / (3 + t.rank() + round), 1};
    t.sumToAll(values, 2);
    double expected = 0;
    for (int64_t r = 0; r < t.size(); ++r)
      expected += 1.0 / (3 + r + round);
    check(values[0] == expected, "sums are taken in the order of the ranks");
    check(values[1] == t.size(), "every rank is in the sum once");
  }
}

std::optional<int64_t> pipewright::runtime::slowSeconds() {
  const char *given = std::getenv("PIPEWRIGHT_SLOW_SECONDS");
  if (!given)
    return std::nullopt;
  return parseInteger("PIPEWRIGHT_SLOW_SECONDS", given, 1);
}

/// A rank that computes, and polls nothing, for longer than others may be
/// silent, is no error.
static void slow(Transport &t) {
  const std::optional<int64_t> given = slowSeconds();
  // No wait has a deadline in programs.
  t.setDeadline(std::numeric_limits<double>::infinity());
  t.barrier();
  t.setSilence(given ? 8 : 0.8);
  if (t.rank() == 1)
    std::this_thread::sleep_for(std::chrono::seconds(given.value_or(2)));
  t.barrier();
  t.setSilence(hangSeconds);
  t.barrier();
  t.setDeadline(hangSeconds);
}

static void waitWithoutPost(Transport &t) {
  check(errorOf([&] { t.waitReceive(t.rank()); }).find("has not posted") !=
            std::string::npos,
        "a wait for nothing is an error, not a hang");
}

const std::vector<Scenario> &pipewright::runtime::scenarios() {
  static const std::vector<Scenario> all = {
      {"ring", ring},
      {"large", large},
      {"zeroSize", zeroSize},
      {"order", order},
      {"toItself", toItself},
      {"noBuffering", noBuffering},
      {"receiveTooSmall", receiveTooSmall},
      {"receiveTooLarge", receiveTooLarge},
      {"deadline", deadline},
      {"sums", sums},
      {"slow", slow},
      {"waitWithoutPost", waitWithoutPost}};
  return all;
}
