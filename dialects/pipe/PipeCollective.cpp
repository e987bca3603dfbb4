//===- PipeCollective.cpp - Verifiers and uses of collectives -------------===//
//
// What one member can know: its group, its root and its types. That all members
// do the same is proved by `pipe-verify-schedule`.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Builders.h"
#include "runtime/calls/CollectiveParts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

static std::string spellingOf(const runtime::CollectiveFacts &facts) {
  std::string text = facts.text;
  llvm::replace(text, '-', '_');
  return text;
}

std::string CollectiveKindAttr::spelling() const {
  return spellingOf(getFacts());
}

Attribute CollectiveKindAttr::parse(AsmParser &parser, Type) {
  StringRef word;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return {};
  std::string known;
  for (const runtime::CollectiveFacts &facts : runtime::allCollectives) {
    if (spellingOf(facts) == word)
      return get(parser.getContext(), facts.kind);
    known += (known.empty() ? "" : ", ") + spellingOf(facts);
  }
  parser.emitError(location)
      << "expects one of " << known << ", but got '" << word << "'";
  return {};
}

void CollectiveKindAttr::print(AsmPrinter &printer) const {
  printer << ' ' << spelling();
}

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

ParseResult pipewright::pipe::parseGroup(AsmParser &parser, GroupAttr &group) {
  MLIRContext *context = parser.getContext();
  if (succeeded(parser.parseOptionalKeyword("replicas"))) {
    group = GroupAttr::ofReplicas(context);
    return success();
  }
  SmallVector<int64_t> ranks;
  if (parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Square,
          [&] { return parser.parseInteger(ranks.emplace_back()); },
          " of the ranks of a group"))
    return failure();
  group = GroupAttr::ofRanks(context, ranks);
  return success();
}

void pipewright::pipe::printGroup(AsmPrinter &printer, Operation *,
                                  GroupAttr group) {
  if (group.isOfReplicas())
    printer << "replicas";
  else
    printer << '[' << group.getRanks() << ']';
}

Attribute GroupAttr::parse(AsmParser &parser, Type) {
  GroupAttr group;
  if (parser.parseLess() || parseGroup(parser, group) || parser.parseGreater())
    return {};
  return group;
}

void GroupAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printGroup(printer, nullptr, *this);
  printer << '>';
}

int64_t GroupAttr::size(ModuleOp module) const {
  return isOfReplicas() ? programOf(module).replicas
                        : static_cast<int64_t>(getRanks().size());
}

std::string GroupAttr::describe() const {
  if (isOfReplicas())
    return "all replicas";
  auto ranks = llvm::map_range(
      getRanks(), [](int64_t rank) { return std::to_string(rank); });
  return "ranks " + llvm::join(ranks, ", ");
}

