//===- FilterLayout.cpp - Filters in memory and in files ------------------===//

#include "runtime/train/FilterLayout.h"
#include "runtime/core/Error.h"
#include "runtime/io/Source.h"

#include <cstring>

using namespace pipewright::runtime;

/// Copies `count` matrices of rows x columns elements, each transposed.
static std::vector<char> transposed(const void *from, int64_t count,
                                    int64_t rows, int64_t columns,
                                    int64_t width) {
  std::vector<char> result(count * rows * columns * width);
  const char *source = static_cast<const char *>(from);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t to = (i * columns + column) * rows + row;
        std::memcpy(result.data() + to * width, source, width);
        source += width;
      }
  return result;
}

static std::vector<int64_t> filterShape(const TensorInfo &weight) {
  std::vector<int64_t> shape = parseShape(weight.shape);
  if (shape.size() != 4)
    fail("weight '", weight.name, "' of shape ", weight.shape,
         " has channels last, but is no filter of 4 dimensions");
  return shape;
}

std::vector<char> pipewright::runtime::filterForMemory(const TensorInfo &weight,
                                                       const void *file) {
  const std::vector<int64_t> shape = filterShape(weight);
  return transposed(file, shape[0], shape[1], shape[2] * shape[3],
                    byteWidth(weight.type));
}

std::vector<char> pipewright::runtime::filterForFile(const TensorInfo &weight,
                                                     const void *memory) {
  const std::vector<int64_t> shape = filterShape(weight);
  return transposed(memory, shape[0], shape[2] * shape[3], shape[1],
                    byteWidth(weight.type));
}
