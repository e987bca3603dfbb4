//===- NNDevices.cpp - Stages that a model's file has notes of ------------===//

#include "dialects/nn/NNDevices.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace pipewright::nn {

static constexpr llvm::StringLiteral kDevices = "devices";
static constexpr llvm::StringLiteral kStages = "stages";

std::optional<int64_t> DeviceConfiguration::stageOf(StringRef node) const {
  auto stage = stages.getAs<IntegerAttr>(node);
  return stage ? std::optional(stage.getInt()) : std::nullopt;
}

int64_t DeviceConfiguration::countStages() const {
  int64_t count = 0;
  for (NamedAttribute node : stages)
    count = std::max(count, cast<IntegerAttr>(node.getValue()).getInt() + 1);
  return count;
}

/// A 64-bit integer in a range that includes both ends.
static bool isNumber(Attribute value, int64_t least, int64_t most) {
  auto number = dyn_cast_if_present<IntegerAttr>(value);
  return number && number.getType().isSignlessInteger(64) &&
         number.getInt() >= least && number.getInt() <= most;
}

std::optional<DeviceConfiguration> readConfiguration(Attribute value,
                                                     std::string &problem) {
  auto parts = dyn_cast_if_present<DictionaryAttr>(value);
  if (!parts || parts.size() != 2 || !parts.getAs<DictionaryAttr>(kStages) ||
      !isNumber(parts.get(kDevices), 0, kMaxNotedStages)) {
    problem = "to be {devices = N : i64, stages = {...}} with at most " +
              std::to_string(kMaxNotedStages) + " devices";
    return std::nullopt;
  }
  DeviceConfiguration configuration{parts.getAs<IntegerAttr>(kDevices).getInt(),
                                    parts.getAs<DictionaryAttr>(kStages)};
  for (NamedAttribute node : configuration.stages) {
    if (isNumber(node.getValue(), kSeveralStages, kMaxNotedStages - 1))
      continue;
    problem = "to have stages from 0 to " +
              std::to_string(kMaxNotedStages - 1) + " as 64-bit integers";
    return std::nullopt;
  }
  return configuration;
}

DictionaryAttr makeConfiguration(int64_t devices,
                                 ArrayRef<std::pair<StringRef, int64_t>> stages,
                                 MLIRContext *context) {
  Builder builder(context);
  SmallVector<NamedAttribute> nodes;
  for (auto [node, stage] : stages)
    nodes.push_back(
        builder.getNamedAttr(node, builder.getI64IntegerAttr(stage)));
  return builder.getDictionaryAttr(
      {builder.getNamedAttr(kDevices, builder.getI64IntegerAttr(devices)),
       builder.getNamedAttr(kStages, builder.getDictionaryAttr(nodes))});
}

} // namespace pipewright::nn
