//===- TensorReader.cpp - Bytes of ONNX tensors ---------------------------===//
//
// Every number in the file is taken for hostile: dimensions, offsets and
// lengths are checked against each other and against the file's size.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/TensorReader.h"

#include "dialects/nn/NNLimits.h"
#include "support/FileBeneath.h"
#include "support/InputFile.h"
#include "support/Text.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Alignment.h"
#include "llvm/Support/Endian.h"

using namespace mlir;
using onnx::TensorProto;

namespace pipewright::frontend {

static_assert(llvm::endianness::native == llvm::endianness::little,
              "weights are taken from the file as they lie");

namespace {
struct TypeRow {
  int32_t onnxType;
  StringRef name;
  ElementKind kind;
  int64_t width;
  std::optional<nn::FloatFormat> format = {};
};
} // namespace

static const TypeRow *findType(int32_t onnxType) {
  static const TypeRow rows[] = {
      {TensorProto::FLOAT, "float32", ElementKind::Float, 4},
      {TensorProto::DOUBLE, "float64", ElementKind::Float, 8},
      {TensorProto::FLOAT16, "float16", ElementKind::Float, 2},
      {TensorProto::BFLOAT16, "bfloat16", ElementKind::Float, 2},
      // Of ONNX 1.14, which Debian's package does not know.
      {17, "float8e4m3fn", ElementKind::Float, 1, nn::FloatFormat::E4M3FN},
      {18, "float8e4m3fnuz", ElementKind::Float, 1, nn::FloatFormat::E4M3FNUZ},
      {19, "float8e5m2", ElementKind::Float, 1, nn::FloatFormat::E5M2},
      {20, "float8e5m2fnuz", ElementKind::Float, 1, nn::FloatFormat::E5M2FNUZ},
      {TensorProto::INT64, "int64", ElementKind::Int, 8},
      {TensorProto::INT32, "int32", ElementKind::Int, 4},
      {TensorProto::INT16, "int16", ElementKind::Int, 2},
      {TensorProto::INT8, "int8", ElementKind::Int, 1},
      {TensorProto::UINT64, "uint64", ElementKind::Int, 8},
      {TensorProto::UINT32, "uint32", ElementKind::Int, 4},
      {TensorProto::UINT16, "uint16", ElementKind::Int, 2},
      {TensorProto::UINT8, "uint8", ElementKind::Int, 1},
      {TensorProto::BOOL, "bool", ElementKind::Bool, 1},
  };
  for (const TypeRow &row : rows)
    if (row.onnxType == onnxType)
      return &row;
  return nullptr;
}

std::optional<ElementKind> elementKindOf(int32_t onnxType) {
  if (const TypeRow *row = findType(onnxType))
    return row->kind;
  return std::nullopt;
}

std::optional<nn::FloatFormat> floatFormatOf(int32_t onnxType) {
  const TypeRow *row = findType(onnxType);
  return row ? row->format : std::nullopt;
}

StringRef elementTypeName(int32_t onnxType) {
  if (const TypeRow *row = findType(onnxType))
    return row->name;
  if (onnxType == TensorProto::STRING)
    return "string";
  return onnxType == 0 ? "undefined" : "unknown to this compiler";
}

InFlightDiagnostic TensorReader::error(StringRef what) {
  return file.error(context) << what << ": ";
}

FailureOr<Shape> TensorReader::readShape(const TensorProto &tensor,
                                         StringRef what) {
  if (!findType(tensor.data_type()))
    return error(what) << "element type " << elementTypeName(tensor.data_type())
                       << " (" << tensor.data_type() << ") is not supported";
  if (tensor.has_segment())
    return error(what) << "segmented tensors are not supported";
  Shape shape;
  for (int64_t dim : tensor.dims()) {
    if (dim < 0)
      return error(what) << "expects dimensions of 0 or more, but got " << dim;
    shape.push_back(dim);
  }
  if (std::string problem = nn::problemOfSize(shape); !problem.empty())
    return error(what) << problem;
  return shape;
}

/// The values of an int32 field, narrowed to the type's width.
static std::shared_ptr<std::vector<char>> narrow(const TensorProto &tensor,
                                                 int64_t width) {
  auto bytes = std::make_shared<std::vector<char>>();
  bytes->reserve(tensor.int32_data_size() * width);
  for (int32_t value : tensor.int32_data()) {
    const char *raw = reinterpret_cast<const char *>(&value);
    bytes->insert(bytes->end(), raw, raw + width);
  }
  return bytes;
}

FailureOr<TensorReader::Stored>
TensorReader::readExternal(const TensorProto &tensor, StringRef what) {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const auto &entry : tensor.external_data()) {
    StringRef value = entry.value();
    bool bad = false;
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset")
      bad = value.getAsInteger(10, offset);
    else if (entry.key() == "length")
      bad = value.getAsInteger(10, length.emplace());
    if (bad)
      return error(what) << "expects a number for external data " << entry.key()
                         << ", but got '" << text::shortened(value) << "'";
  }
  if (location.empty())
    return error(what) << "external data without a location";
  auto fileError = [&] {
    return error(what) << "external data file '" << text::shortened(location)
                       << "' ";
  };
  auto &buffer = externalFiles[location];
  if (!buffer) {
    // A model from somewhere must not read files from anywhere.
    llvm::Expected<std::string> path = findBeneath(file.folder, location);
    if (!path)
      return fileError() << llvm::toString(path.takeError());
    llvm::Expected<FileBuffer> read = readRegularFile(*path);
    if (!read)
      return fileError() << llvm::toString(read.takeError());
    buffer = std::move(*read);
  }
  uint64_t size = buffer->getBufferSize();
  if (offset > size || (length && *length > size - offset))
    return fileError() << "has " << size << " bytes, but offset " << offset
                       << " and length " << length.value_or(0)
                       << " lead beyond its end";
  ArrayRef<char> bytes(buffer->getBufferStart() + offset,
                       length.value_or(size - offset));
  return Stored{bytes, buffer};
}

