//===- Levels.h - The levels by name, and what each promises ----*- C++ -*-===//
//
// Which level a module is of, and the passes that prove it. Text that was
// changed by hand, or by a pass from outside, is proven with them before
// anything is made of it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPELINES_LEVELS_H
#define PIPEWRIGHT_PASSES_PIPELINES_LEVELS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <utility>

namespace pipewright {

/// In the order in which a module goes through them.
enum class Level { Import, Staged, Unrolled, Scheduled, Allocated };

/// Each level with its name: `import`, `staged`, ...
llvm::ArrayRef<std::pair<llvm::StringRef, Level>> namesOfLevels();
llvm::StringRef nameOf(Level level);

/// The level of a module by its ops: an arena, a rank's program, a step or a
/// stage; without these it is an imported model.
Level levelOf(mlir::ModuleOp module);

/// Adds the passes that prove all that `level` promises, which is more than the
/// last of them does where the levels before are not proven. `hasStreams`: the
/// allocated level of a target with streams.
void buildVerification(mlir::OpPassManager &pm, Level level, bool hasStreams);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PIPELINES_LEVELS_H
