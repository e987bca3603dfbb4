//===- Einsum.cpp - Sums of products by letters ---------------------------===//
//
// Two operands at a time: letters that both have and the result has not are
// summed by a matrix product, those of all three are its batch.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "support/Text.h"

#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace mlir;

namespace pipewright::frontend {

namespace {
/// What a dimension is called: a letter, or kEllipsis + i for the one that
/// stands i places before the end of an ellipsis.
using Labels = SmallVector<int, 6>;
constexpr int kEllipsis = 256;
/// More than a tensor has dimensions.
constexpr int64_t kMostLetters = 64;

/// A tensor with a name for each of its dimensions, all different.
struct Term {
  Value value;
  Labels labels;

  int64_t sizeOf(int label) const {
    auto *found = llvm::find(labels, label);
    return found == labels.end() ? 1 : shapeOf(value)[found - labels.begin()];
  }
  bool has(int label) const { return llvm::is_contained(labels, label); }
};

struct Equation {
  std::vector<Labels> operands;
  Labels result;
};
} // namespace

/// The labels of one term of an equation; `rank` tells how many dimensions an
/// ellipsis stands for, 0 or more. None if they are not well formed.
static std::optional<Labels> parseTerm(StringRef text, int64_t rank) {
  Labels labels;
  auto [before, after] = text.split("...");
  bool hasEllipsis = text.contains("...");
  int64_t letters = int64_t(before.size() + after.size());
  int64_t hidden = hasEllipsis ? rank - letters : 0;
  if (hidden < 0 || hidden + letters > kMostLetters)
    return std::nullopt;
  for (char letter : before)
    labels.push_back(letter);
  for (int64_t i = hidden; i-- > 0;)
    labels.push_back(kEllipsis + int(i));
  for (char letter : after)
    labels.push_back(letter);
  for (int label : labels)
    if (label < kEllipsis && !llvm::isAlpha(char(label)))
      return std::nullopt;
  return labels;
}

static bool hasRepeats(const Labels &labels) {
  for (auto [i, label] : llvm::enumerate(labels))
    if (llvm::is_contained(ArrayRef(labels).drop_front(i + 1), label))
      return true;
  return false;
}

/// Without `->` the result has the ellipsis and, sorted, the letters that occur
/// once.
static Labels impliedResult(const std::vector<Labels> &operands) {
  std::map<int, int> counts;
  int hidden = 0;
  for (const Labels &labels : operands)
    for (int label : labels)
      if (label >= kEllipsis)
        hidden = std::max(hidden, label - kEllipsis + 1);
      else
        ++counts[label];
  Labels result;
  while (hidden-- > 0)
    result.push_back(kEllipsis + hidden);
  for (auto [label, count] : counts)
    if (count == 1)
      result.push_back(label);
  return result;
}

static FailureOr<Equation> readEquation(NodeContext &n) {
  std::string text = n.stringAttribute("equation", "");
  std::string spaceless;
  llvm::copy_if(text, std::back_inserter(spaceless),
                [](char c) { return c != ' '; });
  auto malformed = [&] {
    return n.error() << "expects an equation such as 'ij,jk->ik' for "
                     << n.numInputs() << " operands, but got '"
                     << text::printable(text) << "'";
  };
  auto [left, right] = StringRef(spaceless).split("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != n.numInputs())
    return malformed();
  Equation equation;
  int64_t hidden = 0;
  for (auto [i, term] : llvm::enumerate(terms)) {
    std::optional<Labels> labels = parseTerm(term, n.rank(i));
    if (!labels || int64_t(labels->size()) != n.rank(i))
      return malformed();
    if (hasRepeats(*labels))
      return n.error() << "equation '" << text::printable(text)
                       << "' names two dimensions of an operand alike, which "
                          "is not supported";
    hidden = std::max<int64_t>(
        hidden, llvm::count_if(*labels, [](int l) { return l >= kEllipsis; }));
    equation.operands.push_back(std::move(*labels));
  }
  if (!StringRef(spaceless).contains("->")) {
    equation.result = impliedResult(equation.operands);
    return equation;
  }
  int64_t letters = int64_t(right.size()) - (right.contains("...") ? 3 : 0);
  std::optional<Labels> result = parseTerm(right, letters + hidden);
  if (!result || hasRepeats(*result))
    return malformed();
  for (int label : *result)
    if (llvm::none_of(equation.operands, [&](const Labels &labels) {
          return llvm::is_contained(labels, label);
        }))
      return malformed();
  equation.result = std::move(*result);
  return equation;
}

/// Every label has one size, or 1 where the ellipsis broadcasts.
static LogicalResult checkSizes(NodeContext &n, const Equation &equation) {
  std::map<int, int64_t> sizes;
  for (auto [i, labels] : llvm::enumerate(equation.operands))
    for (auto [label, size] : llvm::zip(labels, n.shape(i))) {
      int64_t &known = sizes.try_emplace(label, size).first->second;
      if (known == 1)
        known = size;
      if (size != known && size != 1)
        return n.error() << "dimensions of one name have sizes " << known
                         << " and " << size;
    }
  return success();
}

/// Sums over the labels that are not in `kept`.
static Term sumOut(NodeContext &n, Term term, const Labels &kept) {
  Shape axes;
  Labels rest;
  for (auto [axis, label] : llvm::enumerate(term.labels))
    if (llvm::is_contained(kept, label))
      rest.push_back(label);
    else
      axes.push_back(axis);
  if (!axes.empty())
    term.value = n.b.reduce<nn::ReduceSumOp>(term.value, axes, false);
  return {term.value, rest};
}

/// The dimensions of a term in that order; those that it lacks are 1.
static Value ordered(NodeContext &n, const Term &term, const Labels &labels) {
  Shape permutation, shape;
  for (int label : labels) {
    if (term.has(label))
      permutation.push_back(llvm::find(term.labels, label) -
                            term.labels.begin());
    shape.push_back(term.sizeOf(label));
  }
  Value moved = n.b.transpose(term.value, permutation);
  return moved ? n.b.reshape(moved, shape) : Value();
}

/// The product of two terms, summed over what `kept` lacks.
static Term contract(NodeContext &n, Term a, Term b, const Labels &kept) {
  Labels ofA = kept, ofB = kept;
  llvm::append_range(ofA, b.labels);
  llvm::append_range(ofB, a.labels);
  a = sumOut(n, a, ofA);
  b = sumOut(n, b, ofB);
  Labels batch, rows, columns, summed;
  for (int label : a.labels)
    (!llvm::is_contained(kept, label) ? summed
     : b.has(label)                   ? batch
                                      : rows)
        .push_back(label);
  for (int label : b.labels)
    if (!a.has(label))
      columns.push_back(label);
  Labels result = batch;
  llvm::append_range(result, rows);
  llvm::append_range(result, columns);
  if (!a.value || !b.value)
    return {Value(), result};
  if (summed.empty())
    return {
        n.b.create<nn::MulOp>({ordered(n, a, result), ordered(n, b, result)}),
        result};
  // One of two sizes of 1 is stretched: both operands lead with the batch.
  auto spread = [&](const Term &term, const Term &other) {
    Labels labels;
    for (const Labels *part : {&batch, &rows, &columns, &summed})
      for (int label : *part)
        if (term.has(label))
          labels.push_back(label);
    Value x = ordered(n, term, labels);
    Shape shape;
    for (int label : labels)
      shape.push_back(std::max(term.sizeOf(label), other.sizeOf(label)));
    return x ? n.b.broadcastTo(x, shape) : Value();
  };
  auto sizeOf = [&](const Labels &labels) {
    int64_t size = 1;
    for (int label : labels)
      size *= std::max(a.sizeOf(label), b.sizeOf(label));
    return size;
  };
  int64_t m = sizeOf(rows), k = sizeOf(summed), cols = sizeOf(columns);
  Shape left = {m, k}, right = {cols, k}, shape;
  if (!batch.empty()) {
    left.insert(left.begin(), sizeOf(batch));
    right.insert(right.begin(), sizeOf(batch));
  }
  for (int label : result)
    shape.push_back(std::max(a.sizeOf(label), b.sizeOf(label)));
  Value x = spread(a, b), y = spread(b, a);
  if (!x || !y)
    return {Value(), result};
  Value product = n.b.create<nn::MatmulOp>(
      {n.b.reshape(x, left), n.b.reshape(y, right)}, n.b.unit("transpose_b"));
  return {product ? n.b.reshape(product, shape) : Value(), result};
}

static LogicalResult importEinsum(NodeContext &n) {
  FailureOr<Equation> equation = readEquation(n);
  if (failed(equation) || failed(checkSizes(n, *equation)))
    return failure();
  for (unsigned i = 0; i < n.numInputs(); ++i)
    if (n.input(i).element != ElementKind::Float)
      return n.error() << "expects float operands";
  Term result{n.value(0), equation->operands[0]};
  for (unsigned i = 1; i < n.numInputs() && result.value; ++i) {
    Labels kept = equation->result;
    for (unsigned later = i + 1; later < n.numInputs(); ++later)
      llvm::append_range(kept, equation->operands[later]);
    result = contract(n, result, {n.value(i), equation->operands[i]}, kept);
  }
  if (!result.value)
    return failure();
  result = sumOut(n, result, equation->result);
  return n.setResult(0, ordered(n, result, equation->result));
}

ArrayRef<OpRow> einsumOps() {
  static const OpRow rows[] = {
      {"Einsum", 12, atLeast(1), importEinsum},
  };
  return rows;
}

} // namespace pipewright::frontend