FailureOr<TensorReader::Stored>
TensorReader::readStored(const TensorProto &tensor, StringRef what) {
  FailureOr<Shape> shape = readShape(tensor, what);
  if (failed(shape))
    return failure();
  const TypeRow &type = *findType(tensor.data_type());

  auto view = [&](const auto &field) {
    return Stored{ArrayRef<char>(reinterpret_cast<const char *>(field.data()),
                                 field.size() * sizeof(*field.data())),
                  file.proto};
  };
  Stored stored;
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    FailureOr<Stored> external = readExternal(tensor, what);
    if (failed(external))
      return failure();
    stored = *external;
  } else if (tensor.has_raw_data()) {
    stored = {
        ArrayRef<char>(tensor.raw_data().data(), tensor.raw_data().size()),
        file.proto};
  } else if (tensor.data_type() == TensorProto::FLOAT) {
    stored = view(tensor.float_data());
  } else if (tensor.data_type() == TensorProto::DOUBLE) {
    stored = view(tensor.double_data());
  } else if (tensor.data_type() == TensorProto::INT64) {
    stored = view(tensor.int64_data());
  } else if (tensor.data_type() == TensorProto::UINT64) {
    stored = view(tensor.uint64_data());
  } else if (tensor.data_type() == TensorProto::UINT32) {
    auto bytes = std::make_shared<std::vector<char>>();
    for (uint64_t value : tensor.uint64_data()) {
      const char *raw = reinterpret_cast<const char *>(&value);
      bytes->insert(bytes->end(), raw, raw + 4);
    }
    stored = {*bytes, bytes};
  } else {
    auto bytes = narrow(tensor, type.width);
    stored = {*bytes, bytes};
  }

  uint64_t expected = elementCount(*shape) * type.width;
  if (stored.bytes.size() != expected) {
    auto diag = error(what)
                << "expects " << expected << " bytes for " << type.name << " [";
    llvm::interleaveComma(*shape, diag);
    return diag << "], but got " << stored.bytes.size();
  }
  return stored;
}

