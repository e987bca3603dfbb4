//===- DeviceConfigurations.h - Pipeline stages in the file ----*- C++ -*-===//
//
// Since IR version 11 a model may list configurations of devices, and each node
// may say for each of them which pipeline stage it is in and how its tensors
// are sharded. Stages are read, into `nn.configurations` of the module, and
// written; shards are not what we do.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_DEVICECONFIGURATIONS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_DEVICECONFIGURATIONS_H

#include "frontends/common/Frontend.h"

#include "mlir/IR/BuiltinOps.h"
#include "onnx/onnx_pb.h"

#include <map>

namespace pipewright::frontend {

class DeviceConfigurations {
public:
  explicit DeviceConfigurations(const onnx::ModelProto &model);

  /// Reads the stages of a node. Where it has none it is in that of the node
  /// whose subgraph it is in: `nodes` begins with the node itself and ends with
  /// the outermost one.
  void note(llvm::StringRef label,
            llvm::ArrayRef<const onnx::NodeProto *> nodes);

  /// What has been read, as an attribute; nothing where the file has no
  /// configuration.
  void attachTo(mlir::ModuleOp module) const;

  /// What people should know of what was not read.
  std::vector<std::string> warnings() const;

private:
  struct Configuration {
    int64_t devices = 0;
    std::map<std::string, int64_t> stages;
  };

  std::map<std::string, Configuration> all;
  int64_t malformed = 0, sharded = 0;
  std::string firstMalformed, firstSharded;
};

/// Gives a node the stages of a call that it is a part of, in configurations in
/// which it has none.
void inheritStages(onnx::NodeProto &node, const onnx::NodeProto &call);

/// See Frontend::annotate. A model that refers to files beside it can only be
/// written beside these.
llvm::Expected<AnnotatedModel>
annotateOnnx(llvm::StringRef path, llvm::StringRef output,
             const StageAnnotations &annotations);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_DEVICECONFIGURATIONS_H
