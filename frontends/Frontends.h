//===- Frontends.h - The list of frontends ----------------------*- C++ -*-===//
//
// The one way into the compiler. A new frontend is one folder and one line in
// Frontends.def.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_FRONTENDS_H
#define PIPEWRIGHT_FRONTENDS_FRONTENDS_H

#include "frontends/common/Frontend.h"

namespace pipewright::frontend {

/// Whether a file is text of a level, which has no options: it says all itself.
bool isLevelText(llvm::StringRef path);

/// Imports a model by the frontend that its file's name is for.
llvm::FailureOr<ImportedModel> importModel(const ImportOptions &options,
                                           mlir::MLIRContext &context);

/// A model's file with stages, as `Frontend::annotate` says.
llvm::Expected<AnnotatedModel>
annotateModel(llvm::StringRef path, llvm::StringRef output,
              const StageAnnotations &annotations);

/// Writes a model with other weights, as `Frontend::prepareExport` says.
llvm::Expected<ExportWeights> prepareExport(const ExportOptions &options);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_FRONTENDS_H
