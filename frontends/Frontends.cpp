//===- Frontends.cpp - The list of frontends ------------------------------===//

#include "frontends/Frontends.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

namespace pipewright::frontend {

#define FRONTEND(function) const Frontend &function();
#include "frontends/Frontends.def"
#undef FRONTEND

bool isLevelText(llvm::StringRef path) { return textFrontend().reads(path); }

/// The frontend that a file's name is for, or null.
static const Frontend *frontendOf(llvm::StringRef path) {
  static const Frontend *const all[] = {
#define FRONTEND(function) &function(),
#include "frontends/Frontends.def"
#undef FRONTEND
  };
  for (const Frontend *frontend : all)
    if (frontend->reads(path))
      return frontend;
  return nullptr;
}

llvm::FailureOr<ImportedModel> importModel(const ImportOptions &options,
                                           mlir::MLIRContext &context) {
  if (const Frontend *frontend = frontendOf(options.modelPath))
    return frontend->import(options, context);
  mlir::emitError(mlir::UnknownLoc::get(&context))
      << "expects a model in a format that is known, but got '"
      << options.modelPath << "'";
  return llvm::failure();
}

llvm::Expected<AnnotatedModel>
annotateModel(llvm::StringRef path, llvm::StringRef output,
              const StageAnnotations &annotations) {
  if (const Frontend *frontend = frontendOf(path))
    return frontend->annotate(path, output, annotations);
  return llvm::createStringError(
      "expects a model in a format that is known, but got '" + path + "'");
}

llvm::Expected<ExportWeights> prepareExport(const ExportOptions &options) {
  if (const Frontend *frontend = frontendOf(options.import.modelPath))
    return frontend->prepareExport(options);
  return llvm::createStringError(
      "expects a model in a format that is known, but got '" +
      options.import.modelPath + "'");
}

} // namespace pipewright::frontend
