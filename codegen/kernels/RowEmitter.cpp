//===- RowEmitter.cpp - write a planned kernel as loops -------------------===//

#include "codegen/kernels/RowEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace pipewright::codegen {

/// Kernels run on the threads of ranks, whose stacks have a few megabytes.
static constexpr int64_t kMaxStackBytes = 512 * 1024;

/// Columns of a strip in which a transpose is done.
static constexpr int64_t kTileColumns = 8;

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

RowEmitter::RowEmitter(const RowPlan &plan, OpBuilder &builder, Location loc,
                       DenseMap<Value, Value> buffers, ArrayRef<Value> results)
    : plan(plan), entry(builder), loc(loc), context(builder.getContext()),
      buffers(std::move(buffers)), results(results) {}

Value RowEmitter::allocate(Type element, int64_t size) {
  element = storageType(element);
  stackBytes += size * ((element.getIntOrFloatBitWidth() + 7) / 8);
  if (stackBytes > kMaxStackBytes) {
    if (!failed)
      emitError(loc) << "kernel needs more than " << kMaxStackBytes
                     << " bytes of temporary storage";
    failed = true;
  }
  return memref::AllocaOp::create(entry, loc,
                                  MemRefType::get({size}, element));
}

bool RowEmitter::needsColumn(AffineExpr expr) const {
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

Value RowEmitter::emitExpr(AffineExpr expr, Scope &scope) {
  // What does not change within a row is computed once per row.
  if (&scope != &*rowScope && !needsColumn(expr))
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

Value RowEmitter::emitConstant(Attribute element, Type type, Scope &scope) {
  return arith::ConstantOp::create(scope.builder, loc, type,
                                   cast<TypedAttr>(element));
}

Value RowEmitter::load(Value buffer, AffineExpr offset, Type type,
                       Scope &scope) {
  Value position = emitExpr(offset, scope);
  OpBuilder &b = scope.builder;
  Value value = memref::LoadOp::create(b, loc, buffer, position);
  if (value.getType() == type)
    return value;
  Value zero = arith::ConstantOp::create(b, loc,
                                         b.getZeroAttr(value.getType()));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zero);
}

void RowEmitter::store(Value value, Value buffer, Value offset,
                       OpBuilder &builder) {
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  if (value.getType() != stored)
    value = arith::ExtUIOp::create(builder, loc, stored, value);
  memref::StoreOp::create(builder, loc, value, buffer, offset);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Value RowEmitter::emitElement(Value tensor, ArrayRef<Index> indices) {
  RankedTensorType type = typeOf(tensor);
  AffineExpr offset = linearize(indices, type.getShape(), context);
  Scope &scope =
      columnOpen && needsColumn(offset) ? *columnScope : *rowScope;
  if (Value known = scope.elements.lookup({tensor, offset}))
    return known;
  auto remember = [&](Value value) {
    scope.elements[{tensor, offset}] = value;
    return value;
  };
  Type element = type.getElementType();
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return remember(load(buffers.lookup(tensor), offset, element, scope));
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
      return emptyError(op);
    }
    if (root->rowTemporary && here && root->pass < currentPass &&
        offset == plan.element(nest))
      return remember(
          load(buffers.lookup(tensor), plan.column(nest), element, scope));
    if (root->stored &&
        (root->nest < currentNest ||
         (here && root->kind == RootKind::Element &&
          root->pass < currentPass && offset == plan.element(nest))))
      return remember(load(buffers.lookup(tensor), offset, element, scope));
  }
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || !isPointwise(generic))
    return emptyError(op);
  return remember(emitBody(generic, indices, Value(), scope));
}

Value RowEmitter::emptyError(Operation *op) {
  if (!failed)
    op->emitOpError("cannot be placed in a fused kernel");
  failed = true;
  return Value();
}

Value RowEmitter::emitBody(linalg::GenericOp op, ArrayRef<Index> loops,
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
        mapping.map(operand,
                    scope.builder.clone(*constant)->getResult(0));
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
      indices.push_back(
          {getAffineSymbolExpr(symbols.size(), context), {}, 0});
      symbols.push_back(
          {mapping.lookup(position), columnOpen && &scope == &*columnScope});
    }
    Value value = emitElement(extract.getTensor(), indices);
    if (failed)
      return Value();
    mapping.map(extract.getResult(), value);
  }
  return mapping.lookup(body.getTerminator()->getOperand(0));
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Value RowEmitter::rootOffset(const Root &root, ArrayRef<Index> indices,
                             Scope &scope) {
  ArrayRef<int64_t> shape = typeOf(root.tensor).getShape();
  linalg::GenericOp op = root.reduction();
  if (!op)
    return emitExpr(linearize(indices, shape, context), scope);
  SmallVector<Index> outputs = llvm::map_to_vector(
      op.getMatchingIndexingMap(op.getDpsInitOperand(0)).getResults(),
      [&](AffineExpr expr) { return mapIndex(expr, indices); });
  return emitExpr(linearize(outputs, shape, context), scope);
}

