//===- NNLocation.cpp - What locations say about values -------------------===//

#include "dialects/nn/NNLocation.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"

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

} // namespace pipewright::nn
