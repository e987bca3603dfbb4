//===- ElementEmitter.cpp - write the elements of a planned kernel --------===//

#include "codegen/kernels/plan/ElementEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;

namespace pipewright::codegen {

Type storageType(Type element) {
  return element.isInteger(1) ? IntegerType::get(element.getContext(), 8)
                              : element;
}

MemRefType flatBufferType(RankedTensorType type) {
  return MemRefType::get({type.getNumElements()},
                         storageType(type.getElementType()));
}

static RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

ElementEmitter::ElementEmitter(const RowPlan &plan, Location loc,
                               DenseMap<Value, Value> buffers,
                               ArrayRef<Value> results)
    : plan(plan), loc(loc), context(loc.getContext()),
      buffers(std::move(buffers)), results(results) {}

Operation *combinerOf(linalg::GenericOp op) {
  Operation *combiner =
      op.getRegion().front().getTerminator()->getOperand(0).getDefiningOp();
  BlockArgument total = op.getRegion().front().getArguments().back();
  if (!isa_and_present<arith::AddFOp, arith::MaximumFOp>(combiner) ||
      combiner->getOperand(0) != total)
    return nullptr;
  return combiner;
}

TypedAttr neutralOf(Operation *combiner, Type type) {
  double neutral = isa<arith::AddFOp>(combiner)
                       ? 0.0
                       : -std::numeric_limits<double>::infinity();
  return FloatAttr::get(type, neutral);
}

Value ElementEmitter::combine(const Root &root, Value x, Value y,
                              OpBuilder &builder) const {
  Operation *combiner = combinerOf(root.reduction());
  IRMapping mapping;
  mapping.map(combiner->getOperand(0), x);
  mapping.map(combiner->getOperand(1), y);
  return builder.clone(*combiner, mapping)->getResult(0);
}

AffineExpr ElementEmitter::rootOffsetExpr(const Root &root,
                                          ArrayRef<Index> indices) const {
  ArrayRef<int64_t> shape = typeOf(root.tensor).getShape();
  linalg::GenericOp op = root.reduction();
  if (!op)
    return linearize(indices, shape, context);
  SmallVector<Index> outputs = llvm::map_to_vector(
      op.getMatchingIndexingMap(op.getDpsInitOperand(0)).getResults(),
      [&](AffineExpr expr) { return mapIndex(expr, indices); });
  return linearize(outputs, shape, context);
}

bool ElementEmitter::needsColumn(AffineExpr expr) const {
  if (expr.isFunctionOfDim(1))
    return true;
  for (auto [i, symbol] : llvm::enumerate(symbols))
    if (symbol.second && expr.isFunctionOfSymbol(i))
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value ElementEmitter::emitExpr(AffineExpr expr, Scope &scope) {
  // What does not change within a row is computed once per row.
  if (&scope != rowScope && !needsColumn(expr))
    return emitExpr(expr, *rowScope);
  if (Value known = scope.exprs.lookup(expr))
    return known;
  OpBuilder &b = scope.builder;
  Value value;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    value = arith::ConstantIndexOp::create(b, loc, constant.getValue());
  } else if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    return symbols[symbol.getPosition()].first;
  } else if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr)) {
    Value lhs = emitExpr(binary.getLHS(), scope);
    Value rhs = emitExpr(binary.getRHS(), scope);
    // Positions are never negative: the divisions can be unsigned.
    switch (expr.getKind()) {
    case AffineExprKind::Add:
      value = arith::AddIOp::create(b, loc, lhs, rhs);
      break;
    case AffineExprKind::Mul:
      value = arith::MulIOp::create(b, loc, lhs, rhs);
      break;
    case AffineExprKind::FloorDiv:
      value = arith::DivUIOp::create(b, loc, lhs, rhs);
      break;
    default:
      value = arith::RemUIOp::create(b, loc, lhs, rhs);
      break;
    }
  }
  scope.exprs[expr] = value;
  return value;
}

Value ElementEmitter::emitConstant(Attribute element, Type type, Scope &scope) {
  return arith::ConstantOp::create(scope.builder, loc, type,
                                   cast<TypedAttr>(element));
}

Value ElementEmitter::fromStorage(Value value, Type type,
                                  OpBuilder &builder) const {
  if (value.getType() == type)
    return value;
  Value zero = arith::ConstantOp::create(builder, loc,
                                         builder.getZeroAttr(value.getType()));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value,
                               zero);
}

Value ElementEmitter::toStorage(Value value, Type stored,
                                OpBuilder &builder) const {
  if (value.getType() == stored)
    return value;
  return arith::ExtUIOp::create(builder, loc, stored, value);
}

Value ElementEmitter::load(Value buffer, AffineExpr offset, Type type,
                           Scope &scope) {
  Value position = emitExpr(offset, scope);
  Value value = memref::LoadOp::create(scope.builder, loc, buffer, position);
  return fromStorage(value, type, scope.builder);
}

