//===- OpRegistry.h - The ONNX ops that can be imported --------*- C++ -*-===//
//
// One row per ONNX op. The rows stand beside the functions that they name, in
// ops/, one file per family.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_OPREGISTRY_H
#define PIPEWRIGHT_FRONTENDS_ONNX_OPREGISTRY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"

#include <cstdint>

namespace pipewright::frontend {

class NodeContext;

/// How many inputs an op has, those that are left out at the end not counted.
/// The first `least` must be there; all of them where any number may be.
struct InputCount {
  unsigned least;
  unsigned most;
};
inline constexpr unsigned kAnyNumber = ~0u;
constexpr InputCount exactly(unsigned count) { return {count, count}; }
constexpr InputCount between(unsigned least, unsigned most) {
  return {least, most};
}
constexpr InputCount atLeast(unsigned least) { return {least, kAnyNumber}; }

struct OpRow {
  using Function = llvm::LogicalResult (*)(NodeContext &);

  llvm::StringRef name;
  /// The first opset that has the op in a form that the functions know.
  int64_t since;
  /// Checked before either function is called.
  InputCount inputs;
  /// Builds nn ops; null where the op is computed of constants alone.
  Function import;
  /// Computes the results when every input is constant; may be null.
  Function fold = nullptr;
  /// So many inputs, the first ones, are sequences of tensors; kAnyNumber where
  /// each may be one or a tensor.
  unsigned sequenceInputs = 0;
};

llvm::ArrayRef<OpRow> elementwiseOps();
llvm::ArrayRef<OpRow> bitOps();
llvm::ArrayRef<OpRow> activationOps();
llvm::ArrayRef<OpRow> trigonometryOps();
llvm::ArrayRef<OpRow> shapeOps();
llvm::ArrayRef<OpRow> indexingOps();
llvm::ArrayRef<OpRow> paddingOps();
llvm::ArrayRef<OpRow> signalOps();
llvm::ArrayRef<OpRow> gatheringOps();
llvm::ArrayRef<OpRow> scatteringOps();
llvm::ArrayRef<OpRow> reorderingOps();
llvm::ArrayRef<OpRow> selectionOps();
llvm::ArrayRef<OpRow> sequenceOps();
llvm::ArrayRef<OpRow> optionalOps();
llvm::ArrayRef<OpRow> controlFlowOps();
llvm::ArrayRef<OpRow> generatorOps();
llvm::ArrayRef<OpRow> linearOps();
llvm::ArrayRef<OpRow> convTransposeOps();
llvm::ArrayRef<OpRow> volumeOps();
llvm::ArrayRef<OpRow> einsumOps();
llvm::ArrayRef<OpRow> recurrentOps();
llvm::ArrayRef<OpRow> attentionOps();
llvm::ArrayRef<OpRow> rotaryOps();
llvm::ArrayRef<OpRow> stateSpaceOps();
llvm::ArrayRef<OpRow> gridOps();
llvm::ArrayRef<OpRow> normalizationOps();
llvm::ArrayRef<OpRow> reductionOps();
llvm::ArrayRef<OpRow> lpNormOps();
llvm::ArrayRef<OpRow> poolingOps();
llvm::ArrayRef<OpRow> resizeOps();
llvm::ArrayRef<OpRow> lossOps();
llvm::ArrayRef<OpRow> randomOps();

/// Imports a node that reads random numbers, whatever its op is.
llvm::LogicalResult importOfRandom(NodeContext &n);

/// The rows of all ops, by family.
llvm::ArrayRef<const OpRow *> allOps();

/// Whether the operands of an op broadcast to each other.
bool broadcasts(const OpRow &row);

/// The row of an op; null if it is not supported.
const OpRow *findOp(llvm::StringRef name);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_OPREGISTRY_H
