//===- FloatArithmetic.cpp - Arithmetic of floating-point numbers ---------===//
//
// Where the PTX manual allows an error (.approx, .full), results here are as
// good as the host's; a real GPU's differ in the last bits.
//
//===----------------------------------------------------------------------===//

#include "test/doubles/ptx/Lanes.h"
#include "test/doubles/ptx/Select.h"

using namespace pipewright::ptx;

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace {
struct Add {
  template <class T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct Subtract {
  template <class T>
  static T apply(T a, T b) {
    return a - b;
  }
};
struct Multiply {
  template <class T>
  static T apply(T a, T b) {
    return a * b;
  }
};
struct Divide {
  template <class T>
  static T apply(T a, T b) {
    return a / b;
  }
};
struct Fma {
  template <class T>
  static T apply(T a, T b, T c) {
    return std::fma(a, b, c);
  }
};
/// The number if one is NaN; -0 is less than +0.
struct Minimum {
  template <class T>
  static T apply(T a, T b) {
    const T least = a < b || (a == b && std::signbit(a)) ? a : b;
    return b != b ? a : (a != a ? b : least);
  }
};
struct Maximum {
  template <class T>
  static T apply(T a, T b) {
    const T most = a > b || (a == b && !std::signbit(a)) ? a : b;
    return b != b ? a : (a != a ? b : most);
  }
};
/// NaN if one is NaN.
template <class Op>
struct WithNan {
  template <class T>
  static T apply(T a, T b) {
    const T result = Op::apply(a, b);
    return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : result;
  }
};
/// The result has the sign of the first.
struct CopySign {
  template <class T>
  static T apply(T a, T b) {
    return std::copysign(b, a);
  }
};
struct Absolute {
  template <class T>
  static T apply(T a) {
    return std::fabs(a);
  }
};
struct Negate {
  template <class T>
  static T apply(T a) {
    return -a;
  }
};
struct SquareRoot {
  template <class T>
  static T apply(T a) {
    return std::sqrt(a);
  }
};
struct ReciprocalRoot {
  template <class T>
  static T apply(T a) {
    return T(1) / std::sqrt(a);
  }
};
struct Reciprocal {
  template <class T>
  static T apply(T a) {
    return T(1) / a;
  }
};
/// 2^a by a polynomial on [-0.5, 0.5]: vectorizes, unlike the library's.
struct Exponential {
  static float apply(float a) {
    const float clamped = a < -160.0f ? -160.0f : (a > 160.0f ? 160.0f : a);
    const float whole = std::nearbyint(clamped);
    const float x = (clamped - whole) * 0.693147180559945f;
    float power = 1.0f / 5040;
    power = power * x + 1.0f / 720;
    power = power * x + 1.0f / 120;
    power = power * x + 1.0f / 24;
    power = power * x + 1.0f / 6;
    power = power * x + 0.5f;
    power = power * x + 1.0f;
    power = power * x + 1.0f;
    const int32_t n = static_cast<int32_t>(whole);
    const int32_t half = n / 2;
    const float first = std::bit_cast<float>((half + 127) << 23);
    const float second = std::bit_cast<float>((n - half + 127) << 23);
    return a != a ? a : power * first * second;
  }
};
struct Logarithm {
  static float apply(float a) { return std::log2(a); }
};
struct Sine {
  static float apply(float a) { return std::sin(a); }
};
struct Cosine {
  static float apply(float a) { return std::cos(a); }
};
struct HyperbolicTangent {
  static float apply(float a) { return std::tanh(a); }
};

//===----------------------------------------------------------------------===//
// What is done around them
//===----------------------------------------------------------------------===//

template <class Op>
struct Flushed {
  template <class... T>
  static float apply(T... arguments) {
    return flush(Op::apply(flush(arguments)...));
  }
};
template <class Op>
struct Saturated {
  template <class T, class... More>
  static T apply(T first, More... more) {
    return saturate(Op::apply(first, more...));
  }
};
template <class Op, float (*from)(uint16_t), uint16_t (*to)(float)>
struct OnHalf {
  template <class... T>
  static uint16_t apply(T... arguments) {
    return to(Op::apply(from(arguments)...));
  }
};
template <class HalfOp>
struct OnPair {
  template <class... T>
  static uint32_t apply(T... arguments) {
    const uint32_t low =
        HalfOp::apply(static_cast<uint16_t>(arguments & 0xFFFF)...);
    const uint32_t high =
        HalfOp::apply(static_cast<uint16_t>(arguments >> 16)...);
    return high << 16 | low;
  }
};

template <class Op>
struct AsUnary {
  template <class R, class T>
  static R apply(T a) {
    return Op::apply(a);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Handlers
//===----------------------------------------------------------------------===//

template <int arity, class T, class Op>
static Handler handlerOf() {
  if constexpr (arity == 1)
    return runUnary<T, T, AsUnary<Op>>;
  else if constexpr (arity == 2)
    return runBinary<T, Op>;
  else
    return runTernary<T, Op>;
}

namespace {
struct Choice {
  Type type = Type::F32;
  bool ftz = false;
  bool sat = false;
};
} // namespace

template <int arity, class Op>
static Handler floatHandler(const Choice &choice) {
  if (choice.ftz && choice.sat)
    return handlerOf<arity, float, Saturated<Flushed<Op>>>();
  if (choice.ftz)
    return handlerOf<arity, float, Flushed<Op>>();
  if (choice.sat)
    return handlerOf<arity, float, Saturated<Op>>();
  return handlerOf<arity, float, Op>();
}

template <int arity, class Op>
static Handler halfHandler(const Choice &choice) {
  if (choice.sat)
    return nullptr;
  using F16 = OnHalf<Op, fromF16, toF16>;
  using BF16 = OnHalf<Op, fromBf16, toBf16>;
  switch (choice.type) {
  case Type::F16:
    return handlerOf<arity, uint16_t, F16>();
  case Type::F16x2:
    return handlerOf<arity, uint32_t, OnPair<F16>>();
  case Type::BF16:
    return handlerOf<arity, uint16_t, BF16>();
  case Type::BF16x2:
    return handlerOf<arity, uint32_t, OnPair<BF16>>();
  default:
    return nullptr;
  }
}

/// The handler of an operation that exists for all types.
template <int arity, class Op>
static Handler anyHandler(const Choice &choice) {
  if (choice.type == Type::F32)
    return floatHandler<arity, Op>(choice);
  if (choice.type == Type::F64)
    return choice.ftz || choice.sat ? nullptr : handlerOf<arity, double, Op>();
  return halfHandler<arity, Op>(choice);
}

/// Of operations that f64 does not have.
template <class Op>
static Handler approximateHandler(const Choice &choice) {
  if (choice.type == Type::F32)
    return floatHandler<1, Op>(choice);
  return choice.type == Type::F64 ? nullptr : halfHandler<1, Op>(choice);
}

namespace {
struct FloatOpcode {
  size_t arity = 2;
  Handler (*handler)(const Choice &) = nullptr;
  /// The handler of the form with .NaN.
  Handler (*withNan)(const Choice &) = nullptr;
};
} // namespace

static const FloatOpcode *findOpcode(std::string_view base) {
  static const std::map<std::string_view, FloatOpcode> all = {
      {"add", {2, anyHandler<2, Add>}},
      {"sub", {2, anyHandler<2, Subtract>}},
      {"mul", {2, anyHandler<2, Multiply>}},
      {"div", {2, anyHandler<2, Divide>}},
      {"fma", {3, anyHandler<3, Fma>}},
      {"mad", {3, anyHandler<3, Fma>}},
      {"min", {2, anyHandler<2, Minimum>, anyHandler<2, WithNan<Minimum>>}},
      {"max", {2, anyHandler<2, Maximum>, anyHandler<2, WithNan<Maximum>>}},
      {"copysign", {2, anyHandler<2, CopySign>}},
      {"abs", {1, anyHandler<1, Absolute>}},
      {"neg", {1, anyHandler<1, Negate>}},
      {"sqrt", {1, anyHandler<1, SquareRoot>}},
      {"rsqrt", {1, anyHandler<1, ReciprocalRoot>}},
      {"rcp", {1, anyHandler<1, Reciprocal>}},
      {"ex2", {1, approximateHandler<Exponential>}},
      {"lg2", {1, approximateHandler<Logarithm>}},
      {"sin", {1, approximateHandler<Sine>}},
      {"cos", {1, approximateHandler<Cosine>}},
      {"tanh", {1, approximateHandler<HyperbolicTangent>}}};
  auto found = all.find(base);
  return found == all.end() ? nullptr : &found->second;
}

//===----------------------------------------------------------------------===//
// Classification
//===----------------------------------------------------------------------===//

template <class T, class Test>
static void runTest(Warp &warp, const Instruction &in, uint32_t mask) {
  const T *a = warp.lanes<T>(in.operand[1]);
  setPredicate(warp, in.operand[0],
               maskOf([=](int lane) { return Test::apply(a[lane]); }), mask);
}

namespace {
struct IsFinite {
  template <class T>
  static bool apply(T a) {
    return std::isfinite(a);
  }
};
struct IsInfinite {
  template <class T>
  static bool apply(T a) {
    return std::isinf(a);
  }
};
struct IsNumber {
  template <class T>
  static bool apply(T a) {
    return a == a;
  }
};
struct IsNan {
  template <class T>
  static bool apply(T a) {
    return a != a;
  }
};
} // namespace

static bool selectTest(Selection &s) {
  const std::string_view what = s.takeNext();
  const Type type = s.takeType();
  if (type != Type::F32 && type != Type::F64)
    return false;
  const bool wide = type == Type::F64;
  if (what == "finite")
    s.in.run = wide ? runTest<double, IsFinite> : runTest<float, IsFinite>;
  if (what == "infinite")
    s.in.run = wide ? runTest<double, IsInfinite> : runTest<float, IsInfinite>;
  if (what == "number")
    s.in.run = wide ? runTest<double, IsNumber> : runTest<float, IsNumber>;
  if (what == "notanumber")
    s.in.run = wide ? runTest<double, IsNan> : runTest<float, IsNan>;
  s.expectOperands(2);
  s.in.operand[0] = s.target(0, Type::Pred);
  s.in.operand[1] = s.source(1, type);
  return s.in.run;
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

bool pipewright::ptx::selectFloat(Selection &s) {
  if (!s.isOnFloats())
    return false;
  if (s.base == "testp")
    return selectTest(s);
  const FloatOpcode *opcode = findOpcode(s.base);
  if (!opcode)
    return false;
  // Only rounding to nearest; .approx and .full are better than they must be.
  s.skip({"rn", "approx", "full"});
  Choice choice;
  choice.ftz = s.take("ftz");
  choice.sat = s.take("sat");
  const bool nan = s.take("NaN");
  choice.type = s.takeType();
  s.expectOperands(opcode->arity + 1);
  s.in.operand[0] = s.target(0, choice.type);
  for (size_t i = 1; i <= opcode->arity; ++i)
    s.in.operand[i] = s.source(i, choice.type);
  auto handler = nan ? opcode->withNan : opcode->handler;
  s.in.run = handler ? handler(choice) : nullptr;
  return s.in.run;
}
