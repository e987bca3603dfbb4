//===- Target.h - What a generated program runs on --------------*- C++ -*-===//
//
// A target is an object: all that the compiler has to know of what a program
// runs on is asked of it, and its name is compared with nothing outside of its
// own folder. It knows kernels and machines, and nothing of who asks: host code
// (codegen/host), plans (codegen/plan), the output folder (codegen/package) and
// the command line.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_TARGET_TARGET_H
#define PIPEWRIGHT_CODEGEN_TARGET_TARGET_H

#include "passes/planning/MachineModel.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright {

namespace codegen {

/// How host code is written, where targets differ.
struct HostStyle {
  /// The class of the runtime that is one rank, and the header in runtime/ that
  /// declares it with everything else that generated code uses.
  llvm::StringRef rankClass = "Rank", runtimeHeader = "Runtime.h";
  /// Whether the accesses to a buffer are ordered by streams and events, which
  /// pipe-assign-streams makes; otherwise by waiting.
  bool hasStreams = false;
  /// Whether the rank is given each task as a function (`rank.task("F", 0, 0,
  /// [&] { ... });`); otherwise the task says itself that it begins.
  bool givesTasks = false;
  /// Whether kernels.h declares kernels as objects (`launch(rank, relu_8,
  /// {x, y})`); otherwise as functions in C.
  bool hasKernelObjects = false;
  /// Whether kernels and all calls that have a preparation are prepared before
  /// the first step; otherwise only those that need it everywhere.
  bool preparesCalls = false;
  /// What the field `device` of `Program` is; empty where it has none.
  llvm::StringRef deviceProgram = {};
};

/// How the files of src/ become the executable.
struct BuildRules {
  /// What is compiled beside stages.cpp, ranks.cpp and main.cpp.
  std::vector<std::string> sources;
  /// Words of the link line behind these and in front of the runtime.
  std::vector<std::string> link;
  /// Of src/CMakeLists.txt: the languages, a line in front of the runtime, and
  /// how the executable `train` is made.
  llvm::StringRef cmakeLanguages, cmakeSettings, cmakeExecutable;
};

/// What a plan says to people beyond its figures. Each is empty where the
/// machine that compiles is meant.
struct PlanWords {
  /// The plan is `for GPUs`.
  llvm::StringRef runsOn;
  /// A line about memory that is not in the arenas.
  llvm::StringRef besideArenas;
  /// Times are those `with an H100 for each rank`, `with a core for each rank`.
  llvm::StringRef machine;
};

/// An option of the command line that only some targets understand.
struct TargetOption {
  /// Without dashes; plan.json has it with underscores.
  llvm::StringRef name, valueName, help;
  std::vector<llvm::StringRef> choices;
  /// What holds unless it is given.
  llvm::StringRef defaultValue;
};

/// --pack-attention, of targets whose attention reads by strides.
TargetOption packAttentionOption();

/// What is decided for a target before the model is opened. The user's own
/// --layout and --pad-vocabulary win.
struct TargetDecisions {
  /// Whether images have their channels last; nothing where the target does not
  /// mind, and they stay as they are.
  std::optional<bool> channelsLast;
  /// What the number of classes is made a multiple of; 1 leaves it.
  int64_t vocabularyMultiple = 1;
  /// What call-fuse-epilogues is told; empty where products have none.
  std::string epilogues;
  /// Elements of a vector that attention goes to; 0 is any number.
  int64_t longestAttention = 0;
  /// Whether attention reads by strides (call-pack-attention), and only what
  /// is cached then.
  bool packAttention = false, cachedAttention = false;
  /// What decisions are made for: 90 is sm_90.
  int64_t architecture = 90;
};

/// Where a target writes its files; names are relative to src/.
class SourceFolder {
public:
  virtual ~SourceFolder() = default;
  virtual llvm::Error write(llvm::StringRef name, llvm::StringRef text) = 0;
  /// Copies the files of `source` whose names have one of these extensions.
  virtual llvm::Error copy(llvm::StringRef source, llvm::StringRef name,
                           llvm::ArrayRef<llvm::StringRef> extensions) = 0;
  /// Where a tool writes a file itself.
  virtual std::string pathOf(llvm::StringRef name) const = 0;
};

/// The error of what the context's diagnostics have told already.
llvm::Error diagnosed();

class Target {
public:
  virtual ~Target();

