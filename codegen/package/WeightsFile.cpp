//===- WeightsFile.cpp - Initial weights as safetensors -------------------===//
//
// Names and shapes come from the module, bytes from the store.
//
//===----------------------------------------------------------------------===//

#include "codegen/package/WeightsFile.h"

#include "dialects/nn/NNWeightNames.h"
#include "dialects/pipe/PipeDialect.h"
#include "support/InputFile.h"
#include "support/Json.h"
#include "llvm/Support/Endian.h"

using namespace mlir;

namespace pipewright::codegen {

/// The word of the format for an element type.
static const char *wordFor(Type type) {
  if (type.isF32())
    return "F32";
  if (type.isInteger(64))
    return "I64";
  return type.isInteger(1) ? "BOOL" : "I8";
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
  std::string header;
  llvm::raw_string_ostream text(header);
  llvm::json::OStream json(text);
  json.objectBegin();
  int64_t offset = 0;
  for (auto weight : module.getOps<nn::WeightOp>()) {
    RankedTensorType type = weight.getFileType();
    int64_t bytes = pipe::byteSize(type);
    json.attributeBegin(nn::fileNameOf(weight));
    json.objectBegin();
    json.attribute("dtype", wordFor(type.getElementType()));
    json.attributeArray("shape", [&] {
      for (int64_t size : type.getShape())
        json.value(size);
    });
    json.attributeArray("data_offsets", [&] {
      json.value(offset);
      json.value(offset + bytes);
    });
    json.objectEnd();
    json.attributeEnd();
    offset += bytes;
  }
  json.objectEnd();
  json.flush();
  // Tensors begin aligned, as readers that map the file like it.
  header.append((8 - header.size() % 8) % 8, ' ');
  char length[8];
  llvm::support::endian::write64le(length, header.size());
  os.write(length, sizeof(length));
  os << header;
  for (auto weight : module.getOps<nn::WeightOp>()) {
    llvm::ArrayRef<char> bytes = weights.lookup(weight.getSymName());
    os.write(bytes.data(), bytes.size());
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// The JSON header of a file.
static llvm::Expected<llvm::json::Value> readHeader(llvm::StringRef path) {
  // Longer ones the format does not have.
  constexpr uint64_t longest = 100 << 20;
  llvm::Expected<FileBuffer> file = readRegularFile(path);
  if (!file)
    return file.takeError();
  llvm::StringRef bytes = (*file)->getBuffer();
  uint64_t length = 0;
  if (bytes.size() > 8)
    length = llvm::support::endian::read64le(bytes.data());
  if (length == 0 || length > longest || length > bytes.size() - 8)
    return llvm::createStringError("it is no safetensors file");
  return parseJson(bytes.substr(8, length));
}

/// "F32 [4, 3]"
static std::string typeAndShape(llvm::StringRef type,
                                const llvm::json::Array *shape) {
  std::string text = type.str() + " ";
  llvm::raw_string_ostream os(text);
  os << (shape ? llvm::json::Value(llvm::json::Array(*shape))
               : llvm::json::Value(nullptr));
  return text;
}

llvm::Error checkWeightsFit(ModuleOp module, llvm::StringRef path) {
  llvm::Expected<llvm::json::Value> header = readHeader(path);
  if (!header)
    return header.takeError();
  const llvm::json::Object *tensors = header->getAsObject();
  for (auto weight : module.getOps<nn::WeightOp>()) {
    const llvm::StringRef name = nn::fileNameOf(weight);
    const llvm::json::Object *found =
        tensors ? tensors->getObject(name) : nullptr;
    if (!found)
      return llvm::createStringError("it has no '" + name + "'");
    RankedTensorType type = weight.getFileType();
    llvm::json::Array shape(type.getShape());
    std::string expected = typeAndShape(wordFor(type.getElementType()), &shape);
    std::string stored = typeAndShape(found->getString("dtype").value_or("?"),
                                      found->getArray("shape"));
    if (stored != expected)
      return llvm::createStringError("its '" + name + "' is " + stored +
                                     ", but the new program's is " + expected);
  }
  return llvm::Error::success();
}

} // namespace pipewright::codegen
