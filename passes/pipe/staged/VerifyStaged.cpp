//===- VerifyStaged.cpp - pipe-verify-staged ------------------------------===//
//
// The contract between the passes that make stages and those that unroll them:
// who feeds whom, and that every gradient has one sender and one receiver.
// What one op alone can check stands in the dialect's verifiers.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/pipe/staged/VerifyPorts.h"

#include "dialects/call/CallDialect.h"
#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEVERIFYSTAGED
#include "passes/pipe/Passes.h.inc"

namespace {

/// Checks all stages of a module and remembers whether anything was wrong.
class StagedVerifier {
public:
  explicit StagedVerifier(ModuleOp module) : module(module) {
    for (StageOp stage : module.getOps<StageOp>())
      stages.insert({stage.getSymNameAttr(), stage});
  }

  LogicalResult run();

private:
  InFlightDiagnostic error(Operation *op) {
    valid = false;
    return op->emitOpError();
  }
  void checkModule();
  void checkKernels(ModuleOp kernels);
  void checkCounts();
  void checkBody(Operation *body);
  template <typename BodyOp>
  void checkSources();
  void checkGradients(StageOp stage);
  void checkHalves(StageOp stage);
  void checkCopies();
  /// Checks the loss of the first copy of the model, or of the second.
  void checkLoss(bool isMirror);

  /// The body of the same kind (forward or evaluate) of another stage.
  template <typename BodyOp>
  BodyOp bodyOf(StageOp stage) {
    if constexpr (std::is_same_v<BodyOp, ForwardOp>)
      return stage.getForward();
    else
      return stage.getEvaluate();
  }

  ModuleOp module;
  llvm::MapVector<StringAttr, StageOp> stages;
  /// Maps stage and forward result to the stage and argument that consume it.
  DenseMap<std::pair<StringAttr, int64_t>, std::pair<StageOp, int64_t>>
      consumers;
  /// What is printed of the allocated level has copies between buffers.
  bool hasBuffers = false;
  bool valid = true;
};

void StagedVerifier::checkModule() {
  if (stages.empty())
    error(module) << "holds no 'pipe.stage'";
  for (auto function : module.getOps<func::FuncOp>())
    error(function) << "is left beside the stages; run "
                       "'pipe-partition-stages'";
  hasBuffers = !module.getOps<ArenaOp>().empty();
  for (Operation &op : *module.getBody()) {
    auto kernels = dyn_cast<ModuleOp>(op);
    if (kernels && kernels.getSymName() == "kernels")
      checkKernels(kernels);
    else if (!isa<nn::WeightOp, func::FuncOp>(op) &&
             !isa_and_nonnull<PipeDialect>(op.getDialect()))
      error(&op) << "is not allowed beside stages; expects weights, stages, "
                    "what runs them, and one module '@kernels'";
  }
}

/// Where tasks are written out, there are no more ranks and micro-batches than
/// have some: what follows counts to these numbers.
void StagedVerifier::checkCounts() {
  int64_t programs = 0, tasks = 0;
  for (RankOp rank : module.getOps<RankOp>())
    programs += rank.getMode() == StepMode::train;
  module.walk([&](TaskOp) { ++tasks; });
  auto check = [&](StringRef name, std::optional<int64_t> number, int64_t most,
                   StringRef what) {
    if (number && most > 0 && *number > most)
      error(module) << "expects '" << name << "' to be at most " << most
                    << ", the number of " << what << ", but got " << *number;
  };
  ProgramFields program = programOf(module);
  check("ranks", program.ranks, programs, "ranks with a program");
  check("micro_batches", program.microBatches, tasks, "tasks");
}

/// What is compiled as it is: its values go in and out as pointers to tensors
/// whose sizes are known.
void StagedVerifier::checkKernels(ModuleOp kernels) {
  auto isTensor = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape();
  };
  for (Operation &op : *kernels.getBody()) {
    auto kernel = dyn_cast<func::FuncOp>(op);
    if (!kernel || !kernel.getBody().hasOneBlock()) {
      error(&op) << "is no kernel; expects a function of one block";
      continue;
    }
    if (!llvm::all_of(kernel.getArgumentTypes(), isTensor) ||
        !llvm::all_of(kernel.getResultTypes(), isTensor))
      error(kernel) << "expects tensors of static shapes, but got "
                    << kernel.getFunctionType();
    for (Operation &inner : kernel.getBody().front())
      if (!isa<nn::KernelOpInterface, nn::ViewOpInterface, nn::UpdateOp,
               func::ReturnOp>(inner))
        error(&inner) << "is not allowed in a kernel, which holds nn ops that "
                         "are compiled together";
  }
}

