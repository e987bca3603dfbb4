//===- LibraryCalls.cpp - Library ops as calls of the runtime -------------===//
//
// Writes the record that a library op gives of its call, with its shape spelt
// out, so that a reader of the generated code sees sizes; and what a rank
// prepares for such calls.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/StageFunctions.h"

#include "dialects/call/CallDialect.h"
#include "passes/step/BodyBuffers.h"

using namespace mlir;

namespace pipewright::codegen {

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static std::string textOf(int64_t value) { return std::to_string(value); }
static std::string textOf(bool value) { return value ? "true" : "false"; }
static std::string textOf(float value) { return floatLiteral(value); }
static std::string textOf(runtime::ElementType type) {
  return type == runtime::ElementType::BF16 ? "ElementType::BF16"
                                            : "ElementType::F32";
}

/// Designated initializers.
static BracedList listOf(ArrayRef<nn::ShapeField> shape) {
  Tokens fields;
  for (const nn::ShapeField &field : shape)
    fields.push_back(
        "." + field.name.str() + " = " +
        std::visit([](auto value) { return textOf(value); }, field.value));
  return BracedList(std::move(fields));
}

//===----------------------------------------------------------------------===//
// Preparations
//===----------------------------------------------------------------------===//

void Preparations::kernel(StringRef name) {
  if (!llvm::is_contained(kernels, name))
    kernels.push_back(name.str());
}

/// Whether another shape, or the same with another option, has taken a number.
bool Preparations::isTaken(int64_t number, const nn::LibraryCall &call) const {
  return llvm::any_of(calls, [&](const Call &known) {
    return known.number == number &&
           known.preparation.function == call.preparation.function &&
           known.preparation.option != call.preparation.option;
  });
}

int64_t Preparations::numberOf(const nn::LibraryCall &call,
                               const BracedList &shape) {
  std::pair<BracedList, std::string> key(shape, call.weight);
  for (auto [number, known] : llvm::enumerate(numbered))
    if (known == key && !isTaken(number, call))
      return number;
  numbered.push_back(std::move(key));
  return numbered.size() - 1;
}

CallArgument Preparations::add(const nn::LibraryCall &call) {
  BracedList shape = listOf(call.shape);
  int64_t number = call.isNumbered ? numberOf(call, shape) : kNoNumber;
  Call prepared = {call.work, number, shape, call.preparation};
  if (!call.preparation.function.empty() &&
      !llvm::is_contained(calls, prepared))
    calls.push_back(prepared);
  if (call.isNumbered)
    return std::to_string(number);
  return shape;
}

void Preparations::write(FunctionWriter &writer, const HostStyle &style) const {
  if (style.preparesCalls)
    for (const std::string &kernel : kernels)
      writer.prepareKernel(kernel);
  // Among equals, the order of first use is that of their addresses.
  SmallVector<const Call *> sorted;
  for (const Call &call : calls)
    sorted.push_back(&call);
  llvm::sort(sorted, [](const Call *a, const Call *b) {
    return std::tuple(a->preparation.everywhere, a->work, a->number, a) <
           std::tuple(b->preparation.everywhere, b->work, b->number, b);
  });
  for (const Call *call : sorted) {
    if (!style.preparesCalls && !call->preparation.everywhere)
      continue;
    SmallVector<CallArgument> arguments;
    if (call->number != kNoNumber)
      arguments.push_back(std::to_string(call->number));
    arguments.push_back(call->shape);
    if (!call->preparation.option.empty())
      arguments.push_back(call->preparation.option.str());
    writer.call(call->preparation.function, arguments);
  }
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

LogicalResult BodyWriter::writeLibraryCall(nn::LibraryOpInterface op) {
  if (isa<call::CallDialect>(op->getDialect()) && !layout.target->canCall(op))
    return op->emitOpError("has no place in ")
           << layout.target->noun()
           << "'s program; expects the nn ops that it stands for";
  nn::AccumulateGradientOp sum;
  for (Value result : op->getResults())
    if (!sum)
      sum = pipe::addedInPlace(result);
  nn::LibraryCall call = op.getCall(sum ? sum.getWeight() : StringRef());
  SmallVector<CallArgument> arguments = {preparations.add(call)};
  if (!call.option.empty())
    arguments.push_back(call.option.str());
  if (call.takesMicroBatch)
    arguments.push_back(writer.microBatch());
  auto find = [&](Value value) {
    return value == call.added && sum ? gradientOf(sum, sum.getWeightAttr())
                                      : bufferOf(value);
  };
  // Buffers are declared as they are found: filters before what their gradient
  // is made from, all others in the order of the arguments.
  if (call.isNumbered && call.added && !find(call.added))
    return failure();
  for (Value value : call.buffers) {
    arguments.push_back(FunctionWriter::absent());
    if (!value)
      continue;
    Local buffer = find(value);
    if (!buffer)
      return failure();
    arguments.back() = buffer;
  }
  if (call.saysAdded)
    arguments.push_back(textOf(sum != nullptr));
  writer.call(call.function, arguments);
  return success();
}

} // namespace pipewright::codegen
