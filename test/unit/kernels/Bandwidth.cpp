//===- Bandwidth.cpp - How fast compiled kernels are ----------------------===//
//
// Compiles kernels of nn ops in process and times them beside a copy of the
// same size. Bytes are what a perfect kernel moves: every input read once,
// every result written once.
//
//===----------------------------------------------------------------------===//

#include "test/unit/kernels/KernelTesting.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <benchmark/benchmark.h>
#include <cstring>

using namespace pipewright::codegen::testing;

// 4096 rows of 1024: 16 MiB a tensor, far beyond the second-level cache.
static const char *const kKernels = R"mlir(
func.func @bias_gelu(%x: tensor<4096x1024xf32>, %b: tensor<1024xf32>)
    -> tensor<4096x1024xf32> {
  %0 = nn.add %x, %b : (tensor<4096x1024xf32>, tensor<1024xf32>) -> tensor<4096x1024xf32>
  %1 = nn.gelu %0 approximate = none : tensor<4096x1024xf32>
  return %1 : tensor<4096x1024xf32>
}
func.func @layer_norm(%x: tensor<4096x1024xf32>, %s: tensor<1024xf32>, %b: tensor<1024xf32>)
    -> (tensor<4096x1024xf32>, tensor<4096xf32>, tensor<4096xf32>) {
  %0:3 = nn.layer_norm %x, %s, %b epsilon = 1.0E-5
      : (tensor<4096x1024xf32>, tensor<1024xf32>, tensor<1024xf32>)
      -> (tensor<4096x1024xf32>, tensor<4096xf32>, tensor<4096xf32>)
  return %0#0, %0#1, %0#2 : tensor<4096x1024xf32>, tensor<4096xf32>, tensor<4096xf32>
}
func.func @layer_norm_backward(%dy: tensor<4096x1024xf32>, %x: tensor<4096x1024xf32>,
    %s: tensor<1024xf32>, %m: tensor<4096xf32>, %r: tensor<4096xf32>)
    -> (tensor<4096x1024xf32>, tensor<1024xf32>, tensor<1024xf32>) {
  %0:3 = nn.layer_norm_backward %dy, %x, %s, %m, %r
      : (tensor<4096x1024xf32>, tensor<4096x1024xf32>, tensor<1024xf32>, tensor<4096xf32>, tensor<4096xf32>)
      -> (tensor<4096x1024xf32>, tensor<1024xf32>, tensor<1024xf32>)
  return %0#0, %0#1, %0#2 : tensor<4096x1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}
func.func @softmax(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> {
  %0 = nn.softmax %x : tensor<4096x1024xf32>
  return %0 : tensor<4096x1024xf32>
}
func.func @bias_gradient(%dy: tensor<4096x1024xf32>) -> tensor<1024xf32> {
  %0 = nn.reduce_sum %dy axes = [0] : tensor<4096x1024xf32> -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}
)mlir";

static void runKernel(benchmark::State &state, Program &program,
                      mlir::func::FuncOp kernel) {
  std::vector<Buffer> buffers;
  int64_t bytes = 0;
  auto add = [&](mlir::Type type) {
    Buffer &buffer =
        buffers.emplace_back(mlir::cast<mlir::RankedTensorType>(type));
    for (int64_t i = 0; i < buffer.size(); ++i)
      buffer.set(i, 0.5 + 1e-3 * (i % 251));
    bytes += buffer.bytes.size();
  };
  for (mlir::Type type : kernel.getArgumentTypes())
    add(type);
  for (mlir::Type type : kernel.getResultTypes())
    add(type);
  for (auto _ : state)
    program.call(kernel.getName(), buffers);
  state.SetBytesProcessed(state.iterations() * bytes);
}

static void runCopy(benchmark::State &state) {
  std::vector<char> from(16 << 20, 1), to(16 << 20);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(2 * state.iterations() * from.size());
}

int main(int argc, char **argv) {
  Program program(kKernels);
  if (!program.ok)
    return 1;
  benchmark::RegisterBenchmark("copy", runCopy);
  for (auto kernel : program.module().getOps<mlir::func::FuncOp>())
    benchmark::RegisterBenchmark(kernel.getName().str().c_str(),
                                 [&program, kernel](benchmark::State &state) {
                                   runKernel(state, program, kernel);
                                 });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
