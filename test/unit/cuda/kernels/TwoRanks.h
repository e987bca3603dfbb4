//===- TwoRanks.h - The same call on a CPU and on a GPU --------*- C++ -*-===//
//
// Two ranks with arenas of the same layout: what a test computes on the one is
// expected of the other. Calls on the GPU run three times, as in three steps:
// as they come, captured into a graph, and replayed from it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_UNIT_CUDA_KERNELS_TWORANKS_H
#define PIPEWRIGHT_TEST_UNIT_CUDA_KERNELS_TWORANKS_H

#include "test/unit/runtime/OneRank.h"

#include "runtime/DeviceRuntime.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/DeviceLinks.h"

#include <bit>
#include <cstring>
#include <functional>
#include <map>

namespace pipewright::runtime {

/// The links of a rank that has none.
class NoLinks : public DeviceLinks {
public:
  const char *name() const override { return "none"; }
  void connect(const std::vector<std::pair<int64_t, int64_t>> &) override {}
  void connectGroups(const std::vector<std::vector<int64_t>> &) override {}
  void share(void *, int64_t) override {}
  void collect(int64_t, const Collective &, void *, CUstream_st *,
               CUevent_st *) override {
    fail("a kernel test is in a collective");
  }
  void send(int64_t, const void *, int64_t, CUstream_st *,
            CUevent_st *) override {
    fail("a kernel test sends");
  }
  void receive(int64_t, void *, int64_t, CUstream_st *, CUevent_st *) override {
    fail("a kernel test receives");
  }
  void settle(CUevent_st *) override {}
  void settleAll() override {}
  void settleGroups() override {}
  void check() override {}
  void abort() override {}
};

/// A step that loads and stores nothing.
class NoInputs : public BatchIo {
public:
  void load(int64_t, int64_t, void *, int64_t) override {
    fail("a kernel test loads");
  }
  void store(int64_t, int64_t, const void *, int64_t) override {
    fail("a kernel test stores");
  }
};

class TwoRanks {
public:
  explicit TwoRanks(
      int64_t bytes = 16 << 20, Float32Mode float32 = Float32Mode::Full,
      const DeviceSettings &settings = {},
      std::unique_ptr<DeviceLinks> links = std::make_unique<NoLinks>())
      : cpu(bytes), program(makeProgram(bytes)), world(1), transport(world, 0) {
    deviceProgram.float32 = float32;
    program.device = &deviceProgram;
    gpu = std::make_unique<DeviceRank>(program, transport, Device::open(0),
                                       std::move(links), settings);
    gpu->setBatchIo(&inputs);
    gpu->beginStep(3, 0.1f);
    gpu->setSeed(42);
  }

  // --- Buffers: on both ranks ----------------------------------------------

  Buffer bytes(int64_t size) { return keep(cpu.bytes(size)); }
  Buffer floats(int64_t count) { return keep(cpu.randomFloats(count)); }
  /// Random numbers that bf16 can hold.
  Buffer narrow(int64_t count) {
    const Buffer wide = cpu.randomFloats(count);
    const Buffer buffer = cpu.bytes(count * 2);
    for (int64_t i = 0; i < count; ++i)
      cpu.rank.data<uint16_t>(buffer)[i] =
          std::bit_cast<uint32_t>(cpu.at(wide)[i]) >> 16;
    return keep(buffer);
  }
  Buffer numbers(int64_t count, ElementType type) {
    return type == ElementType::BF16 ? narrow(count) : floats(count);
  }
  template <class T>
  Buffer values(const std::vector<T> &values) {
    const Buffer buffer = bytes(values.size() * sizeof(T));
    std::memcpy(cpu.rank.data<char>(buffer), values.data(), buffer.bytes);
    return keep(buffer);
  }
  /// A part that does not begin at a multiple of 16 bytes.
  static Buffer odd(Buffer buffer, int64_t distance) {
    return buffer.at(distance, buffer.bytes - distance);
  }

  // --- Calls ----------------------------------------------------------------

