//===- DeviceScenarios.cpp - What links between GPUs must do --------------===//

#include "test/conformance/DeviceScenarios.h"
#include "test/conformance/Limits.h"

#include "runtime/core/Error.h"
#include "runtime/net/ThreadTransport.h"

#include <chrono>
#include <numeric>
#include <thread>

using namespace pipewright::runtime;

using Clock = std::chrono::steady_clock;

// --- The bench ---------------------------------------------------------------

Bench::Bench(Transport &control, DeviceLinks &links, DeviceMemory &arena)
    : control(control), links(links), arena(arena) {
  links.share(reinterpret_cast<void *>(arena.address()), arena.bytes());
  PIPEWRIGHT_CUDA(cuStreamCreate(&computing, CU_STREAM_NON_BLOCKING));
}

Bench::~Bench() {
  // After a failure the GPU may never come to an end; the process does.
  if (std::uncaught_exceptions()) {
    links.abort();
    new DeviceMemory(std::move(arena));
    return;
  }
  for (CUevent each : events)
    cudaDriver().cuEventDestroy(each);
  for (const auto &[key, each] : streams)
    cudaDriver().cuStreamDestroy(each);
  cudaDriver().cuStreamDestroy(computing);
}

/// As buffers of a plan lie.
CUdeviceptr Bench::take(int64_t bytes) {
  const int64_t at = taken;
  taken += (std::max<int64_t>(bytes, 1) + 255) / 256 * 256;
  if (taken > arena.bytes())
    fail("a scenario needs more memory than the bench has");
  return arena.address() + at;
}

void *Bench::put(const std::vector<int64_t> &values) {
  const int64_t bytes = values.size() * sizeof(int64_t);
  const CUdeviceptr address = take(bytes);
  if (bytes)
    copyToDevice(address, values.data(), bytes);
  return reinterpret_cast<void *>(address);
}

std::vector<int64_t> Bench::get(const void *data, int64_t count) {
  std::vector<int64_t> values(count);
  if (count)
    PIPEWRIGHT_CUDA(cuMemcpyDtoH(values.data(),
                                 reinterpret_cast<CUdeviceptr>(data),
                                 count * sizeof(int64_t)));
  return values;
}

void *Bench::putBytes(std::string bytes) {
  const CUdeviceptr address = take(static_cast<int64_t>(bytes.size()));
  if (!bytes.empty())
    copyToDevice(address, bytes.data(), static_cast<int64_t>(bytes.size()));
  return reinterpret_cast<void *>(address);
}

std::string Bench::getBytes(const void *data, int64_t count) {
  std::string bytes(count, '\0');
  if (count)
    PIPEWRIGHT_CUDA(
        cuMemcpyDtoH(bytes.data(), reinterpret_cast<CUdeviceptr>(data), count));
  return bytes;
}

CUevent Bench::event() {
  CUevent event = nullptr;
  PIPEWRIGHT_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  return events.emplace_back(event);
}

