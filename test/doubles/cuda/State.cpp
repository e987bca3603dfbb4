//===- State.cpp - Start, settings, errors, devices of the driver double --===//

#include "test/doubles/cuda/Internal.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <unistd.h>

using namespace pipewright::doubles;

State &pipewright::doubles::state() {
  static State *all = new State;
  return *all;
}

Context *&pipewright::doubles::currentContext() {
  static thread_local Context *context = nullptr;
  return context;
}

Context *&pipewright::doubles::operationContext() {
  static thread_local Context *context = nullptr;
  return context;
}

Stream *&pipewright::doubles::operationStream() {
  static thread_local Stream *stream = nullptr;
  return stream;
}

bool &pipewright::doubles::insideHostFunction() {
  static thread_local bool inside = false;
  return inside;
}

static uint64_t number(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  if (!text || !*text)
    return otherwise;
  char *end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (*end) {
    std::fprintf(stderr, "libcuda double: %s: expected a number, found '%s'\n",
                 name, text);
    std::abort();
  }
  return value;
}

Settings Settings::fromEnvironment() {
  Settings settings;
  settings.gpus = static_cast<int>(number("PIPEWRIGHT_DOUBLE_GPUS", 1));
  settings.peers = number("PIPEWRIGHT_DOUBLE_PEERS", 1);
  settings.memoryBytes = number("PIPEWRIGHT_DOUBLE_MEMORY", uint64_t(16) << 30);
  const int architecture =
      static_cast<int>(number("PIPEWRIGHT_DOUBLE_ARCHITECTURE", 90));
  settings.major = architecture / 10;
  settings.minor = architecture % 10;
  settings.version =
      static_cast<int>(number("PIPEWRIGHT_DOUBLE_DRIVER", 13000));
  if (std::getenv("PIPEWRIGHT_DOUBLE_CHAOS"))
    settings.chaosSeed = number("PIPEWRIGHT_DOUBLE_CHAOS", 1);
  settings.log = number("PIPEWRIGHT_DOUBLE_LOG", 0);
  settings.races = number("PIPEWRIGHT_DOUBLE_RACES", 0);
  settings.idle = number("PIPEWRIGHT_DOUBLE_IDLE", 0);
  settings.ipc = number("PIPEWRIGHT_DOUBLE_IPC", 1);
  settings.queue = number("PIPEWRIGHT_DOUBLE_QUEUE", 0);
  return settings;
}

void pipewright::doubles::note(const std::string &message) {
  std::fprintf(stderr, "libcuda double: %s\n", message.c_str());
}

void pipewright::doubles::report(Context *context, CUresult code,
                                 const std::string &message) {
  int none = CUDA_SUCCESS;
  if (context->error.compare_exchange_strong(none, code))
    note(message);
}

CUresult pipewright::doubles::enterWithoutContext() {
  if (!state().initialised)
    return CUDA_ERROR_NOT_INITIALIZED;
  return insideHostFunction() ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

CUresult pipewright::doubles::enter(Context *&context) {
  if (CUresult result = enterWithoutContext())
    return result;
  context = currentContext();
  if (!context)
    return CUDA_ERROR_INVALID_CONTEXT;
  return static_cast<CUresult>(context->error.load());
}

CUresult pipewright::doubles::toResult(const pipewright::ptx::Fault &fault) {
  using Kind = pipewright::ptx::Fault::Kind;
  switch (fault.kind) {
  case Kind::IllegalAddress:
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  case Kind::Misaligned:
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  case Kind::Launch:
    return CUDA_ERROR_INVALID_VALUE;
  default:
    return CUDA_ERROR_LAUNCH_FAILED;
  }
}

//===----------------------------------------------------------------------===//
// Start and errors
//===----------------------------------------------------------------------===//

/// A crash in a thread of a stream says where it was, and ends the process.
static void tellCrash(int number) {
  static const char text[] = "libcuda double: a crash:\n";
  [[maybe_unused]] const ssize_t told =
      ::write(STDERR_FILENO, text, sizeof text - 1);
  void *frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  std::signal(number, SIG_DFL);
  std::raise(number);
}

static void watchForCrashes() {
  // The first call may allocate, which no handler may.
  void *frame = nullptr;
  backtrace(&frame, 1);
  struct sigaction known = {};
  if (sigaction(SIGSEGV, nullptr, &known) == 0 && known.sa_handler == SIG_DFL)
    std::signal(SIGSEGV, tellCrash);
}

CUresult CUDAAPI cuInit(unsigned flags) {
  State &all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  if (all.initialised)
    return CUDA_SUCCESS;
  watchForCrashes();
  all.settings = Settings::fromEnvironment();
  if (all.settings.gpus == 0)
    return CUDA_ERROR_NO_DEVICE;
  for (int i = 0; i < all.settings.gpus; ++i) {
    all.devices.push_back(std::make_unique<Device>());
    all.devices.back()->ordinal = i;
    all.devices.back()->totalBytes = all.settings.memoryBytes;
  }
  all.initialised = true;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDriverGetVersion(int *version) {
  if (!version)
    return CUDA_ERROR_INVALID_VALUE;
  *version = Settings::fromEnvironment().version;
  return CUDA_SUCCESS;
}

namespace {
struct ErrorText {
  CUresult code;
  const char *name;
  const char *text;
};
} // namespace

#define ERROR(code, text) {code, #code, text}
static const ErrorText errorTexts[] = {
    ERROR(CUDA_SUCCESS, "no error"),
    ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU,
          "no kernel image is available for execution on the device"),
    ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
          "peer access is not supported between these two devices"),
    ERROR(CUDA_ERROR_MAP_FAILED, "mapping of buffer object failed"),
    ERROR(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
          "the provided PTX was compiled with an unsupported toolchain."),
    ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    ERROR(CUDA_ERROR_ILLEGAL_ADDRESS,
          "an illegal memory access was encountered"),
    ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
          "too many resources requested for launch"),
    ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
          "peer access is already enabled"),
    ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
          "peer access has not been enabled"),
    ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    ERROR(CUDA_ERROR_ASSERT, "device-side assert triggered"),
    ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
          "part or all of the requested memory range is already mapped"),
    ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
          "pointer does not correspond to a registered memory region"),
    ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
          "operation not permitted when stream is capturing"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
          "operation failed due to a previous error during capture"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE,
          "operation would result in a merge of separate capture sequences"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
          "capture was not ended in the same stream as it began"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
          "capturing stream has unjoined work"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
          "dependency created on uncaptured work in another stream"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
          "operation would make the legacy stream depend on a capturing "
          "blocking stream"),
    ERROR(CUDA_ERROR_CAPTURED_EVENT,
          "operation not permitted on an event last recorded in a capturing "
          "stream"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
          "attempt to terminate a thread-local capture sequence from another "
          "thread"),
    ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef ERROR

