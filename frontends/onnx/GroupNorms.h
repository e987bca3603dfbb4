//===- GroupNorms.h - Exporters' spelling of GroupNorm ----------*- C++ -*-===//
//
// PyTorch's exporters write group normalization as Reshape to [N, G, -1],
// InstanceNormalization with ones and zeros, Reshape back, Mul and Add. The
// ones and zeros are no weights, though an exporter may have merged them with a
// weight of equal values.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_GROUPNORMS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_GROUPNORMS_H

#include "frontends/onnx/ModelFile.h"

#include "llvm/ADT/StringSet.h"

namespace pipewright::frontend {

/// The names of InstanceNormalization's results that stand between two nodes
/// of Reshape and are scaled by an initializer behind the second. Left out are
/// those whose own scale is an initializer with a name of the model's that is
/// read by nothing but such nodes.
llvm::StringSet<> findGroupNorms(const onnx::GraphProto &graph);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_GROUPNORMS_H
