//===- NNCountedInput.cpp - Inputs that the runtime counts ----------------===//

#include "dialects/nn/NNCountedInput.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace pipewright::nn {

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

std::optional<CountedInput> countedInput(Attribute attribute) {
  auto input = dyn_cast_or_null<DictionaryAttr>(attribute);
  if (!input || input.size() != 3)
    return std::nullopt;
  auto labels = input.getAs<StringAttr>("labels");
  auto ignored = input.getAs<IntegerAttr>("ignored");
  auto ranges = input.getAs<DenseI64ArrayAttr>("ranges");
  if (!labels || !ignored || !ignored.getType().isInteger(64) || !ranges ||
      ranges.size() % 2 != 0)
    return std::nullopt;
  return CountedInput{labels.str(), ignored.getInt(),
                      llvm::to_vector(ranges.asArrayRef())};
}

std::optional<CountedInput> countedInput(ModuleOp module, StringRef name) {
  auto inputs = module->getAttrOfType<DictionaryAttr>(kCountedInputs);
  return countedInput(inputs ? inputs.get(name) : Attribute());
}

} // namespace pipewright::nn
