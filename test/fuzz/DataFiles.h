//===- DataFiles.h - Reading a data set as a program does ------*- C++ -*-===//
//
// Opens a data file for an input, as `--data NAME=FILE` does, and reads what a
// training may read of it. An Error is a refusal; anything else that is thrown
// is a find.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_FUZZ_DATAFILES_H
#define PIPEWRIGHT_TEST_FUZZ_DATAFILES_H

#include "runtime/core/Error.h"
#include "runtime/io/Dataset.h"

#include <algorithm>
#include <vector>

namespace pipewright::fuzz {

/// A program of two samples per micro-batch with these inputs.
inline runtime::Program programOf(std::vector<runtime::InputInfo> inputs) {
  runtime::Program program;
  program.microBatches = 2;
  program.microBatchSize = 2;
  program.inputs = std::move(inputs);
  return program;
}

/// Whether the first input of the program took the data; the others are fed
/// with what comes beside it.
inline bool readData(const runtime::Program &program, const std::string &data) {
  try {
    const runtime::Dataset set(program, {{program.inputs[0].name, data}},
                               "--data");
    set.validate();
    // The buffer has exactly the bytes of a sample, so that one more is seen.
    for (size_t input = 0; input < program.inputs.size(); ++input) {
      std::vector<char> sample(set.slot(input).sampleBytes());
      const int64_t last =
          std::min<int64_t>(set.samples() - 1, int64_t{1} << 62);
      for (int64_t index : {int64_t{0}, last / 2, last})
        if (index >= 0)
          set.read(input, index, sample.data());
    }
    return true;
  } catch (const runtime::Error &) {
    return false;
  }
}

} // namespace pipewright::fuzz

#endif // PIPEWRIGHT_TEST_FUZZ_DATAFILES_H
