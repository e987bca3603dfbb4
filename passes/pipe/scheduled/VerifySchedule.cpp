//===- VerifySchedule.cpp - The contract of the scheduled level -----------===//
//
// Reads instruction lists out of the rank programs, anew and from nothing but
// the IR, and has passes/schedules prove that they run to their end even if no
// send is ever buffered. Rules of collectives, (M1) to (M3), are those of
// passes/schedules/Collectives.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/pipe/unrolled/VerifyTasks.h"
#include "passes/schedules/Checker.h"
#include "passes/step/BackwardParts.h"
#include "passes/step/Buckets.h"
#include "passes/step/StepOrder.h"

#include "llvm/ADT/STLExtras.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEVERIFYSCHEDULE
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;
using schedules::InstructionKind;
using schedules::RankInstruction;

namespace {

/// The rank programs of one mode.
class ProgramVerifier {
public:
  ProgramVerifier(const Stages &stages, StepMode mode,
                  ArrayRef<RankOp> programs)
      : stages(stages), mode(mode), programs(programs.begin(), programs.end()) {
  }

  LogicalResult verify(int64_t microBatches, ArrayRef<int32_t> rankOfStage);

private:
  LogicalResult verifyPlaces(ArrayRef<int32_t> rankOfStage);
  FailureOr<std::vector<RankInstruction>> readList(RankOp program);
  FailureOr<schedules::Transfer> sentBy(PostSendOp post);
  FailureOr<schedules::Transfer> receivedBy(PostReceiveOp post);
  schedules::Transfer numbered(const std::string &name, int64_t microBatch);
  RankInstruction read(CollectiveOp op, InstructionKind kind);
  RankInstruction read(ClipGradientsOp op, InstructionKind kind);
  int32_t groupNumber(schedules::RankGroup members);
  RankInstruction read(MoveOp op, InstructionKind kind);
  LogicalResult verifyWaited(CollectiveOp op);
  LogicalResult verifyWaited(MoveOp op);
  LogicalResult verifyParts(TaskOp task);

  const Stages &stages;
  StepMode mode;
  SmallVector<RankOp> programs;
  /// Transfers are numbered by what they carry.
  llvm::StringMap<int32_t> numbers;
  std::vector<std::string> names;
  /// A queue for each link, nothing buffered, and the groups of collectives.
  schedules::Channels channels;
};

} // namespace

schedules::Transfer ProgramVerifier::numbered(const std::string &name,
                                              int64_t microBatch) {
  auto [known, isNew] = numbers.insert({name, names.size()});
  if (isNew)
    names.push_back(name);
  return {schedules::TransferKind::Work, known->second,
          static_cast<int32_t>(microBatch)};
}

int32_t ProgramVerifier::groupNumber(schedules::RankGroup members) {
  auto group = llvm::find(channels.groups, members);
  auto number = static_cast<int32_t>(group - channels.groups.begin());
  if (group == channels.groups.end())
    channels.groups.push_back(std::move(members));
  return number;
}

/// Who comes to it waits for all others: a sum that is waited for at once.
RankInstruction ProgramVerifier::read(ClipGradientsOp op,
                                      InstructionKind kind) {
  int64_t weights = 0;
  for (const WeightGroup &group : stages.weights())
    weights += llvm::is_contained(group.trained, true);
  ArrayRef<int64_t> over = op.getOver().getRanks();
  return RankInstruction::together(
      kind, runtime::CollectiveKind::AllReduce,
      numbered("squares of gradients", 0),
      groupNumber({over.begin(), over.end()}),
      weights * static_cast<int64_t>(sizeof(double)), /*root=*/-1);
}