int64_t CollectiveOp::countMembers() {
  return getOver().size((*this)->getParentOfType<ModuleOp>());
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

static LogicalResult verifyRanks(CollectiveOp op, ArrayRef<int64_t> over) {
  // (C1)
  bool isGroup = llvm::all_of(over, [&](int64_t rank) {
    return rank >= 0 && llvm::count(over, rank) == 1;
  });
  if (over.size() < 2 || !isGroup)
    return op.emitOpError("expects at least two ranks, each once, but got [")
           << over << "]";
  // (C2)
  if (auto rank = dyn_cast<RankOp>(op->getParentOp()))
    if (!llvm::is_contained(over, static_cast<int64_t>(rank.getRank())))
      return op.emitOpError("is of ranks [")
             << over << "], but stands on rank " << rank.getRank();
  // (C3)
  if (op.getRoot() &&
      !llvm::is_contained(over, static_cast<int64_t>(*op.getRoot())))
    return op.emitOpError("expects one of ranks [")
           << over << "] as its root, but got " << *op.getRoot();
  return success();
}

static LogicalResult verifyReplicas(CollectiveOp op) {
  // (C1)
  int64_t replicas = op.countMembers();
  if (replicas < 2)
    return op.emitOpError("is over replicas, but the module has one alone");
  // (C3)
  if (op.getRoot() && static_cast<int64_t>(*op.getRoot()) >= replicas)
    return op.emitOpError("expects one of ")
           << replicas << " replicas as its root, but got " << *op.getRoot();
  return success();
}

/// What replicas must have of a value, and have then. (C6)
static std::pair<ReplicaState, ReplicaState> statesOf(CollectiveOp op,
                                                      ReplicaState now) {
  const runtime::CollectiveFacts &facts = op.getKindAttr().getFacts();
  // There are no weights of a part of the micro-batches.
  if (!facts.reduces && now == ReplicaState::partial)
    return {ReplicaState::whole, ReplicaState::whole};
  if (!op.getOver().isOfReplicas() || facts.rooted || op.getWeight())
    return {now, now};
  if (op.getRounded())
    return {now, ReplicaState::whole};
  const auto after =
      facts.replicates ? ReplicaState::whole : ReplicaState::split;
  if (op.getBucket().value_or(0) > 0)
    return {after, after};
  return {facts.reduces ? ReplicaState::partial : ReplicaState::split, after};
}

LogicalResult CollectiveOp::verify() {
  // (C1), (C2), (C3)
  if (failed(getOver().isOfReplicas()
                 ? verifyReplicas(*this)
                 : verifyRanks(*this, getOver().getRanks())))
    return failure();
  // (C3)
  bool hasRoot = getKindAttr().getFacts().rooted;
  if (hasRoot != getRoot().has_value())
    return emitOpError("expects ")
           << (hasRoot ? "a" : "no") << " root with kind '"
           << getKindAttr().spelling() << "'";
  // (C6)
  const ReplicaState given = stateOfReplicas(getValue().getType());
  const auto [before, after] = statesOf(*this, given);
  if (given != before)
    return emitOpError("expects a value that is ")
           << stringifyReplicaState(before) << " over replicas, but got "
           << getValue().getType();
  // (C4)
  Type gradient = GradientType::get(getContext(), getStageAttr(), given);
  Type result =
      isOfGradients()
          ? Type(GradientType::get(getContext(), getStageAttr(), after))
          : Type(UpdatedType::get(getContext(), getStageAttr(), after));
  if (getResult().getType() != result)
    return emitOpError("expects to return ")
           << result << ", but returns " << getResult().getType();
  Type value = getValue().getType();
  if (value != gradient &&
      (isOfGradients() ||
       value != UpdatedType::get(getContext(), getStageAttr(), given)))
    return emitOpError("expects the state of its stage, ")
           << result << ", but got " << value;
  // (C5)
  if (getRounded() && isOfGradients())
    return emitOpError("is of gradients, which have no rounded copy");
  // (C7)
  if (getBucket() && getWeight())
    return emitOpError("expects a bucket or one weight, but is of both");
  // (C8)
  if (getWeight() && getOver().isOfReplicas() &&
      getKind() != runtime::CollectiveKind::AllReduce)
    return emitOpError("expects 'all_reduce' of one weight over replicas, but "
                       "is '")
           << getKindAttr().spelling() << "'";
  return success();
}

LogicalResult WaitCollectiveOp::verify() {
  // (C1)
  if (!getValue().getDefiningOp<CollectiveOp>())
    return emitOpError("expects the result of a 'pipe.collective'");
  return success();
}

LogicalResult KeepGradientsOp::verify() {
  // (C1)
  Type split =
      GradientType::get(getContext(), getStageAttr(), ReplicaState::split);
  if (getGradients().getType() != split)
    return emitOpError("expects ")
           << split << ", but takes " << getGradients().getType();
  return success();
}

void KeepGradientsOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), ("kept_" + getStage()).str());
}

LogicalResult FoldGradientsOp::verify() {
  // (C1)
  if (!llvm::isPowerOf2_64(getGroups()) || getGroup() >= getGroups())
    return emitOpError("expects a group of a power of two of them, but is of ")
           << getGroup() << " of " << getGroups();
  // (C2)
  auto type = cast<GradientType>(getGradients().getType());
  if (type.getStage() != getStageAttr() ||
      stateOfReplicas(type) == ReplicaState::split)
    return emitOpError("expects all gradients of its stage, but takes ")
           << type;
  return success();
}

void FoldGradientsOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), ("folded_" + getStage()).str());
}

