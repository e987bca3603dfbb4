//===- NodeTestFile.h - One of the ONNX project's op tests ------*- C++ -*-===//
//
// Reads node tests: folders as ONNX writes them, and the single files of
// tools/reference/make_node_tests.py.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_UNIT_ONNX_NODETESTFILE_H
#define PIPEWRIGHT_TEST_UNIT_ONNX_NODETESTFILE_H

#include "frontends/common/ConstantTensor.h"

#include "mlir/IR/MLIRContext.h"
#include "onnx/onnx_pb.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright::test {

class NodeTestFile {
public:
  explicit NodeTestFile(std::string path) : path(std::move(path)) {}

  /// False if the test is left out, or has other values than tensors.
  bool load();

  /// "test_abs".
  std::string getName() const;
  /// Whether its outputs are those of training: of a batch's own statistics.
  bool isOfTraining() const;

  int numInputs() const { return int(inputs.size()); }
  /// The model with the inputs from `firstConstant` on as initializers.
  onnx::ModelProto withConstants(int firstConstant) const;

  /// The model without values, and the values of its inputs and outputs.
  onnx::ModelProto model;
  std::vector<onnx::TensorProto> inputs, outputs;

private:
  bool takeInitializers();
  bool loadTensors(const char *kind, int count,
                   std::vector<onnx::TensorProto> &into);

  std::string path;
};

/// The paths of all entries of a folder, sorted; none if it cannot be read.
std::vector<std::string> listNodeTests(llvm::StringRef folder);

/// The values of a tensor as the importer reads them; none, and no message, of
/// a type that it does not read.
std::optional<frontend::ConstantTensor> readTensor(const onnx::TensorProto &,
                                                   mlir::MLIRContext &context);

/// Element `i` of a tensor of any kind.
double elementOf(const frontend::ConstantTensor &tensor, int64_t i);

/// The ONNX project's own tolerance for float32; of what it expects as
/// bfloat16, the last digit, since it is computed in float32 here.
bool isWithinTolerance(double got, double expected,
                       int32_t type = onnx::TensorProto::FLOAT);

} // namespace pipewright::test

#endif // PIPEWRIGHT_TEST_UNIT_ONNX_NODETESTFILE_H
