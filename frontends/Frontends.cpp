//===- Frontends.cpp - The list of frontends ------------------------------===//

#include "frontends/Frontends.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

namespace pipewright::frontend {

#define FRONTEND(function) const Frontend &function();
#include "frontends/Frontends.def"
#undef FRONTEND

bool isLevelText(llvm::StringRef path) { return textFrontend().reads(path); }

llvm::FailureOr<ImportedModel> importModel(const ImportOptions &options,
                                           mlir::MLIRContext &context) {
  static const Frontend *const all[] = {
#define FRONTEND(function) &function(),
#include "frontends/Frontends.def"
#undef FRONTEND
  };
  for (const Frontend *frontend : all)
    if (frontend->reads(options.modelPath))
      return frontend->import(options, context);
  mlir::emitError(mlir::UnknownLoc::get(&context))
      << "expects a model in a format that is known, but got '"
      << options.modelPath << "'";
  return llvm::failure();
}

} // namespace pipewright::frontend
