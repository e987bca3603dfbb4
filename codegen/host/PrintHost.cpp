//===- PrintHost.cpp - Print the C++ of an allocated module ---------------===//
//
// For tests of host code, and for people who run passes one by one; the driver
// calls emitHost.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/EmitHost.h"
#include "codegen/host/Passes.h"

using namespace mlir;

namespace pipewright::codegen {

#define GEN_PASS_DEF_PRINTHOST
#include "codegen/host/Passes.h.inc"

namespace {

struct PrintHost : impl::PrintHostBase<PrintHost> {
  using PrintHostBase::PrintHostBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::Expected<const Target *> found = findTarget(target);
    if (!found) {
      module.emitError("option target ") << llvm::toString(found.takeError());
      return signalPassFailure();
    }
    HostOptions options;
    options.modelName = modelName;
    options.target = *found;
    options.tableAbove = tableAbove;
    FailureOr<HostFiles> files = emitHost(module, options);
    if (failed(files))
      return signalPassFailure();
    printFiles(llvm::outs(), *files);
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace pipewright::codegen
