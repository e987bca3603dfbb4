//===- Arithmetic.cpp - Integer arithmetic and comparisons ----------------===//

#include "test/doubles/ptx/Lanes.h"
#include "test/doubles/ptx/Select.h"

using namespace pipewright::ptx;

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace {
// Sums and products wrap around, in unsigned numbers of the same width. The
// narrow ones would be promoted to int, whose products may overflow.
template <class T>
using Wrapping =
    std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;

struct Add {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};
struct Subtract {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
  }
};
struct MultiplyLow {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};

template <class T>
struct WiderOf;
template <>
struct WiderOf<uint16_t> {
  using Type = uint32_t;
};
template <>
struct WiderOf<int16_t> {
  using Type = int32_t;
};
template <>
struct WiderOf<uint32_t> {
  using Type = uint64_t;
};
template <>
struct WiderOf<int32_t> {
  using Type = int64_t;
};
template <>
struct WiderOf<uint64_t> {
  using Type = unsigned __int128;
};
template <>
struct WiderOf<int64_t> {
  using Type = __int128;
};
template <class T>
using Wider = typename WiderOf<T>::Type;

struct MultiplyHigh {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(Wider<T>(a) * Wider<T>(b) >> sizeof(T) * 8);
  }
};
struct MadLow {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(MultiplyLow::apply(a, b), c);
  }
};
struct MadHigh {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(MultiplyHigh::apply(a, b), c);
  }
};
/// By zero: all bits set, as GPUs do.
struct Divide {
  template <class T>
  static T apply(T a, T b) {
    if (b == 0)
      return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return Subtract::apply(T(0), a);
    return static_cast<T>(a / b);
  }
};
struct Remainder {
  template <class T>
  static T apply(T a, T b) {
    if (b == 0)
      return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return 0;
    return static_cast<T>(a % b);
  }
};
struct Minimum {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? a : b;
  }
};
struct Maximum {
  template <class T>
  static T apply(T a, T b) {
    return a > b ? a : b;
  }
};
struct Absolute {
  template <class R, class T>
  static R apply(T a) {
    return a < 0 ? Subtract::apply(T(0), a) : a;
  }
};
struct Negate {
  template <class R, class T>
  static R apply(T a) {
    return Subtract::apply(T(0), a);
  }
};
struct SumOfDifferences {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(c, Subtract::apply(a < b ? b : a, a < b ? a : b));
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Handlers by type
//===----------------------------------------------------------------------===//

template <class Op>
static Handler binaryHandler(Type type) {
  switch (type) {
  case Type::U16:
    return runBinary<uint16_t, Op>;
  case Type::S16:
    return runBinary<int16_t, Op>;
  case Type::U32:
    return runBinary<uint32_t, Op>;
  case Type::S32:
    return runBinary<int32_t, Op>;
  case Type::U64:
    return runBinary<uint64_t, Op>;
  case Type::S64:
    return runBinary<int64_t, Op>;
  default:
    return nullptr;
  }
}

template <class Op>
static Handler ternaryHandler(Type type) {
  switch (type) {
  case Type::U16:
    return runTernary<uint16_t, Op>;
  case Type::S16:
    return runTernary<int16_t, Op>;
  case Type::U32:
    return runTernary<uint32_t, Op>;
  case Type::S32:
    return runTernary<int32_t, Op>;
  case Type::U64:
    return runTernary<uint64_t, Op>;
  case Type::S64:
    return runTernary<int64_t, Op>;
  default:
    return nullptr;
  }
}

template <class Op>
static Handler signedHandler(Type type) {
  switch (type) {
  case Type::S16:
    return runUnary<int16_t, int16_t, Op>;
  case Type::S32:
    return runUnary<int32_t, int32_t, Op>;
  case Type::S64:
    return runUnary<int64_t, int64_t, Op>;
  default:
    return nullptr;
  }
}

template <class T>
static void runMultiplyWide(Warp &warp, const Instruction &in, uint32_t mask) {
  const T *a = warp.lanes<T>(in.operand[1]);
  const T *b = warp.lanes<T>(in.operand[2]);
  forLanes(warp.lanes<Wider<T>>(in.operand[0]), mask,
           [=](int lane) { return Wider<T>(a[lane]) * Wider<T>(b[lane]); });
}

template <class T>
static void runMadWide(Warp &warp, const Instruction &in, uint32_t mask) {
  const T *a = warp.lanes<T>(in.operand[1]);
  const T *b = warp.lanes<T>(in.operand[2]);
  const Wider<T> *c = warp.lanes<Wider<T>>(in.operand[3]);
  forLanes(warp.lanes<Wider<T>>(in.operand[0]), mask, [=](int lane) {
    return Add::apply(Wider<T>(a[lane]) * Wider<T>(b[lane]), c[lane]);
  });
}

static Type widerType(Selection &s, Type type) {
  switch (type) {
  case Type::U16:
    return Type::U32;
  case Type::S16:
    return Type::S32;
  case Type::U32:
    return Type::U64;
  case Type::S32:
    return Type::S64;
  default:
    s.fail("no wider type");
  }
}

static Handler multiplyWide(Type type, bool mad) {
  switch (type) {
  case Type::U16:
    return mad ? runMadWide<uint16_t> : runMultiplyWide<uint16_t>;
  case Type::S16:
    return mad ? runMadWide<int16_t> : runMultiplyWide<int16_t>;
  case Type::U32:
    return mad ? runMadWide<uint32_t> : runMultiplyWide<uint32_t>;
  case Type::S32:
    return mad ? runMadWide<int32_t> : runMultiplyWide<int32_t>;
  default:
    return nullptr;
  }
}

static void setOperands(Selection &s, Type type, size_t sources) {
  s.expectOperands(sources + 1);
  s.in.operand[0] = s.target(0, type);
  for (size_t i = 1; i <= sources; ++i)
    s.in.operand[i] = s.source(i, type);
}

static bool selectMultiply(Selection &s, bool mad) {
  const bool low = s.take("lo"), high = s.take("hi"), wide = s.take("wide");
  if (low + high + wide != 1)
    return false;
  const Type type = s.takeType();
  if (wide) {
    const Type result = widerType(s, type);
    s.expectOperands(mad ? 4 : 3);
    s.in.operand[0] = s.target(0, result);
    s.in.operand[1] = s.source(1, type);
    s.in.operand[2] = s.source(2, type);
    if (mad)
      s.in.operand[3] = s.source(3, result);
    s.in.run = multiplyWide(type, mad);
    return true;
  }
  setOperands(s, type, mad ? 3 : 2);
  if (mad)
    s.in.run =
        low ? ternaryHandler<MadLow>(type) : ternaryHandler<MadHigh>(type);
  else
    s.in.run = low ? binaryHandler<MultiplyLow>(type)
                   : binaryHandler<MultiplyHigh>(type);
  return s.in.run;
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

namespace {
enum class Compare : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Num, Nan };

/// `orUnordered`: also true if one is NaN.
template <class T, Compare compare, bool orUnordered>
struct Comparison {
  static bool apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      const bool unordered = a != a || b != b;
      if constexpr (compare == Compare::Nan)
        return unordered;
      if constexpr (compare == Compare::Num)
        return !unordered;
      if constexpr (orUnordered)
        return unordered || Comparison<T, compare, false>::apply(a, b);
    }
    switch (compare) {
    case Compare::Eq:
      return a == b;
    case Compare::Ne:
      // Ordered: false if one is NaN.
      return a < b || a > b;
    case Compare::Lt:
      return a < b;
    case Compare::Le:
      return a <= b;
    case Compare::Gt:
      return a > b;
    default:
      return a >= b;
    }
  }
};

