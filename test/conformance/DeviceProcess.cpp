//===- DeviceProcess.cpp - A rank of a scenario as a process --------------===//

#include "test/conformance/DeviceProcess.h"
#include "test/conformance/Limits.h"

#include "runtime/net/Bootstrap.h"

#include <cstdio>
#include <unistd.h>

using namespace pipewright::runtime;

int pipewright::runtime::runDeviceProcess(const std::string &scenario,
                                          int64_t gpus, const MakeLinks &make) {
  std::unique_ptr<Transport> control;
  // Giving it back waits for the GPU: it outlives what may wait for a peer.
  std::shared_ptr<Device> device;
  DeviceMemory arena;
  std::unique_ptr<DeviceLinks> links;
  try {
    control = createProcessTransport(hangSeconds);
    device = Device::open(control->rank() % gpus);
    device->makeCurrent();
    arena = Bench::makeArena(*device);
    links = make(*control);
    if (scenario == "impatient")
      links->setDeadline(0.3);
    links->connect(allLinks(control->size()));
    for (const auto *scenarios :
         {&deviceScenarios(), &deviceCollectiveScenarios()})
      for (const DeviceScenario &each : *scenarios)
        if (scenario == each.name) {
          Bench bench(*control, *links, arena);
          each.run(bench);
        }
    control->barrier();
    links.reset();
  } catch (const std::exception &error) {
    std::printf("%s\n", error.what());
    std::fflush(stdout);
    // As a program does: the message first, for it is the cause of whatever
    // others find broken.
    if (control)
      control->abort(error.what());
    if (links)
      links->abort();
    // As a program does: streams may be stuck for ever.
    _exit(1);
  }
  return 0;
}
