//===- StageFunctions.h - One function per stage and kind -------*- C++ -*-===//
//
// Turns the bodies of stages into functions of generated code: one line for
// each library call and each kernel. Collects on the way what each rank has to
// prepare before its first step.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_STAGEFUNCTIONS_H
#define PIPEWRIGHT_CODEGEN_HOST_STAGEFUNCTIONS_H

#include "codegen/host/ProgramLayout.h"
#include "codegen/host/RuntimeCalls.h"
#include "codegen/host/ValueNames.h"
#include "passes/step/BodyBuffers.h"

#include "llvm/ADT/STLExtras.h"

namespace pipewright::codegen {

/// What one rank prepares before its first step, each once.
class Preparations {
public:
  void kernel(llvm::StringRef name);
  /// What the call begins with: its shape, or its number.
  CallArgument add(const nn::LibraryCall &call);

  /// Writes the body of the rank's setUp.
  void write(FunctionWriter &writer, const HostStyle &style) const;

private:
  static constexpr int64_t kNoNumber = -1;
  struct Call {
    nn::CallWork work;
    int64_t number;
    BracedList shape;
    nn::CallPreparation preparation;

    bool operator==(const Call &) const = default;
  };

  bool isTaken(int64_t number, const nn::LibraryCall &call) const;
  int64_t numberOf(const nn::LibraryCall &call, const BracedList &shape);

  std::vector<std::string> kernels;
  /// In the order of first use.
  std::vector<Call> calls;
  /// The shape and the weight of each numbered call.
  std::vector<std::pair<BracedList, std::string>> numbered;
};

/// What one function of a stage does.
struct StageFunction {
  pipe::TaskKind kind;
  /// The part of a task that is run in several.
  std::optional<int64_t> part = std::nullopt;
};

/// Those that a stage has, in the order of the files: one for each kind of task
/// that its bodies are for; of a backward that ranks run in halves or in parts
/// only those that some rank calls.
llvm::SmallVector<StageFunction> functionsOf(const StageLayout &stage);

/// `stage0_forward`, `stage0_backward_part1`.
std::string stageFunctionName(int64_t stage, StageFunction function);
/// The Buffer parameters of a stage's function: what a task takes, what it
/// makes, its stashes, the weights that it reads, where these are not always in
/// the same bytes.
llvm::SmallVector<std::string> stageParameters(const ProgramLayout &layout,
                                               const StageLayout &stage,
                                               pipe::TaskKind kind);
/// Whether it is told where the weights are that it reads, last of all.
bool takesWeights(const StageLayout &stage, pipe::TaskKind kind);
/// Writes the functions of one stage.
mlir::LogicalResult writeStageFunctions(llvm::raw_ostream &os,
                                        const ProgramLayout &layout,
                                        const StageLayout &stage,
                                        Preparations &preparations);

/// Where values of one stage body are, while its function is written.
class BodyWriter {
public:
  BodyWriter(FunctionWriter &writer, const ProgramLayout &layout,
             const StageLayout &stage, Preparations &preparations,
             mlir::Operation *body);

  /// The value is in this buffer of the function.
  void bind(mlir::Value value, Local buffer) { buffers[value] = buffer; }
  /// The value is where the plan says; declared at its first use.
  void bindTo(mlir::Value value, pipe::BufferAttr planned) {
    argumentPlaces[value] = planned;
  }
  /// Parameters in the order of the task's results, for the space `output`.
  llvm::SmallVector<Local> outputs;
  /// Parameters by number of the task's operand, for the space `input`.
  llvm::SmallVector<Local> inputs;
  /// By their numbers in buffers; null where there is none.
  Local stashes[pipe::kStashes];
  /// The weights to read; null where they are always in the same bytes.
  Local weights;

  /// The buffer of a value, declared at its first use. Null after an error.
  Local bufferOf(mlir::Value value);
  /// Writes the call of one op.
  mlir::LogicalResult write(mlir::Operation *op);

private:
  mlir::LogicalResult writeLibraryCall(nn::LibraryOpInterface op);
  mlir::LogicalResult writeLaunch(nn::LaunchOp op);
  mlir::LogicalResult writeLabelChecks(nn::LaunchOp op);
  mlir::LogicalResult writeConstant(nn::ConstantOp op);
  mlir::LogicalResult writeReport(pipe::ReportOp op);
  mlir::LogicalResult writeReturn(pipe::ReturnOp op);
  mlir::LogicalResult writeCopy(pipe::CopyOp op);
  mlir::LogicalResult writeAssign(nn::AssignStateOp op);
  mlir::LogicalResult writeAccumulate(nn::AccumulateGradientOp op);
  void writeLayerComment(mlir::Operation *op);
  Local bufferAt(mlir::Value value, pipe::BufferAttr planned);
  pipe::PlaceOp placeOf(mlir::Operation *op, mlir::FlatSymbolRefAttr weight);
  Local gradientOf(mlir::Operation *op, mlir::FlatSymbolRefAttr weight);
  /// Where a result goes; the gradient, if its only use adds it to one.
  Local destinationOf(mlir::Value result);

  FunctionWriter &writer;
  const ProgramLayout &layout;
  const StageLayout &stage;
  Preparations &preparations;
  llvm::DenseMap<mlir::Value, Local> buffers;
  /// The places of block arguments.
  llvm::DenseMap<mlir::Value, pipe::BufferAttr> argumentPlaces;
  llvm::DenseMap<mlir::Attribute, Local> gradients;
  ValueNames names;
  std::string layer;
  /// Whether it has been said why states are copied.
  bool explainsStates = false;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_STAGEFUNCTIONS_H
