//===- Compilation.h - A model on its way through the levels ----*- C++ -*-===//
//
// Which passes a model goes through, from where it begins, an ONNX file or text
// of some level, to where a command wants it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_COMPILATION_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_COMPILATION_H

#include "codegen/plan/Plan.h"
#include "passes/planning/LayerMoves.h"
#include "tools/pipewright/Draft.h"
#include "tools/pipewright/Options.h"
#include "tools/pipewright/PlanChoice.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

#include <limits>

namespace pipewright::tool {

/// What `--remat auto` and `--search` try, in this order: what computes less
/// again comes first.
inline constexpr llvm::StringLiteral kRematModesByTime[] = {
    "none",    "pointwise", "keep:75", "keep:50",
    "keep:25", "every:1",   "every:2", "full"};

/// Of programs with more pairs of a stage and a micro-batch, schedules are
/// compared under one cut alone, as their plans take long.
inline constexpr int64_t kFewPairs = 1 << 11;

/// So much longer a step may be with one cut, or with one mode of recomputation
/// for all ranks, and shorter with others.
inline constexpr double kLittleLonger = 1.25;

/// See RematChoice.cpp.
class RematTrial;

/// In the error of a plan that does not fit.
inline constexpr llvm::StringLiteral kNeedLess =
    "a smaller --micro-batch-size or, with replicas, --zero 1 need less";

class Compilation {
public:
  explicit Compilation(const CompileOptions &given);

  /// Reads the model, as far as no schedule matters: an ONNX model to the
  /// import level, text to its own level, verified.
  mlir::LogicalResult open();
  /// The same without errors, of which `why` is the first; what the frontend
  /// has to say of the model is printed if it `tells`.
  mlir::LogicalResult openQuietly(bool tells, std::string &why);
  /// What has been opened, at a level that is not before its own.
  mlir::LogicalResult runTo(Level level);
  /// The stages of what has been opened, at the import level, by its nodes.
  mlir::FailureOr<frontend::StageAnnotations> annotations();
  /// The plan of what has been opened, under other options of schedules.
  mlir::FailureOr<codegen::Plan> planUnder(const CompileOptions &others);
  /// The same, without a word, to be compared with others: not verified, and
  /// as soon as it is known that nothing fits, or, where a schedule is to be
  /// chosen, that none has a step below `stepToBeat`, it fails. `why` is the
  /// first error.
  mlir::FailureOr<Draft>
  planQuietly(const CompileOptions &others, Refusal &refusal,
              double stepToBeat = std::numeric_limits<double>::infinity());
  /// The schedule of the last plan that was made, as --schedule takes it.
  llvm::StringRef schedule() const {
    return options.pipelines.scheduled.policy.getValue();
  }
  /// Whether `--balance step` has cuts to choose from, other than that of
  /// `flops`, whose plans may have a shorter step than so many seconds.
  bool mayCutBetter(const CompileOptions &others, double step);
  /// Whether any stage recomputes in a task of its own, as far as that is known
  /// before more is decided.
  bool recomputesEarly(const CompileOptions &others);
  /// What the fastest plan under these options takes at least, as PlanChoice.h
  /// says.
  StepEstimate estimateStep(const CompileOptions &others, double enough);
  /// The plan of the allocated level.
  mlir::FailureOr<codegen::Plan> makePlan();
  /// Runs passes on a module, with the instrumentation that was asked for.
  /// Times stand under `what`, which no other call has.
  mlir::LogicalResult
  run(const llvm::Twine &what, mlir::ModuleOp module,
      llvm::function_ref<void(mlir::OpPassManager &)> build);
  /// Where --mlir-timing counts what is done besides passes.
  mlir::TimingScope &times() { return total; }

