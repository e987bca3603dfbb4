//===- Gathering.cpp - Elements and slices by lists of indices ------------===//
//
// GatherElements and GatherND: each index becomes the number of a row of a
// table, so reading is nn.embedding.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"
#include "frontends/onnx/ops/Rows.h"

using namespace mlir;

namespace pipewright::frontend {

/// How many leading axes before `axis` the indices are the same along, and as
/// long as the data: those stay together, such as samples of a batch.
static int64_t countSharedAxes(NodeContext &n, int64_t axis) {
  const ConstantTensor &indices = *n.constant(1);
  int64_t shared = 0, rest = indices.size();
  for (; shared < axis && n.shape(1)[shared] == n.shape(0)[shared]; ++shared) {
    int64_t next = rest / n.shape(1)[shared];
    for (int64_t i = next, e = indices.size(); i < e; ++i)
      if (indices.intAt(i) != indices.intAt(i % next))
        return shared;
    rest = next;
  }
  return shared;
}

static LogicalResult foldGatherElements(NodeContext &n) {
  FailureOr<int64_t> axis = readElementsAxis(n);
  if (failed(axis))
    return failure();
  FailureOr<Rows> rows = elementRows(n, *axis);
  if (failed(rows))
    return failure();
  return n.setResult(0, n.constant(0)->remapped(n.shape(1), [&](int64_t i) {
    return rows->numbers[i];
  }));
}

static LogicalResult gatherComputedElements(NodeContext &n, int64_t axis) {
  Value numbers = computeElementNumbers(n, axis);
  Value table = n.b.reshape(n.value(0), {elementCount(n.shape(0)), 1});
  return n.setResult(0, n.b.reshape(lookUp(n, table, numbers), n.shape(1)));
}

static LogicalResult importGatherElements(NodeContext &n) {
  FailureOr<int64_t> axis = readElementsAxis(n);
  if (failed(axis))
    return failure();
  if (!n.constant(1))
    return gatherComputedElements(n, *axis);
  FailureOr<Rows> all = elementRows(n, *axis);
  if (failed(all))
    return failure();
  // [shared, rest] is a table of `rest` rows as wide as what is shared.
  int64_t shared = countSharedAxes(n, *axis);
  int64_t width = elementCount(n.shape(0).take_front(shared));
  int64_t rows = all->rows / width;
  int64_t count = elementCount(n.shape(1)) / width;
  all->numbers.resize(count);
  Value table = n.b.reshape(n.value(0), {width, rows});
  table = n.b.transpose(table, {1, 0});
  Value found = lookUp(n, table, madeNumbers(n, all->numbers));
  found = n.b.transpose(found, {1, 0});
  return n.setResult(0, n.b.reshape(found, n.shape(1)));
}

//===----------------------------------------------------------------------===//
// GatherND
//===----------------------------------------------------------------------===//

static LogicalResult foldGatherNd(NodeContext &n) {
  FailureOr<NdForm> form = readNdForm(n, n.intAttribute("batch_dims", 0));
  if (failed(form))
    return failure();
  FailureOr<std::vector<int64_t>> numbers = readNumbers(n, *form);
  if (failed(numbers) ||
      (!n.constant(0)->isSplat() && failed(n.expectComputable(form->result))))
    return failure();
  int64_t perBatch = int64_t(numbers->size()) / form->batch;
  return n.setResult(0, n.constant(0)->remapped(form->result, [&](int64_t i) {
    int64_t at = i / form->width;
    int64_t row = at / perBatch * form->rows + (*numbers)[at];
    return row * form->width + i % form->width;
  }));
}

static LogicalResult importGatherNd(NodeContext &n) {
  FailureOr<NdForm> form = readNdForm(n, n.intAttribute("batch_dims", 0));
  if (failed(form))
    return failure();
  Value table =
      n.b.reshape(n.value(0), {form->batch * form->rows, form->width});
  Value numbers;
  if (n.constant(1)) {
    FailureOr<std::vector<int64_t>> rows = readNumbers(n, *form);
    if (failed(rows))
      return failure();
    int64_t perBatch = int64_t(rows->size()) / form->batch;
    for (auto [i, number] : llvm::enumerate(*rows))
      number += int64_t(i) / perBatch * form->rows;
    numbers = madeNumbers(n, *rows);
  } else {
    numbers = computeNumbers(n, *form);
  }
  return n.setResult(0, n.b.reshape(lookUp(n, table, numbers), form->result));
}

ArrayRef<OpRow> gatheringOps() {
  static const OpRow rows[] = {
      {"GatherElements", 11, exactly(2), importGatherElements,
       foldGatherElements},
      {"GatherND", 11, exactly(2), importGatherNd, foldGatherNd},
  };
  return rows;
}

} // namespace pipewright::frontend
