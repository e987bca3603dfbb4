//===- GateOrder.h - The gates of recurrent weights as stored ---*- C++ -*-===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_OPS_GATEORDER_H
#define PIPEWRIGHT_FRONTENDS_ONNX_OPS_GATEORDER_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace pipewright::frontend {

/// A tensor of gates, and the place of each gate in it.
struct StoredGates {
  mlir::Value tensor;
  llvm::SmallVector<int64_t> places;
};

/// Exporters put the gates of weights, [gates * hidden, ...], into ONNX's order
/// by slices and concatenations, which would be computed in each step of
/// training. Gives the tensor that `gates` was put together from, if it has as
/// many elements and all of its gates once, else `gates` in its own order.
StoredGates findStoredGates(mlir::Value gates, int64_t count);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_OPS_GATEORDER_H
