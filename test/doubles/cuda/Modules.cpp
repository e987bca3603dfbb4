//===- Modules.cpp - Kernels of the driver double -------------------------===//

#include "test/doubles/cuda/Internal.h"

#include <cstring>
#include <dlfcn.h>

using namespace pipewright::doubles;
namespace ptx = pipewright::ptx;

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

namespace {
/// The options of cuModuleLoadDataEx that concern the log of errors.
struct ErrorLog {
  char *buffer = nullptr;
  size_t bytes = 0;
  void **bytesOption = nullptr;

  ErrorLog(unsigned count, const CUjit_option *options, void **values) {
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
        buffer = static_cast<char *>(values[i]);
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
        bytes = reinterpret_cast<uintptr_t>(values[i]);
        bytesOption = &values[i];
      }
      if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
        values[i] = nullptr;
    }
  }
  void write(const std::string &text) {
    size_t written = 0;
    if (buffer && bytes) {
      written = std::min(bytes - 1, text.size());
      std::memcpy(buffer, text.data(), written);
      buffer[written] = 0;
    }
    if (bytesOption)
      *bytesOption = reinterpret_cast<void *>(written);
  }
};
} // namespace

/// The newest PTX that a driver reads: 80 is 8.0 (PTX ISA, release notes).
static int newestPtx(int driver) {
  static constexpr int table[][2] = {
      {13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85},
      {12040, 84}, {12030, 83}, {12020, 82}, {12010, 81}, {12000, 80}};
  for (const auto &[version, newest] : table)
    if (driver >= version)
      return newest;
  return 78;
}

static bool isText(const char *image) {
  return std::strstr(image, ".version") && std::strstr(image, ".target");
}

