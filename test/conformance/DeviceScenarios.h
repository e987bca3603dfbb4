//===- DeviceScenarios.h - What links between GPUs must do -----*- C++ -*-===//
//
// Each scenario is one function that all ranks run at the same time over
// their own links; it throws where the links break their contract. All pairs
// of ranks are linked, in both directions.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_CONFORMANCE_DEVICESCENARIOS_H
#define PIPEWRIGHT_TEST_CONFORMANCE_DEVICESCENARIOS_H

#include "test/conformance/Checks.h"

#include "runtime/cuda/Device.h"
#include "runtime/cuda/DeviceLinks.h"
#include "runtime/net/Transport.h"

#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace pipewright::runtime {

/// One rank of a scenario: its links, and a GPU to use them with.
class Bench {
public:
  /// `arena`, which outlives the links, is what transfers use; every rank makes
  /// one of these, once.
  Bench(Transport &control, DeviceLinks &links, DeviceMemory &arena);
  static DeviceMemory makeArena(const Device &device) {
    return {device, 32 << 20, "test"};
  }
  ~Bench();

  int64_t rank() const { return control.rank(); }
  int64_t size() const { return control.size(); }

  /// Memory of the GPU with these values in it; it stays until the end.
  void *put(const std::vector<int64_t> &values);
  std::vector<int64_t> get(const void *data, int64_t count);
  void *putBytes(std::string bytes);
  std::string getBytes(const void *data, int64_t count);

  CUevent event();
  CUstream compute() { return computing; }
  CUstream stream(int64_t peer, bool isSend);

  /// Transfers on the link's own stream; the event behind them.
  CUevent send(int64_t peer, const void *data, int64_t count,
               CUevent after = nullptr);
  CUevent receive(int64_t peer, void *data, int64_t count,
                  CUevent after = nullptr);
  /// `stream` waits for a transfer, as generated code does.
  void wait(CUstream stream, CUevent done);
  /// What a step ends with: the host waits for the GPU, with a deadline.
  void finish();

  Transport &control;
  DeviceLinks &links;

private:
  CUdeviceptr take(int64_t bytes);

  DeviceMemory &arena;
  int64_t taken = 0;
  CUstream computing = nullptr;
  std::map<std::pair<int64_t, bool>, CUstream> streams;
  std::vector<CUevent> events;
};

struct DeviceScenario {
  const char *name;
  void (*run)(Bench &bench);
};

const std::vector<DeviceScenario> &deviceScenarios();

/// Ranks, GPUs.
using Shape = std::pair<int64_t, int64_t>;
using ShapedScenario = std::tuple<Shape, DeviceScenario>;
/// "manySteps4On2"
std::string caseOf(const ::testing::TestParamInfo<ShapedScenario> &info);

/// Those of groups and collectives; each needs four ranks or eight.
const std::vector<DeviceScenario> &deviceCollectiveScenarios();

/// Both directions between all pairs of ranks.
std::vector<std::pair<int64_t, int64_t>> allLinks(int64_t ranks);

/// Makes a rank's links over its control plane.
using MakeLinks =
    std::function<std::unique_ptr<DeviceLinks>(Transport &control)>;

/// Ranks are threads, each with a GPU of its own out of `gpus`. What each one
/// threw, "" when it ended well. Without links: those of all pairs.
std::vector<std::string>
runDeviceRanks(int64_t ranks, int64_t gpus, const MakeLinks &make,
               const std::function<void(Bench &)> &body,
               const std::vector<std::pair<int64_t, int64_t>> &links = {});

/// Leaves a test out where the machine has fewer GPUs: a double has as many as
/// it is told to have.
#define PIPEWRIGHT_NEEDS_GPUS(count)                                           \
  if (gpusThere() < (count))                                                   \
  GTEST_SKIP() << "needs " << (count) << " GPUs"
int64_t gpusThere();

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_CONFORMANCE_DEVICESCENARIOS_H
