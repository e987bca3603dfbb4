//===- Conversion.cpp - cvt -----------------------------------------------===//
//
// In three stages, each a loop over lanes: the source as a 64-bit integer or a
// double, which hold every value of the other types; rounding; the result.
// The conversions that kernels do most have handlers of their own.
//
//===----------------------------------------------------------------------===//

#include "test/doubles/ptx/Lanes.h"
#include "test/doubles/ptx/Select.h"

#include <utility>

using namespace pipewright::ptx;

namespace {
enum class Rounding : uint8_t { Nearest, Zero, Down, Up };

/// Kept in Instruction::immediate.
struct Conversion {
  Type to = Type::U32;
  Type from = Type::U32;
  uint8_t toBytes = 4;
  uint8_t fromBytes = 4;
  Rounding rounding = Rounding::Nearest;
  /// To a whole number though the result is a float.
  bool whole = false;
  bool sat = false;
  bool ftz = false;
};
static_assert(sizeof(Conversion) == sizeof(int64_t));

union Values {
  alignas(64) uint64_t bits[warpSize];
  double floats[warpSize];
};
} // namespace

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

template <class Bits>
static void widen(Warp &warp, uint32_t offset, uint64_t *result) {
  const Bits *a = warp.lanes<Bits>(offset);
  PIPEWRIGHT_LANES result[lane] = a[lane];
}

template <class Bits>
static void narrow(Warp &warp, uint32_t offset, const uint64_t *values,
                   uint32_t mask) {
  forLanes(warp.lanes<Bits>(offset), mask,
           [=](int lane) { return static_cast<Bits>(values[lane]); });
}

/// The type's value in a wider register: only its own bits count.
template <class T>
static void extend(uint64_t *values) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  PIPEWRIGHT_LANES values[lane] =
      static_cast<uint64_t>(static_cast<Wide>(static_cast<T>(values[lane])));
}

static void extendInteger(Type type, uint64_t *values) {
  switch (type) {
  case Type::U8:
    return extend<uint8_t>(values);
  case Type::S8:
    return extend<int8_t>(values);
  case Type::U16:
    return extend<uint16_t>(values);
  case Type::S16:
    return extend<int16_t>(values);
  case Type::U32:
    return extend<uint32_t>(values);
  case Type::S32:
    return extend<int32_t>(values);
  default:
    return;
  }
}

static double loadFloat(Type type, uint64_t bits) {
  switch (type) {
  case Type::F16:
    return fromF16(static_cast<uint16_t>(bits));
  case Type::BF16:
    return fromBf16(static_cast<uint16_t>(bits));
  case Type::F32:
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  default:
    return std::bit_cast<double>(bits);
  }
}

/// A double that was rounded to odd rounds to any shorter format as the value
/// itself would.
static float toFloat(double value) { return static_cast<float>(value); }

/// To float so that a second rounding, to a half, is right: to odd.
static float toFloatOdd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || value != value)
    return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value))
    --bits;
  return std::bit_cast<float>(bits | 1);
}

static uint64_t storeFloat(const Conversion &c, double value) {
  switch (c.to) {
  case Type::F16:
    return toF16(toFloatOdd(value));
  case Type::BF16:
    return c.rounding == Rounding::Zero ? toBf16Truncated(toFloatOdd(value))
                                        : toBf16(toFloatOdd(value));
  case Type::F32:
    return std::bit_cast<uint32_t>(c.ftz ? flush(toFloat(value))
                                         : toFloat(value));
  default:
    return std::bit_cast<uint64_t>(value);
  }
}

static double roundWhole(Rounding rounding, double value) {
  switch (rounding) {
  case Rounding::Nearest:
    return std::nearbyint(value);
  case Rounding::Zero:
    return std::trunc(value);
  case Rounding::Down:
    return std::floor(value);
  default:
    return std::ceil(value);
  }
}

/// Out of range: the nearest number there is. NaN: 0, or the highest bit of 64
/// bits, as GPUs do.
template <class T>
static uint64_t toInteger(double value) {
  constexpr double least = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double beyond =
      2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
  if (value != value)
    return sizeof(T) == 8 ? uint64_t(1) << 63 : 0;
  if (value < least)
    return static_cast<uint64_t>(std::numeric_limits<T>::min());
  if (value >= beyond)
    return static_cast<uint64_t>(std::numeric_limits<T>::max());
  return static_cast<uint64_t>(static_cast<T>(value));
}

static uint64_t storeInteger(Type type, double value) {
  switch (type) {
  case Type::U8:
    return toInteger<uint8_t>(value);
  case Type::S8:
    return toInteger<int8_t>(value);
  case Type::U16:
    return toInteger<uint16_t>(value);
  case Type::S16:
    return toInteger<int16_t>(value);
  case Type::U32:
    return toInteger<uint32_t>(value);
  case Type::S32:
    return toInteger<int32_t>(value);
  case Type::U64:
    return toInteger<uint64_t>(value);
  default:
    return toInteger<int64_t>(value);
  }
}

