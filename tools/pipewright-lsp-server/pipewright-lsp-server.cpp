//===- pipewright-lsp-server.cpp - IR text in editors ---------------------===//
//
// Speaks the Language Server Protocol on its standard streams: editors that are
// told of it show definitions, uses, documentation and mistakes in text of all
// levels.
//
//===----------------------------------------------------------------------===//

#include "tools/common/Registration.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  pipewright::tool::registerAllDialects(registry);
  return llvm::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