CUstream Bench::stream(int64_t peer, bool isSend) {
  CUstream &stream = streams[{peer, isSend}];
  if (!stream)
    PIPEWRIGHT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

CUevent Bench::send(int64_t peer, const void *data, int64_t count,
                    CUevent after) {
  if (after)
    wait(stream(peer, true), after);
  CUevent done = event();
  links.send(peer, data, count * sizeof(int64_t), stream(peer, true), done);
  return done;
}

CUevent Bench::receive(int64_t peer, void *data, int64_t count, CUevent after) {
  if (after)
    wait(stream(peer, false), after);
  CUevent done = event();
  links.receive(peer, data, count * sizeof(int64_t), stream(peer, false), done);
  return done;
}

void Bench::wait(CUstream stream, CUevent done) {
  links.settle(done);
  PIPEWRIGHT_CUDA(cuStreamWaitEvent(stream, done, 0));
}

void Bench::finish() {
  links.settleAll();
  std::vector<CUstream> all = {computing};
  for (const auto &[key, each] : streams)
    all.push_back(each);
  const auto start = Clock::now();
  for (CUstream each : all)
    while (cudaDriver().cuStreamQuery(each) == CUDA_ERROR_NOT_READY) {
      links.check();
      if (Clock::now() - start > std::chrono::duration<double>(hangSeconds))
        fail("rank ", rank(), ": the GPU does not come to an end");
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

std::vector<std::pair<int64_t, int64_t>>
pipewright::runtime::allLinks(int64_t ranks) {
  std::vector<std::pair<int64_t, int64_t>> links;
  for (int64_t from = 0; from < ranks; ++from)
    for (int64_t to = 0; to < ranks; ++to)
      if (from != to)
        links.emplace_back(from, to);
  return links;
}

std::string pipewright::runtime::caseOf(
    const ::testing::TestParamInfo<ShapedScenario> &info) {
  const auto &[shape, scenario] = info.param;
  return std::string(scenario.name) + std::to_string(shape.first) + "On" +
         std::to_string(shape.second);
}

int64_t pipewright::runtime::gpusThere() {
  int count = 0;
  PIPEWRIGHT_CUDA(cuDeviceGetCount(&count));
  return count;
}

std::vector<std::string> pipewright::runtime::runDeviceRanks(
    int64_t ranks, int64_t gpus, const MakeLinks &make,
    const std::function<void(Bench &)> &body,
    const std::vector<std::pair<int64_t, int64_t>> &pairs) {
  ThreadWorld world(ranks);
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  for (int64_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      ThreadTransport control(world, r);
      control.setDeadline(hangSeconds);
      try {
        const std::shared_ptr<Device> device = Device::open(r % gpus);
        device->makeCurrent();
        DeviceMemory arena = Bench::makeArena(*device);
        const std::unique_ptr<DeviceLinks> links = make(control);
        links->connect(pairs.empty() ? allLinks(ranks) : pairs);
        {
          Bench bench(control, *links, arena);
          body(bench);
        }
        control.barrier();
      } catch (const std::exception &error) {
        errors[r] = error.what();
        control.abort(error.what());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

// --- The scenarios -----------------------------------------------------------

/// The n-th send meets the n-th receive, whatever their sizes.
static void order(Bench &b) {
  if (b.rank() > 1)
    return;
  std::vector<void *> messages;
  auto countOf = [](int64_t i) { return i % 3 == 0 ? 20000 : i; };
  for (int64_t i = 0; i < 20; ++i) {
    messages.push_back(b.put(pattern(countOf(i), b.rank() ? 0 : 100 * i)));
    if (b.rank() == 0)
      b.send(1, messages[i], countOf(i));
    else
      b.receive(0, messages[i], countOf(i));
  }
  b.finish();
  for (int64_t i = 0; i < 20 && b.rank() == 1; ++i)
    check(b.get(messages[i], countOf(i)) == pattern(countOf(i), 100 * i),
          "message " + std::to_string(i) + " arrives in its place");
}

/// Sends before receives on both sides, 4 MiB each way.
static void bothWays(Bench &b) {
  if (b.rank() > 1)
    return;
  const int64_t peer = 1 - b.rank(), count = 1 << 19;
  void *sent = b.put(pattern(count, b.rank()));
  void *received = b.put(std::vector<int64_t>(count));
  b.send(peer, sent, count);
  b.receive(peer, received, count);
  b.finish();
  check(b.get(received, count) == pattern(count, peer), "every byte arrives");
}

/// One end has given two receives before it sends what the other waits for
/// after a single send.
static void lopsided(Bench &b) {
  if (b.rank() > 1)
    return;
  const int64_t peer = 1 - b.rank();
  void *sent = b.put({7 + b.rank(), 9});
  void *received = b.put({0, 0});
  void *second = static_cast<int64_t *>(received) + 1;
  if (b.rank() == 1) {
    CUevent first = b.receive(peer, received, 1);
    b.receive(peer, second, 1);
    b.wait(b.compute(), first);
    b.send(peer, sent, 1);
  } else {
    b.send(peer, sent, 1);
    b.wait(b.compute(), b.receive(peer, received, 1));
    b.send(peer, static_cast<int64_t *>(sent) + 1, 1);
  }
  b.finish();
  check(b.get(received, 2) ==
            std::vector<int64_t>{7 + peer, b.rank() == 1 ? 9 : 0},
        "what one end gives first arrives");
}

/// All links at once, several messages on each.
static void manyLinks(Bench &b) {
  struct Message {
    int64_t from, count, first;
    void *data;
  };
  std::vector<Message> received;
  for (int64_t round = 0; round < 5; ++round)
    for (int64_t distance = 1; distance < b.size(); ++distance) {
      const int64_t to = (b.rank() + distance) % b.size();
      const int64_t from = (b.rank() + b.size() - distance) % b.size();
      const int64_t count = 1 << (3 * round);
      auto firstOf = [&](int64_t rank) { return 1000 * rank + round; };
      b.send(to, b.put(pattern(count, firstOf(b.rank()))), count);
      void *data = b.put(std::vector<int64_t>(count));
      received.push_back({from, count, firstOf(from), data});
      b.receive(from, data, count);
    }
  b.finish();
  for (const Message &message : received)
    check(b.get(message.data, message.count) ==
              pattern(message.count, message.first),
          "what arrives is what rank " + std::to_string(message.from) +
              " sent");
}

static void zeroSize(Bench &b) {
  if (b.rank() == 0)
    b.send(1, nullptr, 0);
  else if (b.rank() == 1)
    b.receive(0, nullptr, 0);
  b.finish();
}

/// A message goes round all ranks, many times; only events order anything.
static void manySteps(Bench &b) {
  const int64_t next = (b.rank() + 1) % b.size();
  const int64_t last = (b.rank() + b.size() - 1) % b.size();
  constexpr int64_t count = 64, laps = 5;
  void *token = b.put(pattern(count, b.rank() == 0 ? 7 : 0));
  CUevent filled = nullptr, ready = b.event();
  for (int64_t step = 0; step < 30; ++step) {
    b.links.compareSizes(step == 0);
    filled = nullptr;
    for (int64_t lap = 0; lap < laps; ++lap) {
      if (b.rank() == 0) {
        CUevent sent = b.send(next, token, count, filled);
        filled = b.receive(last, token, count, sent);
      } else {
        CUevent arrived = b.receive(last, token, count, filled);
        // Through `compute`, as a task would.
        b.wait(b.compute(), arrived);
        PIPEWRIGHT_CUDA(cuEventRecord(ready, b.compute()));
        PIPEWRIGHT_CUDA(cuStreamWaitEvent(b.stream(next, true), ready, 0));
        filled = b.send(next, token, count);
      }
    }
    b.finish();
    check(b.get(token, count) == pattern(count, 7), "the token stays whole");
  }
}

/// Events are used again in each step.
static void sameEvents(Bench &b) {
  if (b.rank() > 1)
    return;
  const int64_t peer = 1 - b.rank();
  CUevent done = b.event();
  for (int64_t step = 0; step < 50; ++step) {
    void *data = b.put({b.rank() ? 0 : step});
    if (b.rank() == 0)
      b.links.send(peer, data, 8, b.stream(peer, true), done);
    else
      b.links.receive(peer, data, 8, b.stream(peer, false), done);
    b.wait(b.compute(), done);
    b.finish();
    check(b.get(data, 1)[0] == step, "each step has its own value");
  }
}

/// Even the smallest send waits for its receive.
static void noBuffering(Bench &b) {
  if (b.rank() > 1)
    return b.control.barrier();
  void *data = b.put({b.rank() ? 0 : 7});
  CUevent done = nullptr;
  if (b.rank() == 0) {
    done = b.send(1, data, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    b.links.check();
    // By copies the event is not even recorded before the peer comes.
    const auto recorded = b.links.recorded(done);
    check(recorded ? !*recorded
                   : cudaDriver().cuEventQuery(done) == CUDA_ERROR_NOT_READY,
          "a send without receive does not complete");
  }
  b.control.barrier();
  if (b.rank() == 1)
    b.receive(0, data, 1);
  b.finish();
  if (b.rank() == 0)
    check(cudaDriver().cuEventQuery(done) == CUDA_SUCCESS, "the send is over");
  check(b.get(data, 1)[0] == 7, "it arrives once the receive is there");
}

/// One end has given many before the other gives any.
static void farAhead(Bench &b) {
  if (b.rank() > 1)
    return b.control.barrier();
  constexpr int64_t messages = 100;
  const int64_t peer = 1 - b.rank();
  std::vector<void *> data;
  for (int64_t i = 0; i < messages; ++i)
    data.push_back(b.put({b.rank() ? 0 : i}));
  void *answer = b.put({b.rank() ? 5 : 0});
  if (b.rank() == 1)
    b.control.barrier();
  for (int64_t i = 0; i < messages; ++i)
    b.rank() ? b.receive(peer, data[i], 1) : b.send(peer, data[i], 1);
  if (b.rank() == 0)
    b.control.barrier();
  b.rank() ? b.send(peer, answer, 1) : b.receive(peer, answer, 1);
  b.finish();
  for (int64_t i = 0; i < messages && b.rank() == 1; ++i)
    check(b.get(data[i], 1)[0] == i, "each is where it belongs");
  check(b.get(answer, 1)[0] == 5, "and so is the answer");
}

/// Copies of one link are over in their order.
static void lastMeansAll(Bench &b) {
  if (b.rank() > 1)
    return;
  constexpr int64_t messages = 8, count = 1 << 15;
  std::vector<void *> data;
  CUevent last = nullptr;
  for (int64_t i = 0; i < messages; ++i) {
    data.push_back(b.put(pattern(count, b.rank() ? 0 : i)));
    last = b.rank() == 0 ? b.send(1, data[i], count)
                         : b.receive(0, data[i], count);
    // Now one end comes first, now the other.
    if (i % 2 == b.rank())
      b.links.settle(last);
  }
  b.links.settle(last);
  PIPEWRIGHT_CUDA(cuEventSynchronize(last));
  for (int64_t i = 0; i < messages && b.rank() == 1; ++i)
    check(b.get(data[i], count) == pattern(count, i),
          "all that was sent before the last is there");
  b.finish();
}

static void wrongCount(Bench &b) {
  if (b.rank() > 1)
    return b.control.barrier();
  std::vector<int64_t> values(100);
  void *data = b.put(values);
  const std::string error = errorOf([&] {
    CUevent done =
        b.rank() == 0 ? b.send(1, data, 100) : b.receive(0, data, 60);
    b.links.settle(done);
  });
  check(error == "rank 0 sends 800 bytes to rank 1, which expects 480 bytes",
        "both ends see sizes that differ, but: " + error);
  b.control.barrier();
  b.links.abort();
}

/// Who waits, for whom, for what.
static void deadline(Bench &b) {
  if (b.rank() != 0)
    return;
  b.links.setDeadline(0.2);
  b.control.setDeadline(0.2);
  CUevent done = b.receive(1, b.put(std::vector<int64_t>(512)), 512);
  const std::string error = errorOf([&] { b.links.settle(done); });
  check(error.rfind("rank 0 waits for rank 1: receive of 4096 bytes", 0) == 0,
        "a deadline says who waits for whom, but: " + error);
  b.links.abort();
  b.control.setDeadline(hangSeconds);
}

/// One end gives more transfers than the other.
static void oneTooMany(Bench &b) {
  if (b.rank() > 1)
    return b.control.barrier();
  void *data = b.put({1, 2, 3});
  if (b.rank() == 1) {
    b.receive(0, data, 3);
    check(errorOf([&] { b.links.settleAll(); }) == "no error",
          "what both ends have given is fine");
    return b.control.barrier();
  }
  b.links.setDeadline(0.2);
  b.control.setDeadline(0.2);
  b.send(1, data, 3);
  b.send(1, data, 2);
  const std::string error = errorOf([&] { b.links.settleAll(); });
  check(error.rfind("rank 0 waits for rank 1: send of 16 bytes", 0) == 0,
        "the end that has given too much says so, but: " + error);
  b.links.abort();
  b.control.setDeadline(hangSeconds);
  b.control.barrier();
}

static void unknownLink(Bench &b) {
  const std::string error = errorOf(
      [&] { b.links.send(b.rank(), b.put({1}), 8, b.compute(), b.event()); });
  check(error.find("has no link to rank") != std::string::npos,
        "a link that was not made is an error, but: " + error);
}

const std::vector<DeviceScenario> &pipewright::runtime::deviceScenarios() {
  static const std::vector<DeviceScenario> all = {
      {"order", order},           {"bothWays", bothWays},
      {"lopsided", lopsided},     {"manyLinks", manyLinks},
      {"zeroSize", zeroSize},     {"manySteps", manySteps},
      {"sameEvents", sameEvents}, {"noBuffering", noBuffering},
      {"farAhead", farAhead},     {"lastMeansAll", lastMeansAll},
      {"wrongCount", wrongCount}, {"deadline", deadline},
      {"oneTooMany", oneTooMany}, {"unknownLink", unknownLink}};
  return all;
}
