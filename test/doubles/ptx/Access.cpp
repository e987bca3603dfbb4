//===- Access.cpp - Loads, stores, atomics --------------------------------===//
//
// Every access is checked: inside one allocation, aligned to its size, and in
// shared memory not racing with another warp since the last barrier.
//
//===----------------------------------------------------------------------===//

#include "test/doubles/ptx/Lanes.h"
#include "test/doubles/ptx/Select.h"

#include <algorithm>
#include <cstdio>

using namespace pipewright::ptx;

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

namespace {
/// Addresses of the active lanes; inactive ones have that of an active one.
struct Addresses {
  alignas(64) uint64_t of[warpSize];
  uint64_t least = 0;
  uint64_t most = 0;
  /// In the order of the lanes without gaps, all lanes active.
  bool consecutive = false;
};
} // namespace

static Addresses addressesOf(Warp &warp, const Instruction &in, uint32_t base,
                             uint32_t mask, uint64_t bytes) {
  Addresses all;
  const uint64_t offset = static_cast<uint64_t>(in.immediate);
  if (in.wideAddress) {
    const uint64_t *a = warp.lanes<uint64_t>(base);
    PIPEWRIGHT_LANES all.of[lane] = a[lane] + offset;
  } else {
    const uint32_t *a = warp.lanes<uint32_t>(base);
    PIPEWRIGHT_LANES all.of[lane] = a[lane] + static_cast<uint32_t>(offset);
  }
  const uint64_t first = all.of[std::countr_zero(mask)];
  if (mask != allLanes)
    PIPEWRIGHT_LANES all.of[lane] = isSet(mask, lane) ? all.of[lane] : first;
  uint64_t least = ~uint64_t(0), most = 0, gaps = 0;
  for (int lane = 0; lane < warpSize; ++lane) {
    least = std::min(least, all.of[lane]);
    most = std::max(most, all.of[lane]);
    gaps |= all.of[lane] ^ (first + lane * bytes);
  }
  all.least = least;
  all.most = most;
  all.consecutive = gaps == 0 && mask == allLanes;
  return all;
}

static std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx",
                static_cast<unsigned long long>(value));
  return text;
}

static std::string describeAccess(uint64_t address, uint64_t bytes,
                                  bool write) {
  return std::string(write ? "write" : "read") + " of " +
         std::to_string(bytes) + " bytes at " + hex(address);
}

[[noreturn]] static void raiseOutside(Warp &warp, const Instruction &in,
                                      int lane, uint64_t address,
                                      uint64_t bytes, bool write) {
  std::string where = warp.block->memory->describe(address);
  if (!where.empty())
    where = ": " + where;
  raise(Fault::Kind::IllegalAddress, warp, in, lane,
        describeAccess(address, bytes, write) +
            " is not within one allocation" + where);
}

