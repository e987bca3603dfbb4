//===- Target.cpp - The list of targets -----------------------------------===//
//
// A new target is one folder and one line in Targets.def.
//
//===----------------------------------------------------------------------===//

#include "codegen/target/Target.h"

#include "passes/planning/NamedMachines.h"
#include "support/Text.h"

#include "mlir/IR/Diagnostics.h"

#include <map>

namespace pipewright::codegen {

TargetOption packAttentionOption() {
  return {
      "pack-attention",
      "NAME",
      "Whether attention reads q, k and v where products leave them: auto "
      "(yes; on CPUs in f32 only, where a head fits in a cache as it lies) or "
      "none (they are split and transposed first)",
      {"auto", "none"},
      "auto"};
}

Target::~Target() = default;

llvm::ArrayRef<Precision> Target::precisions() const {
  static constexpr Precision all[] = {Precision::F32};
  return all;
}

const MachineModel &Target::machine(Precision precision) const {
  static std::map<std::string, MachineModel> machines;
  std::string name = machineName(precision);
  auto [known, isNew] = machines.try_emplace(name);
  if (isNew)
    known->second = machineNamed(name).value_or(MachineModel());
  return known->second;
}

mlir::FailureOr<std::string> Target::emitAssembly(mlir::ModuleOp kernels,
                                                  int64_t) const {
  return kernels.emitError("is compiled to machine code, for ") << noun();
}

llvm::Error diagnosed() { return llvm::createStringError(std::string()); }

static std::vector<const Target *> &registry() {
  static std::vector<const Target *> targets = {
#define TARGET(function) &function(),
#include "codegen/target/Targets.def"
#undef TARGET
  };
  return targets;
}

llvm::ArrayRef<const Target *> allTargets() { return registry(); }

std::string namesOfTargets(llvm::function_ref<bool(const Target &)> accept) {
  std::vector<llvm::StringRef> names;
  for (const Target *target : allTargets())
    if (!accept || accept(*target))
      names.push_back(target->name());
  return text::listOf(names);
}

llvm::Expected<const Target *> findTarget(llvm::StringRef name) {
  for (const Target *target : allTargets())
    if (target->name() == name)
      return target;
  return llvm::createStringError("expects " + namesOfTargets() + ", but got '" +
                                 name + "'");
}

void registerTarget(const Target &target) {
  for (const Target *&known : registry())
    if (known->name() == target.name()) {
      known = &target;
      return;
    }
  registry().push_back(&target);
}

} // namespace pipewright::codegen
