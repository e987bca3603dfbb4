//===- ProgramTable.cpp - The constant Program of main.cpp ----------------===//
//
// A table is data, so its initializers are written as text, one line for each
// weight, input and region.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/ProgramTable.h"

#include "codegen/host/RankFunctions.h"
#include "codegen/host/RuntimeCalls.h"
#include "dialects/nn/NNWeightNames.h"
#include "passes/step/RunningStatistics.h"
#include "passes/step/StepTraffic.h"
#include "support/Text.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace pipewright::codegen {

static FailureOr<StringRef> wordFor(Operation *op, Type type) {
  if (type.isF32())
    return StringRef("ElementType::F32");
  if (type.isInteger(64))
    return StringRef("ElementType::I64");
  if (type.isInteger(1))
    return StringRef("ElementType::I1");
  if (type.isInteger(8))
    return StringRef("ElementType::I8");
  return op->emitError() << "expects element type f32, i64, i1 or i8, but got "
                         << type;
}

static std::string joinSizes(ArrayRef<int64_t> sizes, StringRef separator) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : separator.str()) + std::to_string(size);
  return text;
}

static std::string bufferText(pipe::BufferAttr buffer) {
  return "{" + std::to_string(buffer.getOffset()) + ", " +
         std::to_string(buffer.getBytes()) + "}";
}

static StringRef wordFor(nn::WeightRole role) {
  switch (role) {
  case nn::WeightRole::Parameter:
  case nn::WeightRole::Frozen:
    return "Role::Parameter";
  case nn::WeightRole::State:
    return "Role::State";
  case nn::WeightRole::Constant:
    return "Role::Constant";
  }
  llvm_unreachable("all roles are listed");
}

namespace {

/// Writes what a rank keeps from step to step: each weight, and behind it what
/// belongs to it.
class TensorWriter {
public:
  TensorWriter(llvm::raw_ostream &os, const ProgramLayout &layout)
      : os(os), layout(layout) {}

  LogicalResult write(pipe::PlaceOp place);

private:
  /// What of a running statistic is left after a micro-batch, for replicas.
  std::string decayText();
  /// What a replica has of what belongs to the weight, where they have a part
  /// each.
  std::string shardText(pipe::OptimizerOp optimizer, bool isAlone,
                        bool isRounded = false);
  /// Whether replicas do that with what the stage's optimizer updates: the
  /// weights themselves, or their gradients.
  bool replicasDo(runtime::CollectiveKind kind);
  /// A line; `fields` tells it from that of the weight.
  void line(pipe::BufferAttr buffer, const std::string &fields,
            StringRef type = "", const std::string &moreFields = "");
  /// The part of a buffer that files have; what is half as large is bf16.
  pipe::BufferAttr inFile(pipe::BufferAttr whole);

  llvm::raw_ostream &os;
  const ProgramLayout &layout;
  nn::WeightOp weight;
  pipe::PlaceOp place;
};

} // namespace

pipe::BufferAttr TensorWriter::inFile(pipe::BufferAttr whole) {
  // Rows behind those of the file are nobody's business but the kernels'.
  int64_t ratio = whole.getBytes() < place.getBuffer().getBytes() ? 2 : 1;
  return pipe::BufferAttr::get(whole.getContext(), whole.getSpace(),
                               whole.getIndex(), whole.getOffset(),
                               pipe::byteSize(weight.getFileType()) / ratio);
}

void TensorWriter::line(pipe::BufferAttr buffer, const std::string &fields,
                        StringRef type, const std::string &moreFields) {
  os << "      {.name = " << text::stringLiteral(nn::fileNameOf(weight))
     << ", .buffer = " << bufferText(inFile(buffer)) << ", .shape = \""
     << joinSizes(weight.getFileType().getShape(), "x") << "\"" << fields;
  if (!place.getOwner())
    os << ", .owner = false";
  if (!type.empty())
    os << ", .type = " << type;
  if (weight.getChannelsLast())
    os << ", .channelsLast = true";
  os << moreFields << "},\n";
}

std::string TensorWriter::decayText() {
  if (pipe::programOf(layout.module).replicas == 1)
    return "";
  const StageLayout *stage = layout.findStage(place.getStage());
  auto decays = pipe::decaysOf(pipe::StageOp(stage->op));
  auto decay = decays.find(place.getWeightAttr().getAttr());
  if (decay == decays.end() || !decay->second)
    return "";
  return ", .decay = " + floatLiteral(static_cast<float>(*decay->second)) +
         ", .stage = " + std::to_string(stage->number);
}

