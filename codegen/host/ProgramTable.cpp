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

/// One line of a rank's list of weights.
static LogicalResult writeWeight(llvm::raw_ostream &os,
                                 const ProgramLayout &layout,
                                 pipe::PlaceOp place) {
  nn::WeightOp weight =
      layout.weights.find(place.getWeightAttr().getAttr())->second;
  // Rows behind those of the file are nobody's business but the kernels'.
  RankedTensorType type = weight.getFileType();
  auto inFile = [&](pipe::BufferAttr whole) {
    return pipe::BufferAttr::get(whole.getContext(), whole.getSpace(),
                                 whole.getIndex(), whole.getOffset(),
                                 pipe::byteSize(type));
  };
  auto element = wordFor(weight, type.getElementType());
  if (failed(element))
    return failure();
  os << "      {.name = " << text::stringLiteral(nn::fileNameOf(weight))
     << ", .buffer = " << bufferText(inFile(place.getBuffer()))
     << ", .shape = \"" << joinSizes(type.getShape(), "x") << "\"";
  // A program tells a frozen weight by its having no gradient.
  if (!weight.isLearned())
    os << ", .role = " << wordFor(weight.getRole());
  if (!place.getOwner())
    os << ", .owner = false";
  if (place.getOwner() && place.getGradient())
    os << ", .gradient = " << bufferText(inFile(*place.getGradient()));
  if (!type.getElementType().isF32())
    os << ", .type = " << *element;
  if (weight.getChannelsLast())
    os << ", .channelsLast = true";
  os << "},\n";
  return success();
}

/// How many events a list records: they are numbered from 0.
static int64_t countEvents(pipe::RankOp list) {
  int64_t count = 0;
  auto add = [&](std::optional<uint64_t> event) {
    if (event)
      count = std::max(count, static_cast<int64_t>(*event) + 1);
  };
  for (Operation &op : list.getBodyRegion().front())
    llvm::TypeSwitch<Operation *>(&op)
        .Case<pipe::PostSendOp, pipe::PostReceiveOp, pipe::RecordEventOp>(
            [&](auto typed) { add(typed.getEvent()); });
  return count;
}