enum class Combine : int64_t { None, And, Or, Xor };
} // namespace

/// The comparison, combined with another predicate; the second target gets
/// the opposite of the comparison, combined likewise.
static void storeComparison(Warp &warp, const Instruction &in, uint32_t mask,
                            uint32_t value) {
  uint32_t opposite = ~value;
  if (in.immediate != static_cast<int64_t>(Combine::None)) {
    const uint32_t with =
        predicate(warp, in.operand[3]) ^ (in.negated ? allLanes : 0);
    const auto combine = [&](uint32_t bits) {
      switch (static_cast<Combine>(in.immediate)) {
      case Combine::And:
        return bits & with;
      case Combine::Or:
        return bits | with;
      default:
        return bits ^ with;
      }
    };
    value = combine(value);
    opposite = combine(opposite);
  }
  if (in.operand[0] != none)
    setPredicate(warp, in.operand[0], value, mask);
  if (in.operand[4] != none)
    setPredicate(warp, in.operand[4], opposite, mask);
}

template <class T, Compare compare, bool orUnordered>
static void runCompare(Warp &warp, const Instruction &in, uint32_t mask) {
  const T *a = warp.lanes<T>(in.operand[1]);
  const T *b = warp.lanes<T>(in.operand[2]);
  const uint32_t value = maskOf([=](int lane) {
    return Comparison<T, compare, orUnordered>::apply(a[lane], b[lane]);
  });
  storeComparison(warp, in, mask, value);
}

/// Half floats, and floats whose subnormals count as zeros.
template <class T, float (*convert)(T), Compare compare, bool orUnordered>
static void runCompareAs(Warp &warp, const Instruction &in, uint32_t mask) {
  const T *a = warp.lanes<T>(in.operand[1]);
  const T *b = warp.lanes<T>(in.operand[2]);
  const uint32_t value = maskOf([=](int lane) {
    return Comparison<float, compare, orUnordered>::apply(convert(a[lane]),
                                                          convert(b[lane]));
  });
  storeComparison(warp, in, mask, value);
}