void StagedVerifier::checkBody(Operation *body) {
  Block &block = body->getRegion(0).front();
  for (Operation &op : block) {
    if (!isa<nn::NNDialect, call::CallDialect>(op.getDialect()) &&
        !isa<ReturnOp, ReportOp>(op) && !(hasBuffers && isa<CopyOp>(op)))
      error(&op) << "is not allowed in '" << body->getName()
                 << "', which holds nn and call ops, 'pipe.report' and "
                    "'pipe.return'";
    if (isa<nn::AccumulateGradientOp>(op) &&
        !isa<BackwardOp, WeightGradientOp>(body))
      error(&op) << "is only allowed in 'pipe.backward' and "
                    "'pipe.weight_gradient'";
    if (isa<nn::AssignStateOp>(op) && !isa<ForwardOp>(body))
      error(&op) << "is only allowed in 'pipe.forward'";
    for (Value operand : op.getOperands())
      if (operand.getParentBlock() != &block)
        error(&op) << "uses a value that is defined outside of its '"
                   << body->getName() << "'";
  }
}

template <typename BodyOp>
void StagedVerifier::checkSources() {
  DenseMap<std::pair<StringAttr, int64_t>, Operation *> users;
  SmallVector<StringAttr> earlier;
  for (auto [name, stage] : stages) {
    BodyOp body = bodyOf<BodyOp>(stage);
    if (!body)
      continue;
    for (auto [number, source] : llvm::enumerate(body.getSources())) {
      auto output = dyn_cast<OutputAttr>(source);
      if (!output)
        continue;
      StringAttr producer = output.getStage().getAttr();
      if (!llvm::is_contained(earlier, producer)) {
        error(body) << "expects source " << number
                    << " to be an earlier stage's result, but got " << source;
        continue;
      }
      if (bool(stages[producer].getMirrorsAttr()) !=
          bool(stage.getMirrorsAttr())) {
        error(body) << "expects source " << number
                    << " to be of the same copy of the model, but got "
                    << source;
        continue;
      }
      BodyOp producing = bodyOf<BodyOp>(stages[producer]);
      auto values = producing ? producing.getReturn().getValues()
                              : OperandRange(nullptr, 0);
      if (output.getIndex() < 0 ||
          output.getIndex() >= static_cast<int64_t>(values.size())) {
        error(body) << "expects source " << number << " to exist, but "
                    << output.getStage() << " has " << values.size()
                    << " results";
        continue;
      }
      Type type = body.getBody()->getArgument(number).getType();
      Type sent = values[output.getIndex()].getType();
      if (type != sent)
        error(body) << "expects argument " << number << " to be " << sent
                    << " as " << source << " is, but got " << type;
      auto [it, isFirst] =
          users.insert({{producer, output.getIndex()}, body.getOperation()});
      if (!isFirst) {
        InFlightDiagnostic diagnostic = error(body);
        diagnostic << "uses " << source << ", which has a consumer already";
        diagnostic.attachNote(it->second->getLoc()) << "this is the consumer";
        continue;
      }
      if constexpr (std::is_same_v<BodyOp, ForwardOp>)
        consumers[{producer, output.getIndex()}] = {stage, number};
    }
    earlier.push_back(name);
  }
  for (auto [name, stage] : stages)
    if (BodyOp body = bodyOf<BodyOp>(stage))
      for (size_t i = 0; i < body.getReturn().getValues().size(); ++i)
        if (!users.contains({name, static_cast<int64_t>(i)}))
          error(body) << "returns result " << i << ", which no stage consumes";
}