/// What a rank needs that is a GPU: its links and events.
static void writeStreams(llvm::raw_ostream &os, const RankLayout &rank) {
  llvm::SetVector<int64_t> peers;
  for (pipe::RankOp list : {rank.train, rank.evaluate})
    if (list)
      for (auto post : list.getOps<pipe::PostSendOp>())
        peers.insert(post.getPeer());
  SmallVector<int64_t> sorted(peers.begin(), peers.end());
  llvm::sort(sorted);
  if (!sorted.empty())
    os << ",\n     .sendsTo = {" << joinSizes(sorted, ", ") << "}";
  if (int64_t events = countEvents(rank.train))
    os << ",\n     .events = " << events;
  if (int64_t events = rank.evaluate ? countEvents(rank.evaluate) : 0)
    os << ",\n     .evaluateEvents = " << events;
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

/// Flat ranges of optimizers, then the copies that no optimizer writes.
static void writeLoweredWeights(llvm::raw_ostream &os, pipe::ArenaOp arena) {
  std::string lowered;
  auto addLowered = [&](pipe::BufferAttr master, pipe::BufferAttr copy) {
    lowered +=
        "      {" + bufferText(master) + ", " + bufferText(copy) + "},\n";
  };
  llvm::SmallDenseSet<StringRef> updated;
  for (auto optimizer : arena.getOps<pipe::OptimizerOp>())
    if (optimizer.getLowered()) {
      updated.insert(optimizer.getStage());
      addLowered(optimizer.getWeights(), *optimizer.getLowered());
    }
  for (auto place : arena.getOps<pipe::PlaceOp>()) {
    bool isUpdated = place.isUpdated() && updated.contains(place.getStage());
    if (place.getLowered() && !isUpdated)
      addLowered(place.getBuffer(), *place.getLowered());
  }
  if (!lowered.empty())
    os << "     .loweredWeights = {\n" << lowered << "     },\n";
}

static void writeOldWeights(llvm::raw_ostream &os, pipe::ArenaOp arena) {
  std::string versions;
  for (auto optimizer : arena.getOps<pipe::OptimizerOp>())
    if (ArrayAttr old = optimizer.getVersionsAttr())
      for (auto version : old.getAsRange<pipe::BufferAttr>())
        versions += "      {" + bufferText(optimizer.getNewest()) + ", " +
                    bufferText(version) + "},\n";
  if (!versions.empty())
    os << "     .oldWeights = {\n" << versions << "     },\n";
}

static LogicalResult writeRank(llvm::raw_ostream &os,
                               const ProgramLayout &layout,
                               const RankLayout &rank,
                               const HostOptions &options) {
  pipe::ArenaOp arena = rank.arena;
  os << "    {.arenaBytes = " << arena.getBytes() << ",\n     .weights = {\n";
  for (auto place : arena.getOps<pipe::PlaceOp>())
    if (failed(writeWeight(os, layout, place)))
      return failure();
  os << "     },\n";

  writeInputs(os, layout, rank);
  writeLoweredWeights(os, arena);
  writeOldWeights(os, arena);

  auto function = [&](RankFunction which) {
    std::string name = rankFunctionName(rank.number, which);
    StringRef adapter = layout.target->hostStyle().rankAdapter;
    return adapter.empty() ? name : (adapter + "<" + name + ">").str();
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

static int64_t integerAttribute(ModuleOp module, StringRef name,
                                int64_t standard) {
  if (auto attr = module->getAttrOfType<IntegerAttr>(name))
    return attr.getInt();
  return standard;
}

static void writeOptimizer(llvm::raw_ostream &os, ModuleOp module) {
  auto optimizer =
      module->getAttrOfType<DictionaryAttr>(pipe::PipeDialect::kOptimizer);
  if (!optimizer)
    return;
  if (auto name = optimizer.getAs<StringAttr>("name"))
    os << "  .optimizer = " << text::stringLiteral(name) << ",\n";
  std::string fields;
  auto field = [&](StringRef member, StringRef key) {
    if (auto value = optimizer.getAs<FloatAttr>(key))
      fields += (fields.empty() ? "." : ", .") + member.str() + " = " +
                floatLiteral(static_cast<float>(value.getValueAsDouble()));
  };
  field("learningRate", "lr");
  field("beta1", "beta1");
  field("beta2", "beta2");
  if (!fields.empty())
    os << "  .defaults = {" << fields << "},\n";
}

LogicalResult writeProgramTable(OpBuilder &builder, const ProgramLayout &layout,
                                const HostOptions &options) {
  ModuleOp module = layout.module;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{\n  .name = " << text::stringLiteral(options.modelName) << ",\n";
  os << "  .microBatches = "
     << integerAttribute(module, pipe::PipeDialect::kMicroBatches, 1)
     << ",\n  .microBatchSize = "
     << integerAttribute(module, pipe::PipeDialect::kMicroBatchSize, 1)
     << ",\n";
  if (layout.updates > 1)
    os << "  .updates = " << layout.updates << ",\n";
  writeOptimizer(os, module);
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
  os << "  },\n  .timetable = " << text::rawLiteral(options.timetable)
     << ",\n  .planJson = " << text::rawLiteral(options.planJson) << ",\n";
  if (StringRef device = layout.target->hostStyle().deviceProgram;
      !device.empty())
    os << "  .device = " << device << ",\n";
  os << "}";

  MLIRContext *context = builder.getContext();
  Location loc = module.getLoc();
  emitc::GlobalOp::create(
      builder, loc, builder.getStringAttr("program"),
      TypeAttr::get(emitc::OpaqueType::get(context, "Program")),
      emitc::OpaqueAttr::get(context, os.str()), UnitAttr(),
      builder.getUnitAttr(), builder.getUnitAttr());
  emitc::VerbatimOp::create(builder, loc, builder.getStringAttr(""),
                            ValueRange());

  emitc::VerbatimOp::create(
      builder, loc,
      builder.getStringAttr("int main(int argc, char **argv) {\n"
                            "  return runProgram(argc, argv, program);\n"
                            "}"),
      ValueRange());
  return success();
}

} // namespace pipewright::codegen
