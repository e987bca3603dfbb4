//===- Safetensors.cpp - Named tensors in one file ------------------------===//

#include "runtime/io/Safetensors.h"
#include "runtime/core/BFloat16.h"
#include "runtime/core/Error.h"
#include "runtime/core/Half.h"
#include "runtime/core/Hash.h"
#include "runtime/io/JsonFile.h"
#include "runtime/io/Source.h"

#include <algorithm>
#include <cstring>
#include <optional>

using namespace pipewright::runtime;

/// The name of what is no tensor in a header.
static constexpr char notesName[] = "__metadata__";

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

/// None for a type that no tensor of ours has.
static std::optional<ElementType> typeOf(const std::string &format) {
  for (const ElementType type :
       {ElementType::F32, ElementType::I64, ElementType::I1, ElementType::I8,
        ElementType::BF16})
    if (format == formatName(type))
      return type;
  return std::nullopt;
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

/// A size or an offset.
static int64_t numberOf(const std::string &tensor,
                        const nlohmann::json &value) {
  try {
    return wholeNumber(value);
  } catch (const Error &error) {
    fail("a size or an offset of tensor '", tensor, "' ", error.what());
  }
}

SafetensorsReader::SafetensorsReader(const std::string &path)
    : file(std::make_shared<DataFile>(path)) {
  const std::string text = readHeader(*file);
  try {
    readEntries(parseJson(text), 8 + static_cast<int64_t>(text.size()));
  } catch (const std::exception &error) {
    fail("'", path, "' is no safetensors file: ", error.what());
  }
  for (const auto &[name, entry] : entries)
    if (entry.end > file->bytes())
      fail("'", path, "' is truncated: tensor '", name, "' ends at byte ",
           entry.end, ", but there are ", file->bytes());
}

void SafetensorsReader::readEntries(const nlohmann::json &header,
                                    int64_t first) {
  for (const auto &[name, value] : header.items()) {
    if (name == notesName) {
      for (const auto &[key, text] : value.items())
        texts[key] = text.is_string() ? text.get<std::string>() : "";
      continue;
    }
    Entry &entry = entries[name];
    entry.type = value.at("dtype").get<std::string>();
    for (const auto &size :
         value.at("shape").get_ref<const nlohmann::json::array_t &>())
      entry.shape.push_back(numberOf(name, size));
    const auto &offsets = value.at("data_offsets");
    const int64_t begin = numberOf(name, offsets.at(0)),
                  end = numberOf(name, offsets.at(1));
    if (end < begin || end > INT64_MAX - first)
      fail("tensor '", name, "' has the bytes from ", begin, " to ", end);
    entry.begin = first + begin;
    entry.end = first + end;
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

void TensorView::read(int64_t offset, int64_t count, void *destination) const {
  if (stored == StoredAs::Read)
    return file->read(begin + offset, count, destination);
  constexpr int64_t width = sizeof(uint16_t), most = 16 << 10;
  uint16_t halves[most];
  auto *floats = static_cast<float *>(destination);
  int64_t first = offset / byteWidth(type), left = count / byteWidth(type);
  for (; left > 0; left -= most, first += most, floats += most) {
    const int64_t now = std::min(most, left);
    file->read(begin + first * width, now * width, halves);
    for (int64_t i = 0; i < now; ++i)
      floats[i] =
          stored == StoredAs::F16 ? widenHalf(halves[i]) : widen(halves[i]);
  }
}

/// How a type of a file is read as another one; nothing if it is not.
static std::optional<StoredAs> readingOf(const std::string &stored,
                                         ElementType type) {
  if (stored == formatName(type))
    return StoredAs::Read;
  if (type == ElementType::F32 && stored == "F16")
    return StoredAs::F16;
  if (type == ElementType::F32 && stored == "BF16")
    return StoredAs::BF16;
  return std::nullopt;
}

TensorView SafetensorsReader::find(const std::string &name, ElementType type,
                                   const std::vector<int64_t> &shape) const {
  const auto found = entries.find(name);
  if (found == entries.end())
    fail("'", file->path(), "' has no tensor '", name, "'");
  const Entry &entry = found->second;
  const auto stored = readingOf(entry.type, type);
  if (entry.shape != shape || !stored)
    fail("tensor '", name, "' in '", file->path(), "' is ", entry.type, " ",
         shapeText(entry.shape), ", but the program expects ", formatName(type),
         " ", shapeText(shape));
  const int64_t expected =
      elementCount(shape) * (stored == StoredAs::Read
                                 ? byteWidth(type)
                                 : static_cast<int64_t>(sizeof(uint16_t)));
  if (entry.end - entry.begin != expected)
    fail("tensor '", name, "' in '", file->path(), "' has ",
         entry.end - entry.begin, " bytes, but expects ", expected);
  return {
      file,   type, shape, entry.begin, elementCount(shape) * byteWidth(type),
      *stored};
}

TensorView SafetensorsReader::view(const std::string &name) const {
  const auto found = entries.find(name);
  if (found == entries.end())
    fail("'", file->path(), "' has no tensor '", name, "'");
  const Entry &entry = found->second;
  const auto type = typeOf(entry.type);
  if (!type)
    fail("tensor '", name, "' in '", file->path(), "' is of the type '",
         entry.type.substr(0, 40), "', which is not read");
  const int64_t bytes = entry.end - entry.begin;
  int64_t expected = byteWidth(*type);
  bool isTooLarge = false;
  for (const int64_t size : entry.shape)
    isTooLarge |= __builtin_mul_overflow(expected, size, &expected);
  if (isTooLarge || bytes != expected)
    fail("tensor '", name, "' in '", file->path(), "' has ", bytes,
         " bytes, which is not what ", entry.type, " ", shapeText(entry.shape),
         " takes");
  return {file, *type, entry.shape, entry.begin, bytes};
}

std::string
pipewright::runtime::safetensorsHeader(const std::vector<TensorHeader> &tensors,
                                       const Notes &notes) {
  auto header = nlohmann::ordered_json::object();
  if (!notes.empty())
    header[notesName] = notes;
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
  return std::string(reinterpret_cast<const char *>(&length), 8) + text;
}

SafetensorsWriter::SafetensorsWriter(const std::string &path,
                                     const std::vector<TensorHeader> &tensors,
                                     const Notes &notes)
    : file(path) {
  const std::string header = safetensorsHeader(tensors, notes);
  write(header.data(), static_cast<int64_t>(header.size()));
}

void SafetensorsWriter::write(const void *data, int64_t bytes) {
  // In pieces that a cache still holds when they are hashed.
  constexpr int64_t pieceBytes = 256 << 10;
  const char *from = static_cast<const char *>(data);
  for (int64_t at = 0; at < bytes; at += pieceBytes) {
    const int64_t now = std::min(pieceBytes, bytes - at);
    file.write(from + at, now);
    hash.addBytes(from + at, now);
  }
  written += bytes;
}
