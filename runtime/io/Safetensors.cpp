//===- Safetensors.cpp - Named tensors in one file ------------------------===//

#include "runtime/io/Safetensors.h"
#include "runtime/core/Error.h"
#include "runtime/io/Source.h"

#include <cstring>
#include <nlohmann/json.hpp>

using namespace pipewright::runtime;

static const char *formatName(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return "F32";
  case ElementType::I64:
    return "I64";
  case ElementType::I1:
    return "BOOL";
  case ElementType::I8:
    return "I8";
  case ElementType::BF16:
    return "BF16";
  }
  return "?";
}

SafetensorsReader::SafetensorsReader(const std::string &path) : file(path) {
  uint64_t length = 0;
  if (file.bytes() >= 8)
    std::memcpy(&length, file.data(), 8);
  if (length == 0 || length > static_cast<uint64_t>(file.bytes()) - 8)
    fail("'", path, "' is no safetensors file, or is truncated");
  values = file.data() + 8 + length;
  const int64_t available = file.bytes() - 8 - static_cast<int64_t>(length);
  try {
    const auto header = nlohmann::json::parse(file.data() + 8, values);
    for (const auto &[name, value] : header.items()) {
      if (name == "__metadata__")
        continue;
      Entry &entry = entries[name];
      entry.type = value.at("dtype").get<std::string>();
      entry.shape = value.at("shape").get<std::vector<int64_t>>();
      entry.begin = value.at("data_offsets").at(0).get<int64_t>();
      entry.end = value.at("data_offsets").at(1).get<int64_t>();
      if (entry.begin < 0 || entry.end < entry.begin || entry.end > available)
        fail("'", path, "' is truncated: tensor '", name, "' ends at byte ",
             entry.end, ", but there are ", available);
    }
  } catch (const nlohmann::json::exception &error) {
    fail("'", path, "' is no safetensors file: ", error.what());
  }
}

TensorView SafetensorsReader::find(const std::string &name, ElementType type,
                                   const std::vector<int64_t> &shape) const {
  const auto found = entries.find(name);
  if (found == entries.end())
    fail("'", file.path(), "' has no tensor '", name, "'");
  const Entry &entry = found->second;
  if (entry.shape != shape || entry.type != formatName(type))
    fail("tensor '", name, "' in '", file.path(), "' is ", entry.type, " ",
         shapeText(entry.shape), ", but the program expects ", formatName(type),
         " ", shapeText(shape));
  const int64_t bytes = entry.end - entry.begin;
  if (bytes != elementCount(shape) * byteWidth(type))
    fail("tensor '", name, "' in '", file.path(), "' has ", bytes,
         " bytes, but expects ", elementCount(shape) * byteWidth(type));
  return {type, shape, values + entry.begin, bytes};
}

SafetensorsWriter::SafetensorsWriter(const std::string &path,
                                     const std::vector<TensorHeader> &tensors)
    : file(path) {
  auto header = nlohmann::ordered_json::object();
  int64_t offset = 0;
  for (const TensorHeader &tensor : tensors) {
    const int64_t bytes = elementCount(tensor.shape) * byteWidth(tensor.type);
    header[tensor.name] = {{"dtype", formatName(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  file.write(&length, 8);
  file.write(text.data(), text.size());
}