static const ErrorText *findError(CUresult code) {
  for (const ErrorText &error : errorTexts)
    if (error.code == code)
      return &error;
  return nullptr;
}

CUresult CUDAAPI cuGetErrorName(CUresult code, const char **name) {
  const ErrorText *error = findError(code);
  *name = error ? error->name : nullptr;
  return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetErrorString(CUresult code, const char **text) {
  const ErrorText *error = findError(code);
  *text = error ? error->text : nullptr;
  return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

Device *pipewright::doubles::findDevice(CUdevice ordinal) {
  State &all = state();
  if (ordinal < 0 || ordinal >= static_cast<int>(all.devices.size()))
    return nullptr;
  return all.devices[ordinal].get();
}

CUresult CUDAAPI cuDeviceGetCount(int *count) {
  if (CUresult result = enterWithoutContext())
    return result;
  *count = static_cast<int>(state().devices.size());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) {
  if (CUresult result = enterWithoutContext())
    return result;
  if (!findDevice(ordinal))
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char *name, int length, CUdevice device) {
  if (CUresult result = enterWithoutContext())
    return result;
  if (!findDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, length, "Pipewright test double of a GPU");
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
  if (CUresult result = enterWithoutContext())
    return result;
  if (!findDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(id, length, "0000:%02X:00.0", device + 1);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice *device, const char *id) {
  if (CUresult result = enterWithoutContext())
    return result;
  unsigned number = 0;
  if (!id || std::sscanf(id, "0000:%x:00.0", &number) != 1)
    return CUDA_ERROR_INVALID_VALUE;
  if (!findDevice(static_cast<int>(number) - 1))
    return CUDA_ERROR_INVALID_DEVICE;
  *device = static_cast<int>(number) - 1;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  if (CUresult result = enterWithoutContext())
    return result;
  if (!findDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  std::memset(uuid, 0, sizeof *uuid);
  uuid->bytes[15] = static_cast<char>(device + 1);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  if (CUresult result = enterWithoutContext())
    return result;
  const Device *found = findDevice(device);
  if (!found)
    return CUDA_ERROR_INVALID_DEVICE;
  *bytes = found->totalBytes;
  return CUDA_SUCCESS;
}

/// Figures of an H100, where programs choose by them.
static int attributeOf(CUdevice_attribute attribute) {
  const Settings &settings = state().settings;
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    return settings.major;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    return settings.minor;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    return 132;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    return 32;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    return 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
    return 64;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    return 2147483647;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
    return 65535;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
    return 2048;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
    return 32;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    return 48 * 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    return 227 * 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
    return 228 * 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
    return 65536;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    return 1980000;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
    return 2619000;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    return 5120;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
    return 50 << 20;
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
  case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
  case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    return 1;
  case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
    return 3;
  default:
    return 0;
  }
}

CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                      CUdevice device) {
  if (CUresult result = enterWithoutContext())
    return result;
  if (!findDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  *value = attributeOf(attribute);
  if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
    *value = device + 1;
  return CUDA_SUCCESS;
}