static void checkAligned(Warp &warp, const Instruction &in, uint32_t mask,
                         const Addresses &all, uint64_t bytes, bool write) {
  uint64_t low = 0;
  for (int lane = 0; lane < warpSize; ++lane)
    low |= all.of[lane];
  if ((low & (bytes - 1)) == 0)
    return;
  for (int lane = 0; lane < warpSize; ++lane)
    if (isSet(mask, lane) && all.of[lane] & (bytes - 1))
      raise(Fault::Kind::Misaligned, warp, in, lane,
            describeAccess(all.of[lane], bytes, write) +
                " is not aligned to its size");
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

static bool contains(const Memory::Region &region, uint64_t least,
                     uint64_t end) {
  return least >= region.begin && end <= region.end && least < end;
}

static Memory::Region findRegion(const Block &block, uint64_t address) {
  for (const auto &[name, variable] : block.module->variables)
    if (address - variable.address < variable.bytes)
      return {variable.address, variable.address + variable.bytes, 0};
  return block.memory->find(address);
}

/// A pointer for one lane's access.
static std::byte *globalPointer(Warp &warp, const Instruction &in, int lane,
                                uint64_t address, uint64_t bytes, bool write) {
  Memory::Region &region = warp.block->regions[in.cache];
  if (!contains(region, address, address + bytes)) {
    region = findRegion(*warp.block, address);
    if (!contains(region, address, address + bytes))
      raiseOutside(warp, in, lane, address, bytes, write);
  }
  return reinterpret_cast<std::byte *>(address + region.toHost);
}

static void trackGlobal(Warp &warp, uint32_t mask, const Addresses &all,
                        uint64_t bytes, bool write) {
  if (!warp.block->tracks)
    return;
  if (all.consecutive) {
    warp.block->memory->access(all.least, bytes * warpSize, write);
    return;
  }
  for (int lane = 0; lane < warpSize; ++lane)
    if (isSet(mask, lane))
      warp.block->memory->access(all.of[lane], bytes, write);
}

//===----------------------------------------------------------------------===//
// Shared, local and parameter memory
//===----------------------------------------------------------------------===//

[[noreturn]] static void raiseRace(Warp &warp, const Instruction &in, int lane,
                                   uint64_t offset, uint64_t bytes, bool write,
                                   const char *other, uint32_t otherWarp) {
  raise(Fault::Kind::Race, warp, in, lane,
        describeAccess(offset, bytes, write) +
            " of shared memory races with a " + other + " by warp " +
            std::to_string(otherWarp) + " since the last barrier");
}

/// Two warps that touch the same four bytes between two barriers, one of them
/// writing, race.
static inline void noteShared(Warp &warp, const Instruction &in, int lane,
                              uint64_t offset, uint64_t bytes, bool write) {
  constexpr uint32_t tags = 64, many = 32;
  Block &block = *warp.block;
  const uint32_t first = block.epoch * tags, self = first + warp.index;
  for (uint64_t at = offset / 4; at <= (offset + bytes - 1) / 4; ++at) {
    SharedCell &cell = block.sharedCells[at];
    if (cell.writer >= first && cell.writer != self)
      raiseRace(warp, in, lane, offset, bytes, write, "write",
                cell.writer % many);
    if (!write) {
      cell.reader = cell.reader < first || cell.reader == self
                        ? self
                        : cell.reader | many;
      continue;
    }
    if (cell.reader >= first && cell.reader != self)
      raiseRace(warp, in, lane, offset, bytes, write, "read",
                cell.reader % many);
    cell.writer = self;
  }
}

[[noreturn]] static void raiseBeyond(Warp &warp, const Instruction &in,
                                     int lane, const char *memory,
                                     uint64_t offset, uint64_t bytes,
                                     uint64_t size, bool write) {
  raise(Fault::Kind::IllegalAddress, warp, in, lane,
        describeAccess(offset, bytes, write) + " is beyond the " +
            std::to_string(size) + " bytes of " + memory + " memory");
}

static std::byte *sharedPointer(Warp &warp, const Instruction &in, int lane,
                                uint64_t offset, uint64_t bytes, bool write,
                                bool atomic) {
  Block &block = *warp.block;
  if (offset + bytes > block.sharedBytes || offset + bytes < offset)
    raiseBeyond(warp, in, lane, "shared", offset, bytes, block.sharedBytes,
                write);
  if (!atomic && block.warps.size() > 1)
    noteShared(warp, in, lane, offset, bytes, write);
  return block.shared + offset;
}

static std::byte *localPointer(Warp &warp, const Instruction &in, int lane,
                               uint64_t offset, uint64_t bytes, bool write) {
  const uint64_t size = warp.block->entry->info.localBytes;
  if (offset + bytes > size || offset + bytes < offset)
    raiseBeyond(warp, in, lane, "local", offset, bytes, size, write);
  return warp.local + lane * size + offset;
}

static std::byte *parameterPointer(Warp &warp, const Instruction &in, int lane,
                                   uint64_t offset, uint64_t bytes,
                                   bool write) {
  const uint64_t size = warp.block->entry->info.parameterBytes;
  if (write || offset + bytes > size || offset + bytes < offset)
    raiseBeyond(warp, in, lane, "parameter", offset, bytes, size, write);
  return const_cast<std::byte *>(warp.block->parameters) + offset;
}

/// A pointer for one lane in any space.
static std::byte *anyPointer(Warp &warp, const Instruction &in, Space space,
                             int lane, uint64_t address, uint64_t bytes,
                             bool write, bool atomic = false) {
  if (space == Space::Generic) {
    if (address & sharedWindow)
      space = Space::Shared;
    else if (address & localWindow)
      space = Space::Local;
    else if (address & parameterWindow)
      space = Space::Parameter;
    address &= ~windowMask;
  }
  switch (space) {
  case Space::Shared:
    return sharedPointer(warp, in, lane, address, bytes, write, atomic);
  case Space::Local:
    return localPointer(warp, in, lane, address, bytes, write);
  case Space::Parameter:
    return parameterPointer(warp, in, lane, address, bytes, write);
  default:
    if (warp.block->tracks && !atomic)
      warp.block->memory->access(address, bytes, write);
    return globalPointer(warp, in, lane, address, bytes, write);
  }
}

namespace {
/// Where all lanes find what they access: at base + address + lane * stride.
struct Place {
  std::byte *base = nullptr;
  uint64_t stride = 0;

  std::byte *at(int lane, uint64_t address) const {
    return base + address + lane * stride;
  }
};
} // namespace

/// The space of all addresses, and the bits that say so. Generic if they
/// differ: addresses between two with the same highest bits have these, too.
static Space commonSpace(const Instruction &in, const Addresses &all,
                         uint64_t &window) {
  window = 0;
  if (in.space != Space::Generic)
    return in.space;
  window = all.least & windowMask;
  if (window != (all.most & windowMask))
    return Space::Generic;
  return window == 0              ? Space::Global
         : window == sharedWindow ? Space::Shared
         : window == localWindow  ? Space::Local
                                  : Space::Parameter;
}

static std::byte *offsetBack(std::byte *base, uint64_t by) {
  return reinterpret_cast<std::byte *>(reinterpret_cast<uint64_t>(base) - by);
}

/// Where the lanes are all within the bounds of one piece of memory. If not,
/// they need to be looked at one by one.
static bool findPlace(Warp &warp, const Instruction &in, uint32_t mask,
                      const Addresses &all, uint64_t bytes, bool write,
                      Place &place) {
  uint64_t window = 0;
  const Space space = commonSpace(in, all, window);
  Block &block = *warp.block;
  const uint64_t end = all.most - window + bytes;
  switch (space) {
  case Space::Global: {
    Memory::Region &region = block.regions[in.cache];
    if (!contains(region, all.least, end))
      region = findRegion(block, all.least);
    place.base = reinterpret_cast<std::byte *>(region.toHost);
    if (!contains(region, all.least, end))
      return false;
    trackGlobal(warp, mask, all, bytes, write);
    return true;
  }
  case Space::Shared:
    if (end > block.sharedBytes || all.most - window >= end)
      return false;
    if (block.warps.size() > 1) {
      // One look is enough where all lanes access the same.
      const uint32_t looks = all.least == all.most ? mask & (~mask + 1) : mask;
      for (int lane = 0; lane < warpSize; ++lane)
        if (isSet(looks, lane))
          noteShared(warp, in, lane, all.of[lane] - window, bytes, write);
    }
    place.base = offsetBack(block.shared, window);
    return true;
  case Space::Local:
    place.base = offsetBack(warp.local, window);
    place.stride = block.entry->info.localBytes;
    return end <= place.stride && all.most - window < end;
  case Space::Parameter:
    place.base = offsetBack(const_cast<std::byte *>(block.parameters), window);
    return !write && end <= block.entry->info.parameterBytes &&
           all.most - window < end;
  case Space::Generic:
    return false;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

template <class M>
static M read(const std::byte *from) {
  M value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// M: the element in memory; R: the element of the register.
template <class M, class R>
static void runLoad(Warp &warp, const Instruction &in, uint32_t mask) {
  const uint64_t bytes = sizeof(M) * in.count;
  const Addresses all = addressesOf(warp, in, in.operand[8], mask, bytes);
  checkAligned(warp, in, mask, all, bytes, false);
  Place place;
  if (findPlace(warp, in, mask, all, bytes, false, place)) {
    if (all.consecutive && !place.stride) {
      const M *from = reinterpret_cast<const M *>(place.at(0, all.least));
      const int count = in.count;
      for (int i = 0; i < count; ++i) {
        R *to = warp.lanes<R>(in.operand[i]);
        PIPEWRIGHT_LANES to[lane] = static_cast<R>(from[lane * count + i]);
      }
      return;
    }
    if (all.least == all.most && !place.stride) {
      for (int i = 0; i < in.count; ++i) {
        const R value =
            static_cast<R>(read<M>(place.at(0, all.least) + i * sizeof(M)));
        forLanes(warp.lanes<R>(in.operand[i]), mask,
                 [=](int) { return value; });
      }
      return;
    }
    for (int i = 0; i < in.count; ++i) {
      R *to = warp.lanes<R>(in.operand[i]);
      for (int lane = 0; lane < warpSize; ++lane)
        if (isSet(mask, lane))
          to[lane] = static_cast<R>(
              read<M>(place.at(lane, all.of[lane]) + i * sizeof(M)));
    }
    return;
  }
  for (int lane = 0; lane < warpSize; ++lane) {
    if (!isSet(mask, lane))
      continue;
    const std::byte *from =
        anyPointer(warp, in, in.space, lane, all.of[lane], bytes, false);
    for (int i = 0; i < in.count; ++i)
      warp.lanes<R>(in.operand[i])[lane] =
          static_cast<R>(read<M>(from + i * sizeof(M)));
  }
}

template <class M, class R>
static void runStore(Warp &warp, const Instruction &in, uint32_t mask) {
  const uint64_t bytes = sizeof(M) * in.count;
  const Addresses all = addressesOf(warp, in, in.operand[8], mask, bytes);
  checkAligned(warp, in, mask, all, bytes, true);
  Place place;
  if (findPlace(warp, in, mask, all, bytes, true, place)) {
    if (all.consecutive && !place.stride) {
      M *to = reinterpret_cast<M *>(place.at(0, all.least));
      const int count = in.count;
      for (int i = 0; i < count; ++i) {
        const R *from = warp.lanes<R>(in.operand[i]);
        PIPEWRIGHT_LANES to[lane * count + i] = static_cast<M>(from[lane]);
      }
      return;
    }
    for (int lane = 0; lane < warpSize; ++lane)
      if (isSet(mask, lane))
        for (int i = 0; i < in.count; ++i) {
          const M value = static_cast<M>(warp.lanes<R>(in.operand[i])[lane]);
          std::memcpy(place.at(lane, all.of[lane]) + i * sizeof(M), &value,
                      sizeof(M));
        }
    return;
  }
  for (int lane = 0; lane < warpSize; ++lane) {
    if (!isSet(mask, lane))
      continue;
    std::byte *to =
        anyPointer(warp, in, in.space, lane, all.of[lane], bytes, true);
    for (int i = 0; i < in.count; ++i) {
      const M value = static_cast<M>(warp.lanes<R>(in.operand[i])[lane]);
      std::memcpy(to + i * sizeof(M), &value, sizeof(M));
    }
  }
}

template <class M>
static Handler accessHandler(bool load, uint32_t registerBytes) {
  switch (registerBytes) {
  case 2:
    return load ? runLoad<M, uint16_t> : runStore<M, uint16_t>;
  case 4:
    return load ? runLoad<M, uint32_t> : runStore<M, uint32_t>;
  default:
    return load ? runLoad<M, uint64_t> : runStore<M, uint64_t>;
  }
}

static Handler accessHandler(Type type, bool load, uint32_t registerBytes) {
  switch (type) {
  case Type::S8:
    return accessHandler<int8_t>(load, registerBytes);
  case Type::S16:
    return accessHandler<int16_t>(load, registerBytes);
  case Type::S32:
    return accessHandler<int32_t>(load, registerBytes);
  default:
    break;
  }
  switch (bytesOf(type)) {
  case 1:
    return accessHandler<uint8_t>(load, registerBytes);
  case 2:
    return accessHandler<uint16_t>(load, registerBytes);
  case 4:
    return accessHandler<uint32_t>(load, registerBytes);
  default:
    return accessHandler<uint64_t>(load, registerBytes);
  }
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

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

const std::byte *pipewright::ptx::readAt(Warp &warp, const Instruction &in,
                                         uint32_t base, int lane,
                                         uint64_t bytes) {
  const uint64_t address = in.wideAddress
                               ? warp.lanes<uint64_t>(base)[lane] +
                                     static_cast<uint64_t>(in.immediate)
                               : warp.lanes<uint32_t>(base)[lane] +
                                     static_cast<uint32_t>(in.immediate);
  if (address & (bytes - 1))
    raise(Fault::Kind::Misaligned, warp, in, lane,
          describeAccess(address, bytes, /*write=*/false) +
              " is not aligned to its size");
  return anyPointer(warp, in, in.space, lane, address, bytes, /*write=*/false);
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

static void takeSpace(Selection &s) {
  if (s.take("global") || s.take("const"))
    s.in.space = Space::Global;
  else if (s.take("shared") || s.take("shared::cta"))
    s.in.space = Space::Shared;
  else if (s.take("local"))
    s.in.space = Space::Local;
  else if (s.take("param"))
    s.in.space = Space::Parameter;
}

/// Order and scope make no difference where lanes run one after the other;
/// hints about caches neither.
static void skipHints(Selection &s) {
  s.skip({"volatile",
          "relaxed",
          "acquire",
          "release",
          "acq_rel",
          "weak",
          "gpu",
          "sys",
          "cta",
          "nc",
          "ca",
          "cg",
          "cs",
          "lu",
          "cv",
          "wb",
          "wt",
          "L1::evict_normal",
          "L1::evict_unchanged",
          "L1::evict_first",
          "L1::evict_last",
          "L1::no_allocate",
          "L2::evict_first",
          "L2::evict_last",
          "L2::evict_normal",
          "L2::64B",
          "L2::128B",
          "L2::256B"});
}

static bool selectLoadStore(Selection &s) {
  const bool load = s.base == "ld" || s.base == "ldu";
  takeSpace(s);
  skipHints(s);
  size_t count = 1;
  if (s.take("v2"))
    count = 2;
  else if (s.take("v4"))
    count = 4;
  else if (s.take("v8"))
    count = 8;
  const Type type = s.takeType();
  s.expectOperands(2);
  const std::vector<std::string_view> parts = s.parts(load ? 0 : 1);
  if (parts.size() != count)
    s.fail("expected " + std::to_string(count) + " values");
  const uint32_t least = std::max(bytesOf(type), 2u);
  uint32_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!load && !s.isRegister(parts[i])) {
      s.in.operand[i] = s.source(parts[i], least == 2 ? Type::B16 : type);
      bytes = least;
      continue;
    }
    const Register &found = s.anyRegister(parts[i]);
    if (found.type == Type::Pred || bytesOf(found.type) < least)
      s.fail("'" + std::string(parts[i]) + "' is too narrow");
    if (bytes && bytes != bytesOf(found.type))
      s.fail("the values differ in width");
    bytes = bytesOf(found.type);
    s.in.operand[i] = found.offset;
  }
  s.in.operand[8] = s.address(load ? 1 : 0);
  s.in.count = static_cast<uint8_t>(count);
  s.in.run = accessHandler(type, load, bytes);
  return true;
}

static bool selectAtomic(Selection &s) {
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

static void runNothing(Warp &, const Instruction &, uint32_t) {}

bool pipewright::ptx::selectMemory(Selection &s) {
  if (s.base == "ld" || s.base == "ldu" || s.base == "st")
    return selectLoadStore(s);
  if (s.base == "atom" || s.base == "red")
    return selectAtomic(s);
  if (s.base == "prefetch" || s.base == "prefetchu") {
    s.skip(
        {"global", "local", "L1", "L2", "L2::evict_last", "L2::evict_normal"});
    s.in.run = runNothing;
    return true;
  }
  return false;
}