static float toFloat(const llvm::fltSemantics &semantics, llvm::APInt bits) {
  llvm::APFloat value(semantics, bits);
  bool inexact;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven,
                &inexact);
  return value.convertToFloat();
}

static float readFloat(const char *at, int32_t onnxType) {
  using namespace llvm::support::endian;
  if (std::optional<nn::FloatFormat> format = floatFormatOf(onnxType))
    return toFloat(nn::semanticsOf(*format), llvm::APInt(8, uint8_t(*at)));
  switch (onnxType) {
  case TensorProto::DOUBLE:
    return float(llvm::bit_cast<double>(read64le(at)));
  case TensorProto::FLOAT16:
    return toFloat(llvm::APFloat::IEEEhalf(), llvm::APInt(16, read16le(at)));
  case TensorProto::BFLOAT16:
    return llvm::bit_cast<float>(uint32_t(read16le(at)) << 16);
  default:
    return llvm::bit_cast<float>(read32le(at));
  }
}

static int64_t readInt(const char *at, int32_t onnxType) {
  using namespace llvm::support::endian;
  switch (onnxType) {
  case TensorProto::INT32:
    return int32_t(read32le(at));
  case TensorProto::INT16:
    return int16_t(read16le(at));
  case TensorProto::INT8:
    return int8_t(*at);
  case TensorProto::UINT32:
    return read32le(at);
  case TensorProto::UINT16:
    return read16le(at);
  case TensorProto::UINT8:
    return uint8_t(*at);
  default:
    return int64_t(read64le(at));
  }
}

FailureOr<ConstantTensor> TensorReader::readConstant(const TensorProto &tensor,
                                                     StringRef what) {
  FailureOr<Stored> stored = readStored(tensor, what);
  if (failed(stored))
    return failure();
  const TypeRow &type = *findType(tensor.data_type());
  ConstantTensor result(type.kind,
                        Shape(tensor.dims().begin(), tensor.dims().end()));
  const char *at = stored->bytes.data();
  for (int64_t i = 0, e = result.size(); i < e; ++i, at += type.width) {
    if (type.kind == ElementKind::Float)
      result.setFloat(i, readFloat(at, type.onnxType));
    else if (type.kind == ElementKind::Int)
      result.setInt(i, readInt(at, type.onnxType));
    else
      result.setBool(i, *at != 0);
  }
  return result;
}

FailureOr<FloatBytes> TensorReader::readFloats(const TensorProto &tensor,
                                               StringRef what) {
  FailureOr<Stored> stored = readStored(tensor, what);
  if (failed(stored))
    return failure();
  Shape shape(tensor.dims().begin(), tensor.dims().end());
  // External data may begin anywhere in its file.
  bool isAligned =
      llvm::isAddrAligned(llvm::Align(sizeof(float)), stored->bytes.data());
  if (tensor.data_type() == TensorProto::FLOAT && isAligned)
    return FloatBytes{shape, stored->bytes, stored->owner};
  const TypeRow &type = *findType(tensor.data_type());
  auto floats = std::make_shared<std::vector<float>>(elementCount(shape));
  const char *at = stored->bytes.data();
  for (float &value : *floats) {
    value = readFloat(at, type.onnxType);
    at += type.width;
  }
  ArrayRef<char> bytes(reinterpret_cast<const char *>(floats->data()),
                       floats->size() * sizeof(float));
  return FloatBytes{shape, bytes, floats};
}

FailureOr<std::string> TensorReader::readBytes(const TensorProto &tensor,
                                               StringRef what) {
  FailureOr<Stored> stored = readStored(tensor, what);
  if (failed(stored))
    return failure();
  return std::string(stored->bytes.begin(), stored->bytes.end());
}

} // namespace pipewright::frontend
