//===- Move.cpp - mov, cvta, clocks ---------------------------------------===//

#include "test/doubles/ptx/Lanes.h"
#include "test/doubles/ptx/Select.h"

#include <chrono>

using namespace pipewright::ptx;

namespace {
struct Copy {
  template <class R, class T>
  static R apply(T a) {
    return a;
  }
};
} // namespace

static void runMovePredicate(Warp &warp, const Instruction &in, uint32_t mask) {
  setPredicate(warp, in.operand[0], predicate(warp, in.operand[1]), mask);
}

static Handler copyHandler(uint32_t bytes) {
  return bytes == 1   ? runMovePredicate
         : bytes == 2 ? runUnary<uint16_t, uint16_t, Copy>
         : bytes == 4 ? runUnary<uint32_t, uint32_t, Copy>
                      : runUnary<uint64_t, uint64_t, Copy>;
}

/// {a, b, ...}: the first is the lowest.
template <class Whole, class Part>
static void runPack(Warp &warp, const Instruction &in, uint32_t mask) {
  Whole *result = warp.lanes<Whole>(in.operand[0]);
  alignas(64) Whole whole[warpSize] = {};
  for (int i = 0; i < in.count; ++i) {
    const Part *part = warp.lanes<Part>(in.operand[1 + i]);
    PIPEWRIGHT_LANES whole[lane] |= static_cast<Whole>(part[lane])
                                    << i * sizeof(Part) * 8;
  }
  const Whole *values = whole;
  forLanes(result, mask, [=](int lane) { return values[lane]; });
}

template <class Whole, class Part>
static void runUnpack(Warp &warp, const Instruction &in, uint32_t mask) {
  alignas(64) Whole whole[warpSize];
  const Whole *source = warp.lanes<Whole>(in.operand[8]);
  PIPEWRIGHT_LANES whole[lane] = source[lane];
  for (int i = 0; i < in.count; ++i) {
    if (in.operand[i] == none)
      continue;
    const Whole *values = whole;
    forLanes(warp.lanes<Part>(in.operand[i]), mask, [=](int lane) {
      return static_cast<Part>(values[lane] >> i * sizeof(Part) * 8);
    });
  }
}

template <class T>
static void runClock(Warp &warp, const Instruction &in, uint32_t mask) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const T ticks = static_cast<T>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  forLanes(warp.lanes<T>(in.operand[0]), mask, [=](int) { return ticks; });
}

static bool selectClock(Selection &s, Type type) {
  static constexpr std::string_view names[] = {"%clock", "%clock64",
                                               "%globaltimer"};
  for (std::string_view name : names)
    if (s.statement.operands[1] == name) {
      s.in.operand[0] = s.target(0, type);
      s.in.run = bytesOf(type) == 8 ? runClock<uint64_t> : runClock<uint32_t>;
      return true;
    }
  return false;
}

static bool selectPack(Selection &s, Type type) {
  const std::vector<std::string_view> parts = s.parts(1);
  const uint32_t bytes = bytesOf(type) / static_cast<uint32_t>(parts.size());
  const Type part = bytes == 2 ? Type::B16 : Type::B32;
  s.in.operand[0] = s.target(0, type);
  for (size_t i = 0; i < parts.size(); ++i)
    s.in.operand[1 + i] = s.source(parts[i], part);
  s.in.count = static_cast<uint8_t>(parts.size());
  if (bytesOf(type) == 4 && parts.size() == 2)
    s.in.run = runPack<uint32_t, uint16_t>;
  else if (bytesOf(type) == 8 && parts.size() == 2)
    s.in.run = runPack<uint64_t, uint32_t>;
  else if (bytesOf(type) == 8 && parts.size() == 4)
    s.in.run = runPack<uint64_t, uint16_t>;
  return s.in.run;
}

static bool selectUnpack(Selection &s, Type type) {
  const std::vector<std::string_view> parts = s.parts(0);
  const uint32_t bytes = bytesOf(type) / static_cast<uint32_t>(parts.size());
  s.in.operand[8] = s.source(1, type);
  for (size_t i = 0; i < parts.size(); ++i) {
    s.in.operand[i] = none;
    if (parts[i] == "_")
      continue;
    const Register &found = s.anyRegister(parts[i]);
    if (bytesOf(found.type) != bytes)
      s.fail("the parts do not fill the whole");
    s.in.operand[i] = found.offset;
  }
  s.in.count = static_cast<uint8_t>(parts.size());
  if (bytesOf(type) == 4 && parts.size() == 2)
    s.in.run = runUnpack<uint32_t, uint16_t>;
  else if (bytesOf(type) == 8 && parts.size() == 2)
    s.in.run = runUnpack<uint64_t, uint32_t>;
  else if (bytesOf(type) == 8 && parts.size() == 4)
    s.in.run = runUnpack<uint64_t, uint16_t>;
  return s.in.run;
}

static bool selectMov(Selection &s) {
  const Type type = s.takeType();
  s.expectOperands(2);
  if (s.parts(0).size() > 1)
    return selectUnpack(s, type);
  if (s.parts(1).size() > 1)
    return selectPack(s, type);
  if (selectClock(s, type))
    return true;
  s.in.operand[0] = s.target(0, type);
  s.in.operand[1] = s.source(1, type);
  s.in.run = copyHandler(type == Type::Pred ? 1 : bytesOf(type));
  return true;
}

//===----------------------------------------------------------------------===//
// Address spaces
//===----------------------------------------------------------------------===//

/// The immediate is the window's bit.
static void runToGeneric(Warp &warp, const Instruction &in, uint32_t mask) {
  const uint64_t *a = warp.lanes<uint64_t>(in.operand[1]);
  const auto window = static_cast<uint64_t>(in.immediate);
  forLanes(warp.lanes<uint64_t>(in.operand[0]), mask,
           [=](int lane) { return a[lane] | window; });
}

static void runFromGeneric(Warp &warp, const Instruction &in, uint32_t mask) {
  const uint64_t *a = warp.lanes<uint64_t>(in.operand[1]);
  const auto window = static_cast<uint64_t>(in.immediate);
  forLanes(warp.lanes<uint64_t>(in.operand[0]), mask,
           [=](int lane) { return a[lane] & ~window; });
}

static bool selectAddress(Selection &s) {
  const bool to = s.take("to");
  uint64_t window = 0;
  if (s.take("shared") || s.take("shared::cta"))
    window = sharedWindow;
  else if (s.take("local"))
    window = localWindow;
  else if (s.take("param"))
    window = parameterWindow;
  else if (!s.take("global") && !s.take("const"))
    return false;
  if (s.takeType() != Type::U64)
    return false;
  s.expectOperands(2);
  s.in.operand[0] = s.target(0, Type::U64);
  s.in.operand[1] = s.source(1, Type::U64);
  s.in.immediate = static_cast<int64_t>(window);
  s.in.run = to ? runFromGeneric : runToGeneric;
  return true;
}

bool pipewright::ptx::selectMove(Selection &s) {
  if (s.base == "mov")
    return selectMov(s);
  if (s.base == "cvta")
    return selectAddress(s);
  return false;
}
