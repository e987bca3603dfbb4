//===- LivenessTests.cpp - What is known of ranks that run ----------------===//

#include "test/unit/runtime/Files.h"

#include "runtime/core/Error.h"
#include "runtime/net/Liveness.h"
#include "runtime/trace/FlightRecorder.h"
#include "runtime/train/Progress.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace pipewright::runtime;
using namespace std::chrono_literals;

static Sign waiting(int64_t progress, int64_t peer) {
  Sign sign;
  sign.progress = progress;
  sign.reason = Sign::Receive;
  sign.peer = peer;
  sign.bytes = 64;
  return sign;
}

TEST(Liveness, OnlySilenceIsDeath) {
  const auto start = Liveness::Clock::now();
  Liveness all(0, 3, start);
  all.hear(1, start + 9s);
  EXPECT_EQ(all.findSilent(8, start + 7s), -1);
  EXPECT_EQ(all.findSilent(8, start + 9s), 2);
  all.end(2);
  EXPECT_EQ(all.findSilent(8, start + 9s), -1) << "it has said goodbye";
  EXPECT_EQ(all.findSilent(8, start + 18s), 1);
}

TEST(Liveness, StuckIsWhenAllWaitAndSaySoForLong) {
  const auto start = Liveness::Clock::now();
  Liveness all(0, 2, start);
  all.hear(0, waiting(1, 1), start);
  all.hear(1, waiting(7, 0), start);
  EXPECT_FALSE(all.isStuck(5));
  all.hear(0, waiting(1, 1), start + 6s);
  EXPECT_FALSE(all.isStuck(5)) << "rank 1 may have come further since";
  all.hear(1, waiting(8, 0), start + 6s);
  EXPECT_FALSE(all.isStuck(5)) << "it has";
  all.hear(1, waiting(8, 0), start + 12s);
  all.hear(0, waiting(1, 1), start + 12s);
  EXPECT_TRUE(all.isStuck(5));
  EXPECT_NE(all.describeAll(start + 12s)
                .find("rank 0 waits for rank 1: receive of 64 bytes; rank 1 "
                      "waits for rank 0: receive of 64 bytes"),
            std::string::npos);
  all.hear(1, Sign(), start + 18s);
  all.hear(0, waiting(1, 1), start + 30s);
  all.hear(1, Sign(), start + 30s);
  EXPECT_FALSE(all.isStuck(5)) << "rank 1 works";
}

TEST(Liveness, ASignOfAnyBytesCanBeDescribed) {
  Sign sign;
  std::memset(static_cast<void *>(&sign), 0xff, sizeof sign);
  sign.step = 3;
  const std::string text = describe(1, sign);
  for (const char c : text)
    EXPECT_TRUE(c >= ' ' && c <= '~');
}

TEST(FlightRecorder, KeepsTheLastOperations) {
  FlightRecorder recorder;
  EXPECT_TRUE(recorder.isEmpty());
  for (int64_t step = 0; step < 2000; ++step) {
    recorder.beginStep(step);
    recorder.task('F', 0, 1);
    recorder.post(FlightRecorder::PostSend, 1);
    recorder.wait(FlightRecorder::WaitReceive, 1);
    recorder.end();
  }
  recorder.task('B', 3, 2);
  const auto last = recorder.last();
  ASSERT_EQ(last.size(), FlightRecorder::capacity);
  EXPECT_EQ(recorder.lastText(4), "F0.1 post-send>1 receive<1 B3.2");
  EXPECT_EQ(last.back().end, 0) << "still runs";
  EXPECT_EQ(last.back().step, 1999);
  for (size_t i = 0; i + 1 < last.size(); ++i)
    EXPECT_LE(last[i].start, last[i].end);
}

TEST(FlightRecorder, WritesATraceOfTasks) {
  Folder folder;
  FlightRecorder recorder;
  recorder.beginStep(4);
  recorder.task('F', 1, 0);
  recorder.wait(FlightRecorder::WaitReceive, 0);
  recorder.write(folder.path("flight.json"), 1);
  const std::string text = folder.read("flight.json");
  for (const char *part :
       {"\"rank 1\"", "\"F1.0\"", "wait receive rank 0", "\"step\":4",
        "\"kind\":\"F\",\"stage\":1,\"micro_batch\":0"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(FlightRecorder, ReplacesFilesOfItsOwnAlone) {
  Folder folder;
  FlightRecorder recorder;
  recorder.task('F', 1, 0);
  const std::string path = folder.path("flight.json");
  recorder.write(path, 0);
  const std::string older = folder.read("flight.json");
  recorder.task('B', 1, 0);
  recorder.write(path, 0);
  EXPECT_NE(folder.read("flight.json"), older);
  folder.write("flight.json", "somebody's");
  EXPECT_THROW(recorder.write(path, 0), Error);
  EXPECT_EQ(folder.read("flight.json"), "somebody's");

  folder.write("other", "somebody's");
  unlink(path.c_str());
  ASSERT_EQ(symlink("other", path.c_str()), 0);
  EXPECT_THROW(recorder.write(path, 0), Error);
  EXPECT_EQ(folder.read("other"), "somebody's");
  unlink(path.c_str());
  ASSERT_EQ(symlink("not-there", path.c_str()), 0);
  EXPECT_THROW(recorder.write(path, 0), Error);
  EXPECT_FALSE(folder.exists("not-there"));
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(recorder.write(path, 0), Error);
}

TEST(FlightRecorder, MayBeReadWhileItIsWritten) {
  FlightRecorder recorder;
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop)
      for (const auto &operation : recorder.last(64))
        // All of one operation, or none of it.
        EXPECT_EQ(operation.place, operation.microBatch);
  });
  for (int64_t i = 0; i < 200000; ++i)
    recorder.task('F', i % 1000, i % 1000);
  stop = true;
  reader.join();
}

TEST(Progress, ALogHasALineNowAndThenHoweverManyStepsAreLeft) {
  testing::internal::CaptureStdout();
  {
    Progress progress(1000000000, 1, 0, /*lineSeconds=*/0.2);
    for (int64_t step = 1; step < 5; ++step)
      progress.step(step, 1, 0.001);
    std::this_thread::sleep_for(300ms);
    progress.step(5, 1, 0.001);
    progress.step(6, 1, 0.001);
  }
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
}

/// The figure for the README; it demands little, as tests run beside others.
TEST(FlightRecorder, CostsLittle) {
  FlightRecorder recorder;
  constexpr int64_t count = 200000;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i)
    recorder.task('F', 0, i);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  std::printf("%.1f ns for each operation\n", seconds / count * 1e9);
  EXPECT_LT(seconds / count, 5e-6);
}
