//===- KernelLaunch.cpp - Launches of the program's kernels ---------------===//

#include "runtime/cuda/DeviceParts.h"
#include "runtime/cuda/DeviceProfile.h"
#include "runtime/cuda/DeviceRank.h"

using namespace pipewright::runtime;

/// More than 48 KiB for a block has to be asked for.
static void allowSharedMemory(CUfunction function, const KernelLaunch &launch) {
  const CUresult result = cudaDriver().cuFuncSetAttribute(
      function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
      static_cast<int>(launch.sharedBytes));
  if (result != CUDA_SUCCESS)
    fail("kernel '", launch.entry, "' needs ", launch.sharedBytes,
         " bytes of shared memory for a block, which this GPU does not give: ",
         cudaErrorText(result));
}

const std::vector<CUfunc_st *> &
DeviceRank::functions(const DeviceKernel &kernel) {
  auto found = parts->kernels.find(&kernel);
  if (found != parts->kernels.end())
    return found->second;
  std::vector<CUfunction> functions;
  for (const KernelLaunch &launch : kernel.launches) {
    functions.push_back(
        parts->device->find(wholeProgram().device->images, launch.entry));
    if (launch.sharedBytes)
      allowSharedMemory(functions.back(), launch);
  }
  return parts->kernels[&kernel] = std::move(functions);
}

void pipewright::runtime::prepare(DeviceRank &rank,
                                  const DeviceKernel &kernel) {
  rank.functions(kernel);
  rank.reserveWorkspace(kernel.scratchBytes);
}

void pipewright::runtime::launch(DeviceRank &rank, const DeviceKernel &kernel,
                                 std::initializer_list<Buffer> arguments) {
  const MeasuredCall measured(rank, [&] {
    CallCost cost{kernel.name};
    for (Buffer argument : arguments)
      cost.bytes += static_cast<double>(argument.bytes);
    return cost;
  });
  std::vector<void *> pointers;
  pointers.reserve(arguments.size() + 1);
  for (Buffer argument : arguments)
    pointers.push_back(rank.device<void>(argument));
  if (kernel.scratchBytes)
    pointers.push_back(rank.workspace(kernel.scratchBytes));
  std::vector<void *> parameters;
  parameters.reserve(pointers.size());
  for (void *&pointer : pointers)
    parameters.push_back(&pointer);
  const std::vector<CUfunction> &functions = rank.functions(kernel);
  for (size_t i = 0; i < functions.size(); ++i) {
    const KernelLaunch &shape = kernel.launches[i];
    const CUresult result = cudaDriver().cuLaunchKernel(
        functions[i], static_cast<unsigned>(shape.grid), 1, 1,
        static_cast<unsigned>(shape.block), 1, 1,
        static_cast<unsigned>(shape.sharedBytes), rank.computeStream(),
        parameters.data(), nullptr);
    if (result != CUDA_SUCCESS)
      fail("kernel '", shape.entry, "' cannot be launched (", shape.grid,
           " blocks of ", shape.block, " threads): ", cudaErrorText(result));
  }
}
