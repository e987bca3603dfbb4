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

/// How many calls of a rank are too many to scroll through, and to compile: a
/// longer list is written as loops, and one that is still longer as a table.
struct ListLengths {
  int64_t unrolled = 300, withLoops = 1000;
};

/// What the IR does not hold: texts and figures that the program shows.
struct HostOptions {
  const Target *target = allTargets().front();
  std::string modelName = "model";
  std::string timetable;
  std::string planJson;
  double predictedStepSeconds = 0, predictedCollectiveWait = 0;
  ListLengths lengths;
};

/// The text of each file of the program, by name.
using HostFiles = std::map<std::string, std::string>;

mlir::FailureOr<HostFiles> emitHost(mlir::ModuleOp allocated,
                                    const HostOptions &options);

/// Prints all files, each behind a line with its name.
void printFiles(llvm::raw_ostream &os, const HostFiles &files);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_EMITHOST_H