/// Members name what they have in common: a weight, wherever it is used, or all
/// that is updated in a part of the model, of whatever copy, or a bucket of it.
RankInstruction ProgramVerifier::read(CollectiveOp op, InstructionKind kind) {
  std::string name = op.isOfGradients() ? "gradients" : "values";
  const auto weights = weightsOf(stages, op);
  int64_t bytes = 0;
  for (const WeightGroup *group : weights)
    bytes += byteSize(group->weight.getTensorType());
  if (op.getWeight()) {
    name += " of weight '" + op.getWeight()->str() + "'";
  } else {
    const int32_t original =
        stages.originalOf(stages.numberOf(op.getStageAttr()));
    const auto updated =
        llvm::count_if(stages.weights(), [&](const WeightGroup &group) {
          return llvm::is_contained(group.stages, original) &&
                 group.isUpdatedIn(original);
        });
    if (updated != static_cast<int64_t>(weights.size()) && !weights.empty())
      name += " of weights '" + weights.front()->weight.getSymName().str() +
              "' to '" + weights.back()->weight.getSymName().str() + "'";
    name += " of stage '@" + StageOp(stages[original]).getSymName().str() + "'";
  }
  // Replicas run one program, and talk to each other in what they do together
  // alone. So if the programs of one replica run to their end, where that is
  // work of the rank's own, those of all do: in the very same order.
  schedules::RankGroup members;
  if (op.getOver().isOfReplicas())
    members.push_back(
        static_cast<int32_t>(cast<RankOp>(op->getParentOp()).getRank()));
  else
    llvm::append_range(members, op.getOver().getRanks());
  int32_t root = op.getRoot() ? static_cast<int32_t>(*op.getRoot()) : -1;
  if (op.getRoot() && op.getOver().isOfReplicas())
    root = members.front();
  return RankInstruction::together(kind, op.getKind(), numbered(name, 0),
                                   groupNumber(std::move(members)), bytes,
                                   root);
}

RankInstruction ProgramVerifier::read(MoveOp op, InstructionKind kind) {
  const std::string name = op.contentOf().describe() +
                           (op.isToHost() ? " to" : " from") + " the host";
  return RankInstruction::copy(kind, numbered(name, op.getMicroBatch()),
                               /*bytes=*/0);
}

/// A stash is there, or on the host, when the program has waited for its copy.
LogicalResult ProgramVerifier::verifyWaited(MoveOp op) {
  WaitMoveOp wait = op.getWait();
  for (Operation *user : op.getResult().getUsers())
    if (wait && user != wait && user->isBeforeInBlock(wait))
      return user->emitOpError("uses a stash before the program has waited for "
                               "its copy");
  return success();
}

/// Whether an op may use what a collective works on.
static bool mayTouch(const Stages &stages, Operation *op,
                     CollectiveOp underWay) {
  auto stage = op->getAttrOfType<FlatSymbolRefAttr>("stage");
  if (stage != underWay.getStageAttr() ||
      isa<InputOp, HoldOp, MoveOp, WaitMoveOp, GradientOfOp, WeightOfOp>(op))
    return false;
  // These read weights, and use no gradients.
  auto resume = dyn_cast<ResumeOp>(op);
  auto task = resume ? resume.getTask() : dyn_cast<TaskOp>(op);
  const bool readsWeights =
      isa<LoadWeightsOp>(op) ||
      (task && (task.getKind() == TaskKind::forward ||
                task.getKind() == TaskKind::input_gradient));
  if (readsWeights && underWay.isOfGradients())
    return false;
  // A task that reads no weights which its stage updates may run while these
  // are put together.
  if (task && task.getMicroBatch() && !underWay.isOfGradients() &&
      !underWay.getWeight() &&
      !stages.readsUpdated(stages.numberOf(task.getStage()), task.getKind()))
    return false;
  // What is behind the part with which a bucket is whole does not add to it.
  if (resume && underWay.isOfGradients() && underWay.getBucket()) {
    const BackwardParts parts =
        backwardParts(stages, stages.numberOf(resume.getStageAttr()),
                      resume.getTask().getKind());
    return *underWay.getBucket() >= parts.partOfBucket.size() ||
           parts.partOfBucket[*underWay.getBucket()] >=
               static_cast<int64_t>(resume.getPart());
  }
  // Two collectives may be under way if they are of two different weights, or
  // of weights and of gradients.
  auto other = dyn_cast<CollectiveOp>(op);
  return !other || (!other.isApartFrom(underWay) &&
                    other.isOfGradients() == underWay.isOfGradients());
}

