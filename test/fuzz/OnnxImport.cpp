//===- OnnxImport.cpp - Fuzz target: models
//--------------------------------===//
//
// The bytes are a model, imported and printed as `--emit=import` does: in
// ONNX's text form when they begin with '<' or '#', else binary. Which options
// it is imported with follows from their number.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/InputFile.h"

#include "frontends/onnx/Importer.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>

using namespace pipewright;

/// Types and attributes are never freed before their context, so that it is
/// made anew at times.
static mlir::MLIRContext &contextFor(int64_t input) {
  static std::unique_ptr<mlir::MLIRContext> context;
  if (input % 500 == 0) {
    context = std::make_unique<mlir::MLIRContext>(
        mlir::MLIRContext::Threading::DISABLED);
    context->getDiagEngine().registerHandler(
        [](mlir::Diagnostic &) { return mlir::success(); });
  }
  return *context;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int64_t inputs = 0;
  bool isText = size > 0 && (data[0] == '<' || data[0] == '#');
  frontend::ImportOptions options;
  options.modelPath =
      fuzz::inputFile(data, size, isText ? "model.onnxtext" : "model.onnx");
  options.requireLoss = size % 4 != 0;
  if (size % 4 == 1)
    options.loss = "softmax-cross-entropy";
  if (size % 4 == 2)
    options.loss = "mse";
  if (size % 3 == 0)
    options.microBatchSize = 2;
  // A dimension is refused where there is none of its name.
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  if (bytes.contains(isText ? "[N" : "\x12\x01N"))
    options.dims["N"] = 2;

  auto model = frontend::importOnnx(options, contextFor(inputs++));
  if (mlir::failed(model))
    return 0;
  model->module->print(llvm::nulls());
  return 0;
}