bool TensorWriter::replicasDo(runtime::CollectiveKind kind) {
  const StageLayout *stage = layout.findStage(place.getStage());
  pipe::RankOp program = layout.ranks[stage->rank].train;
  return llvm::any_of(program.getBody()->getOps<pipe::CollectiveOp>(),
                      [&](pipe::CollectiveOp op) {
                        return op.getOver().isOfReplicas() &&
                               op.getKind() == kind && !op.getRounded() &&
                               op.getStage() == place.getStage();
                      });
}

std::string TensorWriter::shardText(pipe::OptimizerOp optimizer, bool isAlone,
                                    bool isRounded) {
  if (!optimizer || !optimizer.getShards())
    return "";
  const int64_t ratio = isRounded ? 2 : 1;
  const auto bucket = optimizer.bucketAround(place.getBuffer());
  return ", .shard = {" +
         std::to_string((place.getBuffer().getOffset() -
                         optimizer.getWeights().getOffset() - bucket.begin) /
                        ratio) +
         ", " + std::to_string(bucket.bytes / optimizer.countShards() / ratio) +
         (isAlone ? ", true}" : "}");
}

LogicalResult TensorWriter::write(pipe::PlaceOp newPlace) {
  place = newPlace;
  weight = layout.weights.find(place.getWeightAttr().getAttr())->second;
  Type elementType = weight.getFileType().getElementType();
  auto element = wordFor(weight, elementType);
  if (failed(element))
    return failure();
  const StageLayout *stage = layout.findStage(place.getStage());
  pipe::OptimizerOp optimizer;
  if (place.isUpdated())
    optimizer = stage->optimizer;
  using enum runtime::CollectiveKind;
  const std::string shard = shardText(optimizer, /*isAlone=*/false);
  const bool isAlone = optimizer && optimizer.getHome();
  const pipe::BufferAttr home =
      isAlone ? optimizer.partOf(*optimizer.getHome(), place.getBuffer())
              : place.getBuffer();
  line(home,
       weight.isLearned() ? "" : ", .role = " + wordFor(weight.getRole()).str(),
       elementType.isF32() ? StringRef() : *element,
       decayText() +
           (isAlone ? shardText(optimizer, /*isAlone=*/true)
            : !shard.empty() && (optimizer.getSplit() || !replicasDo(AllGather))
                ? shard
                : ""));
  if (place.getGradient()) {
    std::string part;
    if (optimizer && optimizer.getKept())
      part = shardText(optimizer, /*isAlone=*/true);
    else if (!shard.empty() && replicasDo(ReduceScatter))
      part = shard;
    line(optimizer && optimizer.getKept()
             ? optimizer.partOf(*optimizer.getKept(), place.getBuffer())
             : *place.getGradient(),
         ", .role = Role::Gradient", "",
         (pipe::programOf(layout.module).zero > 0 && optimizer
              ? ", .stage = " + std::to_string(stage->number)
              : std::string()) +
             part);
  }
  if (optimizer)
    for (auto [state, kept] :
         llvm::zip_equal(optimizer.getStates().getAsRange<pipe::BufferAttr>(),
                         layout.states))
      if (kept.isOfMatrices || !optimizer.takesAsMatrix(place))
        line(optimizer.partOf(state, place.getBuffer()),
             ", .role = Role::OptimizerState", "",
             ", .state = " + text::stringLiteral(kept.name) +
                 shardText(optimizer, /*isAlone=*/true));
  auto copy = [&](pipe::BufferAttr buffer, StringRef role,
                  pipe::BufferAttr from, const std::string &part = "") {
    line(buffer, ", .role = " + role.str(),
         place.getRounded() ? "ElementType::BF16" : "",
         ", .from = " + bufferText(inFile(from)) + part);
  };
  if (optimizer && optimizer.getRoundedHome())
    copy(optimizer.partOf(*optimizer.getRoundedHome(), place.getBuffer()),
         "Role::Rounded", home,
         shardText(optimizer, /*isAlone=*/true, /*isRounded=*/true));
  else if (place.getRounded())
    copy(*place.getRounded(), "Role::Rounded", home,
         optimizer && optimizer.getSplit()
             ? shardText(optimizer, /*isAlone=*/false, /*isRounded=*/true)
             : "");
  if (optimizer && optimizer.getVersions())
    for (auto version : optimizer.getVersions()->getAsRange<pipe::BufferAttr>())
      copy(optimizer.partOf(version, place.getBuffer()), "Role::OldVersion",
           place.getRounded().value_or(place.getBuffer()));
  return success();
}

