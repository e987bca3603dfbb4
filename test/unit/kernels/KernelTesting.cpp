//===- KernelTesting.cpp - compile kernels and run them -------------------===//

#include "test/unit/kernels/KernelTesting.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include "gtest/gtest.h"

#include <cmath>
#include <dlfcn.h>
#include <random>

using namespace mlir;

namespace pipewright::codegen::testing {

Buffer::Buffer(RankedTensorType type) : type(type) {
  Type element = type.getElementType();
  int64_t width = (element.getIntOrFloatBitWidth() + 7) / 8;
  bytes.resize(type.getNumElements() * width);
}

double Buffer::get(int64_t i) const {
  if (type.getElementType().isBF16()) {
    uint32_t bits = reinterpret_cast<const uint16_t *>(bytes.data())[i];
    return llvm::bit_cast<float>(bits << 16);
  }
  if (type.getElementType().isF32())
    return reinterpret_cast<const float *>(bytes.data())[i];
  if (type.getElementType().isInteger(64))
    return reinterpret_cast<const int64_t *>(bytes.data())[i];
  return bytes[i];
}

void Buffer::set(int64_t i, double value) {
  if (type.getElementType().isBF16()) {
    // To the nearest, ties to even.
    uint32_t bits = llvm::bit_cast<uint32_t>(static_cast<float>(value));
    bits += 0x7fff + ((bits >> 16) & 1);
    reinterpret_cast<uint16_t *>(bytes.data())[i] = bits >> 16;
  } else if (type.getElementType().isF32())
    reinterpret_cast<float *>(bytes.data())[i] = value;
  else if (type.getElementType().isInteger(64))
    reinterpret_cast<int64_t *>(bytes.data())[i] = value;
  else
    bytes[i] = value;
}

Program::Program(StringRef text, int architecture)
    : architecture(architecture) {
  context.loadDialect<nn::NNDialect, func::FuncDialect>();
  kernels = parseSourceString<ModuleOp>(text, &context);
  llvm::SmallString<64> path;
  if (!kernels ||
      llvm::sys::fs::createUniqueDirectory("pipewright-kernels", path))
    return;
  folder = path.str().str();
  ok = compile();
}

Program::~Program() {
  if (library)
    dlclose(library);
  if (!folder.empty())
    llvm::sys::fs::remove_directories(folder);
}

bool Program::compile() {
  if (library)
    dlclose(library);
  library = nullptr;
  std::string archive = folder + "/kernels.a", shared = folder + "/kernels.so";
  // Nothing else in this test needs a linker; the C compiler finds it.
  auto compiler = llvm::sys::findProgramByName("cc");
  if (!compiler || failed(compileKernels(*kernels, archive)))
    return false;
  StringRef arguments[] = {*compiler,
                           "-shared",
                           "-o",
                           shared,
                           "-Wl,--whole-archive",
                           archive,
                           "-Wl,--no-whole-archive",
                           "-lm"};
  if (llvm::sys::ExecuteAndWait(*compiler, arguments) != 0)
    return false;
  library = dlopen(shared.c_str(), RTLD_NOW | RTLD_LOCAL);
  FailureOr<GpuKernels> gpu = compileGpuKernels(*kernels, architecture);
  if (failed(gpu))
    return false;
  gpuKernels = std::move(*gpu);
  ptxModule = ptx::Module::parse(gpuKernels.ptx.front().text);
  return library != nullptr;
}

void Program::callOnGpu(ModuleOp module, StringRef name,
                        std::vector<Buffer> &arguments, bool widePositions) {
  FailureOr<GpuKernels> compiled =
      compileGpuKernels(module, architecture, widePositions);
  ASSERT_TRUE(succeeded(compiled));
  run(*compiled, ptx::Module::parse(compiled->ptx.front().text), name,
      arguments);
}

void Program::callOnGpu(StringRef name, std::vector<Buffer> &arguments) {
  run(gpuKernels, *ptxModule, name, arguments);
}

void Program::run(const GpuKernels &compiled, const ptx::Module &code,
                  StringRef name, std::vector<Buffer> &arguments) {
  const GpuKernel *kernel = nullptr;
  for (const GpuKernel &candidate : compiled.kernels)
    if (candidate.name == name)
      kernel = &candidate;
  ASSERT_NE(kernel, nullptr) << name.str();
  // Only the kernel's own buffers may be touched; there is something to be
  // found in fresh scratch memory.
  ptx::RangeMemory memory;
  ptx::Arguments parameters;
  std::vector<char> scratch(kernel->scratchBytes, 0x7f);
  for (Buffer &buffer : arguments) {
    memory.add(buffer.bytes.data(), buffer.bytes.size());
    parameters.add(buffer.bytes.data());
  }
  if (!scratch.empty()) {
    memory.add(scratch.data(), scratch.size());
    parameters.add(scratch.data());
  }
  for (const GpuLaunch &launch : kernel->launches)
    code.launch(launch.entry,
                {{static_cast<uint32_t>(launch.grid)},
                 {static_cast<uint32_t>(launch.block)},
                 static_cast<uint32_t>(launch.sharedBytes)},
                parameters.bytes(), memory);
}

void Program::call(StringRef name, std::vector<Buffer> &arguments) {
  void *symbol = dlsym(library, name.str().c_str());
  ASSERT_NE(symbol, nullptr) << name.str();
  ASSERT_LE(arguments.size(), 12u);
  void *pointers[12] = {};
  for (size_t i = 0; i < arguments.size(); ++i)
    pointers[i] = arguments[i].bytes.data();
  // Arguments beyond those that the kernel takes are never looked at.
  using Kernel = void (*)(void *, void *, void *, void *, void *, void *,
                          void *, void *, void *, void *, void *, void *);
  void **p = pointers;
  reinterpret_cast<Kernel>(symbol)(p[0], p[1], p[2], p[3], p[4], p[5], p[6],
                                   p[7], p[8], p[9], p[10], p[11]);
}

static void fill(Buffer &buffer, func::FuncOp kernel, unsigned argument,
                 std::mt19937 &random) {
  std::uniform_real_distribution<float> uniform(-2.0f, 2.0f);
  bool positive = kernel.getArgAttr(argument, "test.positive") != nullptr;
  auto below = kernel.getArgAttrOfType<IntegerAttr>(argument, "test.below");
  Type element = buffer.type.getElementType();
  for (int64_t i = 0; i < buffer.size(); ++i) {
    double value = uniform(random);
    if (positive)
      value = std::fabs(value) + 0.1;
    if (element.isInteger(1))
      value = value > 0;
    else if (!isa<FloatType>(element))
      value = static_cast<int64_t>(random() % (below ? below.getInt() : 7));
    buffer.set(i, value);
  }
}

/// Compares what stands in `buffers` behind the arguments.
static void expectValues(func::FuncOp kernel, nn::reference::Values &values,
                         const std::vector<Buffer> &buffers, double tolerance,
                         const char *where) {
  Operation *terminator = kernel.getBody().front().getTerminator();
  for (auto [r, value] : llvm::enumerate(terminator->getOperands())) {
    const nn::reference::Tensor &expected = values[value];
    const Buffer &actual = buffers[kernel.getNumArguments() + r];
    ASSERT_EQ(expected.size(), actual.size());
    double scale = 1.0;
    for (double x : expected.data)
      scale = std::max(scale, std::isfinite(x) ? std::fabs(x) : 0.0);
    for (int64_t i = 0; i < actual.size(); ++i)
      if (!(std::fabs(expected.data[i] - actual.get(i)) <= tolerance * scale)) {
        ADD_FAILURE() << kernel.getName().str() << where << " result " << r
                      << " at " << i << ": expects " << expected.data[i]
                      << ", but got " << actual.get(i);
        break;
      }
  }
}

static void expectKernelLikeReference(Program &program, func::FuncOp kernel,
                                      double tolerance) {
  std::mt19937 random(7);
  std::vector<Buffer> buffers;
  nn::reference::Values values;
  for (BlockArgument argument : kernel.getArguments()) {
    Buffer buffer(cast<RankedTensorType>(argument.getType()));
    fill(buffer, kernel, argument.getArgNumber(), random);
    nn::reference::Tensor tensor(buffer.type.getShape());
    for (int64_t i = 0; i < buffer.size(); ++i)
      tensor.data[i] = buffer.get(i);
    values[argument] = tensor;
    buffers.push_back(std::move(buffer));
  }
  for (Operation &op : kernel.getBody().front().without_terminator())
    ASSERT_TRUE(nn::reference::evaluate(&op, values))
        << op.getName().getStringRef().str();
  for (Type type : kernel.getResultTypes())
    buffers.emplace_back(cast<RankedTensorType>(type));
  std::vector<Buffer> onGpu = buffers;
  program.call(kernel.getName(), buffers);
  program.callOnGpu(kernel.getName(), onGpu);
  expectValues(kernel, values, buffers, tolerance, "");
  expectValues(kernel, values, onGpu, tolerance, " on a GPU");
}

static void expectNear(const Buffer &expected, const Buffer &actual,
                       double tolerance, const std::string &what) {
  double scale = 1.0;
  for (int64_t i = 0; i < expected.size(); ++i)
    if (std::isfinite(expected.get(i)))
      scale = std::max(scale, std::fabs(expected.get(i)));
  for (int64_t i = 0; i < expected.size(); ++i) {
    double x = expected.get(i), y = actual.get(i);
    if (x == y || (std::isnan(x) && std::isnan(y)) ||
        std::fabs(x - y) <= tolerance * scale)
      continue;
    ADD_FAILURE() << what << " at " << i << ": the CPU has " << x
                  << ", the GPU " << y;
    return;
  }
}

void expectGpuLikeCpu(StringRef text, double tolerance, int architecture) {
  Program program(text, architecture);
  ASSERT_TRUE(program.ok);
  for (auto kernel : program.module().getOps<func::FuncOp>()) {
    std::mt19937 random(11);
    std::vector<Buffer> cpu;
    for (BlockArgument argument : kernel.getArguments()) {
      cpu.emplace_back(cast<RankedTensorType>(argument.getType()));
      fill(cpu.back(), kernel, argument.getArgNumber(), random);
    }
    for (Type type : kernel.getResultTypes())
      cpu.emplace_back(cast<RankedTensorType>(type));
    std::vector<Buffer> gpu = cpu;
    program.call(kernel.getName(), cpu);
    program.callOnGpu(kernel.getName(), gpu);
    for (unsigned i = kernel.getNumArguments(); i < cpu.size(); ++i)
      expectNear(cpu[i], gpu[i], tolerance,
                 (kernel.getName() + " buffer " + std::to_string(i)).str());
  }
}

void expectLikeReference(StringRef text, double tolerance) {
  Program program(text);
  ASSERT_TRUE(program.ok);
  for (auto kernel : program.module().getOps<func::FuncOp>())
    expectKernelLikeReference(program, kernel, tolerance);
}

} // namespace pipewright::codegen::testing
