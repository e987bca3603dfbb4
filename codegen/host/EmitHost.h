//===- EmitHost.h - Host code of an allocated module ------------*- C++ -*-===//
//
// The entry point of codegen/host: an allocated module in, files of EmitC or
// of C++ out.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_EMITHOST_H
#define PIPEWRIGHT_CODEGEN_HOST_EMITHOST_H

#include "codegen/target/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <string>
#include <vector>

namespace pipewright::codegen {

/// Texts and figures that the program shows, which the IR does not hold.
struct HostOptions {
  const Target *target = allTargets().front();
  std::string modelName = "model";
  std::string timetable;
  std::string planJson;
  double predictedStepSeconds = 0;
};

/// A new module with one `emitc.file` for each file of the program.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
emitHost(mlir::ModuleOp allocated, const HostOptions &options);

/// The text of each `emitc.file` of a module, by name, with values named
/// after the model.
mlir::FailureOr<std::map<std::string, std::string>>
translateHost(mlir::ModuleOp emitted);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_EMITHOST_H