  /// Runs call(rank) on both ranks. `prepare` is what setUp would do.
  template <class Prepare, class Call>
  void run(const Prepare &prepare, const Call &call) {
    prepare(cpu.rank);
    prepare(*gpu);
    call(cpu.rank);
    runOnGpu(call);
  }
  template <class Call>
  void run(const Call &call) {
    run([](auto &) {}, call);
  }
  /// Runs call(rank) on the GPU alone.
  template <class Call>
  void runOnGpu(const Call &call) {
    initial = contents;
    std::map<int64_t, std::vector<char>> first;
    for (int time = 0; time < 3; ++time) {
      for (const auto &[offset, data] : initial)
        gpu->write({offset, static_cast<int64_t>(data.size())}, data.data());
      const std::function<void(DeviceRank &)> body = [&](DeviceRank &rank) {
        rank.task("F", 0, 0, [&] { call(rank); });
      };
      current() = &body;
      gpu->runStep();
      for (auto &[offset, data] : contents)
        gpu->read({offset, static_cast<int64_t>(data.size())}, data.data());
      if (time == 0)
        first = contents;
      EXPECT_TRUE(contents == first) << "run " << time << " differs";
    }
  }

  // --- Results --------------------------------------------------------------

  std::vector<char> onGpu(Buffer buffer) {
    std::vector<char> data(buffer.bytes);
    gpu->read(buffer, data.data());
    return data;
  }
  /// Whether both have the same bits.
  ::testing::AssertionResult same(Buffer buffer) {
    const std::vector<char> got = onGpu(buffer);
    const char *expected = cpu.rank.data<char>(buffer);
    for (int64_t i = 0; i < buffer.bytes; ++i)
      if (got[i] != expected[i])
        return ::testing::AssertionFailure()
               << "byte " << i << " of " << buffer.bytes << ": "
               << int(static_cast<unsigned char>(got[i])) << ", expected "
               << int(static_cast<unsigned char>(expected[i]));
    return ::testing::AssertionSuccess();
  }
  /// Whether both agree to the tolerance, relative to the largest number.
  ::testing::AssertionResult near(Buffer buffer, ElementType type,
                                  double tolerance) {
    return agree(widen(onGpu(buffer).data(), buffer.bytes, type),
                 widen(cpu.rank.data<char>(buffer), buffer.bytes, type),
                 tolerance);
  }
  std::vector<float> gpuFloats(Buffer buffer, ElementType type) {
    return widen(onGpu(buffer).data(), buffer.bytes, type);
  }

  std::vector<float> cpuFloats(Buffer buffer, ElementType type) {
    return widen(cpu.rank.data<char>(buffer), buffer.bytes, type);
  }

  OneRank cpu;
  std::unique_ptr<DeviceRank> gpu;

private:
  static std::vector<float> widen(const char *data, int64_t bytes,
                                  ElementType type) {
    std::vector<float> result(bytes / byteWidth(type));
    for (size_t i = 0; i < result.size(); ++i) {
      if (type == ElementType::F32) {
        std::memcpy(&result[i], data + 4 * i, 4);
        continue;
      }
      uint16_t bits = 0;
      std::memcpy(&bits, data + 2 * i, 2);
      result[i] = std::bit_cast<float>(uint32_t{bits} << 16);
    }
    return result;
  }

  /// What the buffer holds now is what the GPU begins with.
  Buffer keep(Buffer buffer) {
    const char *data = cpu.rank.data<char>(buffer);
    contents[buffer.offset].assign(data, data + buffer.bytes);
    return buffer;
  }

  static const std::function<void(DeviceRank &)> *&current() {
    static const std::function<void(DeviceRank &)> *body = nullptr;
    return body;
  }
  static void step(DeviceRank &rank) { (*current())(rank); }

  static Program makeProgram(int64_t bytes) {
    Program program;
    program.microBatches = 1;
    program.updates = 1;
    program.ranks.push_back({});
    program.ranks[0].arenaBytes = bytes;
    program.ranks[0].step = step;
    return program;
  }

  Program program;
  DeviceProgram deviceProgram;
  NoInputs inputs;
  ThreadWorld world;
  ThreadTransport transport;
  std::map<int64_t, std::vector<char>> contents, initial;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_UNIT_CUDA_KERNELS_TWORANKS_H
