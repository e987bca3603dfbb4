//===- DeviceCoreTests.cpp - What a rank's GPU work stands on -------------===//

#include "test/unit/cuda/TinyKernels.h"
#include "test/unit/runtime/OneRank.h"

#include "runtime/cuda/Device.h"
#include "runtime/cuda/InputsAhead.h"
#include "runtime/cuda/Staging.h"
#include "runtime/cuda/TaskGraphs.h"
#include "runtime/cuda/Watchdog.h"
#include "runtime/cuda/WorkLog.h"

#include <atomic>
#include <chrono>
#include <thread>

using namespace pipewright::runtime;

namespace {

/// One GPU, current, with a stream.
class OnDevice : public ::testing::Test {
protected:
  OnDevice() : device(Device::open(0)) {
    device->makeCurrent();
    PIPEWRIGHT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }
  ~OnDevice() override { cudaDriver().cuStreamDestroy(stream); }

  uint32_t wordOf(const DeviceMemory &memory) {
    uint32_t word = 0;
    PIPEWRIGHT_CUDA(cuStreamSynchronize(stream));
    PIPEWRIGHT_CUDA(cuMemcpyDtoH(&word, memory.address(), sizeof word));
    return word;
  }

  std::shared_ptr<Device> device;
  CUstream stream = nullptr;
};

using DeviceTest = OnDevice;
using TaskGraphsTest = OnDevice;
using WorkLogTest = OnDevice;
using StagingTest = OnDevice;
using InputsAheadTest = OnDevice;

/// Gives each input its own number, and counts what was asked for.
class CountingIo : public BatchIo {
public:
  explicit CountingIo(char value) : value(value) {}
  void load(int64_t, int64_t, void *destination, int64_t bytes) override {
    std::fill_n(static_cast<char *>(destination), bytes, value);
    ++loads;
  }
  void store(int64_t, int64_t, const void *, int64_t) override {}

  const char value;
  int loads = 0;
};

} // namespace

TEST_F(DeviceTest, IsSharedByAllRanksOnIt) {
  EXPECT_EQ(Device::open(0), device);
  EXPECT_EQ(errorOf([] { Device::open(Device::count()); }),
            "there is no GPU " + std::to_string(Device::count()) +
                ": the CUDA driver shows " + std::to_string(Device::count()) +
                ", numbered from 0");
}

TEST_F(DeviceTest, FindsKernelsOfTheNewestImageThatRuns) {
  const DeviceImage image = tiny::device.images[0];
  const char broken[] = "not PTX";
  // Not looked at: for a newer GPU, or older than another that runs.
  const std::vector<DeviceImage> images = {
      {999, broken, std::end(broken)}, {50, broken, std::end(broken)}, image};
  EXPECT_NE(device->find(images, "scale"), nullptr);
  EXPECT_EQ(device->find(images, "scale"), device->find(images, "scale"));
  EXPECT_TRUE(contains(errorOf([&] { device->find(images, "none"); }),
                       "the PTX has no kernel 'none'"));
  const std::vector<DeviceImage> newer = {{999, image.begin, image.end}};
  EXPECT_TRUE(contains(errorOf([&] { device->find(newer, "scale"); }),
                       "but the program needs an sm_999 or newer"));
  const std::vector<DeviceImage> bad = {{50, broken, std::end(broken)}};
  EXPECT_TRUE(contains(errorOf([&] { device->find(bad, "scale"); }),
                       "the CUDA driver does not take the PTX for sm_50"));
}

TEST_F(DeviceTest, MemoryIsZeroAndHasAnEnd) {
  const DeviceMemory memory(*device, 4, "test");
  EXPECT_EQ(wordOf(memory), 0u);
  const std::string error =
      errorOf([&] { DeviceMemory(*device, int64_t{1} << 50, "test"); });
  EXPECT_TRUE(contains(error, "has not the 1,125,899,906,842,624 bytes for the "
                              "test: "))
      << error;
  EXPECT_TRUE(contains(error, "bytes are free")) << error;
}

