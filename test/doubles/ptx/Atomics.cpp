//===- Atomics.cpp - Atomics and reductions -------------------------------===//

#include "test/doubles/ptx/Access.h"

using namespace pipewright::ptx;

namespace {
enum class AtomicOp : uint8_t {
  Add,
  Min,
  Max,
  And,
  Or,
  Xor,
  Exchange,
  CompareAndSwap,
  Increment,
  Decrement,
};
} // namespace

template <class T, AtomicOp op>
static T combine(T old, T b, T c) {
  switch (op) {
  case AtomicOp::Add:
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(std::make_unsigned_t<T>(old) +
                            std::make_unsigned_t<T>(b));
    else
      return old + b;
  case AtomicOp::Min:
    return old < b ? old : b;
  case AtomicOp::Max:
    return old > b ? old : b;
  case AtomicOp::Exchange:
    return b;
  case AtomicOp::CompareAndSwap:
    return old == b ? c : old;
  case AtomicOp::Increment:
    return old >= b ? T(0) : old + T(1);
  case AtomicOp::Decrement:
    return old == T(0) || old > b ? b : old - T(1);
  default:
    break;
  }
  if constexpr (std::is_integral_v<T>) {
    if constexpr (op == AtomicOp::And)
      return old & b;
    if constexpr (op == AtomicOp::Or)
      return old | b;
    if constexpr (op == AtomicOp::Xor)
      return old ^ b;
  }
  return old;
}

/// Lanes one after the other, in ascending order.
template <class T, AtomicOp op>
static void runAtomic(Warp &warp, const Instruction &in, uint32_t mask) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const Addresses all = addressesOf(warp, in, in.operand[8], mask, sizeof(T));
  checkAligned(warp, in, mask, all, sizeof(T), true);
  const T *b = warp.lanes<T>(in.operand[1]);
  const T *c = warp.lanes<T>(in.operand[2]);
  for (int lane = 0; lane < warpSize; ++lane) {
    if (!isSet(mask, lane))
      continue;
    auto *at = reinterpret_cast<Bits *>(anyPointer(
        warp, in, in.space, lane, all.of[lane], sizeof(T), true, true));
    Bits old = __atomic_load_n(at, __ATOMIC_RELAXED), next;
    do
      next = std::bit_cast<Bits>(
          combine<T, op>(std::bit_cast<T>(old), b[lane], c[lane]));
    while (!__atomic_compare_exchange_n(at, &old, next, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED));
    if (in.operand[0] != none)
      warp.lanes<Bits>(in.operand[0])[lane] = old;
  }
}

template <AtomicOp op>
static Handler atomicHandler(Type type) {
  switch (type) {
  case Type::U32:
  case Type::B32:
    return runAtomic<uint32_t, op>;
  case Type::S32:
    return runAtomic<int32_t, op>;
  case Type::U64:
  case Type::B64:
    return runAtomic<uint64_t, op>;
  case Type::S64:
    return runAtomic<int64_t, op>;
  case Type::F32:
    return op == AtomicOp::Add ? runAtomic<float, op> : nullptr;
  case Type::F64:
    return op == AtomicOp::Add ? runAtomic<double, op> : nullptr;
  default:
    return nullptr;
  }
}

static Handler findAtomic(std::string_view name, Type type) {
  static const std::map<std::string_view, Handler (*)(Type)> all = {
      {"add", atomicHandler<AtomicOp::Add>},
      {"min", atomicHandler<AtomicOp::Min>},
      {"max", atomicHandler<AtomicOp::Max>},
      {"and", atomicHandler<AtomicOp::And>},
      {"or", atomicHandler<AtomicOp::Or>},
      {"xor", atomicHandler<AtomicOp::Xor>},
      {"exch", atomicHandler<AtomicOp::Exchange>},
      {"cas", atomicHandler<AtomicOp::CompareAndSwap>},
      {"inc", atomicHandler<AtomicOp::Increment>},
      {"dec", atomicHandler<AtomicOp::Decrement>}};
  auto found = all.find(name);
  return found == all.end() ? nullptr : found->second(type);
}

bool pipewright::ptx::selectAtomic(Selection &s) {
  const bool result = s.base == "atom";
  takeSpace(s);
  skipHints(s);
  if (s.take("noftz"))
    s.fail("atomics on halves are not supported");
  const std::string_view op = s.takeNext();
  const Type type = s.takeType();
  const size_t first = result ? 1 : 0;
  const bool swap = op == "cas";
  s.expectOperands(first + (swap ? 3 : 2));
  // The old value may be thrown away: "_".
  const bool kept = result && s.statement.operands[0] != "_";
  s.in.operand[0] = kept ? s.target(0, type) : none;
  s.in.operand[1] = s.source(first + 1, type);
  s.in.operand[2] = swap ? s.source(first + 2, type) : s.in.operand[1];
  s.in.operand[8] = s.address(first);
  s.in.run = findAtomic(op, type);
  return s.in.run;
}