LogicalResult LoadWeightsOp::verify() {
  // (C1)
  Type split =
      UpdatedType::get(getContext(), getStageAttr(), ReplicaState::split);
  if (getResult().getType() != split)
    return emitOpError("expects to return ")
           << split << ", but returns " << getResult().getType();
  // (C2)
  if (getInPlace() && getRange())
    return emitOpError("expects no range of what is in place");
  return success();
}

void LoadWeightsOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), ("loaded_" + getStage()).str());
}

LogicalResult ClipGradientsOp::verify() {
  // (C1)
  ArrayRef<int64_t> over = getOver().getRanks();
  bool isGroup = !over.empty() && llvm::all_of(over, [&](int64_t rank) {
    return rank >= 0 && llvm::count(over, rank) == 1;
  });
  if (!isGroup)
    return emitOpError("expects at least one rank, each once, but is over ")
           << getOver().describe();
  if (auto rank = dyn_cast<RankOp>((*this)->getParentOp()))
    if (!llvm::is_contained(over, static_cast<int64_t>(rank.getRank())))
      return emitOpError("is of ") << getOver().describe()
                                   << ", but stands on rank " << rank.getRank();
  // (C2)
  if (getGradients().getTypes() != getClipped().getTypes())
    return emitOpError("expects to return the types that it takes");
  llvm::SmallPtrSet<Type, 4> taken;
  for (Type type : getGradients().getTypes())
    if (!taken.insert(type).second)
      return emitOpError("takes ") << type << " twice";
  // (C3)
  for (Type type : getGradients().getTypes())
    if (stateOfReplicas(type) != ReplicaState::whole)
      return emitOpError("expects whole gradients, but takes ") << type;
  return success();
}

void ClipGradientsOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (Value result : getClipped())
    setName(result, ("clipped_" +
                     cast<GradientType>(result.getType()).getStage().getValue())
                        .str());
}

void CollectiveOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(),
          ((isOfGradients() ? "gradients_" : "updated_") + getStage()).str());
}

bool CollectiveOp::isOfPart() {
  return !getOver().isOfReplicas() &&
         stateOfReplicas(getValue().getType()) == ReplicaState::split;
}

std::optional<BufferAttr> CollectiveOp::getFlatRange(OptimizerOp optimizer) {
  if (isOfGradients())
    return optimizer.getGradients();
  Operation *made = *this;
  while (auto together = dyn_cast_or_null<CollectiveOp>(made))
    made = together.getValue().getDefiningOp();
  if (auto load = dyn_cast_or_null<LoadWeightsOp>(made))
    if (std::optional<BufferAttr> weights = load.getWeights())
      return weights;
  return getRounded() ? optimizer.getRounded() : optimizer.getWeights();
}

std::optional<BufferAttr> CollectiveOp::getRange(ArenaOp arena) {
  PlaceOp place;
  OptimizerOp optimizer;
  for (Operation &fixed : *arena.getBody()) {
    if (auto op = dyn_cast<PlaceOp>(fixed);
        op && op.getStage() == getStage() && op.getWeight() == getWeight())
      place = op;
    if (auto op = dyn_cast<OptimizerOp>(fixed);
        op && op.getStage() == getStage())
      optimizer = op;
  }
  if (getWeight() && !place)
    return std::nullopt;
  if (getWeight() && !isOfPart())
    return isOfGradients() ? place.getGradient()
           : getRounded()  ? place.getRounded()
                           : place.getBuffer();
  if (!optimizer)
    return std::nullopt;
  const std::optional<BufferAttr> all = getFlatRange(optimizer);
  if (!all)
    return std::nullopt;
  return getWeight()
             ? optimizer.partOf(*all, optimizer.bucketAround(place.getBuffer()))
             : optimizer.partOf(*all, getBucket());
}

/// Numbers are f32 wherever they are added. One program is for all replicas,
/// which has room for what the root needs, or the first, whose part is the
/// longest.
int64_t CollectiveOp::scratchBytes(int64_t bytes) {
  auto memberOf = [&](uint64_t rank) {
    ArrayRef<int64_t> ranks = getOver().getRanks();
    return llvm::find(ranks, static_cast<int64_t>(rank)) - ranks.begin();
  };
  auto root = static_cast<int64_t>(getRoot().value_or(0)), member = root;
  if (!getOver().isOfReplicas()) {
    root = memberOf(getRoot().value_or(getOver().getRanks().front()));
    member = memberOf(cast<RankOp>((*this)->getParentOp()).getRank());
  }
  constexpr int64_t width = sizeof(float);
  std::vector<int64_t> bounds =
      runtime::evenBounds(bytes / width, countMembers());
  return width * runtime::numbersFromOthers(getKind(), bounds, root, member);
}

