//===- NodeTestFile.cpp - One of the ONNX project's op tests --------------===//

#include "test/unit/onnx/NodeTestFile.h"

#include "frontends/onnx/TensorReader.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <fstream>

namespace pipewright::test {

/// Tests whose models import, but whose outputs a program need not give.
static bool isLeftOut(llvm::StringRef name) {
  // Random by nature.
  return name.starts_with("test_training_dropout") ||
         // nn.embedding takes no negative indices; the program refuses them.
         name == "test_gather_negative_indices" ||
         // The package's bfloat16 data hold other numbers than its outputs.
         name.contains("BFLOAT16");
}

template <typename T>
static bool parse(const std::string &path, T &message) {
  std::ifstream stream(path, std::ios::binary);
  return stream && message.ParseFromIstream(&stream);
}

std::string NodeTestFile::getName() const {
  return llvm::sys::path::stem(path).str();
}

bool NodeTestFile::isOfTraining() const {
  return llvm::StringRef(getName()).contains("training");
}

bool NodeTestFile::load() {
  if (isLeftOut(getName()))
    return false;
  if (llvm::StringRef(path).ends_with(".onnx"))
    return parse(path, model) && takeInitializers();
  return parse(path + "/model.onnx", model) &&
         loadTensors("input", model.graph().input_size(), inputs) &&
         loadTensors("output", model.graph().output_size(), outputs);
}

bool NodeTestFile::takeInitializers() {
  auto &graph = *model.mutable_graph();
  auto &tensors = *graph.mutable_initializer();
  if (tensors.size() != graph.input_size() + graph.output_size())
    return false;
  auto firstOutput = tensors.begin() + graph.input_size();
  inputs.assign(tensors.begin(), firstOutput);
  outputs.assign(firstOutput, tensors.end());
  tensors.Clear();
  return true;
}

bool NodeTestFile::loadTensors(const char *kind, int count,
                               std::vector<onnx::TensorProto> &into) {
  std::string folder = path + "/test_data_set_0/";
  for (int i = 0; i < count; ++i)
    if (!parse(folder + kind + "_" + std::to_string(i) + ".pb",
               into.emplace_back()))
      return false;
  return true;
}

onnx::ModelProto NodeTestFile::withConstants(int firstConstant) const {
  onnx::ModelProto variant = model;
  auto &graph = *variant.mutable_graph();
  for (int i = firstConstant; i < numInputs(); ++i) {
    *graph.add_initializer() = inputs[i];
    graph.mutable_initializer()->rbegin()->set_name(graph.input(i).name());
  }
  while (graph.input_size() > firstConstant)
    graph.mutable_input()->RemoveLast();
  return variant;
}

std::vector<std::string> listNodeTests(llvm::StringRef folder) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (llvm::sys::fs::directory_iterator it(folder, ignored), end; it != end;
       it.increment(ignored))
    paths.push_back(it->path());
  llvm::sort(paths);
  return paths;
}

std::optional<frontend::ConstantTensor>
readTensor(const onnx::TensorProto &proto, mlir::MLIRContext &context) {
  frontend::ModelFile file;
  file.proto = std::make_shared<onnx::ModelProto>();
  frontend::TensorReader reader(file, context);
  mlir::ScopedDiagnosticHandler quiet(
      &context, [](mlir::Diagnostic &) { return mlir::success(); });
  auto read = reader.readConstant(proto, "test data");
  if (failed(read))
    return std::nullopt;
  return *read;
}

double elementOf(const frontend::ConstantTensor &tensor, int64_t i) {
  switch (tensor.kind()) {
  case frontend::ElementKind::Float:
    return tensor.floatAt(i);
  case frontend::ElementKind::Int:
    return double(tensor.intAt(i));
  case frontend::ElementKind::Bool:
    return tensor.boolAt(i);
  }
  return 0;
}

bool isWithinTolerance(double got, double expected, int32_t type) {
  double relative = type == onnx::TensorProto::BFLOAT16 ? 0x1p-6 : 1e-3;
  return got == expected || (std::isnan(got) && std::isnan(expected)) ||
         std::abs(got - expected) <= 1e-5 + relative * std::abs(expected);
}

} // namespace pipewright::test
