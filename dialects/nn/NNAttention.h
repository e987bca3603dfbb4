//===- NNAttention.h - What all forms of attention share --------*- C++ -*-===//
//
// Forms of attention differ in where q, k and v lie in memory. What is checked,
// what it costs and what the runtime is called with is the same for all.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNATTENTION_H
#define PIPEWRIGHT_DIALECTS_NN_NNATTENTION_H

#include "dialects/nn/NNGradient.h"
#include "dialects/nn/NNInference.h"

namespace pipewright::nn {

/// The sizes of attention, in whatever order its operands have them.
struct AttentionSizes {
  int64_t batch, heads, length, depth;
  /// Heads of k and v.
  int64_t keyHeads;

  /// The type of the statistics of the softmax.
  mlir::RankedTensorType stats(mlir::MLIRContext *context) const;
};

/// What comes first in q, k, v and o: `[B, H, T, D]` or `[B, T, H, D]`.
enum class AttentionOrder { HeadsFirst, RowsFirst };

/// The sizes of a `q` and a `k` of rank 4.
AttentionSizes sizesOf(mlir::Value q, mlir::Value k, AttentionOrder order);

/// What the forms of attention say besides their operands' types.
struct AttentionOptions {
  mlir::Value mask;
  llvm::APFloat dropoutRate, softcap;
  bool maskGradient;
};
template <class Adaptor>
AttentionOptions optionsOf(Adaptor adaptor) {
  return {adaptor.getMask(), adaptor.getDropoutRate(), adaptor.getSoftcap(),
          adaptor.getMaskGradient()};
}

/// Whether a mask of that shape may be added to scores `[B, H, T, T]`: it
/// broadcasts to them, or does once its samples are repeated.
bool isMaskFor(llvm::ArrayRef<int64_t> mask, llvm::ArrayRef<int64_t> scores);

/// Checks the options.
llvm::LogicalResult checkAttention(InferenceSite site,
                                   const AttentionSizes &sizes,
                                   const AttentionOptions &options);

/// Checks the same, that all `rows`, of which q is the first, have rank 4 and
/// one type, and that `keys`, k and v, fit to them.
llvm::LogicalResult checkAttention(InferenceSite site, mlir::ValueRange rows,
                                   mlir::ValueRange keys, AttentionOrder order,
                                   const AttentionOptions &options);

llvm::LogicalResult checkStats(InferenceSite site, mlir::Value stats,
                               const AttentionSizes &sizes);

int64_t attentionFlops(AttentionOpInterface op, const AttentionSizes &sizes,
                       bool isBackward);

/// Operands are wanted in bf16, but for the mask.
PrecisionRule attentionPrecision(AttentionOpInterface op,
                                 mlir::OpOperand &operand);

/// The call of a function of the runtime, without its buffers. The strides, in
/// elements, lead from one row of a head to the next in q (k and v are as
/// AttentionShape says), and in o; 0 stands for rows that follow each other, as
/// they do with heads first.
LibraryCall attentionCall(AttentionOpInterface op, CallName function,
                          const AttentionSizes &sizes, int64_t inputStride,
                          int64_t outputStride);

/// Builds the gradients of q, k and v that have tensors of their own, and that
/// of the mask where it has one.
template <class BackwardOp, class ForwardOp>
Gradients attentionGradients(ForwardOp op, GradientBuilder &g, mlir::Value dy) {
  auto backward =
      BackwardOp::create(g.builder(), dy, op.getQ(), op.getK(), op.getV(),
                         op.getO(), op.getStats(), op.getMask(), op.getScale(),
                         op.getCausal(), op.getDropoutRate(), op.getDropoutId(),
                         op.getSoftcap(), op.getMaskGradient());
  return Gradients(backward->result_begin(), backward->result_end());
}

/// Builds the same attention without dropout, for evaluation.
void buildWithoutDropout(AttentionOpInterface op, mlir::OpBuilder &builder,
                         llvm::SmallVectorImpl<mlir::Value> &results);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNATTENTION_H
