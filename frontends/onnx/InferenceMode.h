//===- InferenceMode.h - A trained model as it is used ---------*- C++ -*-===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_INFERENCEMODE_H
#define PIPEWRIGHT_FRONTENDS_ONNX_INFERENCEMODE_H

#include "onnx/onnx_pb.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace pipewright::frontend {

/// Batch normalization takes the running statistics, and has no other outputs;
/// dropout passes what it gets on. The output `loss` (empty: there is none)
/// goes if there are others, with all that only it needs: nodes, inputs and
/// initializers. Returns warnings. The error says which node cannot be put so.
llvm::Expected<std::vector<std::string>>
enterInference(onnx::ModelProto &model, const std::string &loss);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_INFERENCEMODE_H
