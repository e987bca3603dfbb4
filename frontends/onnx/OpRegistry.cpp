//===- OpRegistry.cpp - The ONNX ops that can be imported -----------------===//
//
// Gathers the families' rows into one table.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/OpRegistry.h"

#include "llvm/ADT/StringMap.h"

#include <vector>

namespace pipewright::frontend {

llvm::ArrayRef<const OpRow *> allOps() {
  static const std::vector<const OpRow *> all = [] {
    std::vector<const OpRow *> result;
    for (auto family :
         {elementwiseOps, activationOps, trigonometryOps,  shapeOps,
          indexingOps,    paddingOps,    signalOps,        gatheringOps,
          scatteringOps,  reorderingOps, selectionOps,     sequenceOps,
          generatorOps,   linearOps,     convTransposeOps, volumeOps,
          einsumOps,      recurrentOps,  attentionOps,     rotaryOps,
          stateSpaceOps,  gridOps,       normalizationOps, reductionOps,
          lpNormOps,      poolingOps,    resizeOps,        lossOps,
          randomOps,      optionalOps,   controlFlowOps,   bitOps})
      for (const OpRow &row : family())
        result.push_back(&row);
    return result;
  }();
  return all;
}

bool broadcasts(const OpRow &row) {
  auto isAmong = [&](llvm::ArrayRef<OpRow> rows) {
    return &row >= rows.begin() && &row < rows.end();
  };
  return row.inputs.most > 1 &&
         (isAmong(elementwiseOps()) || isAmong(bitOps()));
}

const OpRow *findOp(llvm::StringRef name) {
  static const llvm::StringMap<const OpRow *> table = [] {
    llvm::StringMap<const OpRow *> result;
    for (const OpRow *row : allOps())
      result.try_emplace(row->name, row);
    return result;
  }();
  return table.lookup(name);
}

} // namespace pipewright::frontend