/// Sets the memory that a reduction adds to, unless it adds to what is there.
LogicalResult RowEmitter::prepareAccumulator(const Root &root) {
  if (root.kind != RootKind::RowAccumulation &&
      root.kind != RootKind::ElementAccumulation)
    return success();
  Value init = root.reduction().getDpsInits()[0];
  Value buffer = buffers.lookup(root.tensor);
  if (buffers.lookup(init) == buffer)
    return success();
  auto fill = init.getDefiningOp<linalg::FillOp>();
  Attribute constant;
  if (!fill || !matchPattern(fill.value(), m_Constant(&constant)))
    return root.reduction().emitOpError(
        "expects a constant or the result's own memory as initial value");
  Value zero = arith::ConstantIndexOp::create(entry, loc, 0);
  Value one = arith::ConstantIndexOp::create(entry, loc, 1);
  Value size = arith::ConstantIndexOp::create(
      entry, loc, typeOf(root.tensor).getNumElements());
  Value value = arith::ConstantOp::create(
      entry, loc, typeOf(root.tensor).getElementType(),
      cast<TypedAttr>(constant));
  auto loop = scf::ForOp::create(entry, loc, zero, size, one);
  OpBuilder inner(loop.getBody()->getTerminator());
  store(value, buffer, loop.getInductionVar(), inner);
  return success();
}

LogicalResult RowEmitter::emitPass(unsigned number, unsigned pass) {
  const Nest &nest = plan.nests[number];
  currentPass = pass;
  SmallVector<const Root *> columnRoots, rowRoots;
  for (const Root &root : plan.roots)
    if (root.nest == number && root.pass == pass)
      (root.kind == RootKind::RowScalar ? rowRoots : columnRoots)
          .push_back(&root);
  for (const Root *root : rowRoots) {
    SmallVector<Index> indices = *plan.indicesOf(*root, nest);
    Value value = emitElement(root->tensor, indices);
    if (failed)
      return failure();
    store(value, results[root->result],
          rootOffset(*root, indices, *rowScope), rowScope->builder);
  }
  if (columnRoots.empty())
    return success();

  SmallVector<const Root *> carried;
  SmallVector<Value> inits;
  for (const Root *root : columnRoots) {
    if (root->kind == RootKind::RowReduction) {
      Value init = root->reduction().getDpsInits()[0];
      SmallVector<Index> indices = *plan.indicesOf(*root, nest);
      SmallVector<Index> outputs = llvm::map_to_vector(
          root->reduction()
              .getMatchingIndexingMap(
                  root->reduction().getDpsInitOperand(0))
              .getResults(),
          [&](AffineExpr expr) { return mapIndex(expr, indices); });
      inits.push_back(emitElement(init, outputs));
    } else if (root->kind == RootKind::RowAccumulation) {
      Value offset =
          rootOffset(*root, *plan.indicesOf(*root, nest), *rowScope);
      inits.push_back(memref::LoadOp::create(
          rowScope->builder, loc, buffers.lookup(root->tensor), offset));
    } else {
      continue;
    }
    if (failed)
      return failure();
    carried.push_back(root);
  }
  OpBuilder &row = rowScope->builder;
  Value zero = arith::ConstantIndexOp::create(row, loc, 0);
  Value one = arith::ConstantIndexOp::create(row, loc, 1);
  Value columns = arith::ConstantIndexOp::create(row, loc, nest.columns);
  auto loop = scf::ForOp::create(row, loc, tileBegin ? tileBegin : zero,
                                 tileEnd ? tileEnd : columns, one, inits);
  // Row values that the loop needs are emitted in front of it.
  row.setInsertionPoint(loop);
  columnScope.emplace(OpBuilder::atBlockBegin(loop.getBody()));
  if (!inits.empty())
    columnScope->builder.setInsertionPointToEnd(loop.getBody());
  if (nest.columns != 1)
    columnScope->exprs[getAffineDimExpr(1, context)] = loop.getInductionVar();
  columnOpen = true;

  // All values first, then all stores: a result may overwrite an argument.
  SmallVector<PendingStore> stores;
  SmallVector<Value> yields;
  for (const Root *root : columnRoots) {
    SmallVector<Index> indices = *plan.indicesOf(*root, nest);
    if (linalg::GenericOp op = root->reduction()) {
      Value offset, accumulator;
      auto it = llvm::find(carried, root);
      if (it != carried.end()) {
        accumulator = loop.getRegionIterArg(it - carried.begin());
      } else {
        offset = rootOffset(*root, indices, *columnScope);
        accumulator = memref::LoadOp::create(columnScope->builder, loc,
                                             buffers.lookup(root->tensor),
                                             offset);
      }
      Value value = emitBody(op, indices, accumulator, *columnScope);
      if (failed)
        return failure();
      if (it != carried.end())
        yields.push_back(value);
      else
        stores.push_back({value, buffers.lookup(root->tensor), offset});
      continue;
    }
    Value value = emitElement(root->tensor, indices);
    if (failed)
      return failure();
    Value offset =
        root->rowTemporary
            ? emitExpr(plan.column(nest), *columnScope)
            : rootOffset(*root, indices, *columnScope);
    Value buffer = root->result >= 0 ? results[root->result]
                                     : buffers.lookup(root->tensor);
    stores.push_back({value, buffer, offset});
  }
  for (const PendingStore &pending : stores)
    store(pending.value, pending.buffer, pending.offset,
          columnScope->builder);
  if (!inits.empty())
    scf::YieldOp::create(columnScope->builder, loc, yields);
  columnOpen = false;
  columnScope.reset();
  row.setInsertionPointAfter(loop);
  for (auto [root, value] : llvm::zip_equal(carried, loop.getResults())) {
    if (root->kind == RootKind::RowReduction)
      rowValues[root->tensor] = value;
    if (root->stored)
      store(value, buffers.lookup(root->tensor),
            rootOffset(*root, *plan.indicesOf(*root, nest), *rowScope), row);
  }
  return success();
}

