//===- RowProbe.cpp - what a root needs, without emitting it --------------===//
//
// The half of RowPlan that walks from a root to everything that its elements
// are made from, with the indices that the emitter would use.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/plan/RowPlan.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace pipewright::codegen {

static ArrayRef<int64_t> shapeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getShape();
}

/// True if neighbouring columns are more than one element apart.
static bool jumps(AffineExpr offset) {
  MLIRContext *context = offset.getContext();
  auto at = [&](int64_t column) {
    return offset.replace(getAffineDimExpr(1, context),
                          getAffineConstantExpr(column, context));
  };
  auto step = dyn_cast<AffineConstantExpr>(
      simplifyAffineExpr(at(1) - at(0), 2, /*numSymbols=*/0));
  return step && std::abs(step.getValue()) > 1;
}

bool RowPlan::visit(Walk &walk, Value tensor, ArrayRef<Index> indices) {
  AffineExpr offset = linearize(indices, shapeOf(tensor), context);
  if (!walk.seen.insert({tensor, offset}).second)
    return true;
  Operation *op = tensor.getDefiningOp();
  if (!op) {
    walk.strided |= jumps(offset);
    if (offset == element(walk.shape))
      walk.arguments.push_back(tensor);
  }
  if (op && isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op)) {
    Value source = op->getOperand(0);
    return visit(walk, source,
                 reshape(indices, shapeOf(tensor), shapeOf(source), context));
  }
  if (const Root *root = rootOf(tensor)) {
    if (root->nest < walk.nest) {
      readLater.insert(tensor);
      return !dividesColumn(offset);
    }
    if (root->reduction()) {
      // Only a reduction of this very row is known inside the nest.
      if (root->nest != walk.nest ||
          classify(*root, walk.shape) != RootKind::RowReduction ||
          offset != row(walk.shape))
        return false;
      walk.pass = std::max(walk.pass, root->pass + 1);
      return true;
    }
    if (walk.currentPass && root->pass < *walk.currentPass &&
        root->nest == walk.nest && offset == element(walk.shape))
      return true;
  }
  if (auto slice = dyn_cast_if_present<tensor::ExtractSliceOp>(op))
    return visit(walk, slice.getSource(), sliceIndices(slice, indices));
  auto generic = dyn_cast_if_present<linalg::GenericOp>(op);
  if (!generic)
    return isa_and_present<linalg::FillOp>(op) || !dividesColumn(offset);
  if (!isPointwise(generic))
    return false;
  if (offset == element(walk.shape))
    walk.elements.push_back(tensor);
  return visitBody(walk, generic, indices);
}

/// Visits everything even where something does not fit: a nest may be taken all
/// the same, and must know what it reads of nests before it.
bool RowPlan::visitBody(Walk &walk, linalg::GenericOp generic,
                        ArrayRef<Index> loops) {
  bool fits = true;
  for (OpOperand *input : generic.getDpsInputOperands()) {
    if (!generic.payloadUsesValueFromOperand(input))
      continue;
    AffineMap map = generic.getMatchingIndexingMap(input);
    SmallVector<Index> indices =
        llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
          return mapIndex(expr, loops);
        });
    fits &= visit(walk, input->get(), indices);
  }
  generic.getRegion().walk([&](Operation *inner) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      // Positions to load from stay factored; others are computed.
      if (!llvm::all_of(index->getUsers(), llvm::IsaPred<tensor::ExtractOp>))
        fits &= !dividesColumn(loops[index.getDim()].expr());
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      SmallVector<Index> indices;
      for (Value position : extract.getIndices()) {
        if (auto index = position.getDefiningOp<linalg::IndexOp>())
          indices.push_back(loops[index.getDim()]);
        else
          indices.push_back(
              {getAffineSymbolExpr(walk.symbols++, context), {}, 0});
      }
      fits &= visit(walk, extract.getTensor(), indices);
    }
  });
  return fits;
}

std::optional<unsigned> RowPlan::probe(const Root &root, unsigned nest,
                                       const Nest &shape, Walk *touched) {
  std::optional<SmallVector<Index>> indices = indicesOf(root, shape);
  if (!indices || !classify(root, shape))
    return std::nullopt;
  Walk local{nest, shape};
  Walk &walk = touched ? *touched : local;
  auto generic = root.tensor.getDefiningOp<linalg::GenericOp>();
  // Look through the root itself, unless it is to be counted too.
  bool fits = generic && (root.reduction() || !touched)
                  ? visitBody(walk, generic, *indices)
                  : visit(walk, root.tensor, *indices);
  if (nest < nests.size() && walk.strided)
    nests[nest].strided = true;
  return fits ? std::optional(walk.pass) : std::nullopt;
}

} // namespace pipewright::codegen
