//===- ValueNames.h - What a stage body's values are called -----*- C++ -*-===//
//
// Generated code calls a value after the model's op that it belongs to, after
// the result of that op where there are several, and `d_` if it is a gradient.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_VALUENAMES_H
#define PIPEWRIGHT_CODEGEN_HOST_VALUENAMES_H

#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseSet.h"

#include <string>

namespace pipewright::codegen {

class ValueNames {
public:
  /// For one of the bodies of `stage`.
  ValueNames(pipe::StageOp stage, mlir::Operation *body);

  /// An identifier; not yet unique.
  std::string of(mlir::Value value);

private:
  mlir::Value keptValue(mlir::BlockArgument argument);
  bool isGradient(mlir::Value value);
  void findGradients(mlir::Operation *body);
  void addGradientsOf(nn::LaunchOp launch);
  mlir::OpResult makerOf(mlir::OpResult result);

  pipe::StageOp stage;
  mlir::SymbolTableCollection symbols;
  llvm::DenseSet<mlir::Value> gradients;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_VALUENAMES_H
