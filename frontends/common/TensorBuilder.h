//===- TensorBuilder.h - Checked creation of nn ops ------------*- C++ -*-===//
//
// Builds nn ops from a model that may be wrong: result types are inferred and
// each op is verified before it enters the module, and what its verifier says
// becomes an error about the model's node instead of an abort. A null operand
// gives a null result without a second message, so calls can be chained.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_COMMON_TENSORBUILDER_H
#define PIPEWRIGHT_FRONTENDS_COMMON_TENSORBUILDER_H

#include "dialects/nn/NNOps.h"
#include "frontends/common/ConstantTensor.h"

#include <functional>

namespace pipewright::frontend {

/// The shape of a value; values are always ranked and static here.
llvm::ArrayRef<int64_t> shapeOf(mlir::Value value);
ElementKind kindOf(mlir::Value value);

class TensorBuilder {
public:
  using ErrorFn = std::function<mlir::InFlightDiagnostic()>;
  using Attrs = llvm::ArrayRef<mlir::NamedAttribute>;

  TensorBuilder(mlir::OpBuilder &builder, mlir::Location loc, ErrorFn onError)
      : builder(builder), loc(loc), onError(std::move(onError)) {}

  /// Creates an op by ODS attribute names; null after an error. `resultType`
  /// is for the ops whose result does not follow from their operands.
  template <typename OpTy>
  mlir::Operation *createOp(mlir::ValueRange operands, Attrs attrs = {},
                            mlir::Type resultType = {}) {
    return createChecked(OpTy::getOperationName(), operands, attrs, resultType);
  }
  /// The same, for the first result.
  template <typename OpTy>
  mlir::Value create(mlir::ValueRange operands, Attrs attrs = {},
                     mlir::Type resultType = {}) {
    mlir::Operation *op = createOp<OpTy>(operands, attrs, resultType);
    return op ? mlir::Value(op->getResult(0)) : mlir::Value();
  }

  mlir::NamedAttribute ints(llvm::StringRef name,
                            llvm::ArrayRef<int64_t> values);
  mlir::NamedAttribute integer(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute real(llvm::StringRef name, float value);
  mlir::NamedAttribute unit(llvm::StringRef name);

  // Shape changes; each returns its operand where nothing changes.
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation);
  mlir::Value broadcastTo(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value cast(mlir::Value x, ElementKind kind);
  mlir::Value compare(mlir::Value x, mlir::Value y,
                      nn::ComparePredicate predicate);
  /// Elements start, start + step, ... of one dimension.
  mlir::Value sliceAxis(mlir::Value x, int64_t axis, int64_t start,
                        int64_t size, int64_t step = 1);

  mlir::Value splat(float value, llvm::ArrayRef<int64_t> shape = {});
  /// Reduces the given axes, which may be in any order.
  template <typename OpTy>
  mlir::Value reduce(mlir::Value x, llvm::ArrayRef<int64_t> axes,
                     bool keepDims) {
    Shape sorted(axes);
    llvm::sort(sorted);
    llvm::SmallVector<mlir::NamedAttribute> attrs = {ints("axes", sorted)};
    if (keepDims)
      attrs.push_back(unit("keep_dims"));
    return create<OpTy>(x, attrs);
  }

  mlir::InFlightDiagnostic error() { return onError(); }
  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLoc() const { return loc; }

private:
  mlir::Operation *createChecked(llvm::StringRef name,
                                 mlir::ValueRange operands, Attrs attrs,
                                 mlir::Type resultType);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  ErrorFn onError;
};

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_COMMON_TENSORBUILDER_H
