//===- TcpHostileTests.cpp - TCP holds against whoever connects -----------===//
//
// Strangers who come while ranks meet, and ranks that have proven to be of the
// job but send what nobody expects.
//
//===----------------------------------------------------------------------===//

#include "test/conformance/Limits.h"
#include "test/conformance/TcpRanks.h"

#include "runtime/core/Error.h"
#include "runtime/net/Socket.h"
#include "runtime/net/TcpFrames.h"
#include "runtime/net/TcpHandshake.h"
#include "runtime/net/TcpRendezvous.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <poll.h>
#include <thread>

using namespace pipewright::runtime;
using namespace pipewright::runtime::tcp;

static TcpJob withKey(TcpJob place, const char *secret, const char *program) {
  if (secret)
    setenv("PIPEWRIGHT_JOB_KEY", secret, 1);
  place.key = JobKey::fromEnvironment(program);
  unsetenv("PIPEWRIGHT_JOB_KEY");
  return place;
}

static Socket knock(const TcpJob &place) {
  std::string reason;
  return connectTo("127.0.0.1", place.port, Deadline(10), reason);
}

template <class T>
static bool say(const Socket &socket, const T &value) {
  return socket.sendAll(&value, sizeof value, Deadline(5));
}

template <class T>
static bool hear(const Socket &socket, T &value) {
  return socket.receiveAll(&value, sizeof value, Deadline(5));
}

