//===- Access.cpp - Loads and stores --------------------------------------===//

#include "test/doubles/ptx/Access.h"

#include <algorithm>

using namespace pipewright::ptx;

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
// Selection
//===----------------------------------------------------------------------===//

void pipewright::ptx::takeSpace(Selection &s) {
  if (s.take("global") || s.take("const"))
    s.in.space = Space::Global;
  else if (s.take("shared") || s.take("shared::cta"))
    s.in.space = Space::Shared;
  else if (s.take("local"))
    s.in.space = Space::Local;
  else if (s.take("param"))
    s.in.space = Space::Parameter;
}

void pipewright::ptx::skipHints(Selection &s) {
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
