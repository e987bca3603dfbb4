//===- Bits.cpp - Logic, shifts, bit fields, selections -------------------===//

#include "test/doubles/ptx/Lanes.h"
#include "test/doubles/ptx/Select.h"

using namespace pipewright::ptx;

namespace {
struct And {
  template <class T>
  static T apply(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static T apply(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static T apply(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <class R, class T>
  static R apply(T a) {
    return static_cast<R>(~a);
  }
};
struct LogicalNot {
  template <class R, class T>
  static R apply(T a) {
    return a == 0;
  }
};
struct CountLeadingZeros {
  template <class R, class T>
  static R apply(T a) {
    return static_cast<R>(std::countl_zero(a));
  }
};
struct PopulationCount {
  template <class R, class T>
  static R apply(T a) {
    return static_cast<R>(std::popcount(a));
  }
};
struct Reverse {
  template <class R, class T>
  static R apply(T a) {
    R result = 0;
    for (unsigned i = 0; i < sizeof(T) * 8; ++i)
      result = static_cast<R>(result << 1 | (a >> i & 1));
    return result;
  }
};
/// Of the highest bit that is not a copy of the sign; all bits set if none.
struct FindHighest {
  template <class R, class T>
  static R apply(T a) {
    using U = std::make_unsigned_t<T>;
    const U bits = static_cast<U>(a < 0 ? ~a : a);
    return bits ? static_cast<R>(sizeof(T) * 8 - 1 - std::countl_zero(bits))
                : static_cast<R>(-1);
  }
};

/// Shifts by more than the width give zeros, or copies of the sign.
template <class T>
T shiftLeft(T a, uint32_t by) {
  return by < sizeof(T) * 8 ? static_cast<T>(a << by) : T(0);
}
template <class T>
T shiftRight(T a, uint32_t by) {
  const uint32_t most = sizeof(T) * 8 - 1;
  if (std::is_signed_v<T>)
    return static_cast<T>(a >> (by < most ? by : most));
  return by <= most ? static_cast<T>(a >> by) : T(0);
}

struct Permute {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t selector) {
    const uint64_t bytes = uint64_t(b) << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
      const uint32_t choice = selector >> i * 4 & 0xF;
      uint32_t byte = bytes >> (choice & 7) * 8 & 0xFF;
      if (choice & 8)
        byte = byte & 0x80 ? 0xFF : 0;
      result |= byte << i * 8;
    }
    return result;
  }
};
struct FunnelLeft {
  template <bool clamp>
  static uint32_t shift(uint32_t low, uint32_t high, uint32_t by) {
    by = clamp ? (by < 32 ? by : 32) : by & 31;
    const uint64_t both = uint64_t(high) << 32 | low;
    return static_cast<uint32_t>(both << by >> 32);
  }
};
struct FunnelRight {
  template <bool clamp>
  static uint32_t shift(uint32_t low, uint32_t high, uint32_t by) {
    by = clamp ? (by < 32 ? by : 32) : by & 31;
    const uint64_t both = uint64_t(high) << 32 | low;
    return static_cast<uint32_t>(both >> by);
  }
};
template <class Direction, bool clamp>
struct Funnel {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    return Direction::template shift<clamp>(a, b, c);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Handlers
//===----------------------------------------------------------------------===//

template <class Op>
static Handler logicHandler(uint32_t bytes) {
  return bytes == 2   ? runBinary<uint16_t, Op>
         : bytes == 4 ? runBinary<uint32_t, Op>
                      : runBinary<uint64_t, Op>;
}

template <class Op>
static void runPredicateLogic(Warp &warp, const Instruction &in,
                              uint32_t mask) {
  setPredicate(
      warp, in.operand[0],
      Op::apply(predicate(warp, in.operand[1]), predicate(warp, in.operand[2])),
      mask);
}

static void runPredicateNot(Warp &warp, const Instruction &in, uint32_t mask) {
  setPredicate(warp, in.operand[0], ~predicate(warp, in.operand[1]), mask);
}

template <class T, T (*shift)(T, uint32_t)>
static void runShift(Warp &warp, const Instruction &in, uint32_t mask) {
  const T *a = warp.lanes<T>(in.operand[1]);
  const uint32_t *by = warp.lanes<uint32_t>(in.operand[2]);
  forLanes(warp.lanes<T>(in.operand[0]), mask,
           [=](int lane) { return shift(a[lane], by[lane]); });
}

template <class T>
static void runSelect(Warp &warp, const Instruction &in, uint32_t mask) {
  const T *a = warp.lanes<T>(in.operand[1]);
  const T *b = warp.lanes<T>(in.operand[2]);
  const uint32_t choice = predicate(warp, in.operand[3]);
  forLanes(warp.lanes<T>(in.operand[0]), mask, [=](int lane) {
    const T first = a[lane], second = b[lane];
    return isSet(choice, lane) ? first : second;
  });
}

template <class T>
static void runExtract(Warp &warp, const Instruction &in, uint32_t mask) {
  const T *a = warp.lanes<T>(in.operand[1]);
  const uint32_t *starts = warp.lanes<uint32_t>(in.operand[2]);
  const uint32_t *lengths = warp.lanes<uint32_t>(in.operand[3]);
  constexpr uint32_t width = sizeof(T) * 8;
  forLanes(warp.lanes<T>(in.operand[0]), mask, [=](int lane) -> T {
    const uint32_t start = starts[lane] & 0xFF, length = lengths[lane] & 0xFF;
    if (length == 0)
      return 0;
    const T shifted = shiftRight(a[lane], start);
    if (length >= width)
      return shifted;
    // Beyond the value, signed fields are filled with its sign.
    const uint32_t spare = width - length;
    if (std::is_signed_v<T> && start + length > width)
      return shifted;
    return shiftRight(shiftLeft(shifted, spare), spare);
  });
}

template <class T>
static void runInsert(Warp &warp, const Instruction &in, uint32_t mask) {
  const T *a = warp.lanes<T>(in.operand[1]);
  const T *b = warp.lanes<T>(in.operand[2]);
  const uint32_t *starts = warp.lanes<uint32_t>(in.operand[3]);
  const uint32_t *lengths = warp.lanes<uint32_t>(in.operand[4]);
  forLanes(warp.lanes<T>(in.operand[0]), mask, [=](int lane) -> T {
    const uint32_t start = starts[lane] & 0xFF, length = lengths[lane] & 0xFF;
    const T ones = length >= sizeof(T) * 8
                       ? static_cast<T>(-1)
                       : static_cast<T>(shiftLeft(T(1), length) - 1);
    const T field = shiftLeft(ones, start);
    return static_cast<T>((b[lane] & ~field) |
                          (shiftLeft(a[lane], start) & field));
  });
}

/// The truth table is the immediate: bit 4a + 2b + c.
static void runLogic3(Warp &warp, const Instruction &in, uint32_t mask) {
  const uint32_t *a = warp.lanes<uint32_t>(in.operand[1]);
  const uint32_t *b = warp.lanes<uint32_t>(in.operand[2]);
  const uint32_t *c = warp.lanes<uint32_t>(in.operand[3]);
  const uint32_t table = static_cast<uint32_t>(in.immediate);
  forLanes(warp.lanes<uint32_t>(in.operand[0]), mask, [=](int lane) {
    uint32_t result = 0;
    for (uint32_t row = 0; row < 8; ++row) {
      const uint32_t terms = (row & 4 ? a[lane] : ~a[lane]) &
                             (row & 2 ? b[lane] : ~b[lane]) &
                             (row & 1 ? c[lane] : ~c[lane]);
      result |= table >> row & 1 ? terms : 0;
    }
    return result;
  });
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

static bool selectLogic(Selection &s) {
  const Type type = s.takeType();
  s.expectOperands(3);
  s.in.operand[0] = s.target(0, type);
  s.in.operand[1] = s.source(1, type);
  s.in.operand[2] = s.source(2, type);
  const uint32_t bytes = bytesOf(type);
  const bool onPredicates = type == Type::Pred;
  if (s.base == "and")
    s.in.run = onPredicates ? runPredicateLogic<And> : logicHandler<And>(bytes);
  else if (s.base == "or")
    s.in.run = onPredicates ? runPredicateLogic<Or> : logicHandler<Or>(bytes);
  else
    s.in.run = onPredicates ? runPredicateLogic<Xor> : logicHandler<Xor>(bytes);
  return true;
}

static bool selectNot(Selection &s) {
  const Type type = s.takeType();
  s.expectOperands(2);
  s.in.operand[0] = s.target(0, type);
  s.in.operand[1] = s.source(1, type);
  const bool logical = s.base == "cnot";
  switch (bytesOf(type)) {
  case 1:
    s.in.run = logical ? nullptr : runPredicateNot;
    break;
  case 2:
    s.in.run = logical ? runUnary<uint16_t, uint16_t, LogicalNot>
                       : runUnary<uint16_t, uint16_t, Not>;
    break;
  case 4:
    s.in.run = logical ? runUnary<uint32_t, uint32_t, LogicalNot>
                       : runUnary<uint32_t, uint32_t, Not>;
    break;
  default:
    s.in.run = logical ? runUnary<uint64_t, uint64_t, LogicalNot>
                       : runUnary<uint64_t, uint64_t, Not>;
  }
  return s.in.run;
}

static bool selectShift(Selection &s) {
  const Type type = s.takeType();
  s.expectOperands(3);
  s.in.operand[0] = s.target(0, type);
  s.in.operand[1] = s.source(1, type);
  s.in.operand[2] = s.source(2, Type::U32);
  const bool left = s.base == "shl", sign = isSigned(type);
  switch (bytesOf(type)) {
  case 2:
    s.in.run = left   ? runShift<uint16_t, shiftLeft<uint16_t>>
               : sign ? runShift<int16_t, shiftRight<int16_t>>
                      : runShift<uint16_t, shiftRight<uint16_t>>;
    return true;
  case 4:
    s.in.run = left   ? runShift<uint32_t, shiftLeft<uint32_t>>
               : sign ? runShift<int32_t, shiftRight<int32_t>>
                      : runShift<uint32_t, shiftRight<uint32_t>>;
    return true;
  case 8:
    s.in.run = left   ? runShift<uint64_t, shiftLeft<uint64_t>>
               : sign ? runShift<int64_t, shiftRight<int64_t>>
                      : runShift<uint64_t, shiftRight<uint64_t>>;
    return true;
  default:
    return false;
  }
}

static bool selectSelect(Selection &s) {
  const Type type = s.takeType();
  s.expectOperands(4);
  s.in.operand[0] = s.target(0, type);
  s.in.operand[1] = s.source(1, type);
  s.in.operand[2] = s.source(2, type);
  s.in.operand[3] = s.source(3, Type::Pred);
  const uint32_t bytes = bytesOf(type);
  s.in.run = bytes == 2   ? runSelect<uint16_t>
             : bytes == 4 ? runSelect<uint32_t>
             : bytes == 8 ? runSelect<uint64_t>
                          : nullptr;
  return s.in.run;
}

template <class Op>
static Handler countHandler(Type type) {
  switch (type) {
  case Type::B32:
  case Type::U32:
    return runUnary<uint32_t, uint32_t, Op>;
  case Type::B64:
  case Type::U64:
    return runUnary<uint32_t, uint64_t, Op>;
  default:
    return nullptr;
  }
}

static bool selectCount(Selection &s) {
  const Type type = s.takeType();
  s.expectOperands(2);
  s.in.operand[0] = s.target(0, Type::U32);
  s.in.operand[1] = s.source(1, type);
  if (s.base == "clz")
    s.in.run = countHandler<CountLeadingZeros>(type);
  else if (s.base == "popc")
    s.in.run = countHandler<PopulationCount>(type);
  else if (type == Type::S32)
    s.in.run = runUnary<uint32_t, int32_t, FindHighest>;
  else if (type == Type::S64)
    s.in.run = runUnary<uint32_t, int64_t, FindHighest>;
  else
    s.in.run = countHandler<FindHighest>(type);
  return s.in.run;
}

static bool selectReverse(Selection &s) {
  const Type type = s.takeType();
  s.expectOperands(2);
  s.in.operand[0] = s.target(0, type);
  s.in.operand[1] = s.source(1, type);
  s.in.run = type == Type::B32   ? runUnary<uint32_t, uint32_t, Reverse>
             : type == Type::B64 ? runUnary<uint64_t, uint64_t, Reverse>
                                 : nullptr;
  return s.in.run;
}

static bool selectField(Selection &s) {
  const bool insert = s.base == "bfi";
  const Type type = s.takeType();
  s.expectOperands(insert ? 5 : 4);
  s.in.operand[0] = s.target(0, type);
  s.in.operand[1] = s.source(1, type);
  size_t next = 2;
  if (insert)
    s.in.operand[next] = s.source(next, type), ++next;
  s.in.operand[next] = s.source(next, Type::U32);
  ++next;
  s.in.operand[next] = s.source(next, Type::U32);
  switch (type) {
  case Type::B32:
    s.in.run = insert ? runInsert<uint32_t> : nullptr;
    break;
  case Type::B64:
    s.in.run = insert ? runInsert<uint64_t> : nullptr;
    break;
  case Type::U32:
    s.in.run = insert ? nullptr : runExtract<uint32_t>;
    break;
  case Type::S32:
    s.in.run = insert ? nullptr : runExtract<int32_t>;
    break;
  case Type::U64:
    s.in.run = insert ? nullptr : runExtract<uint64_t>;
    break;
  case Type::S64:
    s.in.run = insert ? nullptr : runExtract<int64_t>;
    break;
  default:
    break;
  }
  return s.in.run;
}

static bool selectTernary(Selection &s) {
  Handler handler = nullptr;
  if (s.base == "prmt") {
    handler = runTernary<uint32_t, Permute>;
  } else if (s.base == "lop3") {
    handler = runLogic3;
    s.expectOperands(5);
    s.in.immediate = static_cast<int64_t>(s.integer(s.statement.operands[4]));
  } else {
    const bool left = s.take("l"), right = s.take("r");
    const bool wrap = s.take("wrap"), clamp = s.take("clamp");
    if (left == right || wrap == clamp)
      return false;
    if (left)
      handler = clamp ? runTernary<uint32_t, Funnel<FunnelLeft, true>>
                      : runTernary<uint32_t, Funnel<FunnelLeft, false>>;
    else
      handler = clamp ? runTernary<uint32_t, Funnel<FunnelRight, true>>
                      : runTernary<uint32_t, Funnel<FunnelRight, false>>;
  }
  if (s.takeType() != Type::B32)
    return false;
  if (s.base != "lop3")
    s.expectOperands(4);
  s.in.operand[0] = s.target(0, Type::B32);
  for (size_t i = 1; i <= 3; ++i)
    s.in.operand[i] = s.source(i, Type::B32);
  s.in.run = handler;
  return true;
}

bool pipewright::ptx::selectBits(Selection &s) {
  static const std::map<std::string_view, bool (*)(Selection &)> all = {
      {"and", selectLogic},    {"or", selectLogic},    {"xor", selectLogic},
      {"not", selectNot},      {"cnot", selectNot},    {"shl", selectShift},
      {"shr", selectShift},    {"selp", selectSelect}, {"clz", selectCount},
      {"popc", selectCount},   {"bfind", selectCount}, {"brev", selectReverse},
      {"bfe", selectField},    {"bfi", selectField},   {"prmt", selectTernary},
      {"lop3", selectTernary}, {"shf", selectTernary}};
  auto found = all.find(s.base);
  return found != all.end() && found->second(s);
}