/// (M2) Nobody uses what a collective works on until its wait.
LogicalResult ProgramVerifier::verifyWaited(CollectiveOp op) {
  Operation *wait = op.getWait();
  for (Operation *user : op.getResult().getUsers()) {
    // Two weights may be under way, one behind the other.
    auto other = dyn_cast<CollectiveOp>(user);
    if (wait && user->isBeforeInBlock(wait) && !isa<ResumeOp>(user) &&
        !(other && other.isApartFrom(op)))
      return user->emitOpError("uses what a collective makes before the "
                               "program has waited for it");
  }
  for (Operation *next = op->getNextNode(); wait && next != wait;
       next = next->getNextNode()) {
    if (isa<GroupOpInterface>(next) && !isa<CollectiveOp>(next))
      return next->emitOpError("stands where a collective is under way, which "
                               "would have to be over first");
    if (mayTouch(stages, next, op)) {
      InFlightDiagnostic diagnostic =
          next->emitOpError("uses the state of stage '@")
          << op.getStage() << "' while a collective works on it";
      diagnostic.attachNote(op.getLoc()) << "posted here";
      return diagnostic;
    }
  }
  return success();
}

/// A task that is run in parts is cut where its body may be, and goes on to its
/// end; that parts follow each other, each says itself.
LogicalResult ProgramVerifier::verifyParts(TaskOp task) {
  if (!task.getParts())
    return success();
  const auto number = static_cast<int64_t>(*task.getParts());
  const int64_t expected =
      backwardParts(stages, stages.numberOf(task.getStageAttr()),
                    task.getKind())
          .count();
  if (number != expected)
    return task.emitOpError("expects ")
           << expected << " parts, behind which buckets are whole, but has "
           << number;
  auto last = dyn_cast<ResumeOp>(task.getLastPart());
  if (!last || static_cast<int64_t>(last.getPart()) + 1 != number)
    return task.emitOpError("begins, but does not go on to the last of its ")
           << number << " parts";
  return success();
}

/// Whatever names a stage must stand on the stage's rank.
LogicalResult ProgramVerifier::verifyPlaces(ArrayRef<int32_t> rankOfStage) {
  LogicalResult result = success();
  for (RankOp program : programs)
    for (Operation &op : *program.getBody()) {
      auto name = op.getAttrOfType<FlatSymbolRefAttr>("stage");
      int32_t stage = name ? stages.numberOf(name) : -1;
      if (stage < 0 ||
          rankOfStage[stage] == static_cast<int64_t>(program.getRank()))
        continue;
      result = op.emitOpError("stands on rank ")
               << program.getRank() << ", but stage '@" << name.getValue()
               << "' is on rank " << rankOfStage[stage];
    }
  return result;
}

FailureOr<schedules::Transfer> ProgramVerifier::sentBy(PostSendOp post) {
  auto value = cast<OpResult>(post.getValue());
  std::optional<Content> content =
      cast<StepOpInterface>(value.getOwner()).getContent(value, stages);
  if (!content)
    return post.emitOpError("sends a value that no other rank needs");
  return numbered(content->describe(), content->microBatch);
}

FailureOr<schedules::Transfer> ProgramVerifier::receivedBy(PostReceiveOp post) {
  std::optional<Content> wanted;
  for (Operation *user : post.getResult().getUsers()) {
    auto wait = dyn_cast<WaitReceiveOp>(user);
    if (!wait)
      continue;
    for (OpOperand &use : wait.getResult().getUses()) {
      std::optional<Content> content =
          cast<StepOpInterface>(use.getOwner()).getWantedContent(use, stages);
      if (!content)
        return use.getOwner()->emitOpError("reads a received value that it "
                                           "cannot use");
      if (wanted && *wanted != *content)
        return use.getOwner()->emitOpError("takes a received value for ")
               << content->describe() << ", but another op takes it for "
               << wanted->describe();
      wanted = content;
    }
  }
  if (!wanted)
    return post.emitOpError("receives a value that no task of its rank reads");
  return numbered(wanted->describe(), wanted->microBatch);
}

