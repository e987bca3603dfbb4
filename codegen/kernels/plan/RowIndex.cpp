//===- RowIndex.cpp - positions in tensors, kept factored -----------------===//

#include "codegen/kernels/plan/RowIndex.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace pipewright::codegen {

static int64_t product(ArrayRef<int64_t> sizes) {
  return llvm::product_of(sizes);
}

/// Digits `first`..`last` of `index.whole`, read as one number.
static AffineExpr digits(const Index &index, unsigned first, unsigned last) {
  ArrayRef<int64_t> sizes = index.sizes;
  AffineExpr value = index.whole.floorDiv(product(sizes.drop_front(last + 1)));
  if (first > 0)
    value = value % product(sizes.slice(first, last - first + 1));
  return value;
}

AffineExpr Index::expr() const {
  return sizes.empty() ? whole : digits(*this, part, part);
}

SmallVector<Index> split(AffineExpr whole, ArrayRef<int64_t> shape) {
  SmallVector<int64_t, 4> sizes;
  llvm::copy_if(shape, std::back_inserter(sizes),
                [](int64_t size) { return size != 1; });
  AffineExpr zero = getAffineConstantExpr(0, whole.getContext());
  SmallVector<Index> result;
  unsigned part = 0;
  for (int64_t size : shape) {
    if (size == 1)
      result.push_back({zero, {}, 0});
    else if (sizes.size() == 1 || isa<AffineConstantExpr>(whole))
      // A constant has digits that need no division at run time either.
      result.push_back(
          {sizes.size() == 1 ? whole : Index{whole, sizes, part}.expr(),
           {},
           0});
    else
      result.push_back({whole, sizes, part});
    part += size != 1;
  }
  return result;
}

AffineExpr linearize(ArrayRef<Index> indices, ArrayRef<int64_t> shape,
                     MLIRContext *context) {
  AffineExpr offset = getAffineConstantExpr(0, context);
  for (size_t i = 0; i < indices.size(); ++i) {
    if (shape[i] == 1)
      continue;
    const Index &index = indices[i];
    if (index.sizes.empty() || index.sizes[index.part] != shape[i]) {
      offset = offset * shape[i] + index.expr();
      continue;
    }
    // Take the longest run of neighbouring digits of the same number.
    unsigned last = index.part;
    int64_t extent = shape[i];
    size_t next = i + 1;
    for (; next < indices.size(); ++next) {
      if (shape[next] == 1)
        continue;
      const Index &follower = indices[next];
      if (follower.sizes != index.sizes || follower.whole != index.whole ||
          follower.part != last + 1 ||
          follower.sizes[follower.part] != shape[next])
        break;
      last = follower.part;
      extent *= shape[next];
    }
    offset = offset * extent + digits(index, index.part, last);
    i = next - 1;
  }
  return offset;
}

SmallVector<Index> reshape(ArrayRef<Index> indices, ArrayRef<int64_t> from,
                           ArrayRef<int64_t> to, MLIRContext *context) {
  // Cut both shapes where their leading products agree; only what lies between
  // two cuts has to be put together and taken apart.
  SmallVector<Index> result;
  size_t fromBegin = 0, toBegin = 0;
  while (fromBegin < from.size() || toBegin < to.size()) {
    size_t fromEnd = fromBegin, toEnd = toBegin;
    int64_t fromSize = 1, toSize = 1;
    do {
      if (fromSize <= toSize && fromEnd < from.size())
        fromSize *= from[fromEnd++];
      else if (toEnd < to.size())
        toSize *= to[toEnd++];
      else
        fromSize *= from[fromEnd++];
    } while (fromSize != toSize);
    ArrayRef<int64_t> fromPart = from.slice(fromBegin, fromEnd - fromBegin);
    ArrayRef<int64_t> toPart = to.slice(toBegin, toEnd - toBegin);
    if (fromPart == toPart)
      llvm::append_range(result, indices.slice(fromBegin, fromEnd - fromBegin));
    else
      llvm::append_range(
          result, split(linearize(indices.slice(fromBegin, fromEnd - fromBegin),
                                  fromPart, context),
                        toPart));
    fromBegin = fromEnd;
    toBegin = toEnd;
  }
  return result;
}

bool dividesColumn(AffineExpr expr) {
  bool found = false;
  expr.walk([&](AffineExpr part) {
    if (part.getKind() == AffineExprKind::FloorDiv ||
        part.getKind() == AffineExprKind::Mod)
      found |= part.isFunctionOfDim(1);
  });
  return found;
}

} // namespace pipewright::codegen