/// Transposes walk columns that lie far apart: a narrow strip of columns keeps
/// their cache lines until the following rows have used them too.
bool RowEmitter::needsTiles(unsigned number) const {
  const Nest &nest = plan.nests[number];
  return nest.strided && nest.passes == 1 && nest.rows > 1 &&
         nest.columns > kTileColumns &&
         llvm::all_of(plan.roots, [&](const Root &root) {
           return root.nest != number || root.kind == RootKind::Element;
         });
}

LogicalResult RowEmitter::emitNest(unsigned number) {
  const Nest &nest = plan.nests[number];
  currentNest = number;
  rowValues.clear();
  symbols.clear();
  for (const Root &root : plan.roots)
    if (root.nest == number && mlir::failed(prepareAccumulator(root)))
      return failure();
  scf::ForOp loop, tiles;
  OpBuilder::InsertionGuard guard(entry);
  if (needsTiles(number)) {
    Value zero = arith::ConstantIndexOp::create(entry, loc, 0);
    Value step = arith::ConstantIndexOp::create(entry, loc, kTileColumns);
    Value columns = arith::ConstantIndexOp::create(entry, loc, nest.columns);
    tiles = scf::ForOp::create(entry, loc, zero, columns, step);
    entry.setInsertionPointToStart(tiles.getBody());
    tileBegin = tiles.getInductionVar();
    tileEnd = arith::MinUIOp::create(
        entry, loc, arith::AddIOp::create(entry, loc, tileBegin, step),
        columns);
  }
  rowScope.emplace(entry);
  if (nest.rows != 1) {
    Value zero = arith::ConstantIndexOp::create(entry, loc, 0);
    Value one = arith::ConstantIndexOp::create(entry, loc, 1);
    Value rows = arith::ConstantIndexOp::create(entry, loc, nest.rows);
    loop = scf::ForOp::create(entry, loc, zero, rows, one);
    rowScope->builder.setInsertionPointToStart(loop.getBody());
    rowScope->exprs[getAffineDimExpr(0, context)] = loop.getInductionVar();
  }
  for (unsigned pass = 0; pass < nest.passes; ++pass)
    if (mlir::failed(emitPass(number, pass)))
      return failure();
  tileBegin = tileEnd = Value();
  rowScope.reset();
  return success();
}

LogicalResult RowEmitter::emit() {
  for (const Root &root : plan.roots) {
    RankedTensorType type = typeOf(root.tensor);
    const Nest &nest = plan.nests[root.nest];
    if (root.result >= 0)
      // Copies of a tensor that already has storage do not replace it.
      buffers.insert({root.tensor, results[root.result]});
    else if (root.rowTemporary)
      buffers[root.tensor] = allocate(type.getElementType(), nest.columns);
    else if (root.stored)
      buffers[root.tensor] =
          allocate(type.getElementType(), type.getNumElements());
  }
  for (unsigned number = 0; number < plan.nests.size(); ++number)
    if (failed || mlir::failed(emitNest(number)))
      return failure();
  return success();
}

} // namespace pipewright::codegen
