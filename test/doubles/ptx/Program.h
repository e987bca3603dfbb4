//===- Program.h - Decoded PTX ---------------------------------*- C++ -*-===//
//
// A kernel is an array of instructions, each with a handler that does its work
// for all 32 lanes of a warp. Operands are byte offsets into the register file
// of the warp, where a register is an array of 32 values; constants and special
// registers lie there too, so a handler never asks what an operand is.
// A predicate is a mask of 32 bits.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_PTX_PROGRAM_H
#define PIPEWRIGHT_TEST_DOUBLES_PTX_PROGRAM_H

#include "test/doubles/ptx/Ptx.h"

#include <cstdlib>
#include <map>
#include <unordered_map>

namespace pipewright::ptx {

inline constexpr int warpSize = 32;
inline constexpr uint32_t allLanes = 0xFFFFFFFF;
inline constexpr uint32_t none = 0xFFFFFFFF;

/// Generic addresses of memory that is not global have one of these bits.
inline constexpr uint64_t sharedWindow = uint64_t(1) << 57;
inline constexpr uint64_t localWindow = uint64_t(1) << 58;
inline constexpr uint64_t parameterWindow = uint64_t(1) << 59;
inline constexpr uint64_t windowMask =
    sharedWindow | localWindow | parameterWindow;

enum class Space : uint8_t { Generic, Global, Shared, Local, Parameter };

struct Warp;
struct Instruction;
/// `mask`: the lanes that execute it.
using Handler = void (*)(Warp &warp, const Instruction &in, uint32_t mask);

struct Instruction {
  enum class Kind : uint8_t {
    Plain,
    /// Waits until its lanes are together: shuffles, votes.
    Converged,
    Branch,
    BranchIndex,
    Barrier,
    Exit,
  };
  Handler run = nullptr;
  uint32_t operand[15] = {};
  /// Predicate that lanes need to take part.
  uint32_t guard = none;
  int64_t immediate = 0;
  /// Where a branch goes; first of `targets` for BranchIndex.
  uint32_t target = 0;
  uint32_t line = 0;
  /// Entry of the cache of memory regions.
  uint32_t cache = 0;
  Kind kind = Kind::Plain;
  Space space = Space::Generic;
  bool guardNegated = false;
  bool negated = false;
  bool wideAddress = true;
  uint8_t count = 1;
};

/// A value that every warp's register file begins with.
struct Constant {
  uint32_t offset = 0;
  uint32_t bytes = 0;
  uint64_t bits = 0;
};

enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  SmId,
  NsmId,
  GridId,
  LanemaskEq,
  LanemaskLt,
  LanemaskLe,
  LanemaskGt,
  LanemaskGe,
  DynamicSharedSize,
  TotalSharedSize,
};

struct SpecialUse {
  Special which = Special::TidX;
  uint32_t offset = 0;
};

struct Entry {
  EntryInfo info;
  std::vector<Instruction> code;
  std::vector<Constant> constants;
  std::vector<SpecialUse> specials;
  /// The targets of BranchIndex instructions.
  std::vector<uint32_t> targets;
  uint32_t registerBytes = 0;
  uint32_t cacheEntries = 0;
  bool hasBarrier = false;
};

struct ModuleData {
  int target = 0;
  int version = 0;
  struct Free {
    void operator()(std::byte *data) const { std::free(data); }
  };
  /// The memory of .global and .const variables, one piece for each.
  std::vector<std::unique_ptr<std::byte, Free>> storage;
  std::map<std::string, Module::Variable, std::less<>> variables;
  std::map<std::string, Entry, std::less<>> entries;
  /// For messages about faults.
  std::vector<std::string> lines;
};

//===----------------------------------------------------------------------===//
// What runs
//===----------------------------------------------------------------------===//

/// Lanes of a warp that stand at the same instruction.
struct Path {
  uint32_t pc = 0;
  uint32_t lanes = 0;
  /// What was alive when it began to wait for the rest of the warp; 0: it does
  /// not wait.
  uint32_t waitsSince = 0;
};

struct Block;

struct Warp {
  std::byte *registers = nullptr;
  /// 32 x localBytes.
  std::byte *local = nullptr;
  Block *block = nullptr;
  uint32_t index = 0;
  /// Lanes that have not exited.
  uint32_t alive = 0;
  /// Sorted by nothing; few.
  std::vector<Path> paths;
  /// At which barrier it stands; -1: none.
  int barrier = -1;
  bool done = false;

  template <class T>
  T *lanes(uint32_t offset) {
    return reinterpret_cast<T *>(registers + offset);
  }
};

/// Who touched four bytes of shared memory last: 64 times the number of the
/// barrier before it, plus the warp; for readers, plus 32 if there were more.
struct SharedCell {
  uint32_t writer = 0;
  uint32_t reader = 0;
};

struct Block {
  const ModuleData *module = nullptr;
  const Entry *entry = nullptr;
  const std::byte *parameters = nullptr;
  Memory *memory = nullptr;
  bool tracks = false;
  std::vector<Memory::Region> regions;

  LaunchShape shape;
  Dim index;
  std::byte *shared = nullptr;
  uint32_t sharedBytes = 0;
  std::vector<SharedCell> sharedCells;
  /// Barriers passed, in all blocks that ran before, too.
  uint32_t epoch = 0;
  std::vector<Warp> warps;
};

/// Runs all blocks of a launch.
void runGrid(const ModuleData &module, const Entry &entry,
             const LaunchShape &shape, const std::vector<std::byte> &parameters,
             Memory &memory);

/// Throws with the kernel's position in the message.
[[noreturn]] void raise(Fault::Kind kind, const Warp &warp,
                        const Instruction &in, int lane,
                        const std::string &what);

} // namespace pipewright::ptx

#endif // PIPEWRIGHT_TEST_DOUBLES_PTX_PROGRAM_H
