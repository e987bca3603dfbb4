//===- NodeContext.h - One ONNX node while it is imported ------*- C++ -*-===//
//
// What an op's import function sees: inputs as values or constants, attributes
// with defaults, results to set, and errors that name the node. Attributes
// that the function does not read are an error, so that none is ignored.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_NODECONTEXT_H
#define PIPEWRIGHT_FRONTENDS_ONNX_NODECONTEXT_H

#include "frontends/common/TensorBuilder.h"
#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/OpRegistry.h"

namespace pipewright::frontend {

class NodeContext {
public:
  NodeContext(GraphImporter &graph, const onnx::NodeProto &node,
              NodeNames names);

  /// Reads the inputs; fails on initializers that cannot be read.
  llvm::LogicalResult resolveInputs();

  // Attributes.
  bool hasAttribute(llvm::StringRef name) const;
  int64_t intAttribute(llvm::StringRef name, int64_t defaultValue);
  float floatAttribute(llvm::StringRef name, float defaultValue);
  std::string stringAttribute(llvm::StringRef name,
                              llvm::StringRef defaultValue);
  std::optional<Shape> intsAttribute(llvm::StringRef name);
  /// The subgraph of that name; null after an error.
  const onnx::GraphProto *graphAttribute(llvm::StringRef name);
  const onnx::AttributeProto *attribute(llvm::StringRef name);
  /// Fails with an error if an attribute was not asked for, or had another
  /// type than it was asked for.
  llvm::LogicalResult checkAttributes();

  // Inputs.
  unsigned numInputs() const { return inputs.size(); }
  bool hasInput(unsigned i) const { return i < inputs.size() && inputs[i]; }
  const ImportedValue &input(unsigned i) const { return inputs[i]; }
  llvm::StringRef inputName(unsigned i) const { return names.inputs[i]; }
  llvm::ArrayRef<int64_t> shape(unsigned i) const { return inputs[i].shape; }
  int64_t rank(unsigned i) const { return inputs[i].shape.size(); }
  /// Input `i` as an op result; null after an error.
  mlir::Value value(unsigned i);
  /// The same where ONNX expects a trained weight.
  mlir::Value weight(unsigned i);
  /// A constant that the import makes, as an op result. What is large becomes a
  /// weight, named after result 0 with `what` behind it.
  mlir::Value made(ConstantTensor tensor, const llvm::Twine &what);
  const ConstantTensor *constant(unsigned i) const {
    return hasInput(i) ? inputs[i].constant.get() : nullptr;
  }
  bool allConstant() const;
  bool hasRandomInput() const;
  /// Where all inputs are constants or weights that do not train, they are
  /// constants from here on.
  llvm::LogicalResult takeUntrainedAsConstants();
  /// Where the batch size is not the file's: input `i` gets the program's in
  /// the dimensions that have the file's there and the program's in `shape`,
  /// counted from the last. Does so with random numbers, and with constants and
  /// untrained weights whose samples are all alike.
  llvm::LogicalResult followBatch(unsigned i, llvm::ArrayRef<int64_t> shape);
  /// The same for all operands of an op that broadcasts them to each other:
  /// one sample is enough then.
  llvm::LogicalResult followBatch();
  /// The elements of an integer input that must be constant.
  llvm::FailureOr<Shape> constantInts(unsigned i, llvm::StringRef what);
  llvm::LogicalResult expectInputs(InputCount count);
  /// Fails unless a subgraph has so many inputs and outputs.
  llvm::LogicalResult expectPorts(const onnx::GraphProto &subgraph,
                                  llvm::StringRef attribute, int64_t inputs,
                                  int64_t outputs);
  /// Fails where one of the inputs from `first` on is a sequence of tensors or
  /// an empty optional, or one before it is no sequence. Does nothing if
  /// `first` is kAnyNumber.
  llvm::LogicalResult expectTensors(unsigned first);
  /// Fails where input `i` is there and has another shape.
  llvm::LogicalResult expectShape(unsigned i, llvm::StringRef what,
                                  llvm::ArrayRef<int64_t> shape);
  /// Fails where a constant of that shape is too large to be computed here.
  llvm::LogicalResult expectComputable(llvm::ArrayRef<int64_t> shape);
  /// Fails where so many indices or places are too many to be listed.
  llvm::LogicalResult expectListable(int64_t count, llvm::StringRef what);
  /// Counts from the end if negative; fails unless within [0, rank).
  llvm::FailureOr<int64_t> normalizeAxis(int64_t axis, int64_t rank);
  llvm::FailureOr<Shape> normalizeAxes(llvm::ArrayRef<int64_t> axes,
                                       int64_t rank);

  // Results.
  unsigned numOutputs() const { return node.output_size(); }
  bool isOutputRead(unsigned i) const;
  llvm::StringRef outputName(unsigned i) const { return names.outputs[i]; }
  /// What messages call the node.
  llvm::StringRef getLabel() const { return names.label; }
  /// Fails if the value is null, which follows an error.
  llvm::LogicalResult setResult(unsigned i, mlir::Value value);
  llvm::LogicalResult setResult(unsigned i, ConstantTensor tensor);
  llvm::LogicalResult setResult(unsigned i, ImportedValue value);
  /// The result is the same thing as an input.
  llvm::LogicalResult forward(unsigned result, unsigned input);
  /// Fails with an error if an output from `i` on is read.
  llvm::LogicalResult expectUnread(unsigned i);
  /// What result `i` is at the file's batch size, if that is another.
  const OriginalValue *originalResult(unsigned i) const;
  const OriginalValue *originalInput(unsigned i) const;

  /// Starts "model.onnx: node 'X' (Conv, opset 17): ".
  mlir::InFlightDiagnostic error();

  const onnx::NodeProto &node;
  GraphImporter &graph;
  int64_t opset;
  TensorBuilder b;

private:
  llvm::LogicalResult repeatSamples(unsigned i, BatchPlace place,
                                    bool mayBroadcast);
  llvm::LogicalResult followOperand(unsigned i, unsigned leader);

  NodeNames names;
  llvm::SmallVector<ImportedValue, 4> inputs;
  llvm::StringSet<> readAttributes;
  std::string wrongAttribute;
};

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_NODECONTEXT_H