void ElementEmitter::store(Value value, Value buffer, Value offset,
                           OpBuilder &builder) {
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  memref::StoreOp::create(builder, loc, toStorage(value, stored, builder),
                          buffer, offset);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

bool ElementEmitter::isOverwritten(Value buffer) const {
  return llvm::any_of(plan.roots, [&](const Root &root) {
    const bool isDone = root.nest < currentNest ||
                        (root.nest == currentNest && root.pass < currentPass);
    return root.result >= 0 && isDone && results[root.result] == buffer;
  });
}

Value ElementEmitter::overwrittenError(BlockArgument argument) {
  if (!failed)
    argument.getOwner()->getParentOp()->emitOpError("reads argument ")
        << argument.getArgNumber()
        << " again when a result has been written to it";
  failed = true;
  return Value();
}

Value ElementEmitter::emitElement(Value tensor, ArrayRef<Index> given) {
  RankedTensorType type = typeOf(tensor);
  // There is one place along a dimension of size 1, whatever computes it: what
  // is computed in a column must not move an element of a row there.
  SmallVector<Index> indices(given);
  for (auto [index, size] : llvm::zip(indices, type.getShape()))
    if (size == 1)
      index = {getAffineConstantExpr(0, context), {}, 0};
  AffineExpr offset = linearize(indices, type.getShape(), context);
  Scope &scope = columnScope && needsColumn(offset) ? *columnScope : *rowScope;
  if (Value known = scope.elements.lookup({tensor, offset}))
    return known;
  auto remember = [&](Value value) {
    scope.elements[{tensor, offset}] = value;
    return value;
  };
  Type element = type.getElementType();
  Operation *op = tensor.getDefiningOp();
  if (!op) {
    Value buffer = buffers.lookup(tensor);
    if (isOverwritten(buffer))
      return overwrittenError(cast<BlockArgument>(tensor));
    return remember(load(buffer, offset, element, scope));
  }
  if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op)) {
    Value source = op->getOperand(0);
    return emitElement(source, reshape(indices, type.getShape(),
                                       typeOf(source).getShape(), context));
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return emitElement(slice.getSource(), sliceIndices(slice, indices));
  if (auto fill = dyn_cast<linalg::FillOp>(op)) {
    Attribute constant;
    if (matchPattern(fill.value(), m_Constant(&constant)))
      return remember(emitConstant(constant, element, scope));
    return emptyError(op);
  }
  DenseElementsAttr data;
  if (matchPattern(tensor, m_Constant(&data))) {
    if (data.isSplat())
      return remember(
          emitConstant(data.getSplatValue<Attribute>(), element, scope));
    return remember(load(buffers.lookup(tensor), offset, element, scope));
  }
  const Nest &nest = plan.nests[currentNest];
  if (const Root *root = plan.rootOf(tensor)) {
    bool here = root->nest == currentNest;
    if (here && root->kind == RootKind::RowReduction) {
      if (Value value = rowValues.lookup(tensor))
        return value;
      if (storedRowValues.contains(tensor))
        return remember(load(buffers.lookup(tensor), offset, element, scope));
      return emptyError(op);
    }
    if (root->rowTemporary && buffers.contains(tensor) && here &&
        root->pass < currentPass && offset == plan.element(nest))
      return remember(
          load(buffers.lookup(tensor), plan.column(nest), element, scope));
    if (root->stored &&
        (root->nest < currentNest ||
         (here && root->kind == RootKind::Element && root->pass < currentPass &&
          offset == plan.element(nest))))
      return remember(load(buffers.lookup(tensor), offset, element, scope));
  }
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || !isPointwise(generic))
    return emptyError(op);
  return remember(emitBody(generic, indices, Value(), scope));
}

Value ElementEmitter::emptyError(Operation *op) {
  if (!failed)
    op->emitOpError("cannot be placed in a fused kernel");
  failed = true;
  return Value();
}

Value ElementEmitter::emitBody(linalg::GenericOp op, ArrayRef<Index> loops,
                               Value accumulator, Scope &scope) {
  Block &body = op.getRegion().front();
  IRMapping mapping;
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (!op.payloadUsesValueFromOperand(input))
      continue;
    SmallVector<Index> indices = llvm::map_to_vector(
        op.getMatchingIndexingMap(input).getResults(),
        [&](AffineExpr expr) { return mapIndex(expr, loops); });
    Value value = emitElement(input->get(), indices);
    if (failed)
      return Value();
    mapping.map(op.getMatchingBlockArgument(input), value);
  }
  OpOperand *init = op.getDpsInitOperand(0);
  if (accumulator)
    mapping.map(op.getMatchingBlockArgument(init), accumulator);
  else if (op.payloadUsesValueFromOperand(init))
    return emptyError(op);
  auto isPosition = [](Operation *user) {
    return isa<tensor::ExtractOp>(user);
  };
  for (Operation &inner : body.getOperations()) {
    // Constants may stand outside of the body.
    for (Value operand : inner.getOperands())
      if (Operation *constant = operand.getDefiningOp();
          !mapping.contains(operand) && constant &&
          constant->hasTrait<OpTrait::ConstantLike>())
        mapping.map(operand, scope.builder.clone(*constant)->getResult(0));
    if (inner.hasTrait<OpTrait::IsTerminator>())
      break;
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      if (!llvm::all_of(index->getUsers(), isPosition))
        mapping.map(index.getResult(),
                    emitExpr(loops[index.getDim()].expr(), scope));
      continue;
    }
    auto extract = dyn_cast<tensor::ExtractOp>(inner);
    if (!extract) {
      scope.builder.clone(inner, mapping);
      continue;
    }
    SmallVector<Index> indices;
    for (Value position : extract.getIndices()) {
      if (auto index = position.getDefiningOp<linalg::IndexOp>()) {
        indices.push_back(loops[index.getDim()]);
        continue;
      }
      indices.push_back({getAffineSymbolExpr(symbols.size(), context), {}, 0});
      symbols.push_back({mapping.lookup(position), &scope == columnScope});
    }
    Value value = emitElement(extract.getTensor(), indices);
    if (failed)
      return Value();
    mapping.map(extract.getResult(), value);
  }
  return mapping.lookup(body.getTerminator()->getOperand(0));
}

} // namespace pipewright::codegen