static CUresult parse(const char *image, ErrorLog &log,
                      std::optional<ptx::Module> &module) {
  const Settings &settings = state().settings;
  if (!isText(image)) {
    log.write("the double runs PTX text only");
    return CUDA_ERROR_INVALID_IMAGE;
  }
  try {
    module = ptx::Module::parse(image);
  } catch (const ptx::ParseError &error) {
    log.write(std::string("ptxas application ptx input, ") + error.what());
    return CUDA_ERROR_INVALID_PTX;
  }
  if (module->version() > newestPtx(settings.version)) {
    log.write("the PTX is newer than the driver");
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  }
  if (module->target() > settings.major * 10 + settings.minor) {
    log.write("the PTX is for a newer GPU");
    return CUDA_ERROR_INVALID_PTX;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *handle, const void *image,
                                    unsigned count, CUjit_option *options,
                                    void **values) {
  Context *context = nullptr;
  if (CUresult result = enterOutsideCapture(context))
    return result;
  if (!image)
    return CUDA_ERROR_INVALID_VALUE;
  mayWaitForGpu(context);
  ErrorLog log(count, options, values);
  std::optional<ptx::Module> module;
  if (CUresult result = parse(static_cast<const char *>(image), log, module))
    return result;
  log.write("");
  auto *made = new ModuleHandle{context, *module, {}, {}};
  for (const std::string &entry : made->module.entries())
    made->functions[entry].reset(new Function{made, made->module.find(entry)});
  std::lock_guard<std::mutex> lock(state().mutex);
  state().handles.insert(made);
  *handle = reinterpret_cast<CUmodule>(made);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *handle, const void *image) {
  return cuModuleLoadDataEx(handle, image, 0, nullptr, nullptr);
}

CUresult CUDAAPI cuModuleUnload(CUmodule handle) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  auto *module = reinterpret_cast<ModuleHandle *>(handle);
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    if (!state().handles.erase(module))
      return CUDA_ERROR_INVALID_HANDLE;
    for (const auto &[name, function] : module->functions)
      state().handles.erase(function.get());
  }
  drain(context);
  {
    std::unique_lock<std::shared_mutex> lock(state().memoryMutex);
    for (uint64_t variable : module->variables)
      state().allocations.erase(variable);
  }
  delete module;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *handle, CUmodule moduleHandle,
                                     const char *name) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  auto *module = reinterpret_cast<ModuleHandle *>(moduleHandle);
  if (!isLive(module))
    return CUDA_ERROR_INVALID_HANDLE;
  auto found = module->functions.find(name);
  if (found == module->functions.end())
    return CUDA_ERROR_NOT_FOUND;
  state().handles.insert(found->second.get());
  *handle = reinterpret_cast<CUfunction>(found->second.get());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetGlobal(CUdeviceptr *address, size_t *bytes,
                                   CUmodule handle, const char *name) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  auto *module = reinterpret_cast<ModuleHandle *>(handle);
  if (!isLive(module))
    return CUDA_ERROR_INVALID_HANDLE;
  const ptx::Module::Variable variable = module->module.global(name);
  if (!variable.address)
    return CUDA_ERROR_NOT_FOUND;
  std::unique_lock<std::shared_mutex> memory(state().memoryMutex);
  std::shared_ptr<Allocation> &entry = state().allocations[variable.address];
  if (!entry) {
    entry = std::make_shared<Allocation>();
    entry->begin = variable.address;
    entry->bytes = variable.bytes;
    entry->host = reinterpret_cast<char *>(variable.address);
    entry->device = context->device->ordinal;
    entry->registered = true;
    module->variables.push_back(variable.address);
  }
  if (address)
    *address = variable.address;
  if (bytes)
    *bytes = variable.bytes;
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static CUresult findFunction(CUfunction handle, Function *&function) {
  std::lock_guard<std::mutex> lock(state().mutex);
  function = reinterpret_cast<Function *>(handle);
  return isLive(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static int threadLimit(const Function &function) {
  const uint32_t limit = function.info->maxThreads;
  return limit ? static_cast<int>(std::min(limit, 1024u)) : 1024;
}

CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                                    CUfunction handle) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  Function *function = nullptr;
  if (CUresult result = findFunction(handle, function))
    return result;
  const Settings &settings = state().settings;
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = threadLimit(*function);
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = static_cast<int>(function->info->sharedBytes);
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    *value = static_cast<int>(function->info->localBytes);
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    *value = 0;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    // A figure that ptxas would choose; programs only bound blocks by it.
    *value = 32;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    *value = settings.major * 10 + settings.minor;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = function->maxDynamicShared;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction handle,
                                    CUfunction_attribute attribute, int value) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  Function *function = nullptr;
  if (CUresult result = findFunction(handle, function))
    return result;
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
    return CUDA_SUCCESS;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (value < 0 ||
      value + static_cast<int>(function->info->sharedBytes) > 227 * 1024)
    return CUDA_ERROR_INVALID_VALUE;
  function->maxDynamicShared = value;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction, CUfunc_cache) {
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, CUfunction handle, int blockSize, size_t dynamicShared) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  Function *function = nullptr;
  if (CUresult result = findFunction(handle, function))
    return result;
  if (blockSize <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  const size_t shared = function->info->sharedBytes + dynamicShared + 1024;
  *blocks = static_cast<int>(std::min<size_t>(
      {32, static_cast<size_t>(2048 / blockSize), (228 * 1024) / shared}));
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace {
/// What a kernel of the context may reach.
class DeviceMemory : public ptx::Memory {
public:
  DeviceMemory(const Context *context, const std::string &kernel)
      : context(context), kernel(kernel) {}

  Region find(uint64_t address) override {
    const std::shared_ptr<Allocation> found = findAllocation(address);
    if (!found || !mayUse(context, *found))
      return {};
    return {found->begin, found->end(),
            static_cast<int64_t>(reinterpret_cast<uint64_t>(found->host) -
                                 found->begin)};
  }
  std::string describe(uint64_t address) override {
    return describeAddress(address);
  }
  bool tracks() const override { return state().settings.races; }
  void access(uint64_t address, uint64_t bytes, bool write) override {
    noteKernelAccess(kernel, address, bytes, write);
  }

private:
  const Context *context;
  const std::string &kernel;
};
} // namespace

static CUresult checkShape(const Function &function,
                           const ptx::LaunchShape &shape) {
  const uint64_t threads = shape.block.count();
  if (shape.grid.count() == 0 || threads == 0 || shape.block.x > 1024 ||
      shape.block.y > 1024 || shape.block.z > 64 ||
      shape.grid.x > 2147483647u || shape.grid.y > 65535 ||
      shape.grid.z > 65535 || threads > 1024)
    return CUDA_ERROR_INVALID_VALUE;
  if (shape.dynamicSharedBytes >
      static_cast<uint32_t>(function.maxDynamicShared))
    return CUDA_ERROR_INVALID_VALUE;
  // The driver says so too when a block is larger than .maxntid allows.
  if (threads > static_cast<uint64_t>(threadLimit(function)))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

static CUresult packParameters(const ptx::EntryInfo &info, void **parameters,
                               void **extra, std::vector<std::byte> &packed) {
  packed.resize(info.parameterBytes);
  if (parameters) {
    for (size_t i = 0; i < info.parameters.size(); ++i)
      std::memcpy(packed.data() + info.parameters[i].offset, parameters[i],
                  info.parameters[i].bytes);
    return CUDA_SUCCESS;
  }
  const void *buffer = nullptr;
  size_t bytes = 0;
  for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
      bytes = *static_cast<const size_t *>(extra[1]);
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (bytes < packed.size())
    return CUDA_ERROR_INVALID_VALUE;
  if (!packed.empty())
    std::memcpy(packed.data(), buffer, packed.size());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchKernel(CUfunction handle, unsigned gridX,
                                unsigned gridY, unsigned gridZ, unsigned blockX,
                                unsigned blockY, unsigned blockZ,
                                unsigned sharedBytes, CUstream streamHandle,
                                void **parameters, void **extra) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  Function *function = nullptr;
  if (CUresult result = findFunction(handle, function))
    return result;
  Stream *stream = nullptr;
  if (CUresult result = findStream(streamHandle, context, stream))
    return result;
  const ptx::LaunchShape shape = {
      {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes};
  if (CUresult result = checkShape(*function, shape))
    return result;
  std::vector<std::byte> packed;
  if (CUresult result =
          packParameters(*function->info, parameters, extra, packed))
    return result;
  mayLoadKernel(context, function);
  auto run = [context, module = function->module->module,
              name = function->info->name, shape, packed = std::move(packed)] {
    DeviceMemory memory(context, name);
    module.launch(name, shape, packed, memory);
  };
  return submit(stream, {function->info->name, run, {}},
                CU_GRAPH_NODE_TYPE_KERNEL);
}

/// Looks for the newest of the names that the function has had.
CUresult CUDAAPI cuGetProcAddress(const char *name, void **function, int,
                                  cuuint64_t,
                                  CUdriverProcAddressQueryResult *status) {
  Dl_info self;
  void *library = nullptr;
  if (dladdr(reinterpret_cast<void *>(&cuInit), &self))
    library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  *function = nullptr;
  for (const char *suffix : {"_v3", "_v2", ""})
    if (library && !*function)
      *function = dlsym(library, (std::string(name) + suffix).c_str());
  if (status)
    *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS
                        : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
