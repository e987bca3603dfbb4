//===- BodyWriter.cpp - Ops of a stage body, one line each ----------------===//
//
// Everything about a body but the library calls: where values are, launches
// of compiled kernels, effects, and what happens at the end of a body.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/IndexBounds.h"
#include "codegen/host/StageFunctions.h"
#include "dialects/nn/NNLocation.h"

#include "dialects/nn/NNLoss.h"
#include "passes/step/BodyBuffers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace pipewright::codegen {

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

BodyWriter::BodyWriter(FunctionWriter &writer, const ProgramLayout &layout,
                       const StageLayout &stage, Preparations &preparations,
                       Operation *body)
    : writer(writer), layout(layout), stage(stage), preparations(preparations),
      names(stage.op, body) {}

Local BodyWriter::bufferAt(Value value, pipe::BufferAttr planned) {
  auto partOf = [&](ArrayRef<Local> whole) -> Local {
    size_t index = planned.getIndex();
    if (index >= whole.size())
      return {};
    bool isPart = value.getDefiningOp<nn::SubviewOp>() != nullptr;
    return isPart ? writer.part(names.of(value), whole[index],
                                planned.getOffset(), planned.getBytes())
                  : whole[index];
  };
  switch (planned.getSpace()) {
  case pipe::BufferSpace::host: // No body has values there.
    return Local();
  case pipe::BufferSpace::arena:
    return writer.buffer(names.of(value), planned.getOffset(),
                         planned.getBytes());
  case pipe::BufferSpace::stash: {
    Local stash = stashes[planned.getIndex()];
    return stash ? writer.part(names.of(value), stash, planned.getOffset(),
                               planned.getBytes())
                 : Local();
  }
  case pipe::BufferSpace::weights:
    return weights ? writer.part(names.of(value), weights, planned.getOffset(),
                                 planned.getBytes())
                   : Local();
  case pipe::BufferSpace::input:
    return partOf(inputs);
  case pipe::BufferSpace::output:
    return partOf(outputs);
  }
  llvm_unreachable("all spaces are listed");
}

Local BodyWriter::bufferOf(Value value) {
  value = behindViews(value);
  if (Local known = buffers.lookup(value))
    return known;
  if (pipe::BufferAttr place = argumentPlaces.lookup(value))
    return buffers[value] = bufferAt(value, place);
  Operation *op = value.getDefiningOp();
  if (!op) {
    emitError(value.getLoc()) << "expects a buffer for argument " << value;
    return {};
  }
  Local buffer;
  if (pipe::BufferAttr planned = plannedBuffer(value)) {
    buffer = bufferAt(value, planned);
  } else if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
    pipe::PlaceOp place = placeOf(op, parameter.getWeightAttr());
    if (!place)
      return {};
    if (!parameter.isWorkingCopy())
      buffer = bufferAt(value, place.getBuffer());
    else if (place.getRounded())
      buffer = bufferAt(value, *place.getRounded());
  }
  if (!buffer) {
    op->emitOpError() << "expects a planned buffer for result "
                      << cast<OpResult>(value).getResultNumber();
    return {};
  }
  buffers[value] = buffer;
  return buffer;
}

pipe::PlaceOp BodyWriter::placeOf(Operation *op, FlatSymbolRefAttr weight) {
  pipe::PlaceOp place = stage.places.lookup(weight.getAttr());
  if (!place)
    op->emitOpError() << "expects weight @" << weight.getValue()
                      << " to have a pipe.place in stage " << stage.number;
  return place;
}

Local BodyWriter::gradientOf(Operation *op, FlatSymbolRefAttr weight) {
  if (Local known = gradients.lookup(weight))
    return known;
  pipe::PlaceOp place = placeOf(op, weight);
  if (!place)
    return {};
  std::optional<pipe::BufferAttr> planned = place.getGradient();
  if (!planned) {
    op->emitOpError() << "expects weight @" << weight.getValue()
                      << " to have a place for its gradient";
    return {};
  }
  return gradients[weight] =
             writer.buffer("d_" + makeIdentifier(weight.getValue()),
                           planned->getOffset(), planned->getBytes());
}

