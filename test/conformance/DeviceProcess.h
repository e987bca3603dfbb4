//===- DeviceProcess.h - A rank of a scenario as a process -----*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_CONFORMANCE_DEVICEPROCESS_H
#define PIPEWRIGHT_TEST_CONFORMANCE_DEVICEPROCESS_H

#include "test/conformance/DeviceScenarios.h"

namespace pipewright::runtime {

/// One rank, started by runProcesses, with one of the first `gpus` GPUs. Says
/// what went wrong; the exit code. "impatient" is all links with a deadline of
/// 0.3 s, and nothing else.
int runDeviceProcess(const std::string &scenario, int64_t gpus,
                     const MakeLinks &make);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_CONFORMANCE_DEVICEPROCESS_H
