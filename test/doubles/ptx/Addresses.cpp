//===- Addresses.cpp - Where the addresses of a warp lead -----------------===//

#include "test/doubles/ptx/Access.h"

#include <algorithm>
#include <cstdio>

using namespace pipewright::ptx;

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

Addresses pipewright::ptx::addressesOf(Warp &warp, const Instruction &in,
                                       uint32_t base, uint32_t mask,
                                       uint64_t bytes) {
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

void pipewright::ptx::checkAligned(Warp &warp, const Instruction &in,
                                   uint32_t mask, const Addresses &all,
                                   uint64_t bytes, bool write) {
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

std::byte *pipewright::ptx::anyPointer(Warp &warp, const Instruction &in,
                                       Space space, int lane, uint64_t address,
                                       uint64_t bytes, bool write,
                                       bool atomic) {
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

bool pipewright::ptx::findPlace(Warp &warp, const Instruction &in,
                                uint32_t mask, const Addresses &all,
                                uint64_t bytes, bool write, Place &place) {
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
