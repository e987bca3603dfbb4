//===- Passes.td - what the libraries of targets like -----*- tablegen -*-===//
//
// One entry per pass. The flag call-x-y is implemented in XY.cpp and tested in
// test/passes/call/x-y.mlir.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_CALL_PASSES_TD
#define PIPEWRIGHT_PASSES_CALL_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// call-pack-attention
//===----------------------------------------------------------------------===//

def CallPackAttention : Pass<"call-pack-attention", "::mlir::ModuleOp"> {
  let summary = "Let attention read q, k and v where products leave them";
  let description = [{
    Where q, k and v are slices of one tensor of `[B, T, 3, H, D]`, reshaped and
    transposed in whatever order, attention becomes `call.packed_attention` over
    that tensor: nothing is split and transposed before it, nor put together
    for the gradient behind it. Where each of them is the transposition of a
    tensor `[B, T, H, D]` of its own, attention becomes `call.attention`. A
    transposition of the result goes with it; where there is none, the result is
    transposed.

    Only where nothing else reads what was sliced or transposed: it would be
    made all the same. With `cached`, only where the vectors of a head fit in
    the first-level cache of a CPU as they lie; elsewhere a CPU is faster with
    vectors beside each other. For targets whose kernels read by strides; before
    differentiation, so that gradients have the layout by themselves. The
    values are the same. Works on the functions of the module. Idempotent.

    ```mlir
    %0 = nn.slice %x starts = [0, 0, 0] sizes = [4, 128, 512] steps = [1, 1, 1]
      : tensor<4x128x1536xf32> -> tensor<4x128x512xf32>
    %1 = nn.reshape %0 : tensor<4x128x512xf32> -> tensor<4x128x8x64xf32>
    %q = nn.transpose %1 permutation = [0, 2, 1, 3]
      : tensor<4x128x8x64xf32> -> tensor<4x8x128x64xf32>
    // %k and %v from 512 and 1024 on
    %o, %stats = nn.attention %q, %k, %v scale = 1.250000e-01 causal
        dropout_rate = 0.000000e+00 dropout_id = 0 : ...
    %y = nn.transpose %o permutation = [0, 2, 1, 3]
      : tensor<4x8x128x64xf32> -> tensor<4x128x8x64xf32>
    // becomes
    %0 = nn.reshape %x : tensor<4x128x1536xf32> -> tensor<4x128x3x8x64xf32>
    %y, %stats = call.packed_attention %0 scale = 1.250000e-01 causal
        dropout_rate = 0.000000e+00 dropout_id = 0
      : (tensor<4x128x3x8x64xf32>)
        -> (tensor<4x128x8x64xf32>, tensor<4x8x128x2xf32>)
    ```
  }];
  let options = [Option<"cached", "cached", "bool", "false",
                        "Only where a head's vectors fit in a CPU's "
                        "first-level cache as they lie">];
  let dependentDialects = ["::pipewright::nn::NNDialect",
                           "::pipewright::call::CallDialect"];
}

//===----------------------------------------------------------------------===//
// call-fuse-epilogues
//===----------------------------------------------------------------------===//

def CallFuseEpilogues : Pass<"call-fuse-epilogues", "::mlir::ModuleOp"> {
  let summary = "Let cuBLASLt work on products before it stores them";
  let description = [{
    Turns products of one right matrix and what follows them into
    `call.matmul_epilogue` where that saves a pass over memory. For GPUs only,
    on differentiated bodies and before kernels are formed.

    - `bias`: a product and the addition of a bias, unless a compiled op reads
      the sum: its kernel reads the product anyway, and adds the bias for
      nothing (to a residual, before a norm, while elements are moved).
    - `bias_gelu`: the same where a GELU by tanh is the only compiled reader.
      The sum is the second result, for the backward.
    - `gelu_gradient`: a product that only the gradient of such a GELU reads.
    - `gelu_bias_gradient`: the same with the sums over rows, the gradient of
      the bias; in f32 only, because cuBLASLt rounds it to the type of the
      product.

    Views between them are seen through. GELU by erf stays in kernels: cuBLASLt
    has the one by tanh (its header does not say so; frameworks rely on it).
    `auto` means `bias`, and from sm_90 on `all` for products in bf16: before,
    and in f32, GELU in an epilogue is slower than a kernel, and nothing says
    that cuBLASLt has it in f32. What is rounded less often than by the
    ops one by one is said at `call.matmul_epilogue`; the decisions depend on the
    ops alone, so every schedule, split or rematerialization computes the same.

    ```mlir
    %p = nn.matmul %x, %w : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    %h = nn.add %p, %b : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
    %y = nn.gelu %h approximate = tanh : tensor<8x32xf32>
    // becomes
    %y, %h = call.matmul_epilogue %x, %w bias %b epilogue = bias_gelu
      : (tensor<8x16xf32>, tensor<16x32xf32>, tensor<32xf32>)
        -> (tensor<8x32xf32>, tensor<8x32xf32>)
    ```
  }];
  let options = [
    Option<"epilogues", "epilogues", "std::string", "\"auto\"",
           "auto, none, bias or all">,
    Option<"architecture", "architecture", "int64_t", "90",
           "What auto decides for: 80 or 90, as in sm_80">
  ];
  let dependentDialects = ["::pipewright::nn::NNDialect",
                           "::pipewright::call::CallDialect"];
}

#endif // PIPEWRIGHT_PASSES_CALL_PASSES_TD
