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
// Import level
//===----------------------------------------------------------------------===//

def NNVerifyImported : Pass<"nn-verify-imported", "::mlir::ModuleOp"> {
  let summary = "Check the contract of the import level";
  let description = [{
    Contract: a module of `nn.weight` symbols and one function `@model` of nn
    and call ops, whose arguments and results have distinct `nn.name`s and whose
    first result is the scalar loss. Names of arguments, results and weights are
    not empty and have no characters that cannot be seen; tensors have a known
    size, which is not zero; what `nn.counted_inputs` counts lies in its labels,
    and is what the loss reads that divides by it. Ops have no attributes but
    their own.

    It is the one gate for what frontends make: passes behind it believe the
    module. Reports every violation, not only the first.
  }];
}

def NNSimplify : Pass<"nn-simplify", "::mlir::ModuleOp"> {
  let summary = "Fold constants and remove what does nothing";
  let description = [{
    Folds pointwise ops and ops that move elements on constants; removes
    `x + 0`, `x * 1`, casts, reshapes and transpositions that change nothing,
    dropout of rate 0, repeated and dead code; turns a square or a square root
    written as a power, and a transposition before a product, into the op or
    the flag that says it. Boolean triangles become `nn.causal_mask`. Works on
    the functions of the module. Idempotent.

    ```mlir
    %0 = nn.transpose %w permutation = [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
    %1 = nn.matmul %x, %0 : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    // becomes
    %1 = nn.matmul %x, %w transpose_b
      : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
    ```
  }];
  let options = [
    Option<"noDropout", "no-dropout", "bool", "false",
           "Remove all dropout, in attention too">
  ];
  let dependentDialects = ["::pipewright::nn::NNDialect"];
}

def NNFuseComposites : Pass<"nn-fuse-composites", "::mlir::ModuleOp"> {
  let summary = "Recognise composites that nn has one op for";
  let description = [{
    Layer normalization, group and instance normalization with a scale and a
    bias for each channel, GELU (both formulas), softmax (with zeros where it is
    NaN, because a row is minus infinity everywhere), log-softmax, and attention
    with scale, softcap, causal or additive mask, trained or not, and dropout, in
    the ways that exporters spell them out. A mask may be of windows, which
    repeat with each image. Attention is left alone where its weights are used
    elsewhere. Where each head of k and v is repeated for several heads of q,
    attention reads the heads themselves. Attention over vectors of more than
    `longest-attention` elements is left alone and, where a frontend made it,
    spelled out. Expects simplified IR. Works on the functions of the module.
    Idempotent.

    ```mlir
    %s = nn.matmul %q, %k transpose_b : ...
    %t = nn.mul %s, %scale : ...
    %p = nn.softmax %t : ...
    %o = nn.matmul %p, %v : ...
    // becomes
    %o, %stats = nn.attention %q, %k, %v scale = 1.250000e-01
        dropout_rate = 0.000000e+00 dropout_id = 0 : ...
    ```
  }];
  let options = [
    Option<"longestAttention", "longest-attention", "int64_t", "0",
           "Elements of a vector that the target's attention goes to; 0 is any "
           "number">
  ];
  let dependentDialects = ["::pipewright::nn::NNDialect"];
}

def NNLowerPrecision : Pass<"nn-lower-precision", "::mlir::ModuleOp"> {
  let summary = "Compute in bf16 what does not need more";
  let description = [{
    Parameters are read as bf16 working copies, matrix products, convolutions
    and attention take bf16 operands, and whatever is computed from bf16 values
    is bf16. What stays f32: the inputs and results of the model, the loss with
    all that lies behind the last library op before it (cross entropy takes bf16
    logits and computes in f32), sums and means, statistics of norms, masks of
    attention, running statistics. Expects simplified IR in which composites
    are fused. Works on the functions of the module. Idempotent.

    ```mlir
    %w = nn.parameter @w : tensor<8x4xf32>
    %y = nn.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
    // becomes
    %0 = nn.cast %x : tensor<2x8xf32> -> tensor<2x8xbf16>
    %w = nn.parameter @w : tensor<8x4xbf16>
    %y = nn.matmul %0, %w
      : (tensor<2x8xbf16>, tensor<8x4xbf16>) -> tensor<2x4xbf16>
    ```
  }];
  let options = [
    Option<"type", "type", "std::string", "\"bf16\"",
           "The element type: bf16 is the only one">
  ];
  let dependentDialects = ["::pipewright::nn::NNDialect"];
}

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
// nn-mark-matrices
//===----------------------------------------------------------------------===//

