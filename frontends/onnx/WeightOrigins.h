//===- WeightOrigins.h - Where a model's file has its weights --*- C++ -*-===//
//
// An import brings a model into another form before it looks at weights:
// functions are inlined, initializers of subgraphs hoisted, merged ones parted.
// Numbers on the initializers lead back to the file.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_WEIGHTORIGINS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_WEIGHTORIGINS_H

#include "frontends/onnx/GraphImporter.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright::frontend {

/// An input of a node in the model's graph, which the node's first result
/// names.
struct NodeInput {
  std::string result;
  unsigned input;
};

/// An initializer of the file that holds a weight.
struct WeightHolder {
  /// See numberInitializers.
  int64_t number;
  /// It is the weight transposed, or repeated to the initializer's shape.
  bool isTransposed = false, isRepeated = false;
  /// Where others read the initializer, too: who is to read one of its own,
  /// which has the weight's name.
  std::vector<NodeInput> own = {};
};

/// A weight of an imported module.
struct WeightOrigin {
  /// In files of weights.
  std::string name;
  Shape shape;
  /// A parameter or a running statistic.
  bool isTrained = false;
  bool isFloat = true;
  std::vector<WeightHolder> holders;
  /// Without a holder: the name of the value that is the weight, if the file
  /// has that. An operator that is made of a constant may have none.
  std::string value;
};

/// All initializers of a model's graph, subgraphs and functions, in one order.
std::vector<onnx::TensorProto *> initializersOf(onnx::ModelProto &model);

/// Numbers them in that order.
void numberInitializers(onnx::ModelProto &model);

/// Of an imported graph whose initializers have been numbered; in the module's
/// order.
std::vector<WeightOrigin> originsOfWeights(GraphImporter &graph);

/// The import of a model that has been read. `origins`, unless null, get those
/// of its weights.
llvm::FailureOr<ImportedModel>
importFile(ModelFile &file, const ImportOptions &options,
           mlir::MLIRContext &context,
           std::vector<WeightOrigin> *origins = nullptr);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_WEIGHTORIGINS_H
