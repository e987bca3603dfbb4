//===- RankBuffers.h - The buffers that a rank's list names -----*- C++ -*-===//
//
// Values that the plan puts into the same bytes share a name.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_RANKBUFFERS_H
#define PIPEWRIGHT_CODEGEN_HOST_RANKBUFFERS_H

#include "codegen/host/ProgramLayout.h"
#include "codegen/host/RuntimeCalls.h"

#include <map>
#include <optional>

namespace pipewright::codegen {

/// Only tensors, stashes and handovers have bytes of their own in a rank's
/// list.
bool hasBytes(mlir::Value value);

/// Declares buffers in `writer` when they are first asked for. What cannot be
/// found is told at the op that asks.
class RankBuffers {
public:
  RankBuffers(FunctionWriter &writer, const ProgramLayout &layout,
              pipe::RankOp rank)
      : writer(writer), layout(layout), rank(rank) {}

  /// Declares all that the ops of the list need.
  mlir::LogicalResult writeTable();

  Local of(mlir::Operation *user, mlir::Value value);
  /// A stage's copy of a weight, or its gradient.
  Local placed(mlir::Operation *op, mlir::FlatSymbolRefAttr stage,
               mlir::FlatSymbolRefAttr weight, bool gradient);
  /// Null where the stage has no such weight.
  pipe::PlaceOp placeOf(mlir::FlatSymbolRefAttr stage,
                        mlir::FlatSymbolRefAttr weight) const;
  Local roundedCopy(pipe::PlaceOp place);
  /// All weights of a stage, in one of the places where tasks read them.
  Local weightsAt(const StageLayout &stage, pipe::BufferAttr place);
  Local rangeOf(pipe::CollectiveOp op);
  /// A part of a range that belongs to this replica, and where it keeps that.
  struct KeptPart {
    Local part, kept;
  };
  struct KeptGradients {
    Local all;
    std::vector<KeptPart> parts;
  };
  std::optional<KeptGradients> keptGradients(pipe::KeepGradientsOp op);
  /// A range of gradients, and the sums of it that are aside.
  struct FoldedSums {
    Local gradients;
    std::vector<Local> aside;
  };
  /// Those of the op's stage; empty, with a diagnostic, where there is no room.
  std::vector<FoldedSums> foldedSums(pipe::FoldGradientsOp op);
  /// What a replica has of a stage's weights, and its part of what tasks read.
  struct LoadedPart {
    Local home, part;
  };
  /// Of the weights, and of their bf16 copies, if tasks read those, by bucket;
  /// none of what is there already. Null, with a diagnostic, where there is no
  /// place for them.
  std::optional<std::vector<LoadedPart>> loadedParts(pipe::LoadWeightsOp op);

private:
  Local declare(llvm::StringRef base, pipe::BufferAttr planned);
  Local partOf(const std::string &name, pipe::BufferAttr range);
  mlir::LogicalResult nameBuffers(pipe::StepOpInterface op);
  mlir::LogicalResult namePlaces(pipe::StepOpInterface op);

  FunctionWriter &writer;
  const ProgramLayout &layout;
  pipe::RankOp rank;
  llvm::DenseMap<mlir::Value, Local> buffers;
  /// By name and place: the part of a range that is this replica's.
  std::map<std::pair<std::string, int64_t>, Local> parts;
  /// What was declared, by name and place, and how many of each name.
  std::map<std::tuple<std::string, int64_t, int64_t>, Local> declared;
  llvm::StringMap<int64_t> counts;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_RANKBUFFERS_H
