//===- BatchPlaces.h - Where the samples of a batch lie ---------*- C++ -*-===//
//
// A Reshape may merge the batch with other dimensions, and not as the outermost
// part of what it makes: [steps * samples, width], [steps, samples * heads,
// width]. Which part it is follows from the ops that a value was made by.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_BATCHPLACES_H
#define PIPEWRIGHT_FRONTENDS_ONNX_BATCHPLACES_H

#include "frontends/common/ConstantTensor.h"

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace pipewright::frontend {

/// Size of dimension 0 in the file and in the program, when they differ.
struct BatchChange {
  int64_t original;
  int64_t wanted;
};

/// Neighbouring samples are `stride` elements of dimension `dim` apart, which
/// has batch * stride elements, or several times as many.
struct BatchPlace {
  int64_t dim;
  int64_t stride = 1;

  bool operator==(const BatchPlace &) const = default;
};

/// Where a batch of 2 or more samples lies after a reshape; none if no single
/// dimension has all of it.
std::optional<BatchPlace> placeAfterReshape(BatchPlace place,
                                            llvm::ArrayRef<int64_t> from,
                                            llvm::ArrayRef<int64_t> to,
                                            int64_t batch);

/// The same for the shapes that a batch of one sample has, from which the place
/// does not follow: the likeliest, which later shapes may contradict.
std::optional<BatchPlace> likelyPlace(BatchPlace place,
                                      llvm::ArrayRef<int64_t> from,
                                      llvm::ArrayRef<int64_t> to);

/// Places in the values of one function, whose arguments have `batch` samples
/// in dimension 0, 2 or more. Ops may be added while this is in use, but not
/// erased.
class BatchPlaces {
public:
  explicit BatchPlaces(int64_t batch) : batch(batch) {}

  /// None for what is the same for all samples, and where ops mix them, or
  /// with other dimensions in a way that is no place.
  std::optional<BatchPlace> find(mlir::Value value);

private:
  std::optional<BatchPlace> compute(mlir::Value value);
  std::optional<BatchPlace> known(mlir::Value value) const {
    return places.lookup(value);
  }

  int64_t batch;
  llvm::DenseMap<mlir::Value, std::optional<BatchPlace>> places;
};

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_BATCHPLACES_H
