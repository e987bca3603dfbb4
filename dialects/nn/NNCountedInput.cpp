//===- NNCountedInput.cpp - Inputs that the runtime counts ----------------===//

#include "dialects/nn/NNCountedInput.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace pipewright::nn {

static constexpr StringLiteral kCountedInputs = "nn.counted_inputs";

void setCountedInput(ModuleOp module, StringRef name,
                     const CountedInput &counted) {
  Builder b(module.getContext());
  NamedAttrList inputs(module->getAttrOfType<DictionaryAttr>(kCountedInputs));
  inputs.set(
      name,
      b.getDictionaryAttr(
          {b.getNamedAttr("labels", b.getStringAttr(counted.labels)),
           b.getNamedAttr("ignored", b.getI64IntegerAttr(counted.ignored)),
           b.getNamedAttr("ranges", b.getDenseI64ArrayAttr(counted.ranges))}));
  module->setAttr(kCountedInputs, inputs.getDictionary(module.getContext()));
}

std::optional<CountedInput> countedInput(ModuleOp module, StringRef name) {
  auto inputs = module->getAttrOfType<DictionaryAttr>(kCountedInputs);
  auto input = inputs ? inputs.getAs<DictionaryAttr>(name) : DictionaryAttr();
  if (!input)
    return std::nullopt;
  auto labels = input.getAs<StringAttr>("labels");
  auto ignored = input.getAs<IntegerAttr>("ignored");
  auto ranges = input.getAs<DenseI64ArrayAttr>("ranges");
  if (!labels || !ignored || !ranges || ranges.size() % 2 != 0)
    return std::nullopt;
  return CountedInput{labels.str(), ignored.getInt(),
                      llvm::to_vector(ranges.asArrayRef())};
}

} // namespace pipewright::nn