template <Compare compare, bool orUnordered>
static Handler compareHandler(Type type, bool ftz) {
  switch (type) {
  case Type::U16:
  case Type::B16:
    return runCompare<uint16_t, compare, false>;
  case Type::S16:
    return runCompare<int16_t, compare, false>;
  case Type::U32:
  case Type::B32:
    return runCompare<uint32_t, compare, false>;
  case Type::S32:
    return runCompare<int32_t, compare, false>;
  case Type::U64:
  case Type::B64:
    return runCompare<uint64_t, compare, false>;
  case Type::S64:
    return runCompare<int64_t, compare, false>;
  case Type::F32:
    return ftz ? runCompareAs<float, flush, compare, orUnordered>
               : runCompare<float, compare, orUnordered>;
  case Type::F64:
    return runCompare<double, compare, orUnordered>;
  case Type::F16:
    return runCompareAs<uint16_t, fromF16, compare, orUnordered>;
  case Type::BF16:
    return runCompareAs<uint16_t, fromBf16, compare, orUnordered>;
  default:
    return nullptr;
  }
}

using CompareChoice = Handler (*)(Type, bool);

static CompareChoice findComparison(std::string_view name) {
  static const std::map<std::string_view, CompareChoice> all = {
      {"eq", compareHandler<Compare::Eq, false>},
      {"ne", compareHandler<Compare::Ne, false>},
      {"lt", compareHandler<Compare::Lt, false>},
      {"le", compareHandler<Compare::Le, false>},
      {"gt", compareHandler<Compare::Gt, false>},
      {"ge", compareHandler<Compare::Ge, false>},
      {"lo", compareHandler<Compare::Lt, false>},
      {"ls", compareHandler<Compare::Le, false>},
      {"hi", compareHandler<Compare::Gt, false>},
      {"hs", compareHandler<Compare::Ge, false>},
      {"equ", compareHandler<Compare::Eq, true>},
      {"neu", compareHandler<Compare::Ne, true>},
      {"ltu", compareHandler<Compare::Lt, true>},
      {"leu", compareHandler<Compare::Le, true>},
      {"gtu", compareHandler<Compare::Gt, true>},
      {"geu", compareHandler<Compare::Ge, true>},
      {"num", compareHandler<Compare::Num, false>},
      {"nan", compareHandler<Compare::Nan, false>}};
  auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

/// "%p" or "%p|%q".
static void setPredicateTargets(Selection &s, std::string_view text) {
  const size_t bar = text.find('|');
  s.in.operand[4] = none;
  if (bar != text.npos) {
    const Register &second = s.anyRegister(text.substr(bar + 1));
    s.in.operand[4] = second.offset;
  }
  const std::string_view first = text.substr(0, bar);
  s.in.operand[0] = first == "_" ? none : s.source(first, Type::Pred);
}

static bool selectCompare(Selection &s) {
  const CompareChoice choice = findComparison(s.takeNext());
  if (!choice)
    return false;
  Combine combine = Combine::None;
  if (s.take("and"))
    combine = Combine::And;
  else if (s.take("or"))
    combine = Combine::Or;
  else if (s.take("xor"))
    combine = Combine::Xor;
  const bool ftz = s.take("ftz");
  const Type type = s.takeType();
  s.expectOperands(combine == Combine::None ? 3 : 4);
  setPredicateTargets(s, s.statement.operands[0]);
  s.in.operand[1] = s.source(1, type);
  s.in.operand[2] = s.source(2, type);
  s.in.immediate = static_cast<int64_t>(combine);
  if (combine != Combine::None)
    s.in.operand[3] = s.predicate(s.statement.operands[3], s.in.negated);
  s.in.run = choice(type, ftz);
  return s.in.run;
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

bool pipewright::ptx::selectArithmetic(Selection &s) {
  using Choice = Handler (*)(Type);
  static const std::map<std::string_view, Choice> binary = {
      {"add", binaryHandler<Add>},     {"sub", binaryHandler<Subtract>},
      {"div", binaryHandler<Divide>},  {"rem", binaryHandler<Remainder>},
      {"min", binaryHandler<Minimum>}, {"max", binaryHandler<Maximum>}};
  if (s.base == "mul" || s.base == "mad")
    return selectMultiply(s, s.base == "mad");
  if (s.base == "setp")
    return selectCompare(s);
  if (s.base == "abs" || s.base == "neg") {
    const Type type = s.takeType();
    setOperands(s, type, 1);
    s.in.run = s.base == "abs" ? signedHandler<Absolute>(type)
                               : signedHandler<Negate>(type);
    return s.in.run;
  }
  if (s.base == "sad") {
    const Type type = s.takeType();
    setOperands(s, type, 3);
    s.in.run = ternaryHandler<SumOfDifferences>(type);
    return s.in.run;
  }
  auto found = binary.find(s.base);
  if (found == binary.end())
    return false;
  const Type type = s.takeType();
  setOperands(s, type, 2);
  s.in.run = found->second(type);
  return s.in.run;
}
