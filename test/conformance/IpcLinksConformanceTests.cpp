//===- IpcLinksConformanceTests.cpp - cuda-ipc keeps the contract ---------===//
//
// Ranks are processes: the test starts itself again, once for each. The double
// of the driver shares memory and events between them.
//
//===----------------------------------------------------------------------===//

#include "test/conformance/DeviceProcess.h"
#include "test/conformance/DeviceScenarios.h"
#include "test/conformance/Limits.h"
#include "test/conformance/Processes.h"

#include "runtime/cuda/IpcLink.h"
#include "runtime/cuda/IpcLinks.h"
#include "runtime/cuda/MixedLinks.h"
#include "runtime/cuda/NcclLinks.h"
#include "runtime/net/Agreement.h"
#include "runtime/net/Bootstrap.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace pipewright::runtime;

static std::vector<std::string> run(int64_t ranks, int64_t gpus,
                                    const std::string &scenario,
                                    const std::string &environment = "") {
  return runProcesses(ranks, scenario,
                      "PIPEWRIGHT_TEST_GPUS=" + std::to_string(gpus) + " " +
                          environment);
}

class IpcConformance : public ::testing::TestWithParam<ShapedScenario> {};

TEST_P(IpcConformance, Holds) {
  const auto &[shape, scenario] = GetParam();
  const auto [ranks, gpus] = shape;
  PIPEWRIGHT_NEEDS_GPUS(gpus);
  EXPECT_EQ(run(ranks, gpus, scenario.name), std::vector<std::string>(ranks));
}

INSTANTIATE_TEST_SUITE_P(
    All, IpcConformance,
    ::testing::Combine(::testing::Values(Shape(2, 1), Shape(2, 2), Shape(4, 4)),
                       ::testing::ValuesIn(deviceScenarios())),
    caseOf);

// --- Beside NCCL -------------------------------------------------------------

class MixedConformance : public ::testing::TestWithParam<DeviceScenario> {};

/// Of four ranks, 0 and 2 and 1 and 3 are linked by cuda-ipc.
TEST_P(MixedConformance, Holds) {
  PIPEWRIGHT_NEEDS_GPUS(4);
  EXPECT_EQ(run(4, 4, GetParam().name, "PIPEWRIGHT_TEST_MIXED=1"),
            std::vector<std::string>(4));
}

