//===- WeightSummary.cpp - What trains and what does not ------------------===//

#include "codegen/plan/WeightSummary.h"

#include "codegen/plan/Plan.h"
#include "dialects/nn/NNWeightNames.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace pipewright::codegen {

WeightSummary WeightSummary::of(ModuleOp module) {
  WeightSummary summary;
  for (auto weight : module.getOps<nn::WeightOp>()) {
    int64_t elements = weight.getFileType().getNumElements();
    if (weight.getRole() == nn::WeightRole::Parameter) {
      ++summary.trainedWeights;
      summary.trainedElements += elements;
      continue;
    }
    auto reason = weight->getAttrOfType<StringAttr>("nn.reason");
    summary.untrained.push_back({nn::fileNameOf(weight).str(), weight.getRole(),
                                 reason ? reason.str() : "", elements});
  }
  return summary;
}

llvm::json::Value WeightSummary::toJson() const {
  llvm::json::Array list;
  for (const Untrained &weight : untrained) {
    llvm::json::Object entry{{"name", weight.name},
                             {"role", nn::stringifyWeightRole(weight.role)},
                             {"elements", weight.elements}};
    if (!weight.reason.empty())
      entry["reason"] = weight.reason;
    list.push_back(std::move(entry));
  }
  return llvm::json::Object{{"trained", trainedWeights},
                            {"parameters", trainedElements},
                            {"not_trained", std::move(list)}};
}

/// `12345678` as `12,345,678`.
static std::string withCommas(int64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3)
    text.insert(at - 3, ",");
  return text;
}

/// `2 constants (cos, sin)`, the first few by name.
static void printGroup(llvm::raw_ostream &os, const WeightSummary &summary,
                       nn::WeightRole role, StringRef one, StringRef many,
                       const char *&separator) {
  constexpr int64_t maxNames = 3;
  auto isInGroup = [&](const WeightSummary::Untrained &weight) {
    return weight.role == role;
  };
  int64_t members = llvm::count_if(summary.untrained, isInGroup);
  if (members == 0)
    return;
  os << separator << members << " " << (members == 1 ? one : many) << " (";
  separator = ", ";
  int64_t shown = 0;
  for (const auto &weight :
       llvm::make_filter_range(summary.untrained, isInGroup)) {
    os << (shown ? ", " : "") << (shown == maxNames ? "..." : weight.name);
    if (shown++ == maxNames)
      break;
  }
  os << ")";
}

void WeightSummary::print(llvm::raw_ostream &os) const {
  os << withCommas(trainedElements)
     << (trainedElements == 1 ? " parameter in " : " parameters in ")
     << count(trainedWeights, "weight");
  const char *separator = "; not trained: ";
  printGroup(os, *this, nn::WeightRole::Constant, "constant", "constants",
             separator);
  printGroup(os, *this, nn::WeightRole::State, "running statistic",
             "running statistics", separator);
  printGroup(os, *this, nn::WeightRole::Frozen, "frozen by --freeze",
             "frozen by --freeze", separator);
}

} // namespace pipewright::codegen
