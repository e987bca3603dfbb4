//===- TensorBuilder.cpp - Checked creation of nn ops ---------------------===//
//
// The generated builders abort when type inference fails; a model's mistake
// must not, so inference runs here first, with its messages captured.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/TensorBuilder.h"

#include "dialects/nn/NNLimits.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;

namespace pipewright::frontend {

ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

ElementKind kindOf(Value value) {
  Type type = cast<RankedTensorType>(value.getType()).getElementType();
  if (type.isF32())
    return ElementKind::Float;
  return type.isInteger(1) ? ElementKind::Bool : ElementKind::Int;
}

/// Infers the result types of an op that is described but not yet built.
static LogicalResult inferTypes(OperationState &state) {
  auto *interface = state.name.getInterface<InferTypeOpInterface>();
  if (!interface)
    return emitError(state.location) << "has no inferred result type";
  MLIRContext *context = state.getContext();
  DictionaryAttr attrs = state.attributes.getDictionary(context);
  size_t size = state.name.getOpPropertyByteSize();
  auto storage =
      std::make_unique<std::max_align_t[]>(size / sizeof(std::max_align_t) + 1);
  OpaqueProperties properties(size ? storage.get() : nullptr);
  if (size) {
    state.name.initOpProperties(properties, OpaqueProperties(nullptr));
    if (failed(state.name.setOpPropertiesFromAttribute(
            state.name, properties, attrs,
            [&] { return emitError(state.location); })))
      return failure();
  }
  LogicalResult result = interface->inferReturnTypes(
      context, state.location, state.operands, attrs, properties, state.regions,
      state.types);
  if (size)
    state.name.destroyOpProperties(properties);
  return result;
}

Operation *TensorBuilder::createChecked(StringRef name, ValueRange operands,
                                        Attrs attrs, Type resultType) {
  if (llvm::any_of(operands, [](Value v) { return !v; }))
    return nullptr;
  OperationState state(loc, name);
  state.addOperands(operands);
  state.addAttributes(attrs);
  Operation *op = nullptr;
  std::string problem;
  {
    ScopedDiagnosticHandler capture(builder.getContext(),
                                    [&](Diagnostic &diagnostic) {
                                      if (problem.empty())
                                        problem = diagnostic.str();
                                      return success();
                                    });
    if (resultType)
      state.addTypes(resultType);
    if (resultType || succeeded(inferTypes(state))) {
      for (Type type : state.types)
        if (problem.empty())
          problem =
              nn::problemOfSize(mlir::cast<RankedTensorType>(type).getShape());
      if (problem.empty())
        op = builder.create(state);
      if (op && failed(verify(op))) {
        op->erase();
        op = nullptr;
      }
    }
  }
  if (!op)
    onError() << problem;
  return op;
}

NamedAttribute TensorBuilder::ints(StringRef name, ArrayRef<int64_t> values) {
  return builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(values));
}

NamedAttribute TensorBuilder::integer(StringRef name, int64_t value) {
  return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
}

NamedAttribute TensorBuilder::real(StringRef name, float value) {
  return builder.getNamedAttr(name, builder.getF32FloatAttr(value));
}

NamedAttribute TensorBuilder::unit(StringRef name) {
  return builder.getNamedAttr(name, builder.getUnitAttr());
}

Value TensorBuilder::reshape(Value x, ArrayRef<int64_t> shape) {
  if (!x || shapeOf(x) == shape)
    return x;
  auto type = cast<RankedTensorType>(x.getType()).clone(shape);
  return create<nn::ReshapeOp>(x, {}, type);
}

Value TensorBuilder::transpose(Value x, ArrayRef<int64_t> permutation) {
  if (!x || llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return x;
  return create<nn::TransposeOp>(x, ints("permutation", permutation));
}

Value TensorBuilder::broadcastTo(Value x, ArrayRef<int64_t> shape) {
  if (!x || shapeOf(x) == shape)
    return x;
  auto type = cast<RankedTensorType>(x.getType()).clone(shape);
  return create<nn::BroadcastToOp>(x, {}, type);
}

Value TensorBuilder::cast(Value x, ElementKind kind) {
  if (!x || kindOf(x) == kind)
    return x;
  auto type = mlir::cast<RankedTensorType>(x.getType())
                  .clone(elementType(kind, builder.getContext()));
  return create<nn::CastOp>(x, {}, type);
}

Value TensorBuilder::compare(Value x, Value y, nn::ComparePredicate predicate) {
  auto attr = nn::ComparePredicateAttr::get(builder.getContext(), predicate);
  return create<nn::CompareOp>({x, y}, builder.getNamedAttr("predicate", attr));
}

Value TensorBuilder::sliceAxis(Value x, int64_t axis, int64_t start,
                               int64_t size, int64_t step) {
  if (!x)
    return x;
  Shape sizes(shapeOf(x));
  if (start == 0 && step == 1 && sizes[axis] == size)
    return x;
  Shape starts(sizes.size(), 0), steps(sizes.size(), 1);
  starts[axis] = start;
  sizes[axis] = size;
  steps[axis] = step;
  return create<nn::SliceOp>(
      x, {ints("starts", starts), ints("sizes", sizes), ints("steps", steps)});
}

Value TensorBuilder::splat(float value, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, builder.getF32Type());
  return create<nn::ConstantOp>(
      {}, builder.getNamedAttr("value", DenseElementsAttr::get(type, value)),
      type);
}

} // namespace pipewright::frontend
