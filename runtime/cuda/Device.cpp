//===- Device.cpp - One GPU of this process -------------------------------===//

#include "runtime/cuda/Device.h"
#include "runtime/core/Error.h"
#include "runtime/core/Text.h"

#include <algorithm>
#include <cstring>

using namespace pipewright::runtime;

bool Device::reachEachOther(const std::vector<int64_t> &numbers) {
  auto deviceOf = [](int64_t number) {
    CUdevice device = 0;
    PIPEWRIGHT_CUDA(cuDeviceGet(&device, static_cast<int>(number)));
    return device;
  };
  for (const int64_t from : numbers)
    for (const int64_t to : numbers) {
      int can = 1;
      if (from != to)
        PIPEWRIGHT_CUDA(
            cuDeviceCanAccessPeer(&can, deviceOf(from), deviceOf(to)));
      if (!can)
        return false;
    }
  return true;
}

int64_t Device::count() {
  int devices = 0;
  PIPEWRIGHT_CUDA(cuDeviceGetCount(&devices));
  return devices;
}

std::shared_ptr<Device> Device::open(int64_t number) {
  static std::mutex mutex;
  static std::map<int64_t, std::weak_ptr<Device>> opened;
  std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<Device> &known = opened[number];
  std::shared_ptr<Device> device = known.lock();
  if (!device) {
    const int64_t devices = count();
    if (number < 0 || number >= devices)
      fail("there is no GPU ", number, ": the CUDA driver shows ", devices,
           ", numbered from 0");
    device.reset(new Device(number));
    known = device;
  }
  return device;
}

Device::Device(int64_t number) : ordinal(number) {
  PIPEWRIGHT_CUDA(cuDeviceGet(&device, static_cast<int>(number)));
  char text[256] = "";
  PIPEWRIGHT_CUDA(cuDeviceGetName(text, sizeof text, device));
  deviceName = text;
  arch = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
         attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  PIPEWRIGHT_CUDA(cuDevicePrimaryCtxRetain(&context, device));
}

Device::~Device() {
  // Failures have been told before; here nothing could be done about them.
  const Driver &driver = cudaDriver();
  driver.cuCtxSetCurrent(context);
  for (const auto &[images, module] : modules)
    driver.cuModuleUnload(module);
  driver.cuDevicePrimaryCtxRelease(device);
}

void Device::makeCurrent() const { PIPEWRIGHT_CUDA(cuCtxSetCurrent(context)); }

int64_t Device::attribute(CUdevice_attribute which) const {
  int value = 0;
  PIPEWRIGHT_CUDA(cuDeviceGetAttribute(&value, which, device));
  return value;
}

std::pair<int64_t, int64_t> Device::memory() const {
  makeCurrent();
  size_t free = 0, total = 0;
  PIPEWRIGHT_CUDA(cuMemGetInfo(&free, &total));
  return {static_cast<int64_t>(free), static_cast<int64_t>(total)};
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

CUfunction Device::find(const std::vector<DeviceImage> &images,
                        const char *entry) {
  std::lock_guard<std::mutex> lock(mutex);
  CUmodule &module = modules[&images];
  if (!module)
    module = load(images);
  CUfunction &function = functions[{module, entry}];
  if (function)
    return function;
  const CUresult result =
      cudaDriver().cuModuleGetFunction(&function, module, entry);
  if (result == CUDA_ERROR_NOT_FOUND)
    fail("the PTX has no kernel '", entry,
         "': the program's files are not of one compilation");
  checkCuda(result, "cuModuleGetFunction");
  return function;
}

CUmodule Device::load(const std::vector<DeviceImage> &images) const {
  const DeviceImage *best = nullptr, *oldest = nullptr;
  for (const DeviceImage &image : images) {
    if (!oldest || image.architecture < oldest->architecture)
      oldest = &image;
    if (image.architecture <= arch &&
        (!best || image.architecture > best->architecture))
      best = &image;
  }
  if (!oldest)
    fail("the program has no PTX");
  if (!best)
    fail("GPU ", ordinal, " (", deviceName, ") is an sm_", arch,
         ", but the program needs an sm_", oldest->architecture, " or newer");
  // The driver wants text that ends with a zero.
  const std::string text(best->begin, std::find(best->begin, best->end, '\0'));
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  makeCurrent();
  CUmodule module = nullptr;
  const CUresult result = cudaDriver().cuModuleLoadDataEx(&module, text.c_str(),
                                                          2, options, values);
  if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    fail("the CUDA driver is too old: it is for CUDA ",
         cudaVersionText(cudaDriver().version),
         ", which does not read the program's PTX; update it");
  if (result != CUDA_SUCCESS)
    fail("the CUDA driver does not take the PTX for sm_", best->architecture,
         ": ", cudaErrorText(result), log[0] ? "\n  " : "", log);
  return module;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

DeviceMemory::DeviceMemory(const Device &device, int64_t bytes,
                           const char *what)
    : size(bytes) {
  if (!bytes)
    return;
  const CUresult result = cudaDriver().cuMemAlloc(&pointer, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    const auto [free, total] = device.memory();
    fail("GPU ", device.number(), " (", device.name(), ") has not the ",
         groupedText(bytes), " bytes for the ", what, ": ", groupedText(free),
         " of ", groupedText(total),
         " bytes are free; compile for more ranks, with smaller micro-batches "
         "or with --remat");
  }
  checkCuda(result, "cuMemAlloc");
  PIPEWRIGHT_CUDA(cuMemsetD8Async(pointer, 0, bytes, nullptr));
  PIPEWRIGHT_CUDA(cuStreamSynchronize(nullptr));
}

DeviceMemory::~DeviceMemory() {
  if (pointer)
    cudaDriver().cuMemFree(pointer);
}

PinnedMemory::PinnedMemory(int64_t bytes) : size(bytes) {
  if (!bytes)
    return;
  const CUresult result = cudaDriver().cuMemAllocHost(&pointer, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    fail("the host has not the ", groupedText(bytes),
         " bytes of pinned memory that inputs, losses and stashes on the host "
         "need");
  checkCuda(result, "cuMemAllocHost");
  std::memset(pointer, 0, bytes);
}

PinnedMemory::~PinnedMemory() {
  if (pointer)
    cudaDriver().cuMemFreeHost(pointer);
}

EventPool::~EventPool() {
  for (CUevent event : all)
    cudaDriver().cuEventDestroy(event);
}

CUevent EventPool::take() {
  if (spare.empty()) {
    PIPEWRIGHT_CUDA(cuEventCreate(&all.emplace_back(), flags));
    return all.back();
  }
  CUevent event = spare.back();
  spare.pop_back();
  return event;
}
