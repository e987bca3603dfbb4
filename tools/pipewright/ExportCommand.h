//===- ExportCommand.h - Trained weights back in a model --------*- C++ -*-===//
//
// `pipewright export`, and `pipewright train --save MODEL.onnx`.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_EXPORTCOMMAND_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_EXPORTCOMMAND_H

#include "frontends/common/Frontend.h"
#include "tools/pipewright/OptionTable.h"

namespace pipewright::tool {

struct ExportCommandOptions {
  frontend::ExportOptions model;
  std::string weights;
};

const std::vector<OptionRow<ExportCommandOptions>> &exportRows();

/// Writes the model, by default into a file of its name that ends in
/// .trained.onnx.
llvm::Error exportModel(ExportCommandOptions options);

/// What `train` does about a --save of a program's arguments that asks for a
/// model. The program saves weights beside it, which then become the model.
class TrainedModel {
public:
  /// Refuses what cannot be written; changes the arguments of the program. Does
  /// nothing where none asks for a model.
  static llvm::Expected<TrainedModel>
  prepare(const frontend::ImportOptions &import,
          std::vector<std::string> &arguments);

  /// To be called when the program has ended well.
  llvm::Error write() const;

private:
  frontend::ExportWeights exportWeights;
  std::string weights;
};

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_EXPORTCOMMAND_H