/// How many events a list records: they are numbered from 0.
static int64_t countEvents(pipe::RankOp list) {
  int64_t count = 0;
  auto add = [&](std::optional<uint64_t> event) {
    if (event)
      count = std::max(count, static_cast<int64_t>(*event) + 1);
  };
  for (auto op : list.getBody()->getOps<pipe::StepOpInterface>())
    add(op.getRecordedEvent());
  return count;
}

/// What a rank needs that is a GPU: its links and events.
static void writeStreams(llvm::raw_ostream &os, const RankLayout &rank) {
  llvm::SetVector<int64_t> peers;
  for (pipe::RankOp list : {rank.train, rank.evaluate})
    if (list)
      for (auto op : list.getBody()->getOps<pipe::StepOpInterface>())
        if (op.getWorkStream().getKind() == pipe::StreamKind::send)
          peers.insert(op.getWorkStream().getPeer());
  SmallVector<int64_t> sorted(peers.begin(), peers.end());
  llvm::sort(sorted);
  if (!sorted.empty())
    os << ",\n     .sendsTo = {" << joinSizes(sorted, ", ") << "}";
  if (int64_t events = countEvents(rank.train))
    os << ",\n     .events = " << events;
  if (int64_t events = rank.evaluate ? countEvents(rank.evaluate) : 0)
    os << ",\n     .evaluateEvents = " << events;
  pipe::ArenaOp arena = rank.arena;
  if (int64_t bytes = arena.getHostBytes())
    os << ",\n     .hostBytes = " << bytes;
}

static void writeInputs(llvm::raw_ostream &os, const ProgramLayout &layout,
                        const RankLayout &rank) {
  llvm::SetVector<int64_t> inputs;
  for (pipe::RankOp list : {rank.train, rank.evaluate})
    if (list)
      for (auto input : list.getOps<pipe::InputOp>())
        inputs.insert(layout.inputNumber(input.getName()));
  SmallVector<int64_t> sorted(inputs.begin(), inputs.end());
  llvm::sort(sorted);
  os << "     .inputs = {" << joinSizes(sorted, ", ") << "},\n";
}

static LogicalResult writeRank(llvm::raw_ostream &os,
                               const ProgramLayout &layout,
                               const RankLayout &rank,
                               const HostOptions &options) {
  pipe::ArenaOp arena = rank.arena;
  os << "    {.arenaBytes = " << arena.getBytes() << ",\n     .tensors = {\n";
  TensorWriter tensors(os, layout);
  for (auto place : arena.getOps<pipe::PlaceOp>())
    if (failed(tensors.write(place)))
      return failure();
  os << "     },\n";

  writeInputs(os, layout, rank);

  auto function = [&](RankFunction which) {
    return rankFunctionName(rank.number, which);
  };
  os << "     .step = " << function(RankFunction::Step) << ",\n";
  if (rank.evaluate)
    os << "     .evaluate = " << function(RankFunction::Evaluate) << ",\n";
  os << "     .setUp = " << function(RankFunction::SetUp)
     << ",\n     .memory = {\n";
  for (auto region : arena.getOps<pipe::RegionOp>())
    os << "      {" << text::stringLiteral(region.getName()) << ", "
       << region.getBuffer().getBytes() << "},\n";
  os << "     },\n     .predictedStepSeconds = "
     << llvm::format("%.6g", options.predictedStepSeconds);
  if (layout.target->hasStreams())
    writeStreams(os, rank);
  os << "},\n";
  return success();
}

/// What the runtime counts for an input that is no data.
static LogicalResult writeCount(llvm::raw_ostream &os,
                                const ProgramLayout &layout, const Port &port) {
  const nn::CountedInput &counted = *port.counted;
  int64_t labels = layout.inputNumber(counted.labels);
  if (labels < 0)
    return ModuleOp(layout.module).emitError()
           << "input '" << port.name << "' counts labels of '" << counted.labels
           << "', which no stage reads";
  os << ", .counted = {.input = " << labels
     << ", .ignored = " << counted.ignored << ", .ranges = {";
  for (size_t i = 0; i < counted.ranges.size(); i += 2)
    os << (i ? ", " : "") << "{" << counted.ranges[i] << ", "
       << counted.ranges[i + 1] << "}";
  os << "}}";
  return success();
}

static LogicalResult writePorts(llvm::raw_ostream &os,
                                const ProgramLayout &layout,
                                ArrayRef<Port> ports) {
  for (const Port &port : ports) {
    auto element = wordFor(layout.module, port.type.getElementType());
    if (failed(element))
      return failure();
    os << "    {.name = " << text::stringLiteral(port.name)
       << ", .type = " << *element << ", .shape = {"
       << joinSizes(port.type.getShape(), ", ") << "}";
    if (port.limit)
      os << ", .limit = " << port.limit;
    if (port.ignored)
      os << ", .ignored = " << *port.ignored;
    if (port.counted && failed(writeCount(os, layout, port)))
      return failure();
    os << "},\n";
  }
  return success();
}