FailureOr<std::vector<RankInstruction>>
ProgramVerifier::readList(RankOp program) {
  std::vector<RankInstruction> list;
  llvm::DenseMap<Value, schedules::Transfer> posted;
  auto add = [&](InstructionKind kind, Value pending, int64_t peer) {
    RankedTensorType type = cast<PendingType>(pending.getType()).getTensor();
    list.push_back(RankInstruction::message(kind, posted.lookup(pending), peer,
                                            byteSize(type)));
  };
  for (Operation &op : *program.getBody()) {
    if (auto task = dyn_cast<TaskOp>(op)) {
      if (failed(verifyParts(task)))
        return failure();
      list.push_back(RankInstruction::compute(plainTask(stages, task)));
    } else if (auto post = dyn_cast<PostSendOp>(op)) {
      FailureOr<schedules::Transfer> transfer = sentBy(post);
      if (failed(transfer))
        return failure();
      posted[post.getResult()] = *transfer;
      add(InstructionKind::PostSend, post.getResult(), post.getPeer());
    } else if (auto post = dyn_cast<PostReceiveOp>(op)) {
      FailureOr<schedules::Transfer> transfer = receivedBy(post);
      if (failed(transfer))
        return failure();
      posted[post.getResult()] = *transfer;
      add(InstructionKind::PostReceive, post.getResult(), post.getPeer());
    } else if (auto wait = dyn_cast<WaitSendOp>(op)) {
      add(InstructionKind::WaitSend, wait.getPending(), wait.getPeer());
    } else if (auto wait = dyn_cast<WaitReceiveOp>(op)) {
      add(InstructionKind::WaitReceive, wait.getPending(), wait.getPeer());
    } else if (auto together = dyn_cast<CollectiveOp>(op)) {
      if (failed(verifyWaited(together)))
        return failure();
      list.push_back(read(together, InstructionKind::PostCollective));
    } else if (auto wait = dyn_cast<WaitCollectiveOp>(op)) {
      list.push_back(read(wait.getValue().getDefiningOp<CollectiveOp>(),
                          InstructionKind::WaitCollective));
    } else if (auto move = dyn_cast<MoveOp>(op)) {
      if (failed(verifyWaited(move)))
        return failure();
      list.push_back(read(move, InstructionKind::PostCopy));
    } else if (auto wait = dyn_cast<WaitMoveOp>(op)) {
      list.push_back(read(wait.getMove(), InstructionKind::WaitCopy));
    } else if (auto clip = dyn_cast<ClipGradientsOp>(op)) {
      list.push_back(read(clip, InstructionKind::PostCollective));
      list.push_back(read(clip, InstructionKind::WaitCollective));
    }
  }
  return list;
}

LogicalResult ProgramVerifier::verify(int64_t microBatches,
                                      ArrayRef<int32_t> rankOfStage) {
  SmallVector<Operation *> ops;
  for (RankOp program : programs)
    for (Operation &op : *program.getBody())
      ops.push_back(&op);
  if (failed(verifyTasks(stages, mode, microBatches, programs.front(), ops)) ||
      failed(verifyPlaces(rankOfStage)))
    return failure();

  schedules::InstructionLists lists;
  for (auto [number, program] : llvm::enumerate(programs)) {
    if (program.getRank() != number)
      return program.emitOpError("expects to be rank ")
             << number << ": one program for every rank, in order";
    FailureOr<std::vector<RankInstruction>> list = readList(program);
    if (failed(list))
      return failure();
    lists.push_back(std::move(*list));
  }
  // (M1), (M3)
  auto nameOf = [&](const schedules::Transfer &transfer) {
    return names[transfer.edge];
  };
  llvm::Error error = schedules::checkInstructions(lists, nameOf, channels);
  if (error)
    return programs.front().emitError(llvm::toString(std::move(error)));
  return success();
}

namespace {

class VerifySchedule
    : public pipe::impl::PipeVerifyScheduleBase<VerifySchedule> {
public:
  using PipeVerifyScheduleBase::PipeVerifyScheduleBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    ModuleOp module = getOperation();
    FailureOr<Stages> stages = Stages::read(module);
    FailureOr<int64_t> microBatches = microBatchesOf(module);
    if (failed(stages) || failed(microBatches))
      return signalPassFailure();
    FailureOr<SmallVector<int32_t>> ranks = stages->ranks();
    if (failed(ranks))
      return signalPassFailure();
    for (StepMode mode : {StepMode::train, StepMode::evaluate}) {
      SmallVector<RankOp> programs;
      for (RankOp program : module.getOps<RankOp>())
        if (program.getMode() == mode)
          programs.push_back(program);
      if (programs.empty()) {
        if (mode == StepMode::train) {
          module.emitError("expects the program of at least one rank");
          signalPassFailure();
        }
        continue;
      }
      if (failed(ProgramVerifier(*stages, mode, programs)
                     .verify(*microBatches, *ranks)))
        signalPassFailure();
    }
  }
};

} // namespace
