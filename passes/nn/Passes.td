//===- Passes.td - passes over nn ops ----------------------*- tablegen -*-===//
//
// One entry per pass. The flag nn-x-y is implemented in XY.cpp and tested in
// test/passes/nn/x-y.mlir.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_NN_PASSES_TD
#define PIPEWRIGHT_PASSES_NN_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// nn-divide-by-batch
//===----------------------------------------------------------------------===//

def NNDivideByBatch : Pass<"nn-divide-by-batch", "::mlir::ModuleOp"> {
  let summary = "Make losses the mean over the labels of the whole batch";
  let description = [{
    The loss of a step is the mean of the losses of its micro-batches. Where
    labels are ignored, a mean of means is not the mean over the batch: a
    micro-batch with few labels would count as much as one with many. But how
    many labels there are is known before the step. Each loss gets a `divisor`:
    the number of labels of the whole batch that are not ignored, divided by the
    number of micro-batches; 1 where all labels of the batch are ignored. It is
    an argument of the model like others, a scalar named after the labels, whose
    value the runtime counts (`nn.counted_inputs`) once for each step. Where
    weights are updated several times in a step, the batch is what an update
    takes. Where no label is ignored, it is the number of rows of a micro-batch,
    and the loss has the same bits as without.

    The labels may be reshaped, sliced and transposed on their way to the loss:
    which of them arrive is found at compile time, and the same elements of each
    sample must. Of labels that are computed, or differ between samples, each
    micro-batch divides by its own number, with a warning.

    ```mlir
    func.func @model(%x: tensor<2x5xf32> {nn.name = "x"},
                     %labels: tensor<2xi64> {nn.name = "labels"})
      %loss, %largest, %sum = nn.softmax_cross_entropy %x, %labels
          ignore_index = -100 : ...
    // becomes, with nn.counted_inputs = {labels_divisor = {
    //   ignored = -100 : i64, labels = "labels", ranges = array<i64: 0, 1>}}
    func.func @model(%x: tensor<2x5xf32> {nn.name = "x"},
                     %labels: tensor<2xi64> {nn.name = "labels"},
                     %n: tensor<f32> {nn.name = "labels_divisor"})
      %loss, %largest, %sum = nn.softmax_cross_entropy %x, %labels divisor %n
          ignore_index = -100 : ...
    ```
  }];
}

//===----------------------------------------------------------------------===//
// nn-form-kernels
//===----------------------------------------------------------------------===//

def NNFormKernels : Pass<"nn-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Group compiled nn ops into kernels";
  let description = [{
    Groups every maximal connected set of compiled ops (those that are neither
    library calls, views nor structure) that fits one loop nest over rows into
    a function in the nested module `@kernels`, and calls it with `nn.launch`.
    Kernels with equal bodies are shared. Runs on every function of the module
    and on every region of another dialect's ops that holds nn ops.

    Idempotent: a launch is never grouped again.

    ```mlir
    %0 = nn.add %x, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    %1 = nn.gelu %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    // becomes
    %1 = nn.launch @kernels::@bias_gelu_8x16 (%x, %b) : ...
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

#endif // PIPEWRIGHT_PASSES_NN_PASSES_TD
