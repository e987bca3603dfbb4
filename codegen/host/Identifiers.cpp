//===- Identifiers.cpp - Names from the model for generated code ---------===//
//
// How the parts of an exporter's name are joined is decided here and nowhere
// else.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Identifiers.h"

#include "dialects/nn/NNLocation.h"
#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "support/Text.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace pipewright::codegen {

static bool isNumber(StringRef text) {
  return !text.empty() && llvm::all_of(text, llvm::isDigit);
}

/// Functions that generated code calls, which a value of that name would hide.
static bool isCalled(StringRef name) {
  static constexpr StringRef functions[] = {
      "accumulate", "attention", "copy",   "dropout",       "embedding",
      "fill",       "launch",    "matmul", "orthogonalize", "zero"};
  return llvm::is_contained(functions, name);
}

std::string makeIdentifier(StringRef name) {
  constexpr size_t maxParts = 4, maxLength = 40;
  SmallVector<StringRef> parts = nn::partsOfName(name);
  size_t begin = parts.size() > maxParts ? parts.size() - maxParts : 0;
  // A number means something only beside what it numbers.
  if (begin > 0 && isNumber(parts[begin]))
    --begin;
  std::string joined =
      text::identifier(llvm::join(ArrayRef(parts).drop_front(begin), "_"));
  while (joined.size() > maxLength) {
    size_t cut = joined.find('_');
    if (cut == std::string::npos)
      cut = joined.size() - maxLength - 1;
    joined.erase(0, cut + 1);
  }
  joined = text::identifier(joined);
  return isCalled(joined) ? "x_" + joined : joined;
}

bool onlyBrings(Operation *op) {
  return isa<nn::ParameterOp, nn::ConstantOp, pipe::CopyOp>(op);
}

std::string identifierFor(Value value) {
  // A running statistic is read where its normalization stands.
  if (auto parameter = value.getDefiningOp<nn::ParameterOp>())
    return makeIdentifier(parameter.getWeight());
  if (auto copy = value.getDefiningOp<pipe::CopyOp>();
      copy && copy.getValue().getDefiningOp<nn::ParameterOp>())
    return identifierFor(copy.getValue()) + "_before";
  if (StringRef name = nn::nameOfLocation(nn::locationOf(value)); !name.empty())
    return makeIdentifier(name);
  if (Operation *op = value.getDefiningOp()) {
    if (auto kernel = op->getAttrOfType<SymbolRefAttr>("kernel"))
      return makeIdentifier(kernel.getLeafReference().getValue());
    return makeIdentifier(op->getName().stripDialect());
  }
  return "argument" + std::to_string(cast<BlockArgument>(value).getArgNumber());
}

NameScope::NameScope() {
  for (StringRef name : {"rank", "microBatch"})
    taken[name] = 1;
}

std::string NameScope::unique(StringRef base) {
  unsigned &count = taken[base];
  if (++count == 1)
    return base.str();
  // `x_2` may be a name of the model as well.
  std::string name;
  do
    name = (base + "_" + std::to_string(count)).str();
  while (taken.contains(name) && ++taken[base]);
  taken[name] = 1;
  return name;
}

} // namespace pipewright::codegen
