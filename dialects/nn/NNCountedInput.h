//===- NNCountedInput.h - Inputs that the runtime counts --------*- C++ -*-===//
//
// What nn-divide-by-batch says about the arguments that it adds, as an
// attribute of the module: nobody gives data for them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNCOUNTEDINPUT_H
#define PIPEWRIGHT_DIALECTS_NN_NNCOUNTEDINPUT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>
#include <string>

namespace pipewright::nn {

/// A scalar that a loss divides by: how many labels of a whole batch are not
/// `ignored`, for each of its micro-batches.
struct CountedInput {
  /// The input that has the labels.
  std::string labels;
  int64_t ignored = 0;
  /// What reaches the loss of each row of the labels' dimension 0: from one
  /// element to before another, pair by pair.
  llvm::SmallVector<int64_t> ranges;

  bool operator==(const CountedInput &) const = default;
};

/// The attribute of the module: from each such input's name to a dictionary of
/// `labels`, `ignored` and `ranges`.
inline constexpr llvm::StringLiteral kCountedInputs = "nn.counted_inputs";

/// Notes what the input `name` is.
void setCountedInput(mlir::ModuleOp module, llvm::StringRef name,
                     const CountedInput &counted);

/// What a value of that dictionary says; none if it is not of its form.
std::optional<CountedInput> countedInput(mlir::Attribute input);

/// What the input `name` is; none if it is data.
std::optional<CountedInput> countedInput(mlir::ModuleOp module,
                                         llvm::StringRef name);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNCOUNTEDINPUT_H