/// Runs two ranks, of which the second comes once the strangers have acted.
static void expectStrangersKeptOut(
    const std::function<void(const TcpJob &first)> &strangers) {
  auto places = placesOf(2);
  for (TcpJob &place : places)
    place = withKey(place, "a secret", "program");
  const Body body = [](Transport &t) {
    double one = 1;
    t.sumToAll(&one, 1);
    EXPECT_EQ(one, 2);
  };
  std::vector<std::string> errors(2);
  std::thread first([&] { errors[0] = runRank(places[0], 30, body); });
  strangers(places[0]);
  errors[1] = runRank(places[1], 30, body);
  first.join();
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

// --- Strangers ---------------------------------------------------------------

TEST(TcpStrangers, FalseIntroductionsEndNothingAndTakeNoPlace) {
  expectStrangersKeptOut([](const TcpJob &place) {
    for (const auto &[rank, size] :
         {std::pair<int64_t, int64_t>{1, 2},
          {1, 3},
          {0, 2},
          {std::numeric_limits<int64_t>::min(), 2}}) {
      const Socket socket = knock(place);
      Challenge challenge;
      ASSERT_TRUE(hear(socket, challenge));
      Introduction lie;
      lie.rank = rank;
      lie.size = size;
      lie.to = 0;
      prove(lie, challenge, JobKey());
      say(socket, lie);
      Answer answer;
      ASSERT_TRUE(hear(socket, answer));
      EXPECT_EQ(answer.welcome, 0);
      char more;
      EXPECT_FALSE(hear(socket, more)) << "dropped";
    }
  });
}

TEST(TcpStrangers, ARecordedIntroductionIsWorthNothing) {
  expectStrangersKeptOut([](const TcpJob &place) {
    // As somebody on the wire has seen it.
    const Socket once = knock(place);
    Challenge first;
    ASSERT_TRUE(hear(once, first));
    Introduction recorded;
    recorded.rank = 1;
    recorded.size = 2;
    recorded.to = 0;
    prove(recorded, first, place.key);
    const Socket again = knock(place);
    Challenge second;
    ASSERT_TRUE(hear(again, second));
    EXPECT_NE(first.nonce, second.nonce);
    say(again, recorded);
    Answer answer;
    ASSERT_TRUE(hear(again, answer));
    EXPECT_EQ(answer.welcome, 0);
  });
}

TEST(TcpStrangers, NonsenseAndSilenceAreDropped) {
  std::vector<Socket> silent;
  expectStrangersKeptOut([&](const TcpJob &place) {
    for (int i = 0; i < 200; ++i)
      silent.push_back(knock(place));
    const std::string http = "GET / HTTP/1.1\r\nHost: here.example\r\n\r\n";
    Socket rude = knock(place);
    rude.sendAll(http.data(), http.size(), Deadline(5));
    char byte;
    Challenge challenge;
    EXPECT_TRUE(hear(rude, challenge));
    EXPECT_FALSE(hear(rude, byte)) << "dropped at its first words";
    const std::string noise(100000, '\x5a');
    knock(place).sendAll(noise.data(), noise.size(), Deadline(1));
    // Half an introduction.
    Introduction half;
    std::copy_n(magic, sizeof magic, half.magic);
    silent.push_back(knock(place));
    silent.back().sendAll(&half, sizeof half / 2, Deadline(5));
  });
}

TEST(TcpStrangers, ASilentConnectionIsDroppedAfterFiveSeconds) {
  expectStrangersKeptOut([&](const TcpJob &place) {
    const auto start = std::chrono::steady_clock::now();
    const Socket silent = knock(place);
    Challenge challenge;
    EXPECT_TRUE(hear(silent, challenge));
    char byte;
    EXPECT_FALSE(silent.receiveAll(&byte, 1, Deadline(hangSeconds)));
    const auto waited = std::chrono::steady_clock::now() - start;
    EXPECT_GT(waited, std::chrono::milliseconds(4500));
    EXPECT_LT(waited, soon);
  });
}

TEST(TcpStrangers, WhoListensInTheNameOfRankZeroMustProveIt) {
  const auto places = placesOf(2);
  const Socket impostor = listenAt("127.0.0.1", places[0].port);
  std::string error;
  std::thread rank1(
      [&] { error = runRank(places[1], 10, [](Transport &) {}); });
  impostor.waitFor(POLLIN, 10000);
  const Socket socket = acceptFrom(impostor);
  const Challenge challenge = challengeWith(freshNonce());
  say(socket, challenge);
  Introduction heard;
  hear(socket, heard);
  // The reflection: its own proof comes back to it.
  Answer answer;
  answer.welcome = 1;
  answer.rank = 0;
  answer.proof = heard.proof;
  say(socket, answer);
  rank1.join();
  EXPECT_NE(error.find("cannot prove that it is rank 0 of this job"),
            std::string::npos)
      << error;
}

// --- Ranks of another job or program -----------------------------------------

TEST(TcpJobKey, AnotherKeyIsToldToBothEnds) {
  auto places = placesOf(2);
  places[0] = withKey(places[0], "a secret", "program");
  places[1] = withKey(places[1], "another", "program");
  const auto errors = runPlaces(places, 1, [](Transport &) {});
  EXPECT_NE(errors[1].find("rank 1 is turned away by rank 0 at 127.0.0.1:"),
            std::string::npos)
      << errors[1];
  EXPECT_NE(errors[1].find("give all processes the same PIPEWRIGHT_JOB_KEY"),
            std::string::npos);
  EXPECT_NE(errors[0].find("rank 1 of 2 did not come"), std::string::npos)
      << errors[0];
  EXPECT_NE(errors[0].find("a process at 127.0.0.1 that calls itself rank 1 "
                           "was turned away: it is of another job"),
            std::string::npos)
      << errors[0];
}

TEST(TcpJobKey, AnotherProgramOfTheSameJobIsOneErrorThatNamesBoth) {
  auto places = placesOf(2);
  places[0] = withKey(places[0], "a secret", "program");
  places[1] = withKey(places[1], "a secret", "another program");
  const auto errors = runPlaces(places, hangSeconds, [](Transport &) {});
  const std::string expected =
      "rank 1 does not have the same program as rank 0 (" +
      programText(places[1].key.program) + ", rank 0 has " +
      programText(places[0].key.program) +
      "): start every rank from a copy of the same folder";
  EXPECT_EQ(errors, std::vector<std::string>(2, expected));
}

TEST(TcpJobKey, WithoutASecretTheProgramIsTheKey) {
  auto places = placesOf(2);
  places[0] = withKey(places[0], nullptr, "program");
  places[1] = withKey(places[1], nullptr, "program");
  EXPECT_EQ(runPlaces(places, hangSeconds, [](Transport &t) { t.barrier(); }),
            std::vector<std::string>(2));
  places = placesOf(2);
  places[0] = withKey(places[0], nullptr, "program");
  places[1] = withKey(places[1], nullptr, "another program");
  const auto errors = runPlaces(places, 1, [](Transport &) {});
  EXPECT_NE(errors[1].find("it has another program ("), std::string::npos)
      << errors[1];
}

TEST(TcpJobKey, TheLaunchersJobIsPartOfTheKey) {
  const TcpJob plain = withKey({}, nullptr, "program");
  setenv("SLURM_JOB_ID", "4711", 1);
  const TcpJob slurm = withKey({}, nullptr, "program");
  const TcpJob given = withKey({}, "a secret", "program");
  unsetenv("SLURM_JOB_ID");
  EXPECT_NE(plain.key.key, slurm.key.key);
  EXPECT_EQ(plain.key.program, slurm.key.program);
  EXPECT_EQ(given.key.key, withKey({}, "a secret", "program").key.key);
}

// --- Frames that nobody expects ----------------------------------------------

/// What rank 0 says that expects 0 bytes of rank 1, which sends this instead.
static std::string errorAfter(const Header &header, int64_t payload) {
  const auto places = placesOf(2);
  std::atomic<bool> isPosted{false};
  std::thread hostile([&] {
    const std::vector<Socket> sockets = meet(places[1], hangSeconds);
    while (!isPosted)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::vector<char> bytes(payload, 'x');
    say(sockets[0], header);
    sockets[0].sendAll(bytes.data(), bytes.size(), Deadline(2));
    // Until rank 0 has gone.
    char byte;
    while (hear(sockets[0], byte))
      continue;
  });
  const std::string error = runRank(places[0], hangSeconds, [&](Transport &t) {
    t.postReceive(1, nullptr, 0);
    isPosted = true;
    t.barrier();
  });
  hostile.join();
  return error;
}

TEST(TcpFrames, EachThatNobodyExpectsIsOneError) {
  const int64_t huge = int64_t(1) << 40;
  const struct {
    Header header;
    int64_t payload;
    const char *found, *expected;
  } cases[] = {
      {{Header::Data, 8, Lane::Control},
       8,
       "Data with 8 bytes",
       "0 to 0 bytes that a receive of 0 bytes lacks"},
      {{Header::Data, 8, Lane::Collectives},
       8,
       "Data with 8 bytes",
       "nothing, as no receive is posted"},
      {{Header::Data, 8, static_cast<Lane>(4)}, 8, "", "lane 4"},
      {{Header::Ready, 8, static_cast<Lane>(-1)}, 0, "", "lane -1"},
      {{Header::Failed, huge},
       4096,
       "Failed with 1099511627776",
       "at most 65536 bytes"},
      {{Header::Data, 1 << 20},
       1 << 20,
       "Data with 1048576 bytes",
       "0 to 0 bytes that a receive of 0 bytes lacks"},
      {{Header::Data, -1}, 0, "Data with -1 bytes", "0 to 0 bytes"},
      {{Header::Ready, -8}, 0, "Ready with -8", "a size of at least 0"},
      {{Header::WrongSize, 0}, 0, "WrongSize with 0", "no other size"},
      {{Header::Beat, 3}, 3, "Beat with 3", "expects 136 bytes"},
      {{Header::Bye, 1}, 1, "Bye with 1", "expects 0 bytes"},
      {{77, 1}, 1, "kind 77 with 1", "a kind of 1 to 6"},
  };
  for (const auto &[header, payload, found, expected] : cases) {
    const auto start = std::chrono::steady_clock::now();
    const std::string error = errorAfter(header, payload);
    EXPECT_EQ(error.rfind("rank 0 is sent by rank 1 a frame o", 0), 0u)
        << error;
    EXPECT_NE(error.find(found), std::string::npos) << found << ": " << error;
    EXPECT_NE(error.find(expected), std::string::npos)
        << expected << ": " << error;
    EXPECT_LT(std::chrono::steady_clock::now() - start, soon);
  }
}

// --- Slow, stuck, silent -----------------------------------------------------

TEST(TcpLiveness, RanksThatAllWaitHearWhoWaitsForWhom) {
  const auto errors = runPlaces(placesOf(3), hangSeconds, [](Transport &t) {
    t.setSilence(1);
    char byte = 0;
    if (t.rank() == 2)
      return t.barrier();
    t.postReceive(1 - t.rank(), &byte, 1);
    t.waitReceive(1 - t.rank());
  });
  for (const std::string &error : errors)
    for (const char *part : {"rank 0 waits for rank 1: receive of 1 bytes",
                             "rank 1 waits for rank 0: receive of 1 bytes",
                             "rank 2 waits for rank 0: end of the step",
                             "none has come further for 1 s"})
      EXPECT_NE(error.find(part), std::string::npos) << part << " in " << error;
}

TEST(TcpLiveness, ASilentRankIsTold) {
  const auto places = placesOf(2);
  std::thread silent([&] {
    const std::vector<Socket> sockets = meet(places[1], hangSeconds);
    char byte;
    while (hear(sockets[0], byte))
      continue;
  });
  const auto start = std::chrono::steady_clock::now();
  const std::string error = runRank(places[0], hangSeconds, [](Transport &t) {
    t.setSilence(1);
    t.barrier();
  });
  EXPECT_EQ(error.rfind("rank 0 has heard nothing from rank 1 for 1 s", 0), 0u)
      << error;
  EXPECT_LT(std::chrono::steady_clock::now() - start, soon);
  silent.join();
}
