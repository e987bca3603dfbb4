//===- Npy.cpp - NumPy's array files --------------------------------------===//

#include "runtime/io/Npy.h"
#include "runtime/core/Error.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/Source.h"

#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

using namespace pipewright::runtime;

/// The text after "'key':" in the header, which is a Python dictionary.
static std::string headerField(const std::string &header, const char *key,
                               const std::string &path) {
  const size_t at = header.find("'" + std::string(key) + "'");
  const size_t colon = at == std::string::npos ? at : header.find(':', at);
  if (colon == std::string::npos)
    fail("'", path, "' is no .npy file: its header has no '", key, "'");
  const size_t begin = header.find_first_not_of(' ', colon + 1);
  return begin == std::string::npos ? "" : header.substr(begin);
}

/// The dictionary at the beginning, and where the values begin.
static std::string readHeader(DataFile &file, int64_t &begin) {
  const std::string &path = file.path();
  // Arrays of one type have short ones; longer ones are somebody's joke.
  constexpr int64_t longest = 1 << 20;
  if (file.bytes() < 12 || std::memcmp(file.view(0, 12), "\x93NUMPY", 6) != 0)
    fail("'", path, "' is no .npy file: it does not begin with NumPy's mark");
  const unsigned char *data = file.view(0, 12);
  const int64_t prefix = data[6] == 1 ? 10 : 12;
  int64_t length = data[8] | data[9] << 8;
  if (prefix == 12)
    length |= int64_t{data[10]} << 16 | int64_t{data[11]} << 24;
  if (length > file.bytes() - prefix)
    fail("'", path, "' is truncated: its header has ", length,
         " bytes, but the file only ", file.bytes());
  if (length > longest)
    fail("'", path, "' has a header of ", length, " bytes, but at most ",
         longest, " are expected");
  begin = prefix + length;
  std::string header(length, '\0');
  file.read(prefix, length, header.data());
  return header;
}

/// NumPy's letter and width, such as "f4".
static std::string readType(const std::string &header,
                            const std::string &path) {
  const std::string type = headerField(header, "descr", path);
  const size_t quote = type.size() > 1 ? type.find(type[0], 1) : 0;
  if (type.empty() || (type[0] != '\'' && type[0] != '"') ||
      quote == std::string::npos || quote < 3)
    fail("'", path, "' has a structured type, but expects one number each");
  if (type[1] == '>')
    fail("'", path, "' is big-endian, which is not supported");
  const std::string word = type.substr(2, quote - 2);
  if (word.size() != 2 || std::strchr("1248", word[1]) == nullptr)
    fail("'", path, "' has values of type '", word,
         "', but numbers of 1, 2, 4 or 8 bytes are expected");
  return word;
}

/// A Python tuple of whole numbers.
static std::vector<int64_t> readShape(const std::string &header,
                                      const std::string &path) {
  const std::string text = headerField(header, "shape", path);
  const size_t end = text.find(')');
  if (text.empty() || text[0] != '(' || end == std::string::npos)
    fail("'", path, "' has no shape in its header, but '", text.substr(0, 40),
         "'");
  std::vector<int64_t> shape;
  for (const std::string &part : splitCommas(text.substr(1, end - 1))) {
    const size_t first = part.find_first_not_of(' ');
    if (first == std::string::npos)
      continue;
    // Python 2 wrote an L behind long ones.
    const size_t last = part.find_last_not_of(" L");
    const std::string number = part.substr(first, last + 1 - first);
    int64_t size = 0;
    const auto [stop, error] =
        std::from_chars(number.data(), number.data() + number.size(), size);
    if (last == std::string::npos || error != std::errc() ||
        stop != number.data() + number.size() || size < 0)
      fail("'", path, "' has a dimension of '", part.substr(first),
           "', but a whole number from 0 to ",
           std::numeric_limits<int64_t>::max(), " is expected");
    shape.push_back(size);
  }
  return shape;
}

NpyArray pipewright::runtime::readNpy(const std::string &path) {
  NpyArray array;
  array.file = std::make_shared<DataFile>(path);
  const std::string header = readHeader(*array.file, array.begin);
  array.type = readType(header, path);
  if (headerField(header, "fortran_order", path).rfind("True", 0) == 0)
    fail("'", path, "' is in Fortran order: save numpy.ascontiguousarray(x)");
  array.shape = readShape(header, path);
  const int64_t there = array.file->bytes() - array.begin;
  const std::optional<int64_t> expected =
      checkedBytes(array.shape, array.width());
  if (!expected)
    fail("'", path, "' has shape ", shapeText(array.shape), " of '", array.type,
         "', which is more bytes than any file has");
  if (there < *expected)
    fail("'", path, "' is truncated: shape ", shapeText(array.shape), " of '",
         array.type, "' needs ", *expected, " bytes, but it has ", there);
  array.bytes = *expected;
  return array;
}

