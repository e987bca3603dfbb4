//===- TextFrontend.cpp - Models as text of a level -----------------------===//
//
// MODEL.mlir is what `--emit` prints of some level, or what a person writes;
// the weights begin with the values in MODEL.safetensors beside it. The text
// says itself what options of an import say elsewhere: shapes, the loss, and
// which weights are trained. Dialects of levels behind the import level are the
// caller's to load.
//
//===----------------------------------------------------------------------===//

#include "dialects/call/CallDialect.h"
#include "dialects/nn/NNLimits.h"
#include "dialects/nn/NNWeightNames.h"
#include "frontends/common/Frontend.h"
#include "frontends/text/TextLimits.h"
#include "runtime/core/Error.h"
#include "runtime/io/Safetensors.h"
#include "support/FileBeneath.h"
#include "support/InputFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace pipewright::frontend {

namespace {

struct TextFrontend final : Frontend {
  bool reads(StringRef path) const override { return path.ends_with(".mlir"); }
  FailureOr<ImportedModel> import(const ImportOptions &options,
                                  MLIRContext &context) const override;
};

} // namespace

static runtime::ElementType elementTypeOf(Type type) {
  if (type.isF32())
    return runtime::ElementType::F32;
  if (type.isBF16())
    return runtime::ElementType::BF16;
  if (type.isInteger(64))
    return runtime::ElementType::I64;
  return type.isInteger(1) ? runtime::ElementType::I1
                           : runtime::ElementType::I8;
}

/// The file of the same name beside the text that ends in .safetensors.
static llvm::Expected<std::string> findWeights(StringRef textPath) {
  SmallString<128> name(llvm::sys::path::filename(textPath));
  llvm::sys::path::replace_extension(name, "safetensors");
  llvm::Expected<std::string> path =
      findBeneath(llvm::sys::path::parent_path(textPath).str(), name);
  if (!path)
    return llvm::createStringError("'" + name + "' " +
                                   llvm::toString(path.takeError()));
  return path;
}

/// Takes each weight's values from the file. What is wrong with the file, the
/// reader throws.
static LogicalResult readWeights(Location file, ModuleOp module,
                                 StringRef textPath, nn::WeightStore &store) {
  auto weights = module.getOps<nn::WeightOp>();
  if (weights.empty())
    return success();
  for (nn::WeightOp weight : weights)
    if (std::string problem =
            nn::problemOfSize(weight.getTensorType().getShape());
        !problem.empty())
      return weight.emitOpError() << problem;
  llvm::Expected<std::string> path = findWeights(textPath);
  if (!path)
    return emitError(file) << llvm::toString(path.takeError());
  const runtime::SafetensorsReader reader(*path);
  for (nn::WeightOp weight : weights) {
    RankedTensorType type = weight.getFileType();
    store.addOwned(weight.getSymName(),
                   reader
                       .find(nn::fileNameOf(weight).str(),
                             elementTypeOf(type.getElementType()),
                             type.getShape().vec())
                       .values<char>());
  }
  return success();
}

static FailureOr<OwningOpRef<ModuleOp>> parse(Location file, StringRef path,
                                              MLIRContext &context) {
  llvm::Expected<FileBuffer> text = readTextFile(path);
  if (!text)
    return emitError(file) << llvm::toString(text.takeError());
  if (std::string problem = problemOfText((*text)->getBuffer());
      !problem.empty())
    return emitError(file) << problem;
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      (*text)->getBuffer(), ParserConfig(&context), path);
  if (!module)
    return failure();
  return module;
}

FailureOr<ImportedModel> TextFrontend::import(const ImportOptions &options,
                                              MLIRContext &context) const {
  Location file = FileLineColLoc::get(&context, options.modelPath, 0, 0);
  context.loadDialect<nn::NNDialect, call::CallDialect, func::FuncDialect>();
  auto module = parse(file, options.modelPath, context);
  if (failed(module))
    return failure();
  ImportedModel model;
  model.module = std::move(*module);
  try {
    if (failed(
            readWeights(file, *model.module, options.modelPath, model.weights)))
      return failure();
  } catch (const runtime::Error &error) {
    return emitError(file) << error.what();
  }
  return model;
}

const Frontend &textFrontend() {
  static const TextFrontend frontend;
  return frontend;
}

} // namespace pipewright::frontend