WaitCollectiveOp CollectiveOp::getWait() {
  for (Operation *user : getResult().getUsers())
    if (auto wait = dyn_cast<WaitCollectiveOp>(user))
      return wait;
  return WaitCollectiveOp();
}

//===----------------------------------------------------------------------===//
// StepOpInterface
//===----------------------------------------------------------------------===//

FlatSymbolRefAttr CollectiveOp::getStageName() { return getStageAttr(); }
StreamAttr CollectiveOp::getWorkStream() {
  return StreamAttr::collective(getContext());
}
bool CollectiveOp::isAsynchronous() { return true; }
std::optional<uint64_t> CollectiveOp::getRecordedEvent() { return getEvent(); }

/// `all_reduce of '@wte' in stage '@s0' (event 9)`
std::string CollectiveOp::getLabel(const StepContext &) {
  std::string text = getKindAttr().spelling();
  if (getRounded())
    text += " of rounded weights";
  if (getWeight())
    text += " of '@" + getWeight()->str() + "'";
  if (getBucket())
    text += " of bucket " + std::to_string(*getBucket());
  text += " in stage '@" + getStage().str() + "'";
  if (getEvent())
    text += " (event " + std::to_string(*getEvent()) + ")";
  return text;
}

ResultBytes CollectiveOp::getResultBytes(OpResult) {
  return {isOfGradients() ? ResultBytes::Kind::Scratch
                          : ResultBytes::Kind::None};
}

ByteUses CollectiveOp::getByteUses() {
  ByteUse::Kind kind = isOfGradients() ? ByteUse::Kind::Gradient
                       : getWeight()   ? ByteUse::Kind::Weight
                       : getRounded()  ? ByteUse::Kind::Rounded
                                       : ByteUse::Kind::Weights;
  ByteUses uses = {{kind, /*writes=*/true, Value(), getWeightAttr()}};
  if (isOfGradients())
    uses.push_back(ByteUse::write(getResult()));
  return uses;
}

std::optional<Content> CollectiveOp::getContent(OpResult, const StepContext &) {
  return Content{isOfGradients() ? Content::Kind::Sum : Content::Kind::Updated,
                 getStageAttr(),
                 0,
                 0,
                 {}};
}

std::optional<Content> CollectiveOp::getWantedContent(OpOperand &operand,
                                                      const StepContext &) {
  bool isSum = isa<GradientType>(operand.get().getType());
  return Content{isSum ? Content::Kind::Sum : Content::Kind::Updated,
                 getStageAttr(),
                 0,
                 0,
                 {}};
}

std::string WaitCollectiveOp::getLabel(const StepContext &) {
  return "wait for a collective";
}
ResultBytes WaitCollectiveOp::getResultBytes(OpResult) { return {}; }

std::string KeepGradientsOp::getLabel(const StepContext &) {
  return "kept gradients of stage '@" + getStage().str() + "'";
}
ResultBytes KeepGradientsOp::getResultBytes(OpResult) { return {}; }
ByteUses KeepGradientsOp::getByteUses() {
  return {{ByteUse::Kind::Gradient, /*writes=*/true}};
}
std::optional<Content> KeepGradientsOp::getContent(OpResult,
                                                   const StepContext &) {
  return Content{Content::Kind::Sum, getStageAttr(), 0, 0, {}};
}
std::optional<Content> KeepGradientsOp::getWantedContent(OpOperand &,
                                                         const StepContext &) {
  return Content{Content::Kind::Sum, getStageAttr(), 0, 0, {}};
}

BufferAttr FoldGradientsOp::Sums::level(int64_t number) const {
  return BufferAttr::get(gradients.getContext(), BufferSpace::arena,
                         aside.getOffset() +
                             number * alignedSize(gradients.getBytes()),
                         gradients.getBytes());
}