/// Whether replicas do something together in held-out evaluation.
static bool evaluatesTogether(const ProgramLayout &layout) {
  return llvm::any_of(layout.ranks, [](const RankLayout &rank) {
    pipe::RankOp list = rank.evaluate;
    return list && !list.getBody()->getOps<pipe::CollectiveOp>().empty();
  });
}

/// Who does something together.
static void writeGroups(llvm::raw_ostream &os, const ProgramLayout &layout) {
  if (layout.groups.empty())
    return;
  os << "  .groups = {\n";
  for (pipe::GroupAttr group : layout.groups)
    if (group.isOfReplicas())
      os << "    {.axis = Axis::Data},\n";
    else
      os << "    {.ranks = {" << joinSizes(group.getRanks(), ", ") << "}},\n";
  os << "  },\n";
}

static void writeOptimizer(llvm::raw_ostream &os,
                           const pipe::ProgramFields &program) {
  nn::OptimizerAttr optimizer = program.optimizer;
  if (!optimizer)
    return;
  nn::OptimizerChoice choice = optimizer.getChoice();
  auto number = [&](StringRef name) {
    return floatLiteral(static_cast<float>(choice.get(name)));
  };
  os << "  .optimizer = {\n    .name = "
     << text::stringLiteral(choice.row->name)
     << ",\n    .learningRate = " << number("lr");
  if (program.clipNorm)
    os << ",\n    .clipNorm = "
       << floatLiteral(static_cast<float>(program.clipNorm.getValueAsDouble()));
  os << ",\n    .scalars = {\n";
  for (const nn::StepScalar &scalar : choice.row->scalars) {
    os << "      {StepScalar::" << scalar.kind;
    if (choice.get(scalar.of) != 0)
      os << ", " << number(scalar.of);
    os << "},\n";
  }
  os << "    },\n  },\n";
}

LogicalResult writeProgramTable(llvm::raw_ostream &os,
                                const ProgramLayout &layout,
                                const HostOptions &options) {
  pipe::ProgramFields program = pipe::programOf(layout.module);
  os << "\nstatic const Program program = {\n  .name = "
     << text::stringLiteral(options.modelName) << ",\n";
  if (program.replicas > 1)
    os << "  .replicas = " << program.replicas << ",\n";
  if (program.processMap != runtime::ProcessMap::Replicas)
    os << "  .processMap = ProcessMap::"
       << llvm::convertToCamelFromSnakeCase(nameOf(program.processMap),
                                            /*capitalizeFirst=*/true)
       << ",\n";
  os << "  .microBatches = " << program.microBatches.value_or(1)
     << ",\n  .microBatchSize = " << program.microBatchSize.value_or(1)
     << ",\n";
  if (layout.updates > 1)
    os << "  .updates = " << layout.updates << ",\n";
  writeOptimizer(os, program);
  os << "  .inputs = {\n";
  if (failed(writePorts(os, layout, layout.inputs)))
    return failure();
  os << "  },\n  .outputs = {\n";
  if (failed(writePorts(os, layout, layout.outputs)))
    return failure();
  os << "  },\n  .ranks = {\n";
  for (const RankLayout &rank : layout.ranks)
    if (failed(writeRank(os, layout, rank, options)))
      return failure();
  os << "  },\n";
  writeGroups(os, layout);
  if (options.predictedCollectiveWait > 0)
    os << "  .predictedCollectiveWait = "
       << llvm::format("%.6g", options.predictedCollectiveWait) << ",\n";
  if (evaluatesTogether(layout))
    os << "  .evaluatesTogether = true,\n";
  if (runtime::Traffic sent = pipe::trafficOf(layout.module); sent.messages > 0)
    os << "  .sent = {" << sent.messages << ", " << sent.bytes << "},\n";
  os << "  .timetable = " << text::rawLiteral(options.timetable)
     << ",\n  .planJson = " << text::rawLiteral(options.planJson) << ",\n";
  if (StringRef device = layout.target->hostStyle().deviceProgram;
      !device.empty())
    os << "  .device = " << device << ",\n";
  os << "};\n\n"
     << "int main(int argc, char **argv) {\n"
     << "  return runProgram(argc, argv, program);\n"
     << "}\n";
  return success();
}

} // namespace pipewright::codegen
