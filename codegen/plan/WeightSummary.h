//===- WeightSummary.h - What trains and what does not ----------*- C++ -*-===//
//
// Which tensors of the weights file the program trains: for people to see
// before they wait for a training that learns something else.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_PLAN_WEIGHTSUMMARY_H
#define PIPEWRIGHT_CODEGEN_PLAN_WEIGHTSUMMARY_H

#include "dialects/nn/NNOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace pipewright::codegen {

struct WeightSummary {
  /// A weight that is not trained.
  struct Untrained {
    std::string name;
    nn::WeightRole role;
    /// Why a constant is one; empty for others.
    std::string reason;
    int64_t elements = 0;
  };

  int64_t trainedWeights = 0, trainedElements = 0;
  std::vector<Untrained> untrained;

  static WeightSummary of(mlir::ModuleOp module);

  llvm::json::Value toJson() const;
  /// `1,024 parameters in 4 weights; not trained: 2 constants (cos, sin)`
  void print(llvm::raw_ostream &os) const;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_PLAN_WEIGHTSUMMARY_H
