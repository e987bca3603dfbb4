//===- CheckpointDifference.cpp - Where two sets of tensors differ --------===//

#include "tools/pipewright/CheckpointDifference.h"

#include "runtime/core/BFloat16.h"
#include "runtime/core/Error.h"
#include "runtime/core/Text.h"
#include "runtime/io/Source.h"
#include "support/Text.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstring>

using namespace pipewright;
using namespace pipewright::runtime;

namespace {

/// Of two tensors of one type and shape. Numbers are equal when their bits are:
/// -0 is not 0, and a NaN is the same NaN.
struct Difference {
  int64_t elements = 0, of = 0;
  int64_t first = -1;
  double most = 0, relative = 0;
};

} // namespace

static double valueOf(ElementType type, const char *bits) {
  auto as = [bits]<class T>(T value) {
    std::memcpy(&value, bits, sizeof value);
    return value;
  };
  switch (type) {
  case ElementType::F32:
    return as(float());
  case ElementType::BF16:
    return widen(as(BFloat16()));
  case ElementType::I64:
    return static_cast<double>(as(int64_t()));
  case ElementType::I8:
  case ElementType::I1:
    return as(int8_t());
  }
  return 0;
}

static void compare(const char *a, const char *b, ElementType type,
                    Difference &found) {
  ++found.elements;
  const double x = valueOf(type, a), y = valueOf(type, b);
  const double far = std::abs(x - y);
  found.most = std::isnan(far) ? HUGE_VAL : std::max(found.most, far);
  if (const double size = std::max(std::abs(x), std::abs(y)); size > 0)
    found.relative = std::max(found.relative, far / size);
}

/// Piece by piece: tensors may be larger than memory.
static Difference differenceOf(const TensorView &left,
                               const TensorView &right) {
  constexpr int64_t pieceBytes = 1 << 20;
  const int64_t width = byteWidth(left.type);
  Difference found{.of = left.bytes / width};
  std::vector<char> a(pieceBytes), b(pieceBytes);
  for (int64_t at = 0; at < left.bytes; at += pieceBytes) {
    const int64_t now = std::min(pieceBytes, left.bytes - at);
    left.read(at, now, a.data());
    right.read(at, now, b.data());
    if (std::memcmp(a.data(), b.data(), now) == 0)
      continue;
    for (int64_t i = 0; i < now; i += width)
      if (std::memcmp(&a[i], &b[i], width) != 0) {
        if (found.first < 0)
          found.first = (at + i) / width;
        compare(&a[i], &b[i], left.type, found);
      }
  }
  return found;
}

static std::string wordsFor(const TensorView &left, const TensorView &right) {
  auto kind = [](const TensorView &view) {
    return std::string(typeText(view.type)) + " " + shapeText(view.shape);
  };
  if (left.type != right.type || left.shape != right.shape)
    return kind(left) + " and " + kind(right);
  const Difference found = differenceOf(left, right);
  if (found.elements == 0)
    return "";
  return llvm::formatv("{0} of {1} elements, the first at {2}, by at most "
                       "{3:e2} ({4:e2} of the value)",
                       found.elements, found.of, found.first, found.most,
                       found.relative);
}

void pipewright::tool::showDifference(const WeightSource &left,
                                      const WeightSource &right) {
  int64_t same = 0, different = 0;
  auto say = [&](const std::string &name, const std::string &text) {
    ++different;
    llvm::outs() << text::shortened(name, 60) << ": " << text << "\n";
  };
  for (const std::string &name : left.names()) {
    if (!right.contains(name)) {
      say(name, "only in the first");
      continue;
    }
    const std::string words = wordsFor(left.view(name), right.view(name));
    if (words.empty())
      ++same;
    else
      say(name, words);
  }
  for (const std::string &name : right.names())
    if (!left.contains(name))
      say(name, "only in the second");
  llvm::outs() << counted(same, "tensor") << " equal to the bit\n";
  if (different > 0)
    fail(counted(different, "tensor"), different == 1 ? " differs" : " differ");
}