/// 64-bit integers to float have one rounding only.
static uint64_t integerToFloat(const Conversion &c, uint64_t bits) {
  const bool sign = isSigned(c.from);
  const auto number = static_cast<int64_t>(bits);
  if (c.to == Type::F32)
    return std::bit_cast<uint32_t>(sign ? static_cast<float>(number)
                                        : static_cast<float>(bits));
  return storeFloat(c, sign ? static_cast<double>(number)
                            : static_cast<double>(bits));
}

template <class T>
static uint64_t clampTo(bool sign, uint64_t bits) {
  using Limits = std::numeric_limits<T>;
  const auto clamp = [](auto value) {
    if (std::cmp_less(value, Limits::min()))
      return Limits::min();
    if (std::cmp_greater(value, Limits::max()))
      return Limits::max();
    return static_cast<T>(value);
  };
  return static_cast<uint64_t>(sign ? clamp(static_cast<int64_t>(bits))
                                    : clamp(bits));
}

static uint64_t clampInteger(const Conversion &c, uint64_t bits) {
  const bool sign = isSigned(c.from);
  switch (c.to) {
  case Type::U8:
    return clampTo<uint8_t>(sign, bits);
  case Type::S8:
    return clampTo<int8_t>(sign, bits);
  case Type::U16:
    return clampTo<uint16_t>(sign, bits);
  case Type::S16:
    return clampTo<int16_t>(sign, bits);
  case Type::U32:
    return clampTo<uint32_t>(sign, bits);
  case Type::S32:
    return clampTo<int32_t>(sign, bits);
  case Type::U64:
    return clampTo<uint64_t>(sign, bits);
  default:
    return clampTo<int64_t>(sign, bits);
  }
}

static uint64_t convertOne(const Conversion &c, uint64_t bits) {
  if (!isFloat(c.from)) {
    if (isFloat(c.to))
      return integerToFloat(c, bits);
    return c.sat ? clampInteger(c, bits) : bits;
  }
  double value = loadFloat(c.from, bits);
  if (c.ftz && c.from == Type::F32)
    value = flush(static_cast<float>(value));
  if (c.whole)
    value = roundWhole(c.rounding, value);
  if (!isFloat(c.to))
    return storeInteger(c.to, value);
  return storeFloat(c, c.sat ? saturate(value) : value);
}

static void runConvert(Warp &warp, const Instruction &in, uint32_t mask) {
  const auto c = std::bit_cast<Conversion>(in.immediate);
  Values values;
  if (c.fromBytes == 2)
    widen<uint16_t>(warp, in.operand[1], values.bits);
  else if (c.fromBytes == 4)
    widen<uint32_t>(warp, in.operand[1], values.bits);
  else
    widen<uint64_t>(warp, in.operand[1], values.bits);
  if (!isFloat(c.from))
    extendInteger(c.from, values.bits);
  if (isFloat(c.from) || isFloat(c.to) || c.sat)
    for (int lane = 0; lane < warpSize; ++lane)
      if (isSet(mask, lane))
        values.bits[lane] = convertOne(c, values.bits[lane]);
  if (!isFloat(c.to))
    extendInteger(c.to, values.bits);
  if (c.toBytes == 2)
    narrow<uint16_t>(warp, in.operand[0], values.bits, mask);
  else if (c.toBytes == 4)
    narrow<uint32_t>(warp, in.operand[0], values.bits, mask);
  else
    narrow<uint64_t>(warp, in.operand[0], values.bits, mask);
}

//===----------------------------------------------------------------------===//
// The frequent ones
//===----------------------------------------------------------------------===//

namespace {
struct Cast {
  template <class R, class A>
  static R apply(A a) {
    return static_cast<R>(a);
  }
};
struct WidenBf16 {
  template <class R, class A>
  static R apply(A a) {
    return fromBf16(a);
  }
};
struct NarrowToBf16 {
  template <class R, class A>
  static R apply(A a) {
    return toBf16(a);
  }
};
} // namespace

/// Two floats to a pair of halves; the first becomes the high one.
template <uint16_t (*to)(float), bool relu>
static void runPack(Warp &warp, const Instruction &in, uint32_t mask) {
  const float *a = warp.lanes<float>(in.operand[1]);
  const float *b = warp.lanes<float>(in.operand[2]);
  forLanes(warp.lanes<uint32_t>(in.operand[0]), mask, [=](int lane) {
    const float high = relu && a[lane] < 0 ? 0.0f : a[lane];
    const float low = relu && b[lane] < 0 ? 0.0f : b[lane];
    return uint32_t(to(high)) << 16 | to(low);
  });
}

