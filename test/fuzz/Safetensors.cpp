//===- Safetensors.cpp - Fuzz target: weights
//------------------------------===//
//
// The bytes are a file that is asked for the weights of a small program; all
// that it gives is read.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/InputFile.h"

#include "runtime/core/Error.h"
#include "runtime/io/Safetensors.h"

using namespace pipewright;
using namespace pipewright::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const TensorHeader wanted[] = {
      {"w", ElementType::F32, {2, 3}},  {"b", ElementType::F32, {3}},
      {"scalar", ElementType::F32, {}}, {"i", ElementType::I64, {2}},
      {"mask", ElementType::I1, {5}},   {"half", ElementType::BF16, {4}},
      {"none", ElementType::F32, {0}},
  };
  try {
    const SafetensorsReader reader(fuzz::inputFile(data, size));
    for (const TensorHeader &tensor : wanted) {
      try {
        const TensorView view =
            reader.find(tensor.name, tensor.type, tensor.shape);
        std::vector<char> values(view.bytes);
        view.read(0, view.bytes, values.data());
      } catch (const Error &) {
        // The file has no such tensor, or another one of that name.
      }
    }
  } catch (const Error &) {
    // It is refused.
  }
  return 0;
}
