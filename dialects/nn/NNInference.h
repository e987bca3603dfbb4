//===- NNInference.h - Result types from operands ---------------*- C++ -*-===//
//
// What the ops of several families share when they infer result types. Every
// function reports what is wrong at a location, so that verifiers and
// importers give the same message.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNINFERENCE_H
#define PIPEWRIGHT_DIALECTS_NN_NNINFERENCE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/ValueRange.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/LogicalResult.h"
#include <optional>

namespace pipewright::nn {

/// Where an inference error goes: said as the verifier says it.
struct InferenceSite {
  std::optional<mlir::Location> location;
  llvm::StringRef opName;

  template <typename... Args>
  llvm::LogicalResult error(Args &&...args) const {
    return mlir::emitOptionalError(location, "'", opName, "' op ",
                                   std::forward<Args>(args)...);
  }
};

/// `value`'s type; nn operands are always ranked tensors.
inline mlir::RankedTensorType tensorOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

inline mlir::RankedTensorType f32TensorOf(mlir::MLIRContext *context,
                                          llvm::ArrayRef<int64_t> shape) {
  return mlir::RankedTensorType::get(shape, mlir::Float32Type::get(context));
}

/// The dimension of the channel among `rank` dimensions.
inline int64_t channelDim(int64_t rank, bool isLast) {
  return isLast ? rank - 1 : 1;
}

/// The dimensions of a tensor of rank 4 whose channel is the second one, with
/// the channel last; and the other way round.
inline constexpr int64_t kToChannelsLast[] = {0, 2, 3, 1};
inline constexpr int64_t kToChannelsFirst[] = {0, 3, 1, 2};

/// An image or a filter as others see it: the channel is moved from the end to
/// the second place, and back. Other ranks than 4 stay.
mlir::RankedTensorType channelsFirst(mlir::RankedTensorType type, bool isLast);
mlir::RankedTensorType channelsLast(mlir::RankedTensorType type, bool isLast);

/// A list as a message shows it, `[1, 2]`.
std::string formatList(llvm::ArrayRef<int64_t> list);

/// Broadcast operands of one element type: the type of an elementwise result.
llvm::LogicalResult inferElementwise(InferenceSite site, mlir::Value lhs,
                                     mlir::Value rhs,
                                     llvm::SmallVectorImpl<mlir::Type> &types);

llvm::LogicalResult inferReduction(InferenceSite site, mlir::Value x,
                                   llvm::ArrayRef<int64_t> axes, bool keepDims,
                                   llvm::SmallVectorImpl<mlir::Type> &types);

/// What GELU by tanh, and its gradient, count for each element.
constexpr int64_t kGeluTanhFlops = 9, kGeluTanhBackwardFlops = 16;

/// Height and width after a window has slid over an image. Kernel, strides and
/// dilations have 2 entries of at least 1, pads 4 of at least 0, else it says
/// so.
llvm::FailureOr<llvm::SmallVector<int64_t>>
inferWindows(InferenceSite site, llvm::ArrayRef<int64_t> image,
             llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> strides,
             llvm::ArrayRef<int64_t> pads, llvm::ArrayRef<int64_t> dilations);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNINFERENCE_H
