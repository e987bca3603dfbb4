//===- NNLocation.cpp - What locations say about values -------------------===//

#include "dialects/nn/NNLocation.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace pipewright::nn {

static constexpr llvm::StringLiteral kGradient = "gradient";

Location asGradient(Location loc) {
  if (isGradient(loc))
    return loc;
  MLIRContext *context = loc.getContext();
  return FusedLoc::get(loc, StringAttr::get(context, kGradient), context);
}

bool isGradient(Location loc) {
  auto fused = dyn_cast<FusedLoc>(loc);
  if (!fused)
    return false;
  auto mark = dyn_cast_if_present<StringAttr>(fused.getMetadata());
  return (mark && mark == kGradient) ||
         llvm::any_of(fused.getLocations(), isGradient);
}

Location withResults(Location loc, ArrayRef<Location> results) {
  if (llvm::all_of(results, [&](Location result) { return result == loc; }))
    return loc;
  SmallVector<Attribute> made(results.begin(), results.end());
  MLIRContext *context = loc.getContext();
  return FusedLoc::get(loc, ArrayAttr::get(context, made), context);
}

Location locationOf(Value value) {
  Location loc = value.getLoc();
  auto result = dyn_cast<OpResult>(value);
  auto fused = dyn_cast<FusedLoc>(loc);
  if (!result || !fused)
    return loc;
  auto made = dyn_cast_if_present<ArrayAttr>(fused.getMetadata());
  if (!made || made.size() != result.getOwner()->getNumResults())
    return loc;
  auto own = dyn_cast<LocationAttr>(made[result.getResultNumber()]);
  return own ? Location(own) : loc;
}

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

SmallVector<StringRef> partsOfName(StringRef name) {
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

std::string layerOfLocation(Location loc) {
  NameLoc named = namedLocation(loc);
  if (auto module = named ? dyn_cast<NameLoc>(named.getChildLoc()) : NameLoc())
    return module.getName().str();
  SmallVector<StringRef> parts = partsOfName(nameOfLocation(loc));
  if (parts.size() < 2)
    return {};
  parts.pop_back();
  return llvm::join(parts, ".");
}

} // namespace pipewright::nn