void StagedVerifier::checkGradients(StageOp stage) {
  BackwardOp backward = stage.getBackward();
  ForwardOp forward = stage.getForward();
  if (!backward) {
    if (!forward.getReturn().getStash().empty())
      error(forward) << "stashes " << forward.getReturn().getStash().size()
                     << " values, but there is no 'pipe.backward'";
    return;
  }
  for (int64_t index : backward.getInputGradients()) {
    auto output = dyn_cast<OutputAttr>(forward.getSources()[index]);
    if (!output) {
      error(backward) << "returns a gradient of " << forward.getSources()[index]
                      << ", which is a model input";
      continue;
    }
    StageOp producer = stages.lookup(output.getStage().getAttr());
    BackwardOp sink = producer ? producer.getBackward() : BackwardOp();
    if (!sink || !llvm::is_contained(sink.getGradientsOf(), output.getIndex()))
      error(backward) << "returns a gradient of " << Attribute(output)
                      << ", but that stage's backward does not take it";
  }
  for (int64_t index : backward.getGradientsOf()) {
    auto it = consumers.find({stage.getSymNameAttr(), index});
    if (it == consumers.end())
      continue; // Reported with the sources.
    auto [consumer, argument] = it->second;
    BackwardOp origin = consumer.getBackward();
    if (!origin || !llvm::is_contained(origin.getInputGradients(), argument))
      error(backward) << "takes the gradient of result " << index
                      << ", but stage @" << consumer.getSymName()
                      << " does not return it";
  }
}

/// What other stages see of a split backward is what they see of the whole.
void StagedVerifier::checkHalves(StageOp stage) {
  BackwardOp whole = stage.getBackward();
  InputGradientOp input = stage.getInputGradient();
  WeightGradientOp weight = stage.getWeightGradient();
  if (!input || !weight)
    return;
  if (input.getInputGradients() != whole.getInputGradients())
    error(input) << "expects to return the gradients of arguments ["
                 << whole.getInputGradients() << "] as the backward does, but "
                 << "returns [" << input.getInputGradients() << "]";
  for (int64_t index : whole.getGradientsOf())
    if (!llvm::is_contained(input.getGradientsOf(), index) &&
        !llvm::is_contained(weight.getGradientsOf(), index))
      error(input) << "and 'pipe.weight_gradient' leave the gradient of result "
                   << index << " alone, which the backward takes";
  auto weightsOf = [](Operation *body) {
    SmallVector<Attribute> weights;
    body->walk([&](nn::AccumulateGradientOp sum) {
      weights.push_back(sum.getWeightAttr());
    });
    return weights;
  };
  if (weightsOf(whole) != weightsOf(weight))
    error(weight) << "expects to add to the gradients of the same weights in "
                     "the same order as the backward";
}

/// What stands where is checked by all passes that read the stages.
void StagedVerifier::checkCopies() {
  bool hasMirrors = false;
  for (auto [name, stage] : stages) {
    FlatSymbolRefAttr mirrored = stage.getMirrorsAttr();
    if (!mirrored)
      continue;
    hasMirrors = true;
    StageOp original = stages.lookup(mirrored.getAttr());
    if (!original || original.getMirrorsAttr())
      error(stage) << "expects to mirror a stage of the first copy of the "
                      "model, but got "
                   << mirrored;
    if (stage.getEvaluate())
      error(stage.getEvaluate())
          << "is in the second copy of the model, which is never evaluated";
  }
  checkLoss(/*isMirror=*/false);
  if (hasMirrors)
    checkLoss(/*isMirror=*/true);
}

void StagedVerifier::checkLoss(bool isMirror) {
  ReportOp loss;
  for (auto [name, stage] : stages) {
    if (bool(stage.getMirrorsAttr()) != isMirror)
      continue;
    for (ReportOp report : stage.getForward().getBody()->getOps<ReportOp>()) {
      if (report.getName() != "loss")
        continue;
      auto type = cast<RankedTensorType>(report.getValue().getType());
      if (type.getRank() != 0 || !type.getElementType().isF32())
        error(report) << "expects the loss to be 'tensor<f32>', but got "
                      << type;
      if (loss) {
        InFlightDiagnostic diagnostic = error(report);
        diagnostic << "reports a second loss";
        diagnostic.attachNote(loss.getLoc()) << "this is the first";
      }
      loss = report;
    }
  }
  if (!loss && !stages.empty())
    error(module) << "expects one stage "
                  << (isMirror ? "of the second copy of the model " : "")
                  << "to report the loss, but none does";
}

LogicalResult StagedVerifier::run() {
  checkModule();
  checkCounts();
  valid &= succeeded(verifyPorts(module));
  for (auto [name, stage] : stages)
    for (Operation &body : *stage.getBody())
      checkBody(&body);
  checkSources<ForwardOp>();
  checkSources<EvaluateOp>();
  for (auto [name, stage] : stages) {
    checkGradients(stage);
    checkHalves(stage);
  }
  checkCopies();
  return success(valid);
}

struct VerifyStaged : impl::PipeVerifyStagedBase<VerifyStaged> {
  void runOnOperation() override {
    if (failed(StagedVerifier(getOperation()).run()))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace pipewright::pipe
