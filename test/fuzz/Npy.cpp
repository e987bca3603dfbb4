//===- Npy.cpp - Fuzz target: NumPy's array files -------------------------===//
//
// The bytes are an array for an input of each element type.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/DataFiles.h"
#include "test/fuzz/InputFile.h"

#include "runtime/io/Npy.h"

using namespace pipewright;
using namespace pipewright::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Program programs[] = {
      fuzz::programOf({{"x", ElementType::F32, {2, 3}}}),
      fuzz::programOf({{"x", ElementType::I64, {2, 3}, 256}}),
      fuzz::programOf({{"x", ElementType::I1, {2, 3}}}),
      fuzz::programOf({{"x", ElementType::I8, {2, 3}}}),
      // One for all samples, and a sample that is a single number.
      fuzz::programOf({{"x", ElementType::F32, {3}}}),
      fuzz::programOf({{"x", ElementType::I64, {2}}}),
  };
  const std::string path = fuzz::inputFile(data, size);
  try {
    readNpy(path);
  } catch (const Error &) {
    // No input would take it.
    return 0;
  }
  for (const Program &program : programs)
    fuzz::readData(program, path);
  return 0;
}
