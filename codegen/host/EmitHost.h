//===- EmitHost.h - Host code of an allocated module ------------*- C++ -*-===//
//
// The entry point of codegen/host: an allocated module in, files of C++ out.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_EMITHOST_H
#define PIPEWRIGHT_CODEGEN_HOST_EMITHOST_H

#include "codegen/target/Target.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>

namespace pipewright::codegen {

/// What the IR does not hold: texts and figures that the program shows.
struct HostOptions {
  const Target *target = allTargets().front();
  std::string modelName = "model";
  std::string timetable;
  std::string planJson;
  double predictedStepSeconds = 0, predictedCollectiveWait = 0;
  /// Lists of ranks with more calls are written as tables: they are too long to
  /// read, and take long to compile.
  int64_t tableAbove = 1000;
};

/// The text of each file of the program, by name.
using HostFiles = std::map<std::string, std::string>;

mlir::FailureOr<HostFiles> emitHost(mlir::ModuleOp allocated,
                                    const HostOptions &options);

/// Prints all files, each behind a line with its name.
void printFiles(llvm::raw_ostream &os, const HostFiles &files);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_EMITHOST_H
