//===- StreamMutationTests.cpp - Every event is needed --------------------===//
//
// Two models under every schedule that they can have: the verifier accepts what
// pipe-assign-streams assigns, and refuses it as soon as any part is taken away
// or moved. So the verifier sees the races there are, and the assignment has
// no event too many.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"
#include "dialects/pipe/PipeDialect.h"
#include "passes/pipe/Passes.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/schedules/Policy.h"

#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// A file of test/Inputs/pipe.
struct Model {
  const char *file;
  int64_t stages;
};

class StreamMutation : public testing::TestWithParam<Model> {
protected:
  StreamMutation() : verifier(&context) {
    context.loadDialect<nn::NNDialect, PipeDialect>();
    context.disableMultithreading();
    verifier.addPass(createPipeVerifyStreams());
    // The mutations leave valid ops; the verifier of the pass is asked.
    verifier.enableVerifier(false);
  }

  /// The module with streams, or null where the policy cannot take the model.
  OwningOpRef<ModuleOp> compile(const schedules::Policy &policy, int64_t ranks,
                                int64_t microBatches);
  /// The first error of pipe-verify-streams; empty where it finds none.
  std::string verify(ModuleOp module);
  /// Changes the module in many ways, and back.
  void mutate(ModuleOp module);
  void mutateWait(ModuleOp module, WaitEventOp wait);
  void mutateRecord(ModuleOp module, RecordEventOp record);
  void mutatePost(ModuleOp module, Operation *post);

  MLIRContext context;
  PassManager verifier;
};

OwningOpRef<ModuleOp> StreamMutation::compile(const schedules::Policy &policy,
                                              int64_t ranks,
                                              int64_t microBatches) {
  const Model &model = GetParam();
  schedules::ScheduleOptions options = {ranks, model.stages, microBatches};
  auto schedule = policy.build(options);
  if (!schedule) {
    llvm::consumeError(schedule.takeError());
    return {};
  }
  auto module = parseSourceFile<ModuleOp>(
      std::string(PIPEWRIGHT_TEST_INPUTS "/pipe/") + model.file, &context);
  if (!module)
    return {};
  changeProgram(*module, [&](ProgramFields &program) {
    program.microBatches = microBatches;
    program.updates = policy.updates(options);
  });
  PassManager manager(&context);
  if (policy.splitsBackward())
    manager.addPass(createPipeSplitBackward());
  if (policy.copies() == 2)
    manager.addPass(createPipeMirrorStages());
  buildUnrolledPipeline(manager, {});
  ScheduledPipelineOptions scheduled;
  scheduled.policy = policy.name().str();
  scheduled.ranks = ranks;
  buildScheduledPipeline(manager, scheduled);
  AllocatedPipelineOptions allocated;
  allocated.assignStreams = true;
  buildAllocatedPipeline(manager, allocated);
  // Stale weights and tied ones do not go together.
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) {});
  if (failed(manager.run(*module)))
    return {};
  return module;
}

std::string StreamMutation::verify(ModuleOp module) {
  std::string first;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (first.empty())
      first = diagnostic.str();
  });
  if (succeeded(verifier.run(module)))
    return "";
  return first.empty() ? "failed without a diagnostic" : first;
}

/// The op before which a wait stands, with others perhaps.
Operation *waiterOf(Operation *wait) {
  while (isa<WaitEventOp>(wait))
    wait = wait->getNextNode();
  return wait;
}

bool isRace(const std::string &error) {
  return llvm::StringRef(error).starts_with("data race on rank ");
}

void StreamMutation::mutateWait(ModuleOp module, WaitEventOp wait) {
  Operation *next = wait->getNextNode();
  wait->remove();
  std::string error = verify(module);
  EXPECT_TRUE(isRace(error)) << "without the wait: " << error;
  // Too late.
  Operation *waiter = waiterOf(next);
  waiter->getBlock()->getOperations().insertAfter(waiter->getIterator(), wait);
  error = verify(module);
  EXPECT_TRUE(isRace(error)) << "behind the waiter: " << error;
  wait->moveBefore(next);
}

void StreamMutation::mutateRecord(ModuleOp module, RecordEventOp record) {
  // Too early: the event says nothing of the op that it is for.
  Operation *recorded = record->getPrevNode();
  record->moveBefore(recorded);
  std::string error = verify(module);
  EXPECT_TRUE(isRace(error)) << "before the recorded: " << error;
  record->moveAfter(recorded);

  Operation *next = record->getNextNode();
  record->remove();
  EXPECT_EQ(verify(module), "'pipe.wait_event' op waits for event " +
                                std::to_string(record.getEvent()) +
                                ", which nothing before it records");
  next->getBlock()->getOperations().insert(next->getIterator(), record);
}

void StreamMutation::mutatePost(ModuleOp module, Operation *post) {
  auto event = post->getAttrOfType<IntegerAttr>("event");
  ASSERT_TRUE(event);
  post->removeAttr("event");
  EXPECT_EQ(verify(module), "'" + post->getName().getStringRef().str() +
                                "' op has no event; run pipe-assign-streams");
  post->setAttr("event", event);
}

void StreamMutation::mutate(ModuleOp module) {
  SmallVector<Operation *> ops;
  for (RankOp program : module.getOps<RankOp>())
    for (Operation &op : *program.getBody())
      ops.push_back(&op);
  for (Operation *op : ops) {
    if (auto wait = dyn_cast<WaitEventOp>(op))
      mutateWait(module, wait);
    else if (auto record = dyn_cast<RecordEventOp>(op))
      mutateRecord(module, record);
    else if (isa<PostSendOp, PostReceiveOp>(op))
      mutatePost(module, op);
  }
  EXPECT_EQ(verify(module), "");
}

TEST_P(StreamMutation, EveryEventIsNeeded) {
  int64_t compiled = 0;
  for (const schedules::Policy *policy : schedules::allPolicies()) {
    if (!policy->trains())
      continue;
    for (int64_t ranks : {2, 4}) {
      OwningOpRef<ModuleOp> module = compile(*policy, ranks, 4);
      if (!module)
        continue;
      ++compiled;
      SCOPED_TRACE(policy->name().str() + " on " + std::to_string(ranks));
      ASSERT_EQ(verify(*module), "");
      mutate(*module);
    }
  }
  // Each model has the number of stages that some policies need.
  EXPECT_GE(compiled, 8);
}

INSTANTIATE_TEST_SUITE_P(
    Models, StreamMutation,
    testing::Values(Model{"chain.mlir", 4}, Model{"tied.mlir", 2}),
    [](const testing::TestParamInfo<Model> &model) {
      llvm::StringRef file = model.param.file;
      return file.take_until([](char c) { return c == '.'; }).str();
    });

} // namespace