Local BodyWriter::destinationOf(Value result) {
  nn::AccumulateGradientOp sum = pipe::addedInPlace(result);
  return sum ? gradientOf(sum, sum.getWeightAttr()) : bufferOf(result);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

void BodyWriter::writeLayerComment(Operation *op) {
  std::string current = nn::layerOfLocation(op->getLoc());
  if (current.empty() || current == layer)
    return;
  layer = current;
  writer.comment(layer);
}

/// Where labels are not refused before the step, a call in front of the loss
/// looks at them.
LogicalResult BodyWriter::writeLabelChecks(nn::LaunchOp op) {
  auto kernel =
      SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, op.getKernel());
  if (!kernel || kernel.isExternal())
    return success();
  for (auto loss : kernel.getOps<nn::SoftmaxCrossEntropyOp>()) {
    nn::IndexRange range = loss.getIndexRange();
    Value labels = behindViews(loss.getLabels());
    if (auto argument = dyn_cast<BlockArgument>(labels))
      labels = op.getInputs()[argument.getArgNumber()];
    if (isBounded(layout, labels, range))
      continue;
    if (labels.getParentRegion() == &kernel.getBody())
      return op.emitOpError("expects labels that are an argument of the "
                            "kernel, or constants in [0, ")
             << range.limit << ")";
    Local buffer = bufferOf(labels);
    if (!buffer)
      return failure();
    nn::LibraryCall call = nn::checkOfLabels(loss, labels);
    writer.call(call.function, {preparations.add(call), buffer});
  }
  return success();
}

/// Whether all that comes of the op's results is stored as outputs.
static bool servesOutputsAlone(Operation *op) {
  return !op->use_empty() && llvm::all_of(op->getUsers(), [](Operation *user) {
    if (auto report = dyn_cast<pipe::ReportOp>(user))
      return report.getName() != "loss";
    return (pipe::seesBytes(user) || isa<nn::LaunchOp>(user)) &&
           servesOutputsAlone(user);
  });
}

LogicalResult BodyWriter::writeLaunch(nn::LaunchOp op) {
  if (failed(writeLabelChecks(op)))
    return failure();
  SmallVector<Local> arguments;
  for (Value value : op->getOperands()) {
    Local buffer = bufferOf(value);
    if (!buffer)
      return failure();
    arguments.push_back(buffer);
  }
  for (Value value : op->getResults()) {
    Local buffer = destinationOf(value);
    if (!buffer)
      return failure();
    arguments.push_back(buffer);
  }
  StringRef kernel = op.getKernel().getLeafReference().getValue();
  preparations.kernel(kernel);
  if (servesOutputsAlone(op))
    writer.whereOutputsAreWanted();
  writer.launch(kernel, arguments);
  writer.always();
  return success();
}

/// The C type and the elements of a constant.
static std::pair<StringRef, std::vector<std::string>>
textOf(DenseElementsAttr elements) {
  std::vector<std::string> values;
  Type type = elements.getElementType();
  if (type.isF32()) {
    for (const APFloat &value : elements.getValues<APFloat>())
      values.push_back(floatLiteral(value.convertToFloat()));
    return {"float", values};
  }
  if (type.isBF16()) {
    // Its bits: C++20 has no such number.
    for (const APFloat &value : elements.getValues<APFloat>())
      values.push_back(std::to_string(value.bitcastToAPInt().getZExtValue()));
    return {"uint16_t", values};
  }
  for (const APInt &value : elements.getValues<APInt>())
    values.push_back(type.isInteger(1) ? (value.isZero() ? "0" : "1")
                                       : std::to_string(value.getSExtValue()));
  return {type.isInteger(64)  ? "int64_t"
          : type.isInteger(1) ? "uint8_t"
                              : "int8_t",
          values};
}

/// All bits zero.
static bool isZero(Attribute element) {
  if (auto number = dyn_cast<FloatAttr>(element))
    return number.getValue().isPosZero();
  return cast<IntegerAttr>(element).getValue().isZero();
}

LogicalResult BodyWriter::writeConstant(nn::ConstantOp op) {
  if (op->use_empty())
    return success();
  Local buffer = bufferOf(op.getResult());
  if (!buffer)
    return failure();
  DenseElementsAttr elements = op.getValue();
  bool isFloat = elements.getElementType().isF32();
  if (elements.isSplat() && isFloat) {
    writer.fill(elements.getSplatValue<APFloat>().convertToFloat(), buffer);
    return success();
  }
  if (elements.isSplat() && isZero(elements.getSplatValue<Attribute>())) {
    writer.zero(buffer);
    return success();
  }
  if (elements.getNumElements() > nn::ConstantOp::kMaxElements)
    return op.emitOpError()
           << "expects zeros, f32 or at most " << nn::ConstantOp::kMaxElements
           << " elements outside of kernels";
  auto [type, values] = textOf(elements);
  writer.setValues(type, std::move(values), names.of(op.getResult()), buffer);
  return success();
}

