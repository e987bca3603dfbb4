//===- Compile.h - From a model to a plan or a program ----------*- C++ -*-===//
//
// What compile, plan and train do with their options.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_COMPILE_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_COMPILE_H

#include "tools/pipewright/Draw.h"
#include "tools/pipewright/Options.h"

namespace pipewright::tool {

/// The options of `plan` besides those of a compilation and drawings.
struct PlanOptions {
  bool asJson = false;
  /// Where to write the model with its stages; empty for nowhere.
  std::string annotatedModel;
  /// The schedules to compare; empty for the one that the compilation has.
  std::vector<std::string> compare;
};

const std::vector<OptionRow<PlanOptions>> &planRows();

/// Writes the program, by default into a folder with the model's name, or
/// prints the level that was asked for. Returns an exit code; what went wrong
/// has been said. A temporary program's folder is not worth mentioning.
int compileModel(CompileOptions options, bool isTemporary = false);

/// Prints what would be compiled, and draws it.
int planModel(const CompileOptions &options, const PlanOptions &planning,
              const DrawOptions &drawings);

/// A schedule by name, or ranks and replicas, and what that makes of the
/// options: some do not allow every combination.
struct PlanCandidate {
  std::string name;
  llvm::Expected<CompileOptions> options;
};

/// In what plans differ that are compared.
enum class Compared { Schedules, Workers };

/// Plans the model under each candidate, draws all of them, and prints one
/// table, the fastest first; a candidate that is not possible gets its reason
/// instead. Fails only if none is possible, or if a drawing cannot be written.
int comparePlans(llvm::MutableArrayRef<PlanCandidate> candidates,
                 Compared compared, const DrawOptions &drawings);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_COMPILE_H
