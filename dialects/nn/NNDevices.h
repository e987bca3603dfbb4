//===- NNDevices.h - Stages that a model's file has notes of ----*- C++ -*-===//
//
// ONNX files may say which pipeline stage each node is in, once for each
// configuration of devices (IR version 11: `ModelProto.configuration`,
// `NodeProto.device_configurations`). The imported module has them as
//
//   nn.configurations = {"two gpus" = {devices = 2 : i64,
//                                      stages = {node_a = 0 : i64}}}
//
// where nodes are named as in the locations of their ops. A stage of -1 stands
// for nodes of one name that are in different stages.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNDEVICES_H
#define PIPEWRIGHT_DIALECTS_NN_NNDEVICES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace pipewright::nn {

constexpr llvm::StringLiteral kConfigurations = "nn.configurations";

/// One more than the last stage that a node may be in.
constexpr int64_t kMaxNotedStages = 1 << 16;

/// The stage of nodes of one name that are in different ones.
constexpr int64_t kSeveralStages = -1;

/// One configuration of a module's attribute.
struct DeviceConfiguration {
  /// How many devices it is for; 0 where it does not say.
  int64_t devices = 0;
  /// Stages by the names of nodes.
  mlir::DictionaryAttr stages;

  /// The stage of a node, if it has one.
  std::optional<int64_t> stageOf(llvm::StringRef node) const;
  /// One more than the last stage.
  int64_t countStages() const;
};

/// A value of the attribute; what is wrong with it in `problem` otherwise, to
/// be read after "expects the configuration".
std::optional<DeviceConfiguration> readConfiguration(mlir::Attribute value,
                                                     std::string &problem);

/// The value of one configuration.
mlir::DictionaryAttr
makeConfiguration(int64_t devices,
                  llvm::ArrayRef<std::pair<llvm::StringRef, int64_t>> stages,
                  mlir::MLIRContext *context);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNDEVICES_H
