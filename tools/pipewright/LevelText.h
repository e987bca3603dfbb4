//===- LevelText.h - A model that is text of a level ------------*- C++ -*-===//
//
// Text is read before the options are: what it has decided, they do not.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_LEVELTEXT_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_LEVELTEXT_H

#include "frontends/common/Frontend.h"
#include "passes/pipelines/Levels.h"
#include "tools/pipewright/OptionTable.h"

#include <memory>

namespace pipewright::tool {

struct LevelText {
  /// Longer alive than the model.
  std::shared_ptr<mlir::MLIRContext> context;
  frontend::ImportedModel model;
  Level level = Level::Import;
  /// The processes, where text has ranks in its ops.
  std::optional<runtime::Mesh> mesh;
  /// The name of the file, for messages.
  std::string path;

  /// Whether an option is too late: text of `level`, and of all behind it, has
  /// decided what it says.
  bool hasDecided(std::optional<Level> decided) const {
    return decided && *decided <= level;
  }
  /// What the text says of options, by their names: those that it has decided,
  /// and those that hold unless the command line says others.
  std::map<std::string, std::string> options() const;
};

/// Null for a model that is no text. Mistakes in the text have been printed;
/// then the error has no words.
llvm::Expected<std::shared_ptr<LevelText>> readLevelText(llvm::StringRef path);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_LEVELTEXT_H
