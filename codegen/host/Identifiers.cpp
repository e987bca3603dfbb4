//===- Identifiers.cpp - Names from the model for generated code ---------===//
//
// What counts as a meaningful part of an exporter's name, and how the parts
// are joined, is decided here and nowhere else.
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

/// Null where there is none.
static NameLoc namedLocation(Location loc) {
  if (auto named = dyn_cast<NameLoc>(loc)) {
    StringRef name = named.getName().getValue();
    // The module is called after its file, and so are ops without a node.
    return name.ends_with(".onnx") || name.ends_with(".onnxtxt") ||
                   name.ends_with(".onnxtext")
               ? NameLoc()
               : named;
  }
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : llvm::reverse(fused.getLocations()))
      if (NameLoc named = namedLocation(part);
          named && !named.getName().empty())
        return named;
  }
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return namedLocation(call.getCallee());
  return {};
}

StringRef nameOfLocation(Location loc) {
  NameLoc named = namedLocation(loc);
  return named ? named.getName().getValue() : StringRef();
}

/// Exporters add `_output_0` to the name of a node's first result, and
/// namespaces with slashes, dots or double colons.
static SmallVector<StringRef> partsOf(StringRef name) {
  if (size_t at = name.rfind("_output_"); at != StringRef::npos) {
    StringRef digits = name.drop_front(at + strlen("_output_"));
    if (!digits.empty() && llvm::all_of(digits, llvm::isDigit))
      name = name.take_front(at);
  }
  SmallVector<StringRef> parts;
  while (!name.empty()) {
    size_t end = name.find_first_of("/.:");
    if (StringRef part = name.take_front(end); !part.empty())
      parts.push_back(part);
    name = end == StringRef::npos ? StringRef() : name.drop_front(end + 1);
  }
  return parts;
}

static bool isNumber(StringRef text) {
  return !text.empty() && llvm::all_of(text, llvm::isDigit);
}

/// Functions that generated code calls, which a value of that name would hide.
static bool isCalled(StringRef name) {
  static constexpr StringRef functions[] = {"accumulate", "attention", "copy",
                                            "dropout",    "embedding", "fill",
                                            "launch",     "matmul",    "zero"};
  return llvm::is_contained(functions, name);
}

std::string makeIdentifier(StringRef name) {
  constexpr size_t maxParts = 4, maxLength = 40;
  SmallVector<StringRef> parts = partsOf(name);
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

std::string layerOfLocation(Location loc) {
  NameLoc named = namedLocation(loc);
  if (auto module = named ? dyn_cast<NameLoc>(named.getChildLoc()) : NameLoc())
    return module.getName().str();
  SmallVector<StringRef> parts = partsOf(nameOfLocation(loc));
  if (parts.size() < 2)
    return {};
  parts.pop_back();
  return llvm::join(parts, ".");
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
  if (StringRef name = nameOfLocation(nn::locationOf(value)); !name.empty())
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