LogicalResult BodyWriter::writeReport(pipe::ReportOp op) {
  Local buffer = bufferOf(op.getValue());
  if (!buffer)
    return failure();
  if (op.getName() == "loss") {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    if (type.getNumElements() != 1 || !type.getElementType().isF32())
      return op.emitOpError()
             << "expects the loss to be one f32, but got " << type;
    writer.reportLoss(buffer);
  } else {
    writer.storeOutput(layout.outputNumber(op.getName()), buffer);
  }
  return success();
}

LogicalResult BodyWriter::writeAccumulate(nn::AccumulateGradientOp op) {
  // Library calls that add by themselves have done so.
  Value source = behindViews(op.getGradient());
  if (pipe::addedInPlace(source))
    return success();
  Local buffer = bufferOf(source);
  Local gradient = gradientOf(op, op.getWeightAttr());
  if (!buffer || !gradient)
    return failure();
  writer.accumulate(buffer, gradient);
  return success();
}

LogicalResult BodyWriter::writeReturn(pipe::ReturnOp op) {
  for (auto [index, value] : llvm::enumerate(op.getValues())) {
    Local buffer = bufferOf(value);
    if (!buffer)
      return failure();
    if (buffer != outputs[index])
      writer.copy(buffer, outputs[index]);
  }
  return success();
}

/// A state that is read, too, has its buffer from there.
LogicalResult BodyWriter::writeAssign(nn::AssignStateOp op) {
  Local source = bufferOf(op.getValue());
  pipe::PlaceOp place = placeOf(op, op.getWeightAttr());
  if (!source || !place)
    return failure();
  Local state;
  for (auto read : op->getBlock()->getOps<nn::ParameterOp>())
    if (!state && read.getWeightAttr() == op.getWeightAttr())
      state = buffers.lookup(read);
  writer.copy(source, state ? state
                            : writer.buffer(makeIdentifier(op.getWeight()),
                                            place.getBuffer().getOffset(),
                                            place.getBuffer().getBytes()));
  return success();
}

LogicalResult BodyWriter::writeCopy(pipe::CopyOp op) {
  bool isState = op.getValue().getDefiningOp<nn::ParameterOp>();
  if (isState && !std::exchange(explainsStates, true))
    writer.comment(
        "the running statistics of before: this task overwrites them");
  Local source = bufferOf(op.getValue());
  Local destination = bufferOf(op.getResult());
  if (!source || !destination)
    return failure();
  writer.copy(source, destination);
  return success();
}

LogicalResult BodyWriter::write(Operation *op) {
  if (pipe::seesBytes(op) || isa<nn::ParameterOp>(op))
    return success();
  // What a library call has added itself is not written again.
  auto sum = dyn_cast<nn::AccumulateGradientOp>(op);
  bool isWritten = !sum || !pipe::addedInPlace(behindViews(sum.getGradient()));
  if (isWritten && !isa<pipe::ReturnOp>(op) && !onlyBrings(op))
    writeLayerComment(op);
  if (auto library = dyn_cast<nn::LibraryOpInterface>(op))
    return writeLibraryCall(library);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](nn::LaunchOp launch) { return writeLaunch(launch); })
      .Case([&](nn::ConstantOp constant) { return writeConstant(constant); })
      .Case([&](nn::AccumulateGradientOp accumulate) {
        return writeAccumulate(accumulate);
      })
      .Case([&](nn::AssignStateOp assign) { return writeAssign(assign); })
      .Case([&](pipe::ReportOp report) { return writeReport(report); })
      .Case([&](pipe::CopyOp copy) { return writeCopy(copy); })
      .Case([&](pipe::ReturnOp end) { return writeReturn(end); })
      .Default([](Operation *other) {
        return other->emitOpError(
            "is neither a library call nor in a kernel; expects a module "
            "after nn-form-kernels");
      });
}

} // namespace pipewright::codegen