def NNMarkMatrices : Pass<"nn-mark-matrices", "::mlir::ModuleOp"> {
  let summary = "Mark the weights that an optimizer takes as matrices";
  let description = [{
    Muon makes the update of a matrix orthogonal; embeddings, biases, scales and
    the last layer are updated element by element. A parameter of rank 2 is
    marked (`outputs`) where all that reads it are products, but for those whose
    product reaches the loss without another product of a weight in between.
    With `names`, those of rank 2 are marked that match and no others, whatever
    reads them; it is an error if there are none. Which dimension has the
    outputs is taken from the products. Idempotent.

    ```mlir
    nn.weight @fc role = parameter : tensor<8x4xf32>
    %w = nn.parameter @fc : tensor<8x4xf32>
    %y = nn.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
    // becomes, unless the loss is made of %y
    nn.weight @fc role = parameter outputs = columns : tensor<8x4xf32>
    ```
  }];
  let options = [
    Option<"names", "names", "std::string", "\"\"",
           "A POSIX extended regular expression that is searched for in names">
  ];
}

//===----------------------------------------------------------------------===//
// nn-pad-vocabulary
//===----------------------------------------------------------------------===//

def NNPadVocabulary : Pass<"nn-pad-vocabulary", "::mlir::ModuleOp"> {
  let summary = "Give logits rows that start at aligned addresses";
  let description = [{
    GPT-2 has 50257 words, so the rows of its logits start anywhere, and neither
    tensor cores nor vector loads like that; the products with the logits are a
    third of the model's work. Where a product of a weight makes the logits of a
    loss, the weight gets rows of zeros up to the next multiple, and the loss is
    told how many classes there are. The rows get no gradient but zeros, so they
    stay zero, and the losses are what they were. Files keep the weight's own
    shape. A bias between the product and the loss grows along. Only where
    nothing else reads the weight but embeddings, and it has the classes as its
    rows; a remark says where that is not so. For GPUs, as the product is summed
    in another order.

    ```mlir
    nn.weight @wte role = parameter : tensor<50257x768xf32>
    %y = nn.matmul %x, %wte transpose_b
      : (tensor<64x768xf32>, tensor<50257x768xf32>) -> tensor<64x50257xf32>
    %loss, %largest, %sum = nn.softmax_cross_entropy %y, %labels ignore_index = -100
      : (tensor<64x50257xf32>, tensor<64xi64>)
        -> (tensor<f32>, tensor<64xf32>, tensor<64xf32>)
    // becomes
    nn.weight @wte role = parameter file_rows = 50257 : tensor<50304x768xf32>
    %y = nn.matmul %x, %wte transpose_b
      : (tensor<64x768xf32>, tensor<50304x768xf32>) -> tensor<64x50304xf32>
    %loss, %largest, %sum = nn.softmax_cross_entropy %y, %labels ignore_index = -100
        classes = 50257
      : (tensor<64x50304xf32>, tensor<64xi64>)
        -> (tensor<f32>, tensor<64xf32>, tensor<64xf32>)
    ```
  }];
  let options = [
    Option<"multiple", "multiple", "int64_t", "64",
           "What the number of columns is to be a multiple of">,
    Option<"leastClasses", "least-classes", "int64_t", "4096",
           "Below that many classes nothing is padded: it would cost more than "
           "it gains">
  ];
  let dependentDialects = ["::pipewright::nn::NNDialect"];
}

//===----------------------------------------------------------------------===//
// nn-channels-last
//===----------------------------------------------------------------------===//

def NNChannelsLast : Pass<"nn-channels-last", "::mlir::ModuleOp"> {
  let summary = "Keep images with their channels last, as tensor cores want them";
  let description = [{
    Makes `[N, C, H, W]` images `[N, H, W, C]` in functions with convolutions:
    convolutions, pooling and batch norms of images always; pointwise ops,
    reductions, concatenations, slices and pads whose operands are such images
    by then. Bias vectors and what else broadcasts to images follow by reshapes.

    A filter that is a weight becomes `[O, kh, kw, C]` in memory (`channels_last`
    of `nn.weight`); the runtime reorders it when it reads or writes a file.
    Other filters are transposed where they are used.

    Transpositions are left at the borders: where an image enters from the
    model's inputs, where it goes to an op with a layout of its own (the flattening
    before a classifier), where it is a result of the model. A transposition that
    the model makes there itself becomes one with it. Dropout is such an
    op, too: its numbers go by the place of an element, and stay those of the
    model.

    The results are the model's, up to the order of sums. Runs before
    differentiation. Works on the functions of the module. Idempotent.

    ```mlir
    %w = nn.parameter @w : tensor<64x3x3x3xf32>
    %y = nn.conv %x, %w strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1]
        groups = 1
      : (tensor<8x3x32x32xf32>, tensor<64x3x3x3xf32>) -> tensor<8x64x32x32xf32>
    %z = nn.relu %y : tensor<8x64x32x32xf32>
    %r = nn.reshape %z : tensor<8x64x32x32xf32> -> tensor<8x65536xf32>
    // becomes
    %0 = nn.transpose %x permutation = [0, 2, 3, 1]
      : tensor<8x3x32x32xf32> -> tensor<8x32x32x3xf32>
    %w = nn.parameter @w : tensor<64x3x3x3xf32>
    %y = nn.conv %0, %w strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1]
        groups = 1 channels_last
      : (tensor<8x32x32x3xf32>, tensor<64x3x3x3xf32>) -> tensor<8x32x32x64xf32>
    %z = nn.relu %y : tensor<8x32x32x64xf32>
    %1 = nn.transpose %z permutation = [0, 3, 1, 2]
      : tensor<8x32x32x64xf32> -> tensor<8x64x32x32xf32>
    %r = nn.reshape %1 : tensor<8x64x32x32xf32> -> tensor<8x65536xf32>
    ```
  }];
  let dependentDialects = ["::pipewright::nn::NNDialect"];
}