static Handler frequentHandler(const Conversion &c) {
  const bool plain =
      !c.sat && !c.ftz && !c.whole && c.rounding == Rounding::Nearest;
  if (!plain || c.toBytes != std::max(bytesOf(c.to), 2u) ||
      c.fromBytes != std::max(bytesOf(c.from), 2u))
    return nullptr;
  const auto is = [&](Type to, Type from) {
    return c.to == to && c.from == from;
  };
  if (is(Type::U64, Type::U32) || is(Type::S64, Type::U32))
    return runUnary<uint64_t, uint32_t, Cast>;
  if (is(Type::S64, Type::S32) || is(Type::U64, Type::S32))
    return runUnary<int64_t, int32_t, Cast>;
  if (bytesOf(c.to) == 4 && bytesOf(c.from) == 8 && !isFloat(c.to) &&
      !isFloat(c.from))
    return runUnary<uint32_t, uint64_t, Cast>;
  if (bytesOf(c.to) == 2 && bytesOf(c.from) == 4 && !isFloat(c.to) &&
      !isFloat(c.from))
    return runUnary<uint16_t, uint32_t, Cast>;
  if (is(Type::U32, Type::U16))
    return runUnary<uint32_t, uint16_t, Cast>;
  if (is(Type::F32, Type::S32))
    return runUnary<float, int32_t, Cast>;
  if (is(Type::F32, Type::U32))
    return runUnary<float, uint32_t, Cast>;
  if (is(Type::F32, Type::BF16))
    return runUnary<float, uint16_t, WidenBf16>;
  if (is(Type::BF16, Type::F32))
    return runUnary<uint16_t, float, NarrowToBf16>;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

static bool selectPack(Selection &s, Type to) {
  const bool relu = s.take("relu");
  if (s.takeType() != Type::F32)
    return false;
  s.expectOperands(3);
  s.in.operand[0] = s.target(0, to);
  s.in.operand[1] = s.source(1, Type::F32);
  s.in.operand[2] = s.source(2, Type::F32);
  if (to == Type::BF16x2)
    s.in.run = relu ? runPack<toBf16, true> : runPack<toBf16, false>;
  else
    s.in.run = relu ? runPack<toF16, true> : runPack<toF16, false>;
  return true;
}

/// An operand of any register width, or a literal.
static uint32_t anySource(Selection &s, size_t index, Type type,
                          uint8_t &bytes) {
  const std::string_view text = s.statement.operands[index];
  if (s.isRegister(text)) {
    const Register &found = s.anyRegister(text);
    bytes = static_cast<uint8_t>(std::max(bytesOf(found.type), 2u));
    if (found.type == Type::Pred || bytes < bytesOf(type))
      s.fail("'" + std::string(text) + "' is too narrow");
    return found.offset;
  }
  bytes = static_cast<uint8_t>(std::max(bytesOf(type), 2u));
  return s.source(index, bytes == 2 ? Type::B16 : type);
}

static void takeRounding(Selection &s, Conversion &c) {
  static constexpr std::pair<std::string_view, Rounding> names[] = {
      {"rn", Rounding::Nearest},
      {"rz", Rounding::Zero},
      {"rm", Rounding::Down},
      {"rp", Rounding::Up}};
  for (const auto &[name, rounding] : names) {
    if (s.take(name))
      c.rounding = rounding;
    if (s.take(std::string(name) + "i")) {
      c.rounding = rounding;
      c.whole = true;
    }
  }
}

bool pipewright::ptx::selectConversion(Selection &s) {
  if (s.base != "cvt")
    return false;
  Conversion c;
  takeRounding(s, c);
  c.ftz = s.take("ftz");
  c.sat = s.take("sat");
  c.to = s.takeType();
  if (c.to == Type::BF16x2 || c.to == Type::F16x2)
    return !c.sat && c.rounding == Rounding::Nearest && selectPack(s, c.to);
  c.from = s.takeType();
  s.expectOperands(2);
  if (c.to == Type::Pred || c.from == Type::Pred || c.from == Type::BF16x2 ||
      c.from == Type::F16x2)
    return false;
  // Other roundings of fractions would need more than one path.
  const bool truncates = c.to == Type::BF16 && c.rounding == Rounding::Zero;
  if (isFloat(c.to) && !c.whole && !truncates &&
      c.rounding != Rounding::Nearest)
    s.fail("only .rn is supported");
  s.in.operand[0] = 0;
  s.in.operand[1] = anySource(s, 1, c.from, c.fromBytes);
  const Register &target = s.anyRegister(s.statement.operands[0]);
  c.toBytes = static_cast<uint8_t>(std::max(bytesOf(target.type), 2u));
  if (target.type == Type::Pred || c.toBytes < bytesOf(c.to))
    s.fail("the target is too narrow");
  s.in.operand[0] = target.offset;
  s.in.immediate = std::bit_cast<int64_t>(c);
  s.in.run = frequentHandler(c);
  if (!s.in.run)
    s.in.run = runConvert;
  return true;
}