void pipewright::runtime::writeNpy(const std::string &path, ElementType type,
                                   const std::vector<int64_t> &shape,
                                   const void *values) {
  std::string header = "{'descr': '";
  header += type == ElementType::F32   ? "<f4"
            : type == ElementType::I64 ? "<i8"
            : type == ElementType::I1  ? "|b1"
                                       : "|i1";
  header += "', 'fortran_order': False, 'shape': (";
  for (int64_t size : shape)
    header += std::to_string(size) + ", ";
  header += "), }";
  // NumPy wants the values to begin at a multiple of 64.
  while ((10 + header.size() + 1) % 64 != 0)
    header += ' ';
  header += '\n';
  unsigned char prefix[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
  prefix[8] = header.size() & 255;
  prefix[9] = header.size() >> 8;
  AtomicFile file(path);
  file.write(prefix, sizeof prefix);
  file.write(header.data(), header.size());
  file.write(values, elementCount(shape) * byteWidth(type));
  file.commit();
}

/// Copies `count` numbers of NumPy type From into To.
template <class From, class To>
static void convert(const unsigned char *from, void *to, int64_t count) {
  To *out = static_cast<To *>(to);
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    out[i] = static_cast<To>(value);
  }
}

using Converter = void (*)(const unsigned char *, void *, int64_t);

/// How to read NumPy type `from` as an input of type `to`; null: never, since
/// it would lose what the file says.
static Converter findConverter(const std::string &from, ElementType to) {
  struct Row {
    const char *from;
    ElementType to;
    Converter convert;
  };
  static const Row rows[] = {
      {"f4", ElementType::F32, convert<float, float>},
      {"f8", ElementType::F32, convert<double, float>},
      {"u1", ElementType::F32, convert<uint8_t, float>},
      {"i8", ElementType::I64, convert<int64_t, int64_t>},
      {"i4", ElementType::I64, convert<int32_t, int64_t>},
      {"i2", ElementType::I64, convert<int16_t, int64_t>},
      {"i1", ElementType::I64, convert<int8_t, int64_t>},
      {"u1", ElementType::I64, convert<uint8_t, int64_t>},
      {"u2", ElementType::I64, convert<uint16_t, int64_t>},
      {"u4", ElementType::I64, convert<uint32_t, int64_t>},
      {"b1", ElementType::I1, convert<uint8_t, uint8_t>},
      {"b1", ElementType::F32, convert<uint8_t, float>},
      {"b1", ElementType::I64, convert<uint8_t, int64_t>},
      {"i1", ElementType::I8, convert<int8_t, int8_t>},
  };
  for (const Row &row : rows)
    if (from == row.from && to == row.to)
      return row.convert;
  return nullptr;
}

/// Labels of shape (N, 1) are those of shape (N).
static std::vector<int64_t> withoutOnes(std::vector<int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

SourcePair pipewright::runtime::openNpy(const std::string &path,
                                        const InputSlot &slot) {
  const NpyArray array = readNpy(path);
  const Converter convert = findConverter(array.type, slot.info.type);
  if (!convert)
    fail("input '", slot.info.name, "' expects ", typeText(slot.info.type),
         ", but '", path, "' has NumPy type '", array.type, "'");
  // Nothing to convert: straight to where it is wanted.
  const bool isCopy =
      (array.type == "f4" && slot.info.type == ElementType::F32) ||
      (array.type == "i8" && slot.info.type == ElementType::I64);
  Source source;
  source.description = "'" + path + "'";
  if (array.type == "u1" && slot.info.type == ElementType::F32)
    source.remark = "input '" + std::string(slot.info.name) +
                    "' is read from bytes, as 0 to 255; " + slot.info.name +
                    "=scaled:1/255:" + path + " makes them 0 to 1";
  std::vector<int64_t> sample = array.shape;
  if (slot.batched) {
    if (sample.empty())
      fail("input '", slot.info.name, "' expects an array of samples, but '",
           path, "' is a scalar");
    source.samples = sample.front();
    sample.erase(sample.begin());
  } else {
    source.samples = Source::endless;
  }
  if (withoutOnes(sample) != withoutOnes(slot.sampleShape))
    fail("input '", slot.info.name, "' expects ",
         slot.batched ? "samples of " : "", "shape ",
         shapeText(slot.sampleShape), ", but '", path, "' has ",
         shapeText(sample), slot.batched ? " after its first dimension" : "");
  const int64_t elements = slot.sampleElements;
  const int64_t bytes = elements * array.width();
  source.read = [=, file = array.file, begin = array.begin,
                 batched = slot.batched](int64_t index, void *destination) {
    const int64_t at = begin + (batched ? index * bytes : 0);
    if (isCopy)
      file->read(at, bytes, destination);
    else
      convert(file->view(at, bytes), destination, elements);
  };
  source.check = [file = array.file] { file->checkSize(); };
  return {std::move(source), {}, {}};
}
