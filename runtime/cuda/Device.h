//===- Device.h - One GPU of this process ----------------------*- C++ -*-===//
//
// The GPU's primary context, what kernels of it were loaded, and memory. Ranks
// that are threads on one GPU share its Device.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_DEVICE_H
#define PIPEWRIGHT_RUNTIME_CUDA_DEVICE_H

#include "runtime/cuda/DeviceKernel.h"
#include "runtime/cuda/Driver.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::runtime {

class Device {
public:
  /// How many GPUs the driver shows.
  static int64_t count();
  /// Whether each of these, by number, can read the memory of each other one.
  static bool reachEachOther(const std::vector<int64_t> &numbers);
  /// The GPU with this number; the same object as long as anybody holds it.
  static std::shared_ptr<Device> open(int64_t number);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// The calling thread works with this GPU from now on.
  void makeCurrent() const;

  int64_t number() const { return ordinal; }
  CUdevice handle() const { return device; }
  const std::string &name() const { return deviceName; }
  /// 90 of an sm_90.
  int64_t architecture() const { return arch; }
  int64_t attribute(CUdevice_attribute which) const;
  /// Bytes that are free now, and all that there are.
  std::pair<int64_t, int64_t> memory() const;

  /// A kernel of the newest of these images that the GPU can run. The vector
  /// must stay where it is; its image is loaded at the first call. Any thread
  /// may call.
  CUfunction find(const std::vector<DeviceImage> &images, const char *entry);

private:
  explicit Device(int64_t number);
  CUmodule load(const std::vector<DeviceImage> &images) const;

  int64_t ordinal = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  std::string deviceName;
  int64_t arch = 0;
  std::mutex mutex;
  std::map<const void *, CUmodule> modules;
  std::map<std::pair<CUmodule, std::string>, CUfunction> functions;
};

/// Memory of the current GPU, zero-filled.
class DeviceMemory {
public:
  DeviceMemory() = default;
  /// `what` it is for ("arena"), in the message of the Error if there is not
  /// so much.
  DeviceMemory(const Device &device, int64_t bytes, const char *what);
  DeviceMemory(DeviceMemory &&other) noexcept { *this = std::move(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept {
    std::swap(pointer, other.pointer);
    std::swap(size, other.size);
    return *this;
  }
  ~DeviceMemory();

  CUdeviceptr address() const { return pointer; }
  int64_t bytes() const { return size; }

private:
  CUdeviceptr pointer = 0;
  int64_t size = 0;
};

/// Memory of the host that the GPU reads and writes by itself.
class PinnedMemory {
public:
  PinnedMemory() = default;
  explicit PinnedMemory(int64_t bytes);
  PinnedMemory(PinnedMemory &&other) noexcept { *this = std::move(other); }
  PinnedMemory &operator=(PinnedMemory &&other) noexcept {
    std::swap(pointer, other.pointer);
    std::swap(size, other.size);
    return *this;
  }
  ~PinnedMemory();

  template <class T = char>
  T *data() const {
    return static_cast<T *>(pointer);
  }
  int64_t bytes() const { return size; }

private:
  void *pointer = nullptr;
  int64_t size = 0;
};

/// Events of the current GPU that are used again and again.
class EventPool {
public:
  explicit EventPool(unsigned flags) : flags(flags) {}
  EventPool(const EventPool &) = delete;
  EventPool &operator=(const EventPool &) = delete;
  ~EventPool();

  /// One that nobody else has.
  CUevent take();
  void giveBack(CUevent event) { spare.push_back(event); }
  /// They are taken in the same order then.
  void giveBackAll() { spare.assign(all.rbegin(), all.rend()); }

private:
  const unsigned flags;
  std::vector<CUevent> all, spare;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_DEVICE_H
