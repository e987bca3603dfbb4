//===- NNWindows.h - Shapes of calls over windows ---------------*- C++ -*-===//
//
// Convolutions and pooling slide a window over images, and the shapes of their
// calls have the same fields for that.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNWINDOWS_H
#define PIPEWRIGHT_DIALECTS_NN_NNWINDOWS_H

#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNLibraryCall.h"

namespace pipewright::nn {

/// A shape of runtime/calls with what is known of `images`, which a window is
/// moved over, and of `kernel`, the height and width of that window.
template <class Shape, class WindowOp>
Shape windowShape(WindowOp op, mlir::Value images,
                  llvm::ArrayRef<int64_t> kernel) {
  llvm::ArrayRef<int64_t> strides = op.getStrides(), pads = op.getPads();
  Shape shape;
  shape.channelsLast = op.getChannelsLast();
  shape.type = elementTypeOf(op->getOperand(0));
  mlir::RankedTensorType x =
      channelsFirst(tensorOf(images), shape.channelsLast);
  shape.n = x.getDimSize(0);
  shape.c = x.getDimSize(1);
  shape.h = x.getDimSize(2);
  shape.w = x.getDimSize(3);
  shape.kh = kernel[0];
  shape.kw = kernel[1];
  shape.strideH = strides[0];
  shape.strideW = strides[1];
  shape.padTop = pads[0];
  shape.padLeft = pads[1];
  shape.padBottom = pads[2];
  shape.padRight = pads[3];
  return shape;
}

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNWINDOWS_H
