//===- NNOrthogonalize.h - Products of an update of a matrix ----*- C++ -*-===//
//
// What an optimizer that takes a weight as a matrix needs beside it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNORTHOGONALIZE_H
#define PIPEWRIGHT_DIALECTS_NN_NNORTHOGONALIZE_H

#include "dialects/nn/NNLibraryCall.h"
#include "dialects/nn/NNOps.h"
#include "runtime/calls/Orthogonalize.h"

namespace pipewright::nn {

inline runtime::OrthogonalizeShape orthogonalizeShape(WeightOp weight) {
  return {weight.getTensorType().getDimSize(0),
          weight.getTensorType().getDimSize(1)};
}

/// The bytes of the direction, from its beginning to that of the workspace of
/// the call.
inline int64_t directionBytes(WeightOp weight) {
  return (orthogonalizeShape(weight).bytes() + 63) / 64 * 64;
}

/// The bytes that an update of the weight needs: its direction, then the
/// workspace of the call.
inline int64_t matrixWorkspace(WeightOp weight) {
  return directionBytes(weight) + orthogonalizeShape(weight).workspaceBytes();
}

inline LibraryCall orthogonalizeCall(WeightOp weight) {
  return {.function = PIPEWRIGHT_CALL(orthogonalize),
          .shape = fieldsOf(orthogonalizeShape(weight)),
          .work = CallWork::Matmul,
          .preparation = {.function = PIPEWRIGHT_CALL(prepareOrthogonalize),
                          .everywhere = false}};
}

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNORTHOGONALIZE_H