//===----------------------------------------------------------------------===//
// nn-share-transposes
//===----------------------------------------------------------------------===//

def NNShareTransposes : Pass<"nn-share-transposes", "::mlir::ModuleOp"> {
  let summary = "Transpose once what many products of few rows take transposed";
  let description = [{
    A product of few rows by a transposed matrix is slower than by one that lies
    as it is read. Where a block has products of up to 64 rows each, and of 512
    in all, by one matrix that all take transposed, as the steps of a recurrent
    layer, it is transposed in front of the first. For CPUs.

    ```mlir
    %1 = nn.matmul %h0, %r transpose_b
      : (tensor<16x256xf32>, tensor<1024x256xf32>) -> tensor<16x1024xf32>
    // ... and 31 more, becomes
    %0 = nn.transpose %r permutation = [1, 0]
      : tensor<1024x256xf32> -> tensor<256x1024xf32>
    %1 = nn.matmul %h0, %0
      : (tensor<16x256xf32>, tensor<256x1024xf32>) -> tensor<16x1024xf32>
    ```
  }];
  let dependentDialects = ["::pipewright::nn::NNDialect"];
}

//===----------------------------------------------------------------------===//
// nn-bubble-up-slices
//===----------------------------------------------------------------------===//

def NNBubbleUpSlices : Pass<"nn-bubble-up-slices", "::mlir::ModuleOp"> {
  let summary = "Slice operands in place of what is computed from them";
  let description = [{
    Where all that is used of the result of a cheap elementwise op are slices,
    also of reshapes of it, which together have no more elements, the op is
    computed for each slice. A kernel that takes one then computes just what it
    needs, and the whole is never stored. Slices of slices become one.

    ```mlir
    %1 = nn.add %x, %b
      : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
    %2 = nn.slice %1 starts = [0, 16] sizes = [8, 16] steps = [1, 1]
      : tensor<8x32xf32> -> tensor<8x16xf32>
    // becomes
    %1 = nn.slice %x starts = [0, 16] sizes = [8, 16] steps = [1, 1]
      : tensor<8x32xf32> -> tensor<8x16xf32>
    %2 = nn.slice %b starts = [16] sizes = [16] steps = [1]
      : tensor<32xf32> -> tensor<16xf32>
    %3 = nn.add %1, %2
      : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    ```
  }];
  let dependentDialects = ["::pipewright::nn::NNDialect"];
}

//===----------------------------------------------------------------------===//
// nn-form-subviews
//===----------------------------------------------------------------------===//

def NNFormSubviews : Pass<"nn-form-subviews", "::mlir::ModuleOp"> {
  let summary = "Read the rows of slices where they lie";
  let description = [{
    A slice whose rows follow each other in its operand, from a multiple of 64
    bytes on, becomes an `nn.subview` of these rows, and a slice of their
    columns if it has not all. Not where the kernel that computes the operand
    may take in the slice. Nothing is copied, and kernels that differ only in
    which rows they read are one.

    ```mlir
    %1 = nn.slice %0 starts = [3, 0, 0] sizes = [1, 16, 256] steps = [1, 1, 1]
      : tensor<64x16x1024xf32> -> tensor<1x16x256xf32>
    // becomes
    %1 = nn.subview %0 at 49152
      : tensor<64x16x1024xf32> -> tensor<1x16x1024xf32>
    %2 = nn.slice %1 starts = [0, 0, 0] sizes = [1, 16, 256] steps = [1, 1, 1]
      : tensor<1x16x1024xf32> -> tensor<1x16x256xf32>
    ```
  }];
  let dependentDialects = ["::pipewright::nn::NNDialect"];
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
