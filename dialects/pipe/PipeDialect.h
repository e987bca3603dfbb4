//===- PipeDialect.h - The pipe dialect: ops, types, attributes -*- C++ -*-===//
//
// Everything that names the pipe dialect. The rationale is in README.md.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_PIPEDIALECT_H
#define PIPEWRIGHT_DIALECTS_PIPE_PIPEDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/nn/NNDialect.h"
#include "dialects/pipe/StepOp.h"
#include "runtime/calls/CollectiveKinds.h"
#include "runtime/core/Mesh.h"

#include "dialects/pipe/PipeDialect.h.inc"
#include "dialects/pipe/PipeEnums.h.inc"

namespace mlir {
/// By its name.
template <>
struct FieldParser<pipewright::runtime::ProcessMap,
                   pipewright::runtime::ProcessMap> {
  static FailureOr<pipewright::runtime::ProcessMap> parse(AsmParser &parser);
};
} // namespace mlir
namespace pipewright::runtime {
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, ProcessMap map);
} // namespace pipewright::runtime

#define GET_TYPEDEF_CLASSES
#include "dialects/pipe/PipeTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/pipe/PipeAttributes.h.inc"

namespace pipewright::pipe {

class ForwardOp;
class BackwardOp;
class EvaluateOp;
class InputGradientOp;
class WeightGradientOp;
class GradientBodyInterface;
class ReturnOp;
class MoveOp;
class RankOp;
class WaitMoveOp;

/// A stream within an op's own syntax, without the angle brackets of an
/// attribute.
mlir::ParseResult parseStream(mlir::AsmParser &parser, StreamAttr &stream);
void printStream(mlir::AsmPrinter &printer, mlir::Operation *op,
                 StreamAttr stream);

/// A group within an op's own syntax, without the angle brackets of an
/// attribute: `[0, 3]`, `replicas`.
mlir::ParseResult parseGroup(mlir::AsmParser &parser, GroupAttr &group);
void printGroup(mlir::AsmPrinter &printer, mlir::Operation *op,
                GroupAttr group);

/// A range in which a task keeps values for others on its micro-batch.
struct StashRange {
  /// A stash or a handover.
  mlir::Type type;
  /// Their numbers in the stash of the `pipe.return` that fills it.
  llvm::SmallVector<int64_t> fields;
};

/// The parts of a `#pipe.program`, which says what they mean.
struct ProgramFields {
  std::optional<int64_t> ranks, microBatches, microBatchSize;
  int64_t replicas = 1, updates = 1;
  runtime::ProcessMap processMap = runtime::ProcessMap::Replicas;
  mlir::StringAttr schedule;
  bool sumsInScheduleOrder = false;
  mlir::Attribute machine;
  nn::OptimizerAttr optimizer;
  int64_t zero = 0;
  std::optional<int64_t> bucketSize;
  mlir::FloatAttr clipNorm;
  mlir::ArrayAttr taskTimes;

  ProgramFields() = default;
  explicit ProgramFields(ProgramAttr program);
  ProgramAttr get(mlir::MLIRContext *context) const;
  /// The processes that it is for.
  runtime::Mesh mesh() const {
    return {.pipe = ranks.value_or(1), .data = replicas, .map = processMap};
  }
};

/// The module's `pipe.program`; nothing is decided if it has none.
ProgramFields programOf(mlir::ModuleOp module);

/// Sets the module's `pipe.program` to what `change` makes of it.
void changeProgram(mlir::ModuleOp module,
                   llvm::function_ref<void(ProgramFields &)> change);

/// Of gradients, or of the state of a stage after its update.
ReplicaState stateOfReplicas(mlir::Type type);

/// What a task adds its gradients to: with replicas an addend.
inline ReplicaState stateOfSums(const ProgramFields &program) {
  return program.replicas > 1 ? ReplicaState::partial : ReplicaState::whole;
}

/// Bytes of a ranked tensor of static shape (i1 takes one byte an element).
int64_t byteSize(mlir::RankedTensorType type);

/// Alignment of every planned buffer, in bytes.
constexpr int64_t kBufferAlignment = 64;

/// `bytes` rounded up to `kBufferAlignment`.
inline int64_t alignedSize(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

/// Alignment of the parts into which replicas cut a flat range of f32 weights,
/// in bytes: that of a range of their bf16 copies, too.
constexpr int64_t kShardAlignment = 2 * kBufferAlignment;

/// The most ranks of all replicas of a program: far more than anybody has, and
/// few enough that each can know of all.
constexpr int64_t kMaxProcesses = 1 << 16;

/// What a range of that type holds, a stash or a handover.
Content stashContent(mlir::Type range, int64_t microBatch);

} // namespace pipewright::pipe

#include "dialects/pipe/PipeInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/pipe/PipeOps.h.inc"

#endif // PIPEWRIGHT_DIALECTS_PIPE_PIPEDIALECT_H
