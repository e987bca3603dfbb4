//===- ModelProblems.cpp - What no level may have -------------------------===//
//
// See ModelProblems.h.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/clean/ModelProblems.h"

#include "dialects/nn/NNCountedInput.h"
#include "dialects/nn/NNLimits.h"
#include "support/Text.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace pipewright::nn {

/// All parts, one after the other.
template <class... Parts>
static std::string join(const Parts &...parts) {
  std::string text;
  llvm::raw_string_ostream os(text);
  (os << ... << parts);
  return text;
}

std::string problemOfType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  Type element = tensor ? tensor.getElementType() : Type();
  if (!tensor || !tensor.hasStaticShape() || tensor.getEncoding() ||
      !(element.isF32() || element.isBF16() || element.isInteger(64) ||
        element.isInteger(1) || element.isInteger(8)))
    return join("expects a tensor of known shape of f32, bf16, i64, i1 or i8, "
                "but got '",
                type, "'");
  if (std::string problem = problemOfSize(tensor.getShape()); !problem.empty())
    return problem;
  if (tensor.getNumElements() == 0)
    return join("has no elements ('", type,
                "'); leave out of the model what computes with it");
  return "";
}

std::string problemOfCounted(NamedAttribute attribute,
                             llvm::function_ref<Type(StringRef)> typeOf) {
  StringRef name = attribute.getName().getValue();
  std::optional<CountedInput> counted = countedInput(attribute.getValue());
  if (!counted)
    return join("expects {ignored = I : i64, labels = \"NAME\", ranges = "
                "array<i64: BEGIN, END, ...>}, but got ",
                attribute.getValue());
  auto input = dyn_cast_or_null<RankedTensorType>(typeOf(name));
  if (!input || input.getRank() != 0 || !input.getElementType().isF32())
    return "expects an argument of this name and type 'tensor<f32>'";
  auto type = dyn_cast_or_null<RankedTensorType>(typeOf(counted->labels));
  if (!type || !type.getElementType().isInteger(64) || type.getRank() == 0)
    return join("expects an argument '", text::shortened(counted->labels),
                "' of rank 1 or more and element type i64, to count its "
                "labels");
  int64_t width = llvm::product_of(type.getShape().drop_front()), before = 0;
  for (size_t i = 0; i < counted->ranges.size(); i += 2) {
    int64_t begin = counted->ranges[i], end = counted->ranges[i + 1];
    if (begin < before || end <= begin || end > width)
      return join("expects ranges in ascending order, without overlaps, within "
                  "the ",
                  width, " elements of a row of '", counted->labels,
                  "', but got ", begin, " to ", end);
    before = end;
  }
  return "";
}

} // namespace pipewright::nn