static std::string
scenarioOf(const ::testing::TestParamInfo<DeviceScenario> &info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(All, MixedConformance,
                         ::testing::ValuesIn(deviceScenarios()), scenarioOf);
INSTANTIATE_TEST_SUITE_P(Collectives, MixedConformance,
                         ::testing::ValuesIn(deviceCollectiveScenarios()),
                         scenarioOf);

// --- Failures ----------------------------------------------------------------

/// Streams are delayed at random: what no event orders comes out wrong.
TEST(IpcLinks, NothingDependsOnTime) {
  PIPEWRIGHT_NEEDS_GPUS(4);
  for (const char *scenario : {"manySteps", "manyLinks", "farAhead"})
    EXPECT_EQ(run(4, 4, scenario, "PIPEWRIGHT_DOUBLE_CHAOS=7"),
              std::vector<std::string>(4));
}

TEST(IpcLinks, ARankThatDiesIsAnErrorOnTheOthers) {
  const auto start = std::chrono::steady_clock::now();
  const auto outputs = run(3, 1, "manySteps", "PIPEWRIGHT_TEST_KILL=1");
  // Its shell says so.
  EXPECT_EQ(outputs[1], "Killed\n");
  for (const int rank : {0, 2})
    EXPECT_NE(outputs[rank].find("has lost rank 1"), std::string::npos)
        << outputs[rank];
  EXPECT_LT(std::chrono::steady_clock::now() - start, soon);
}

TEST(IpcLinks, ARankThatFailsTellsTheOthersWhy) {
  const auto outputs = run(3, 1, "manySteps", "PIPEWRIGHT_TEST_FAIL=1");
  for (const int rank : {0, 1, 2})
    EXPECT_NE(outputs[rank].find("it broke"), std::string::npos)
        << outputs[rank];
}

/// What a peer says is checked before it is used.
TEST(IpcLinks, APeerMaySayAnything) {
  const std::string broken = "rank 0: what rank 1 says of a transfer over "
                             "cuda-ipc makes no sense: its "
                             "memory is broken";
  const std::pair<const char *, std::string> cases[] = {
      {"hostileName",
       "memory that processes share (/dev/shm) cannot be opened: "
       "No such file or directory"},
      {"hostileSize", "memory that processes share (/dev/shm) is not what its "
                      "name says"},
      {"hostileBytes", broken},
      {"hostilePart", broken},
      {"hostileCount", broken}};
  for (const auto &[scenario, message] : cases) {
    const auto outputs = runProcesses(2, scenario);
    EXPECT_NE(outputs[0].find(message), std::string::npos)
        << scenario << ": " << outputs[0];
  }
}

TEST(IpcDouble, WithoutIpcItSaysSo) {
  for (const std::string &output :
       run(2, 2, "bothWays", "PIPEWRIGHT_DOUBLE_IPC=0"))
    EXPECT_NE(output.find("cuIpcGetEventHandle failed: operation not supported "
                          "(CUDA_ERROR_NOT_SUPPORTED)"),
              std::string::npos)
        << output;
}

/// cuda-ipc, but one rank ends in the midst of a step, by a signal or an error.
namespace {
class Broken : public DeviceLinks {
public:
  explicit Broken(Transport &control)
      : links(createIpcLinks(control)), rank(control.rank()) {}

  const char *name() const override { return links->name(); }
  void connect(const std::vector<std::pair<int64_t, int64_t>> &all) override {
    links->connect(all);
  }
  void connectGroups(const std::vector<std::vector<int64_t>> &all) override {
    links->connectGroups(all);
  }
  void share(void *memory, int64_t bytes) override {
    links->share(memory, bytes);
  }
  void send(int64_t peer, const void *data, int64_t bytes, CUstream_st *stream,
            CUevent_st *done) override {
    if (++sends == 12 && isAsked("PIPEWRIGHT_TEST_KILL"))
      raise(SIGKILL);
    if (sends == 12 && isAsked("PIPEWRIGHT_TEST_FAIL"))
      throw std::runtime_error("it broke");
    links->send(peer, data, bytes, stream, done);
  }
  void receive(int64_t peer, void *data, int64_t bytes, CUstream_st *stream,
               CUevent_st *done) override {
    links->receive(peer, data, bytes, stream, done);
  }
  void collect(int64_t group, const Collective &what, void *data,
               CUstream_st *stream, CUevent_st *done) override {
    links->collect(group, what, data, stream, done);
  }
  std::shared_ptr<const std::atomic<bool>> recorded(CUevent_st *done) override {
    return links->recorded(done);
  }
  void settle(CUevent_st *done) override { links->settle(done); }
  void settleAll() override { links->settleAll(); }
  void settleGroups() override { links->settleGroups(); }
  void check() override { links->check(); }
  void abort() override { links->abort(); }

private:
  bool isAsked(const char *variable) const {
    const char *text = std::getenv(variable);
    return text && std::to_string(rank) == text;
  }

  const std::unique_ptr<DeviceLinks> links;
  const int64_t rank;
  int64_t sends = 0;
};
} // namespace

static std::unique_ptr<DeviceLinks> makeMixed(Transport &control) {
  LinkChoice choice;
  choice.links = allLinks(control.size());
  for (const auto &[from, to] : choice.links)
    choice.kinds.push_back((from + to) % 2 ? LinkKind::Nccl : LinkKind::Ipc);
  choice.groupKind = LinkKind::Nccl;
  return createLinks(choice, control.rank(), [&](LinkKind kind) {
    return kind == LinkKind::Ipc ? createIpcLinks(control)
                                 : createNcclLinks(control);
  });
}

static std::unique_ptr<DeviceLinks> makeLinks(Transport &control) {
  if (std::getenv("PIPEWRIGHT_TEST_MIXED"))
    return makeMixed(control);
  if (std::getenv("PIPEWRIGHT_TEST_KILL") ||
      std::getenv("PIPEWRIGHT_TEST_FAIL"))
    return std::make_unique<Broken>(control);
  return createIpcLinks(control);
}

// --- A peer that says what is not so -----------------------------------------

template <class T>
static T exchange(Transport &control, const T &own) {
  T other;
  control.postSend(1 - control.rank(), &own, sizeof own);
  control.postReceive(1 - control.rank(), &other, sizeof other);
  control.waitSend(1 - control.rank());
  control.waitReceive(1 - control.rank());
  return other;
}

static void shareByHand(Transport &control, IpcLink &link, CUdeviceptr memory,
                        int64_t bytes, int64_t saidBytes) {
  IpcLink::MemoryOffer offer = {{}, saidBytes};
  PIPEWRIGHT_CUDA(cuIpcGetMemHandle(&offer.handle, memory));
  const IpcLink::MemoryOffer other = exchange(control, offer);
  link.shareMemory(memory, bytes);
  link.acceptMemory(other);
  control.barrier();
}

/// Rank 1, which sends: as IpcLinks does, but for one lie.
static void lie(const std::string &scenario, Transport &control,
                const Device &device, const DeviceMemory &arena) {
  checkSameLinks(control, {{1, 0}});
  IpcLink link(1, 1, 0);
  IpcLink::Offer offer = link.makeOffer();
  const SharedMemory memory = SharedMemory::open(offer.board, sizeof(IpcBoard));
  auto &board = *static_cast<IpcBoard *>(memory.data());
  const SharedMemory small = SharedMemory::create(64);
  if (scenario == "hostileName")
    std::strcpy(offer.board, "/nonsense");
  if (scenario == "hostileSize")
    std::strcpy(offer.board, small.name().c_str());
  link.accept(exchange(control, offer));
  control.barrier();
  // The first exchange.
  const DeviceMemory element(device, 16, "test");
  const int64_t value = int64_t{1} << 32;
  copyToDevice(element.address(), &value, sizeof value);
  shareByHand(control, link, element.address(), 16, 16);
  CUevent done = nullptr;
  PIPEWRIGHT_CUDA(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
  const auto first = link.give(element.address(), 8, nullptr, done);
  while (!first->met) {
    control.poll();
    link.advance();
  }
  link.closeMemory();
  control.barrier();
  // What rank 0 finds when it comes to the next transfer.
  if (scenario == "hostilePart") {
    board.slots[1].parts[0] = {int64_t{1} << 40, 64};
    board.slots[1].arrivals = 1;
  }
  if (scenario == "hostileCount")
    board.slots[1].arrivals = 7;
  shareByHand(control, link, arena.address(), arena.bytes(),
              scenario == "hostileBytes" ? -1 : arena.bytes());
  control.barrier();
}

static int runHostile(const std::string &scenario) {
  std::unique_ptr<Transport> control;
  try {
    control = createProcessTransport(hangSeconds);
    control->setDeadline(hangSeconds);
    const std::shared_ptr<Device> device = Device::open(0);
    device->makeCurrent();
    DeviceMemory arena = Bench::makeArena(*device);
    if (control->rank() == 1) {
      lie(scenario, *control, *device, arena);
      return 0;
    }
    const auto links = createIpcLinks(*control);
    links->connect({{1, 0}});
    Bench bench(*control, *links, arena);
    bench.receive(1, bench.put(std::vector<int64_t>(8)), 8);
    bench.finish();
    control->barrier();
  } catch (const std::exception &error) {
    std::printf("%s\n", error.what());
    std::fflush(stdout);
    if (control)
      control->abort(error.what());
    _exit(1);
  }
  return 0;
}

int main(int argc, char **argv) {
  setenv("PIPEWRIGHT_DOUBLE_GPUS", "4", 1);
  setenv("PIPEWRIGHT_DOUBLE_RACES", "1", 1);
  if (argc == 3 && !std::strncmp(argv[2], "hostile", 7))
    return runHostile(argv[2]);
  if (argc == 3 && !std::strcmp(argv[1], "--scenario"))
    return runDeviceProcess(
        argv[2], std::atoll(std::getenv("PIPEWRIGHT_TEST_GPUS")), makeLinks);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
