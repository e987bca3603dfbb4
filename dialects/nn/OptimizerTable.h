//===- OptimizerTable.h - All optimizers, row by row ------------*- C++ -*-===//
//
// The one list of optimizers. The command line, `#nn.optimizer`, `nn.update`,
// the plan of the arena, kernels and the table of a program all read it. An
// optimizer is a row here and a formula in OptimizerToLinalg.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_OPTIMIZERTABLE_H
#define PIPEWRIGHT_DIALECTS_NN_OPTIMIZERTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace pipewright::nn {

/// The formula; OptimizerToLinalg.cpp has one for each.
enum class UpdateRule { Sgd, Adam, DecoupledAdam, Rmsprop, Lamb, Lion, Muon };

/// How much an update must see at a time.
enum class Granularity {
  /// An element: one kernel updates all weights of a stage as one flat range.
  Flat,
  /// A weight, whose norms it takes: each weight has a kernel of its own.
  Weight,
  /// A matrix (nn.weight's `outputs`), of which it makes products; all other
  /// weights of a stage are one flat range, in front of the matrices.
  Matrix,
};

/// The values that a hyper-parameter may have.
enum class HyperRange { AtLeastZero, BelowOne, Flag };

struct HyperParameter {
  llvm::StringRef name;
  double defaultValue = 0;
  HyperRange range = HyperRange::AtLeastZero;
  /// Whether kernels get it anew at each step; the others are compiled in.
  bool perStep = false;
  /// A hyper-parameter that must be above 0 where this one is; "" is none.
  llvm::StringRef needs = "";
};

/// A buffer of the weights' size that an update keeps for the next one.
struct OptimizerState {
  llvm::StringRef name;
  /// The state is there where this hyper-parameter is above 0; "": always.
  llvm::StringRef onlyWith = "";
  /// Whether matrices have it, too, where the granularity is Matrix.
  bool isOfMatrices = true;
};

/// A number that kernels get at each step.
struct StepScalar {
  /// As `runtime::StepScalar` names the way to compute it.
  llvm::StringRef kind;
  /// The hyper-parameter, not one of each step, that it is computed from.
  llvm::StringRef of = "";
};

struct Optimizer {
  llvm::StringRef name;
  UpdateRule rule;
  Granularity granularity;
  llvm::SmallVector<HyperParameter> hyperParameters;
  llvm::SmallVector<OptimizerState> states;
  llvm::SmallVector<StepScalar> scalars;

  /// Where the scalar stands among `scalars`.
  int64_t positionOf(llvm::StringRef kind, llvm::StringRef of = "") const;
};

llvm::ArrayRef<Optimizer> optimizers();
/// Null where no optimizer has the name.
const Optimizer *findOptimizer(llvm::StringRef name);
/// For messages: "sgd, adam or rmsprop".
std::string optimizerNames();
/// For messages: "a number of at least 0".
llvm::StringRef describeRange(HyperRange range);

/// An optimizer with a value for each of its hyper-parameters.
struct OptimizerChoice {
  explicit OptimizerChoice(const Optimizer &row);

  const Optimizer *row;
  /// In the order of the row.
  llvm::SmallVector<double> values;

  /// 0 where the optimizer has no such hyper-parameter.
  double get(llvm::StringRef name) const;
  /// Replaces a value; fails where the optimizer has no such hyper-parameter.
  llvm::Error set(llvm::StringRef name, double value);
  /// Whether all values are in range and have what they need.
  llvm::Error check() const;
  /// The states that are kept with these values, and their names.
  llvm::SmallVector<OptimizerState> keptStates() const;
  llvm::SmallVector<llvm::StringRef> states() const;
  /// Whether it takes a weight as a matrix, if that is marked as one.
  bool takesMatrices() const { return row->granularity == Granularity::Matrix; }
  /// The same with default values of what changes from step to step: all that
  /// kernels depend on.
  OptimizerChoice compiledIn() const;
};

/// Reads `sgd,lr=0.1,momentum=0.9,nesterov`; errors name --optimizer.
llvm::Expected<OptimizerChoice> parseOptimizer(llvm::StringRef text);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_OPTIMIZERTABLE_H
