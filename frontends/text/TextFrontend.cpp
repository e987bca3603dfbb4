//===- TextFrontend.cpp - Models as text of the import level --------------===//
//
// MODEL.mlir is what `--emit=import` prints, or what a person writes; the
// weights begin with the values in MODEL.safetensors beside it. The text says
// itself what options of an import say elsewhere: shapes, the loss, and which
// weights are trained.
//
//===----------------------------------------------------------------------===//

#include "dialects/call/CallDialect.h"
#include "dialects/nn/NNLimits.h"
#include "dialects/nn/NNWeightNames.h"
#include "frontends/common/Frontend.h"
#include "runtime/core/Error.h"
#include "runtime/io/Safetensors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
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

/// The first option that says what the text says; empty if there is none.
static StringRef superfluousOption(const ImportOptions &options) {
  if (!options.dims.empty())
    return "--dim";
  if (options.microBatchSize)
    return "--micro-batch-size";
  if (!options.loss.empty())
    return "--loss";
  if (!options.lossOutput.empty())
    return "--loss-output";
  if (options.runningVariance)
    return "--running-variance";
  if (options.trainDropout)
    return "--train-dropout";
  if (!options.roleRules.empty())
    return options.roleRules.front().option();
  return "";
}

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

/// Takes each weight's values from the file. What is wrong with the file, the
/// reader throws.
static LogicalResult readWeights(ModuleOp module, const std::string &path,
                                 nn::WeightStore &store) {
  auto weights = module.getOps<nn::WeightOp>();
  if (weights.empty())
    return success();
  for (nn::WeightOp weight : weights)
    if (std::string problem =
            nn::problemOfSize(weight.getTensorType().getShape());
        !problem.empty())
      return weight.emitOpError() << problem;
  const runtime::SafetensorsReader reader(path);
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

/// How deep brackets stand in brackets. MLIR's parser calls itself for each.
static size_t depthOf(StringRef text) {
  size_t depth = 0, deepest = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"')
      for (++i; i < text.size() && text[i] != '"'; ++i)
        i += text[i] == '\\' ? 1 : 0;
    else if (text.substr(i).starts_with("//"))
      i = std::min(text.find('\n', i), text.size());
    else if (text.substr(i).starts_with("->"))
      ++i;
    else if (StringRef("([{<").contains(text[i]))
      deepest = std::max(deepest, ++depth);
    else if (StringRef(")]}>").contains(text[i]) && depth > 0)
      --depth;
  }
  return deepest;
}

/// What the text says but for what was decided when it was printed, which the
/// command line decides anew.
static FailureOr<OwningOpRef<ModuleOp>> parse(Location file, StringRef path,
                                              MLIRContext &context) {
  auto text = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!text)
    return emitError(file) << "cannot be read: " << text.getError().message();
  constexpr size_t limit = 256;
  if (size_t depth = depthOf((*text)->getBuffer()); depth > limit)
    return emitError(file) << "expects brackets at most " << limit
                           << " deep, but they are " << depth << " deep";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      (*text)->getBuffer(), ParserConfig(&context), path);
  if (!module)
    return failure();
  for (NamedAttribute attribute :
       llvm::to_vector((*module)->getDiscardableAttrs()))
    if (attribute.getName().getValue().starts_with("pipe."))
      (*module)->removeDiscardableAttr(attribute.getName());
  return module;
}

FailureOr<ImportedModel> TextFrontend::import(const ImportOptions &options,
                                              MLIRContext &context) const {
  Location file = FileLineColLoc::get(&context, options.modelPath, 0, 0);
  if (StringRef option = superfluousOption(options); !option.empty())
    return emitError(file) << option
                           << " expects an ONNX model; text of the import "
                              "level says itself what the option would";
  context.loadDialect<nn::NNDialect, call::CallDialect, func::FuncDialect>();
  auto module = parse(file, options.modelPath, context);
  if (failed(module))
    return failure();
  ImportedModel model;
  model.module = std::move(*module);
  SmallString<128> weights(options.modelPath);
  llvm::sys::path::replace_extension(weights, "safetensors");
  try {
    if (failed(readWeights(*model.module, weights.str().str(), model.weights)))
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
