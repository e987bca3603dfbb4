//===- ModelFile.h - Reading an ONNX file ----------------------*- C++ -*-===//
//
// From a path to a parsed model whose overall form is sound: it has a graph,
// an opset that we know, and none of the features that have no place in a
// training program. Functions are inlined, and all initializers stand in the
// model's graph. What single nodes mean is not looked at here.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_MODELFILE_H
#define PIPEWRIGHT_FRONTENDS_ONNX_MODELFILE_H

#include "mlir/IR/Diagnostics.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>

namespace pipewright::frontend {

struct ModelFile {
  std::string path;
  std::string folder;
  std::shared_ptr<onnx::ModelProto> proto;
  int64_t opset = 0;

  const onnx::GraphProto &graph() const { return proto->graph(); }
  /// The opset of a node: the model's, or that of the function it came from.
  int64_t opsetOf(const onnx::NodeProto &node) const;
  /// Starts an error about the file as a whole.
  mlir::InFlightDiagnostic error(mlir::MLIRContext &context) const;
};

/// The model as the file has it: parsed, and nothing checked.
llvm::FailureOr<ModelFile> parseModelFile(llvm::StringRef path,
                                          mlir::MLIRContext &context);

/// Notes that nodes, and those of their subgraphs, are of another opset than
/// the model.
void setOpset(google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
              int64_t opset);

/// Brings a parsed model into the form that readModelFile gives.
llvm::LogicalResult prepareModelFile(ModelFile &file,
                                     mlir::MLIRContext &context);

llvm::FailureOr<ModelFile> readModelFile(llvm::StringRef path,
                                         mlir::MLIRContext &context);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_MODELFILE_H
