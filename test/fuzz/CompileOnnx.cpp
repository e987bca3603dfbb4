//===- CompileOnnx.cpp - Fuzz target: models, to the end ------------------===//
//
// The bytes are a model, compiled as by `-o OUT --no-build`: in ONNX's text
// form when they begin with '<' or '#', else binary. What it is compiled for
// follows from their number.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/CompileToFolder.h"
#include "test/fuzz/InputFile.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  bool isText = size > 0 && (data[0] == '<' || data[0] == '#');
  frontend::ImportOptions options;
  options.modelPath =
      fuzz::inputFile(data, size, isText ? "model.onnxtext" : "model.onnx");
  options.loss = size % 2 ? "mse" : "softmax-cross-entropy";
  if (size % 5 == 0)
    options.microBatchSize = 2;
  // A dimension is refused where there is none of its name.
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  if (bytes.contains(isText ? "[N" : "\x12\x01N"))
    options.dims["N"] = 2;
  fuzz::compileToFolder(options, size % 3 == 0 ? 2 : 1);
  return 0;
}
