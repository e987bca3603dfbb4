//===- ExportedTensors.cpp - Initializers with other values ---------------===//

#include "frontends/onnx/ExportedTensors.h"

#include "runtime/core/BFloat16.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace mlir;
using onnx::TensorProto;

namespace pipewright::frontend {

static uint16_t toHalf(float value) {
  llvm::APFloat number(value);
  bool inexact;
  number.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven,
                 &inexact);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

static void writeFloat(char *at, float value, int32_t onnxType) {
  using namespace llvm::support::endian;
  switch (onnxType) {
  case TensorProto::DOUBLE:
    return write64le(at, llvm::bit_cast<uint64_t>(static_cast<double>(value)));
  case TensorProto::FLOAT16:
    return write16le(at, toHalf(value));
  case TensorProto::BFLOAT16:
    return write16le(at, runtime::narrow(value));
  default:
    return write32le(at, llvm::bit_cast<uint32_t>(value));
  }
}

static size_t widthOf(int32_t onnxType) {
  return onnxType == TensorProto::DOUBLE  ? 8
         : onnxType == TensorProto::FLOAT ? 4
                                          : 2;
}

/// The values as raw_data has them, whatever field they are in.
static std::string rawBytes(const TensorProto &tensor) {
  if (tensor.has_raw_data())
    return tensor.raw_data();
  std::string raw;
  for (int32_t bits : tensor.int32_data()) {
    raw += static_cast<char>(bits & 0xff);
    raw += static_cast<char>(bits >> 8 & 0xff);
  }
  for (double value : tensor.double_data()) {
    char bytes[8];
    llvm::support::endian::write64le(bytes, llvm::bit_cast<uint64_t>(value));
    raw.append(bytes, sizeof bytes);
  }
  return raw;
}

static void setRawData(TensorProto &tensor, std::string bytes) {
  tensor.clear_float_data();
  tensor.clear_double_data();
  tensor.clear_int32_data();
  tensor.clear_int64_data();
  tensor.clear_uint64_data();
  tensor.clear_external_data();
  tensor.clear_data_location();
  tensor.set_raw_data(std::move(bytes));
}

void setFloats(TensorProto &tensor, ArrayRef<float> values,
               ArrayRef<float> old) {
  const int32_t type = tensor.data_type();
  const size_t width = widthOf(type), count = values.size();
  if (count == old.size() &&
      std::memcmp(values.data(), old.data(), count * sizeof(float)) == 0)
    return;
  std::string bytes = type == TensorProto::FLOAT ? "" : rawBytes(tensor);
  const bool keeps = bytes.size() == count * width && count == old.size();
  bytes.resize(count * width);
  for (size_t i = 0; i < count; ++i)
    if (!keeps || std::memcmp(&values[i], &old[i], sizeof(float)) != 0)
      writeFloat(&bytes[i * width], values[i], type);
  setRawData(tensor, std::move(bytes));
}

LogicalResult takeIn(TensorProto &tensor, TensorReader &reader) {
  if (tensor.data_location() != TensorProto::EXTERNAL)
    return success();
  FailureOr<std::string> bytes =
      reader.readBytes(tensor, "initializer '" + tensor.name() + "'");
  if (failed(bytes))
    return failure();
  setRawData(tensor, std::move(*bytes));
  return success();
}

void ExternalDataWriter::add(TensorProto &tensor) {
  // Shapes and scalars are read while a model is loaded.
  constexpr size_t least = 1024;
  constexpr int64_t alignment = 4096;
  const std::string bytes = tensor.raw_data();
  if (!tensor.has_raw_data() || bytes.size() < least)
    return;
  const int64_t begin = llvm::alignTo(written, alignment);
  const std::string gap(begin - written, '\0');
  file.write(gap.data(), gap.size());
  file.write(bytes.data(), bytes.size());
  written = begin + static_cast<int64_t>(bytes.size());
  tensor.clear_raw_data();
  tensor.set_data_location(TensorProto::EXTERNAL);
  auto note = [&](const char *key, std::string value) {
    auto *entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(std::move(value));
  };
  note("location", location);
  note("offset", std::to_string(begin));
  note("length", std::to_string(bytes.size()));
}

} // namespace pipewright::frontend