  /// As --target and plan.json have it.
  virtual llvm::StringRef name() const = 0;
  /// What runs a rank, as messages have it: `a CPU`.
  virtual llvm::StringRef noun() const = 0;
  virtual PlanWords planWords() const { return {}; }

  //===--- Decisions ------------------------------------------------------===//

  /// f32 alone, unless it says more.
  virtual llvm::ArrayRef<Precision> precisions() const;
  virtual llvm::ArrayRef<TargetOption> options() const { return {}; }
  /// `valueOf` gives the values of `options()`, which are among their choices.
  virtual TargetDecisions
  decide(Precision precision,
         llvm::function_ref<llvm::StringRef(llvm::StringRef)> valueOf) const {
    return {};
  }
  /// The name of the machine that decisions are made for, as
  /// `machineNamed` knows it: nominal, so that a program is the same
  /// whoever compiles it.
  virtual std::string machineName(Precision precision) const { return "cpu"; }
  /// The machine that times are predicted for, one unit of it for each rank;
  /// that one, unless it says another. Schedules that plan with times are
  /// decided for it, too.
  virtual const MachineModel &machine(Precision precision) const;
  /// Whether that is this host as it was measured, so another one elsewhere.
  virtual bool isMeasuredHere() const { return false; }
  /// Whether any two groups add up what their members have in one order.
  virtual bool addsInOneOrder() const { return true; }
  /// Whether the ranks of a program that runs here share this machine's cores,
  /// be they fewer than ranks.
  virtual bool sharesCores() const { return false; }

  //===--- Programs -------------------------------------------------------===//

  virtual const HostStyle &hostStyle() const = 0;
  bool hasStreams() const { return hostStyle().hasStreams; }
  /// Whether its runtime has the call of an op of the call dialect; no such op,
  /// unless it says so. Decisions should make no others.
  virtual bool canCall(mlir::Operation *op) const { return false; }
  virtual const BuildRules &buildRules() const = 0;
  /// Fails, with the way out, when programs cannot be built here.
  virtual llvm::Error checkBuild() const { return llvm::Error::success(); }
  /// Compiles the functions of `kernels`, which stay as they are, and writes
  /// kernels.h, the compiled code, and whatever else the target's programs need
  /// beside host code and the runtime's sources.
  virtual llvm::Error writeKernels(mlir::ModuleOp kernels, Precision precision,
                                   SourceFolder &src) const = 0;
  /// Adds the passes that bring kernels to the LLVM dialect, which --emit=llvm
  /// prints; none where its kernels never come there.
  virtual void buildKernelLowering(mlir::OpPassManager &pm) const {}
  /// What --emit calls the text that kernels are compiled to; empty where they
  /// become machine code.
  virtual llvm::StringRef assembly() const { return {}; }
  /// That text, for an architecture as in `TargetDecisions`. Reports a
  /// diagnostic on failure, which it is without `assembly()`.
  virtual mlir::FailureOr<std::string> emitAssembly(mlir::ModuleOp kernels,
                                                    int64_t architecture) const;
};

//===----------------------------------------------------------------------===//
// The registry
//===----------------------------------------------------------------------===//

/// All targets, built in ones first, in the order of Targets.def. The first one
/// is meant where none is named.
llvm::ArrayRef<const Target *> allTargets();

/// `cpu or cuda`: all of them, or those that `accept` says yes to.
std::string
namesOfTargets(llvm::function_ref<bool(const Target &)> accept = nullptr);

/// Fails with the names there are: `expects cpu or cuda, but got 'tpu'`.
llvm::Expected<const Target *> findTarget(llvm::StringRef name);

/// Adds a target from outside of this folder; it must live as long as the
/// process. A second one of the same name hides the first.
void registerTarget(const Target &target);

/// The built-in targets, listed in Targets.def.
#define TARGET(function) const Target &function();
#include "codegen/target/Targets.def"
#undef TARGET

} // namespace codegen
} // namespace pipewright

#endif // PIPEWRIGHT_CODEGEN_TARGET_TARGET_H