TEST_F(TaskGraphsTest, ReplayFromTheThirdRunOn) {
  const DeviceMemory memory(*device, 4, "test");
  TaskGraphs graphs(true);
  int bodies = 0, hostWork = 0;
  for (uint32_t step = 0; step < 4; ++step) {
    PIPEWRIGHT_CUDA(cuMemsetD32Async(memory.address(), 0, 1, stream));
    graphs.begin(/*evaluation=*/false);
    graphs.run(stream, [&] {
      ++bodies;
      PIPEWRIGHT_CUDA(cuMemsetD32Async(memory.address(), 7, 1, stream));
      graphs.whenReplayed([&] { ++hostWork; });
    });
    EXPECT_EQ(wordOf(memory), 7u) << "step " << step;
  }
  EXPECT_EQ(bodies, 2);
  EXPECT_EQ(hostWork, 2);
  EXPECT_EQ(graphs.count(), 1);
  // Evaluations are others, and what cannot be replayed is not.
  graphs.begin(/*evaluation=*/true);
  graphs.run(stream, [&] { ++bodies; });
  graphs.begin(/*evaluation=*/false, /*plainly=*/true);
  graphs.run(stream, [&] { ++bodies; });
  EXPECT_EQ(bodies, 4);
  EXPECT_EQ(hostWork, 2);
}

TEST_F(TaskGraphsTest, TasksRunPlainlyBehindTheMostNodes) {
  const DeviceMemory memory(*device, 8, "test");
  TaskGraphs graphs(true, /*mostNodes=*/3);
  int bodies[2] = {0, 0};
  for (uint32_t step = 0; step < 4; ++step) {
    PIPEWRIGHT_CUDA(cuMemsetD32Async(memory.address(), 0, 2, stream));
    graphs.begin(/*evaluation=*/false);
    for (int task = 0; task < 2; ++task)
      graphs.run(stream, [&, task] {
        ++bodies[task];
        const CUdeviceptr place = memory.address() + 4 * task;
        PIPEWRIGHT_CUDA(cuMemsetD32Async(place, 1, 1, stream));
        PIPEWRIGHT_CUDA(cuMemsetD32Async(place, 5 + task, 1, stream));
      });
    uint32_t words[2] = {};
    PIPEWRIGHT_CUDA(cuStreamSynchronize(stream));
    PIPEWRIGHT_CUDA(cuMemcpyDtoH(words, memory.address(), 8));
    EXPECT_EQ(words[0], 5u) << "step " << step;
    EXPECT_EQ(words[1], 6u) << "step " << step;
  }
  EXPECT_EQ(graphs.count(), 1);
  // Plainly, and once for its graph; the other one's is looked at in vain.
  EXPECT_EQ(bodies[0], 2);
  EXPECT_EQ(bodies[1], 5);
}

