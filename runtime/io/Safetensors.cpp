//===- Safetensors.cpp - Named tensors in one file ------------------------===//

#include "runtime/io/Safetensors.h"
#include "runtime/core/Error.h"
#include "runtime/core/Hash.h"
#include "runtime/io/Source.h"

#include <algorithm>
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

/// The JSON text at the beginning of the file.
static std::string readHeader(DataFile &file) {
  // What the format allows.
  constexpr uint64_t longest = 100'000'000;
  uint64_t length = 0;
  if (file.bytes() > 8)
    file.read(0, 8, &length);
  if (length == 0 || length > static_cast<uint64_t>(file.bytes()) - 8 ||
      length > longest)
    fail("'", file.path(), "' is no safetensors file, or is truncated");
  std::string header(length, '\0');
  file.read(8, static_cast<int64_t>(length), header.data());
  return header;
}

/// A size or an offset. The JSON library would convert any number, also one
/// that no integer can hold.
static int64_t wholeNumber(const std::string &path, const std::string &tensor,
                           const nlohmann::json &value) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX))
    fail("'", path, "' is no safetensors file: tensor '", tensor,
         "' expects whole numbers below 2^63 as sizes and offsets, but has ",
         value.is_number() ? value.dump() : value.type_name());
  return value.get<int64_t>();
}

SafetensorsReader::SafetensorsReader(const std::string &path)
    : file(std::make_shared<DataFile>(path)) {
  const std::string text = readHeader(*file);
  const int64_t first = 8 + static_cast<int64_t>(text.size());
  const int64_t available = file->bytes() - first;
  // A level takes fifty times the memory of its text; no header has more
  // than 3.
  const auto refuseDeep = [&](int depth, auto, const auto &) {
    if (depth > 8)
      fail("'", path,
           "' is no safetensors file: its header has lists nested more than 8 "
           "deep");
    return true;
  };
  try {
    const auto header = nlohmann::json::parse(text, refuseDeep);
    for (const auto &[name, value] : header.items()) {
      if (name == "__metadata__")
        continue;
      Entry &entry = entries[name];
      entry.type = value.at("dtype").get<std::string>();
      for (const auto &size :
           value.at("shape").get_ref<const nlohmann::json::array_t &>())
        entry.shape.push_back(wholeNumber(path, name, size));
      const auto &offsets = value.at("data_offsets");
      const int64_t begin = wholeNumber(path, name, offsets.at(0));
      const int64_t end = wholeNumber(path, name, offsets.at(1));
      if (begin < 0 || end < begin || end > available)
        fail("'", path, "' is truncated: tensor '", name, "' ends at byte ",
             end, ", but there are ", available);
      entry.begin = first + begin;
      entry.end = first + end;
    }
  } catch (const nlohmann::json::exception &error) {
    fail("'", path, "' is no safetensors file: ", error.what());
  }
}

std::vector<std::string> SafetensorsReader::names() const {
  std::vector<std::string> all;
  for (const auto &[name, entry] : entries)
    all.push_back(name);
  return all;
}

uint64_t SafetensorsReader::fingerprint() const {
  constexpr int64_t samples = 64, width = 8;
  Hash hash;
  for (const auto &[name, entry] : entries) {
    hash.addText(name);
    hash.addText(entry.type);
    for (const int64_t size : entry.shape)
      hash.addWord(static_cast<uint64_t>(size));
    const int64_t bytes = entry.end - entry.begin;
    const int64_t step = std::max(width, bytes / samples / width * width);
    for (int64_t at = 0; at < bytes; at += step) {
      char word[width];
      const int64_t now = std::min(width, bytes - at);
      file->read(entry.begin + at, now, word);
      hash.addBytes(word, now);
    }
  }
  return hash.value();
}

TensorView SafetensorsReader::find(const std::string &name, ElementType type,
                                   const std::vector<int64_t> &shape) const {
  const auto found = entries.find(name);
  if (found == entries.end())
    fail("'", file->path(), "' has no tensor '", name, "'");
  const Entry &entry = found->second;
  if (entry.shape != shape || entry.type != formatName(type))
    fail("tensor '", name, "' in '", file->path(), "' is ", entry.type, " ",
         shapeText(entry.shape), ", but the program expects ", formatName(type),
         " ", shapeText(shape));
  const int64_t bytes = entry.end - entry.begin;
  if (bytes != elementCount(shape) * byteWidth(type))
    fail("tensor '", name, "' in '", file->path(), "' has ", bytes,
         " bytes, but expects ", elementCount(shape) * byteWidth(type));
  return {file, type, shape, entry.begin, bytes};
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
  write(&length, 8);
  write(text.data(), static_cast<int64_t>(text.size()));
}

void SafetensorsWriter::write(const void *data, int64_t bytes) {
  file.write(data, bytes);
  hash.addBytes(data, bytes);
  written += bytes;
}