FailureOr<SmallVector<FoldGradientsOp::Sums, 1>>
FoldGradientsOp::getSums(ArenaOp arena) {
  SmallVector<Sums, 1> all;
  auto add = [&](BufferAttr gradients,
                 std::optional<BufferAttr> aside) -> LogicalResult {
    const int64_t wanted = countLevels() * alignedSize(gradients.getBytes());
    if (!aside || aside->getBytes() < wanted)
      return emitOpError("needs ") << wanted << " bytes aside of " << gradients
                                   << "; run pipe-plan-memory";
    all.push_back({gradients, *aside});
    return success();
  };
  for (Operation &op : *arena.getBody()) {
    auto optimizer = dyn_cast<OptimizerOp>(op);
    if (optimizer && optimizer.getStage() == getStage() &&
        failed(add(optimizer.getGradients(), optimizer.getAside())))
      return failure();
    auto place = dyn_cast<PlaceOp>(op);
    if (place && place.getStage() == getStage() && place.getGradient() &&
        !place.isUpdated() &&
        failed(add(*place.getGradient(), place.getAside())))
      return failure();
  }
  return all;
}

std::string FoldGradientsOp::getLabel(const StepContext &) {
  return "group " + std::to_string(getGroup()) + " of gradients of stage '@" +
         getStage().str() + "'";
}
ResultBytes FoldGradientsOp::getResultBytes(OpResult) { return {}; }
ByteUses FoldGradientsOp::getByteUses() {
  return {{ByteUse::Kind::Gradient, /*writes=*/true}};
}
std::optional<Content> FoldGradientsOp::getContent(OpResult,
                                                   const StepContext &) {
  return Content{Content::Kind::Sum, getStageAttr(), 0, 0, {}};
}
std::optional<Content> FoldGradientsOp::getWantedContent(OpOperand &,
                                                         const StepContext &) {
  return Content{Content::Kind::Sum, getStageAttr(), 0, 0, {}};
}

SmallVector<CollectiveOp, 2> LoadWeightsOp::getGathers() {
  SmallVector<CollectiveOp, 2> gathers;
  Value made = getResult();
  while (made) {
    Value before = std::exchange(made, Value());
    for (Operation *user : before.getUsers())
      if (auto gather = dyn_cast<CollectiveOp>(user)) {
        gathers.push_back(gather);
        made = gather.getResult();
      }
  }
  return gathers;
}

std::string LoadWeightsOp::getLabel(const StepContext &) {
  return "loaded weights of stage '@" + getStage().str() + "'";
}
ResultBytes LoadWeightsOp::getResultBytes(OpResult) { return {}; }
ByteUses LoadWeightsOp::getByteUses() {
  if (getInPlace())
    return {};
  ByteUses uses = {{ByteUse::Kind::Home}};
  for (CollectiveOp gather : getGathers())
    llvm::append_range(uses, gather.getByteUses());
  return uses;
}
std::optional<Content> LoadWeightsOp::getContent(OpResult,
                                                 const StepContext &) {
  return Content{Content::Kind::Updated, getStageAttr(), 0, 0, {}};
}
std::optional<Content> LoadWeightsOp::getWantedContent(OpOperand &,
                                                       const StepContext &) {
  return std::nullopt;
}

std::string ClipGradientsOp::getLabel(const StepContext &) {
  return "norm of the gradients";
}
ResultBytes ClipGradientsOp::getResultBytes(OpResult) { return {}; }
ByteUses ClipGradientsOp::getByteUses() {
  ByteUses uses;
  for (Type type : getGradients().getTypes()) {
    ByteUse &use = uses.emplace_back();
    use.kind = ByteUse::Kind::Gradient;
    use.stage = cast<GradientType>(type).getStage();
  }
  return uses;
}
static Content sumOf(Type gradients) {
  return {
      Content::Kind::Sum, cast<GradientType>(gradients).getStage(), 0, 0, {}};
}
std::optional<Content> ClipGradientsOp::getContent(OpResult result,
                                                   const StepContext &) {
  return sumOf(result.getType());
}
std::optional<Content> ClipGradientsOp::getWantedContent(OpOperand &operand,
                                                         const StepContext &) {
  return sumOf(operand.get().getType());
}