TEST_F(WorkLogTest, SaysWhatIsNotOver) {
  static std::atomic<bool> open;
  open = false;
  WorkLog log;
  log.task(stream, "F", 0, 0);
  PIPEWRIGHT_CUDA(cuLaunchHostFunc(
      stream,
      [](void *) {
        while (!open)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      },
      nullptr));
  CUevent done = nullptr;
  PIPEWRIGHT_CUDA(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
  PIPEWRIGHT_CUDA(cuEventRecord(done, stream));
  log.transfer(receiveFrom(2), 64, done);
  log.wait(receiveFrom(2), done);
  log.task(stream, "B", 0, 1);
  while (!log.advance())
    std::this_thread::yield();
  EXPECT_TRUE(log.waitsForPeer());
  EXPECT_EQ(log.position(),
            "compute waits for receive from rank 2, receive from rank 2 stands "
            "at transfer 1 of 1 (64 bytes)");
  open = true;
  PIPEWRIGHT_CUDA(cuStreamSynchronize(stream));
  EXPECT_TRUE(log.advance());
  EXPECT_FALSE(log.advance());
  EXPECT_FALSE(log.waitsForPeer());
  EXPECT_EQ(log.position(), "");
  PIPEWRIGHT_CUDA(cuEventDestroy(done));
}

TEST_F(StagingTest, GivesWhatWasLoadedBefore) {
  CountingIo first('a'), second('b'), third('c');
  Staging now, next;
  auto given = [](Staging &staging, BatchIo &io, int64_t input) {
    return *static_cast<const char *>(staging.load(io, input, 0, 100).data);
  };
  now.reserve(1024);
  next.reserve(1024);
  now.begin(first);
  EXPECT_EQ(given(now, first, 0), 'a');
  EXPECT_EQ(given(now, first, 1), 'a');
  next.prefetch(second, now);
  EXPECT_EQ(second.loads, 2);
  next.begin(second);
  EXPECT_EQ(given(next, second, 0), 'b');
  // Not what the step before asked for: loaded now, like all that follows.
  EXPECT_EQ(given(next, second, 5), 'b');
  EXPECT_EQ(second.loads, 3);
  // A step that is not the expected one.
  next.prefetch(second, now);
  next.begin(third);
  EXPECT_EQ(given(next, third, 0), 'c');
  EXPECT_EQ(third.loads, 1);
  // What two stages want is loaded once, and nothing is pinned in a step.
  EXPECT_EQ(given(next, third, 0), 'c');
  EXPECT_EQ(third.loads, 1);
  for (int64_t input = 1; input < 4; ++input)
    given(next, third, input);
  EXPECT_EQ(errorOf([&] { given(next, third, 4); }),
            "a step asks for more input than the program says: 1124 bytes, but "
            "1024 are reserved");
  EXPECT_EQ(now.bytes(), 1024);
}

TEST_F(InputsAheadTest, GivesWhatWasSent) {
  constexpr int64_t bytes = InputsAhead::leastBytes, all = 2 * bytes + 256;
  CountingIo first('a'), second('b'), third('c');
  Chaos none(0, 0);
  DeviceMemory read(*device, bytes, "what a step reads");
  // What a step gets of an input, or ' ' if it was not sent.
  auto taken = [&](InputsAhead &ahead, Staging &staging, BatchIo &io,
                   int64_t microBatch, int64_t size) {
    if (!ahead.take(staging.load(io, 0, microBatch, size), read.address(),
                    stream))
      return ' ';
    std::vector<char> values(size);
    PIPEWRIGHT_CUDA(cuStreamSynchronize(stream));
    PIPEWRIGHT_CUDA(cuMemcpyDtoH(values.data(), read.address(), size));
    EXPECT_EQ(values.front(), values.back());
    return values.front();
  };
  // Sends the inputs of `expected` while a step runs, and begins the next one.
  auto advance = [&](InputsAhead &ahead, Staging &from, Staging &to,
                     BatchIo &expected, BatchIo &begun) {
    to.prefetch(expected, from);
    ahead.send(to, none);
    to.begin(begun);
  };
  InputsAhead ahead;
  Staging now, next;
  ahead.reserve(*device, 2 * bytes);
  now.reserve(all);
  next.reserve(all);
  now.begin(first);
  for (int64_t microBatch : {0, 1})
    EXPECT_EQ(taken(ahead, now, first, microBatch, bytes), ' ');
  EXPECT_EQ(taken(ahead, now, first, 2, 100), ' ');
  advance(ahead, now, next, second, second);
  for (int64_t microBatch : {0, 1})
    EXPECT_EQ(taken(ahead, next, second, microBatch, bytes), 'b');
  // Too small.
  EXPECT_EQ(taken(ahead, next, second, 2, 100), ' ');
  // The same places again.
  advance(ahead, next, now, third, third);
  EXPECT_EQ(taken(ahead, now, third, 1, bytes), 'c');
  // Another step than the one that it was sent for.
  advance(ahead, now, next, second, first);
  EXPECT_EQ(taken(ahead, next, first, 1, bytes), ' ');
  // Without memory nothing is sent.
  InputsAhead nowhere;
  advance(nowhere, now, next, second, second);
  EXPECT_EQ(taken(nowhere, next, second, 1, bytes), ' ');
}

TEST(Watchdog, FreesAThreadThatDoesNotComeOn) {
  std::atomic<bool> released = false;
  Watchdog watchdog(
      0.2, 3, [] { return "compute stands at F0.0"; },
      [&] { released = true; });
  watchdog.begin();
  for (int i = 0; i < 30; ++i) {
    watchdog.touch();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(released);
  // A call that returns only then.
  while (!released)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(
      errorOf([&] { watchdog.touch(); }),
      "the CUDA driver has held up the host for 0.2 s, because its queues "
      "are full or until the GPU is idle, but the GPU comes no further; "
      "compute stands at F0.0 (--timeout changes it)");
  watchdog.end();
}

TEST(Watchdog, LeavesAThreadAloneThatIsNotWatched) {
  Watchdog watchdog(0.05, 0, [] { return ""; }, [] { FAIL(); });
  watchdog.begin();
  watchdog.end();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  watchdog.touch();
}