  mlir::ModuleOp module() { return *model.module; }
  const nn::WeightStore &weights() const { return model.weights; }
  std::string modelName() const;

private:
  mlir::LogicalResult read(bool tells);
  void takeOver(const CompileOptions &others);
  void setAttributes();
  mlir::Attribute machineAttribute();
  mlir::LogicalResult choose();
  void chooseProcessMap();
  mlir::LogicalResult chooseRemat();
  mlir::FailureOr<bool> decideRemat();
  bool isBeaten(llvm::ArrayRef<RematTrial> trials);
  bool compareWithLayers();
  void compareWithKept();
  /// Beside the options, what decides where the model is cut.
  struct Cut {
    std::string balance;
    /// See limitsOfStages.
    std::vector<int64_t> stageMemory = {};
    /// What ops take; empty: they count as operations.
    std::vector<double> seconds = {};
    /// Whether a plan with it fits, as far as it was compared with others.
    bool fits = false;
  };
  Cut chooseCut();
  bool mayChooseManyCuts() const;
  Cut chooseCutOfModes();
  void tellCut(const Cut &cut, llvm::StringRef balance);
  class ScheduleComparison;
  void compareSchedules(const CompileOptions &given, Cut &cut);
  mlir::LogicalResult chooseCutAndRemat(bool all = true);
  std::vector<double> secondsOfOps();
  std::vector<Cut> cutsWithin(llvm::ArrayRef<double> seconds) const;
  std::optional<pipe::CutModel> modelUnder(const Cut &cut);
  std::vector<Cut>
  cutsWithoutTimes(llvm::StringRef balance,
                   const std::vector<int64_t> &stageMemory) const;
  std::vector<int32_t> stagesUnder(const Cut &cut);
  std::vector<Cut> byBound(llvm::ArrayRef<Cut> cuts);
  CutEstimate estimate(ModelStages &stages,
                       llvm::ArrayRef<int64_t> layers) const;
  std::optional<Cut> improved(const Cut &cut);
  std::vector<int64_t> limitsOfStages(double share) const;
  void placeStages();
  void compareWithTraced(const codegen::Plan &plan);
  std::shared_ptr<const StagedModel> madeStages();
  double leastStep();
  void predict(Draft &draft);
  std::string keyOfPlan();
  Draft tryPlan();
  mlir::LogicalResult chooseSchedule();
  mlir::LogicalResult checkMemory();
  mlir::LogicalResult checkHostMemory();
  mlir::LogicalResult finish(Level level);
  mlir::LogicalResult runAfter(Level level);
  bool hasPassesAfter(Level level) const;
  int64_t samplesPerMicroBatch();
  /// Calls `run` on a copy of the module, and leaves the module as it is.
  template <class Run>
  auto onCopy(Run run) {
    mlir::OwningOpRef<mlir::ModuleOp> kept = module().clone();
    std::swap(model.module, kept);
    auto result = run();
    std::swap(model.module, kept);
    return result;
  }

  /// Calls `run` with other options, and leaves the module as it is.
  template <class Run>
  auto underOptions(const CompileOptions &others, Run run) {
    takeOver(others);
    mlir::DictionaryAttr attributes = module()->getAttrDictionary();
    setAttributes();
    auto result = run();
    module()->setAttrs(attributes);
    return result;
  }

  /// As they were given, with what they left open decided behind the import
  /// level.
  CompileOptions options;
  /// The schedule as it was given.
  std::string asked;
  /// No plan with a longer step is of use.
  double stepToBeat = std::numeric_limits<double>::infinity();
  /// Of what was last beyond a limit: the bytes that the fullest rank needs.
  std::optional<int64_t> missing;
  std::shared_ptr<mlir::MLIRContext> context;
  mlir::ScopedDiagnosticHandler handler;
  mlir::DefaultTimingManager timing;
  mlir::TimingScope total;
  frontend::ImportedModel model;
  /// The level of what was opened.
  Level begin = Level::Import;
  /// Of the last number of ranks and replicas that was planned.
  StagedModels staged;
  /// What the plan comes to, where that is known since schedule or cut were
  /// chosen: nothing was decided since then, and no passes of the user are left
  /// out.
  std::optional<Draft> drafted;
};

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_COMPILATION_H
