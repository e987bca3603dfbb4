//===- WeightsFile.cpp - Initial weights as safetensors -------------------===//
//
// Names and shapes come from the module, bytes from the store.
//
//===----------------------------------------------------------------------===//

#include "codegen/package/WeightsFile.h"

#include "dialects/nn/NNWeightNames.h"
#include "dialects/pipe/PipeDialect.h"
#include "runtime/core/Error.h"
#include "runtime/io/Safetensors.h"

using namespace mlir;

namespace pipewright::codegen {

static runtime::ElementType elementTypeOf(Type type) {
  if (type.isF32())
    return runtime::ElementType::F32;
  if (type.isInteger(64))
    return runtime::ElementType::I64;
  return type.isInteger(1) ? runtime::ElementType::I1
                           : runtime::ElementType::I8;
}

static llvm::Error checkSizes(ModuleOp module, const nn::WeightStore &weights) {
  for (auto weight : module.getOps<nn::WeightOp>()) {
    int64_t expected = pipe::byteSize(weight.getFileType());
    int64_t found = weights.lookup(weight.getSymName()).size();
    if (found != expected)
      return llvm::createStringError("weight '" + weight.getSymName().str() +
                                     "' expects " + std::to_string(expected) +
                                     " bytes, but got " +
                                     std::to_string(found));
  }
  return llvm::Error::success();
}

llvm::Error writeWeights(ModuleOp module, const nn::WeightStore &weights,
                         llvm::raw_ostream &os) {
  if (llvm::Error error = checkSizes(module, weights))
    return error;
  std::vector<runtime::TensorHeader> headers;
  for (auto weight : module.getOps<nn::WeightOp>()) {
    RankedTensorType type = weight.getFileType();
    headers.push_back({nn::fileNameOf(weight).str(),
                       elementTypeOf(type.getElementType()),
                       type.getShape().vec()});
  }
  os << runtime::safetensorsHeader(headers);
  for (auto weight : module.getOps<nn::WeightOp>()) {
    llvm::ArrayRef<char> bytes = weights.lookup(weight.getSymName());
    os.write(bytes.data(), bytes.size());
  }
  return llvm::Error::success();
}

llvm::Error checkWeightsFit(ModuleOp module, llvm::StringRef path) {
  try {
    runtime::SafetensorsReader file(path.str());
    for (auto weight : module.getOps<nn::WeightOp>()) {
      RankedTensorType type = weight.getFileType();
      file.find(nn::fileNameOf(weight).str(),
                elementTypeOf(type.getElementType()), type.getShape().vec());
    }
  } catch (const runtime::Error &error) {
    return llvm::createStringError(error.what());
  }
  return llvm::Error::success();
}

} // namespace pipewright::codegen
