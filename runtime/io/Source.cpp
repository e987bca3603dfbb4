//===- Source.cpp - What all data formats share ---------------------------===//

#include "runtime/io/Source.h"
#include "runtime/core/Error.h"

#include <cstdlib>

using namespace pipewright::runtime;

std::string pipewright::runtime::shapeText(const std::vector<int64_t> &shape) {
  if (shape.empty())
    return "scalar";
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

std::vector<int64_t> pipewright::runtime::parseShape(const char *text) {
  std::vector<int64_t> shape;
  while (*text) {
    char *end = nullptr;
    shape.push_back(std::strtoll(text, &end, 10));
    if (end == text)
      fail("'", text, "' is not a shape");
    text = *end ? end + 1 : end;
  }
  return shape;
}

std::optional<int64_t>
pipewright::runtime::checkedBytes(const std::vector<int64_t> &shape,
                                  int64_t width) {
  int64_t bytes = width;
  bool isEmpty = false;
  for (int64_t size : shape) {
    if (size < 0)
      return std::nullopt;
    isEmpty |= size == 0;
    // The other dimensions are looked at even where there is no element.
    if (size && __builtin_mul_overflow(bytes, size, &bytes))
      return std::nullopt;
  }
  return isEmpty ? 0 : bytes;
}

int64_t pipewright::runtime::elementCount(const std::vector<int64_t> &shape) {
  const std::optional<int64_t> count = checkedBytes(shape, 1);
  if (!count)
    fail("a tensor of shape ", shapeText(shape),
         " has more elements than 64 bits can count");
  return *count;
}

std::vector<std::string>
pipewright::runtime::splitCommas(const std::string &text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin)
      parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

InputSlot::InputSlot(const Program &program, int64_t number)
    : info(program.inputs.at(number)), number(number), sampleShape(info.shape) {
  const int64_t size = program.microBatchSize;
  batched = !sampleShape.empty() && sampleShape[0] % size == 0;
  if (batched) {
    sampleShape[0] /= size;
    if (sampleShape[0] == 1)
      sampleShape.erase(sampleShape.begin());
  }
  sampleElements = elementCount(sampleShape);
}
