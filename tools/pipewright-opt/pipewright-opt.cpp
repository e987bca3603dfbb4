//===- pipewright-opt.cpp - Run passes on IR text -------------------------===//
//
// The tool behind the lit tests, and for people who want to see what one pass
// does. Plugins are loaded first, so that their passes are options like ours.
//
//===----------------------------------------------------------------------===//

#include "tools/common/Plugins.h"
#include "tools/common/Registration.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

using namespace pipewright;

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tool::registerAllDialects(registry);
  tool::registerAllPasses();
  llvm::SmallVector<const char *> words(argv, argv + argc);
  if (llvm::Error error = tool::loadPlugins(words, /*removes=*/true)) {
    llvm::errs() << "error: " << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  words.push_back(nullptr);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(words.size() - 1, const_cast<char **>(words.data()),
                        "Runs Pipewright's passes on IR text\n", registry));
}
