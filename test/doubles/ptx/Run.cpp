//===- Run.cpp - Warps, blocks, grids -------------------------------------===//
//
// A warp is a set of paths, lanes that stand at the same instruction. The path
// that is furthest behind runs; where paths meet they become one. So lanes
// that part come together again at the latest where the program's text does.
//
// The warps of a block take turns between barriers; blocks run one by one.
//
//===----------------------------------------------------------------------===//

#include "test/doubles/ptx/Lanes.h"
#include "test/doubles/ptx/Program.h"

#include <algorithm>
#include <atomic>

using namespace pipewright::ptx;

using Kind = Instruction::Kind;

static std::atomic<uint64_t> laneInstructions{0};

uint64_t pipewright::ptx::executedLaneInstructions() {
  return laneInstructions;
}

static std::string text(const Dim &dim) {
  return "(" + std::to_string(dim.x) + ", " + std::to_string(dim.y) + ", " +
         std::to_string(dim.z) + ")";
}

static Dim threadOf(const Dim &block, uint64_t index) {
  return {static_cast<uint32_t>(index % block.x),
          static_cast<uint32_t>(index / block.x % block.y),
          static_cast<uint32_t>(index / block.x / block.y)};
}

void pipewright::ptx::raise(Fault::Kind kind, const Warp &warp,
                            const Instruction &in, int lane,
                            const std::string &what) {
  const Block &block = *warp.block;
  const std::vector<std::string> &lines = block.module->lines;
  const std::string line =
      in.line && in.line <= lines.size() ? lines[in.line - 1] : "";
  throw Fault(kind, "kernel '" + block.entry->info.name + "', block " +
                        text(block.index) + ", thread " +
                        text(threadOf(block.shape.block,
                                      uint64_t(warp.index) * warpSize + lane)) +
                        ": " + what + "; line " + std::to_string(in.line) +
                        " of the PTX: " + line);
}

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

static constexpr uint32_t nowhere = 0xFFFFFFFF;

/// The first instruction ahead at which another path stands.
static uint32_t nextMeeting(const Warp &warp, uint32_t pc) {
  uint32_t next = nowhere;
  for (const Path &other : warp.paths)
    if (other.pc >= pc)
      next = std::min(next, other.pc);
  return next;
}

/// Takes the paths that stand where this one does into it.
static void meet(Warp &warp, Path &path) {
  std::erase_if(warp.paths, [&](const Path &other) {
    if (other.pc != path.pc)
      return false;
    path.lanes |= other.lanes;
    return true;
  });
}

/// The path furthest behind that does not wait. Those that wait try again when
/// lanes have exited since.
static Path takePath(Warp &warp, const Instruction &stuck) {
  auto best = warp.paths.end();
  for (auto it = warp.paths.begin(); it != warp.paths.end(); ++it) {
    if (it->waitsSince == warp.alive)
      continue;
    if (best == warp.paths.end() || it->pc < best->pc)
      best = it;
  }
  if (best == warp.paths.end())
    raise(Fault::Kind::Divergence, warp, stuck,
          std::countr_zero(warp.paths.front().lanes),
          "lanes of the warp wait for others that never come here");
  Path path = *best;
  warp.paths.erase(best);
  path.waitsSince = 0;
  meet(warp, path);
  return path;
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

namespace {
/// One turn of a warp: until it stands at a barrier or is done.
class Turn {
public:
  explicit Turn(Warp &warp)
      : warp(warp), entry(*warp.block->entry), code(entry.code.data()) {}
  ~Turn() { laneInstructions += executed; }

  void run();

private:
  void step(const Instruction &in, uint32_t mask);
  void branch(const Instruction &in, uint32_t taken);
  void branchIndex(const Instruction &in, uint32_t taken);
  bool wait(const Instruction &in, uint32_t needed, uint32_t mask);
  void exit(const Instruction &in, uint32_t mask);
  void select(const Instruction &in) {
    path = takePath(warp, in);
    meeting = nextMeeting(warp, path.pc);
  }
  /// Continues with whoever is furthest behind.
  void yield(const Instruction &in) {
    if (warp.paths.empty())
      return;
    warp.paths.push_back(path);
    select(in);
  }

  Warp &warp;
  const Entry &entry;
  const Instruction *code;
  Path path;
  uint32_t meeting = nowhere;
  bool over = false;
  uint64_t executed = 0;
};
} // namespace

void Turn::run() {
  select(code[0]);
  while (!over) {
    if (path.pc == meeting) {
      meet(warp, path);
      meeting = nextMeeting(warp, path.pc + 1);
    }
    const Instruction &in = code[path.pc];
    uint32_t mask = path.lanes;
    if (in.guard != none) {
      const uint32_t guard = predicate(warp, in.guard);
      mask &= in.guardNegated ? ~guard : guard;
    }
    executed += std::popcount(mask);
    if (in.kind == Kind::Plain) [[likely]] {
      if (mask)
        in.run(warp, in, mask);
      ++path.pc;
      continue;
    }
    step(in, mask);
  }
}

void Turn::step(const Instruction &in, uint32_t mask) {
  switch (in.kind) {
  case Kind::Branch:
    return branch(in, mask);
  case Kind::BranchIndex:
    return branchIndex(in, mask);
  case Kind::Exit:
    return exit(in, mask);
  case Kind::Converged: {
    if (mask) {
      const uint32_t *members = warp.lanes<uint32_t>(in.operand[8]);
      uint32_t needed = 0;
      for (int lane = 0; lane < warpSize; ++lane)
        needed |= isSet(mask, lane) ? members[lane] : 0;
      if (!wait(in, needed & warp.alive, mask))
        return;
      in.run(warp, in, mask);
    }
    ++path.pc;
    return;
  }
  case Kind::Barrier:
    if (!wait(in, warp.alive, mask))
      return;
    ++path.pc;
    warp.barrier = static_cast<int>(in.immediate);
    warp.paths.push_back(path);
    over = true;
    return;
  case Kind::Plain:
    return;
  }
}

/// Whether all lanes that are needed are here; another path goes on if not.
bool Turn::wait(const Instruction &in, uint32_t needed, uint32_t mask) {
  if ((needed & ~mask) == 0)
    return true;
  if (needed & ~mask & path.lanes)
    raise(Fault::Kind::Divergence, warp, in,
          std::countr_zero(needed & ~mask & path.lanes),
          "a lane that others wait for does not take part");
  path.waitsSince = warp.alive;
  warp.paths.push_back(path);
  select(in);
  return false;
}

void Turn::branch(const Instruction &in, uint32_t taken) {
  const uint32_t rest = path.lanes & ~taken;
  if (!taken) {
    ++path.pc;
    return;
  }
  if (rest)
    warp.paths.push_back({path.pc + 1, rest, 0});
  path.pc = in.target;
  path.lanes = taken;
  yield(in);
}

void Turn::branchIndex(const Instruction &in, uint32_t taken) {
  const uint32_t *index = warp.lanes<uint32_t>(in.operand[0]);
  if (const uint32_t rest = path.lanes & ~taken)
    warp.paths.push_back({path.pc + 1, rest, 0});
  for (int lane = 0; lane < warpSize; ++lane) {
    if (!isSet(taken, lane))
      continue;
    if (index[lane] >= static_cast<uint64_t>(in.immediate))
      raise(Fault::Kind::Trap, warp, in, lane, "branch beyond its table");
    warp.paths.push_back(
        {entry.targets[in.target + index[lane]], uint32_t(1) << lane, 0});
  }
  select(in);
}

void Turn::exit(const Instruction &in, uint32_t mask) {
  warp.alive &= ~mask;
  path.lanes &= ~mask;
  if (path.lanes) {
    ++path.pc;
    return;
  }
  if (!warp.alive) {
    warp.done = over = true;
    return;
  }
  select(in);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

static uint32_t laneMask(Special which, int lane) {
  const uint32_t bit = uint32_t(1) << lane;
  switch (which) {
  case Special::LanemaskEq:
    return bit;
  case Special::LanemaskLt:
    return bit - 1;
  case Special::LanemaskLe:
    return (bit - 1) | bit;
  case Special::LanemaskGt:
    return ~((bit - 1) | bit);
  default:
    return ~(bit - 1);
  }
}

static uint32_t specialValue(const Warp &warp, Special which, int lane) {
  const Block &block = *warp.block;
  const LaunchShape &shape = block.shape;
  const Dim thread =
      threadOf(shape.block, uint64_t(warp.index) * warpSize + lane);
  switch (which) {
  case Special::TidX:
    return thread.x;
  case Special::TidY:
    return thread.y;
  case Special::TidZ:
    return thread.z;
  case Special::NtidX:
    return shape.block.x;
  case Special::NtidY:
    return shape.block.y;
  case Special::NtidZ:
    return shape.block.z;
  case Special::CtaidX:
    return block.index.x;
  case Special::CtaidY:
    return block.index.y;
  case Special::CtaidZ:
    return block.index.z;
  case Special::NctaidX:
    return shape.grid.x;
  case Special::NctaidY:
    return shape.grid.y;
  case Special::NctaidZ:
    return shape.grid.z;
  case Special::LaneId:
    return static_cast<uint32_t>(lane);
  case Special::WarpId:
    return warp.index;
  case Special::NwarpId:
    return static_cast<uint32_t>(block.warps.size());
  case Special::SmId:
  case Special::GridId:
    return 0;
  case Special::NsmId:
    return 1;
  case Special::DynamicSharedSize:
    return shape.dynamicSharedBytes;
  case Special::TotalSharedSize:
    return block.sharedBytes;
  default:
    return laneMask(which, lane);
  }
}

static void setSpecials(Warp &warp) {
  for (const SpecialUse &use : warp.block->entry->specials) {
    uint32_t *values = warp.lanes<uint32_t>(use.offset);
    for (int lane = 0; lane < warpSize; ++lane)
      values[lane] = specialValue(warp, use.which, lane);
  }
}

static void setConstants(Warp &warp) {
  for (const Constant &constant : warp.block->entry->constants)
    for (int lane = 0; lane < warpSize; ++lane)
      std::memcpy(warp.registers + constant.offset + lane * constant.bytes,
                  &constant.bits, constant.bytes);
}

static uint32_t liveLanes(const Block &block, uint32_t warp) {
  const uint64_t threads = block.shape.block.count();
  const uint64_t rest = threads - uint64_t(warp) * warpSize;
  return rest >= warpSize ? allLanes : (uint32_t(1) << rest) - 1;
}

/// From here on nothing that was done to shared memory before can race.
static void beginEpoch(Block &block) {
  // The numbers of SharedCell have 26 bits for it.
  if (++block.epoch < 1u << 26)
    return;
  std::fill(block.sharedCells.begin(), block.sharedCells.end(), SharedCell());
  block.epoch = 1;
}

static void beginBlock(Block &block) {
  beginEpoch(block);
  // Nothing may count on what another block left behind.
  std::memset(block.shared, 0xFF, block.sharedBytes);
  for (Warp &warp : block.warps) {
    warp.alive = liveLanes(block, warp.index);
    warp.paths.assign(1, {0, warp.alive, 0});
    warp.barrier = -1;
    warp.done = false;
  }
}

/// When all warps that are not done stand at the same barrier.
static void passBarrier(Block &block) {
  const Warp *first = nullptr;
  for (const Warp &warp : block.warps) {
    if (warp.done)
      continue;
    if (first && warp.barrier != first->barrier)
      throw Fault(Fault::Kind::Divergence,
                  "kernel '" + block.entry->info.name + "', block " +
                      text(block.index) + ": warp " +
                      std::to_string(first->index) + " waits at barrier " +
                      std::to_string(first->barrier) + ", warp " +
                      std::to_string(warp.index) + " at barrier " +
                      std::to_string(warp.barrier));
    first = &warp;
  }
  for (Warp &warp : block.warps)
    warp.barrier = -1;
  beginEpoch(block);
}

static void runBlock(Block &block) {
  beginBlock(block);
  bool running = true;
  while (running) {
    running = false;
    for (Warp &warp : block.warps) {
      if (warp.done)
        continue;
      setSpecials(warp);
      Turn(warp).run();
      running |= !warp.done;
    }
    if (running)
      passBarrier(block);
  }
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace {
/// Memory that launches of a thread use again and again.
class Scratch {
public:
  std::byte *get(size_t bytes) {
    if (bytes > size) {
      storage.reset(static_cast<std::byte *>(
          std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
      size = bytes;
    }
    return storage.get();
  }

private:
  struct Free {
    void operator()(std::byte *data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> storage;
  size_t size = 0;
};
} // namespace

static void checkShape(const EntryInfo &info, const LaunchShape &shape,
                       size_t parameterBytes) {
  const auto refuse = [&](const std::string &what) {
    throw Fault(Fault::Kind::Launch, "kernel '" + info.name + "': " + what);
  };
  const uint64_t threads = shape.block.count();
  if (threads == 0 || threads > 1024 || shape.grid.count() == 0)
    refuse("a grid of " + text(shape.grid) + " blocks of " + text(shape.block) +
           " threads");
  if (info.maxThreads && threads > info.maxThreads)
    refuse("blocks of " + std::to_string(threads) +
           " threads, but it was compiled for at most " +
           std::to_string(info.maxThreads));
  const Dim &block = info.requiredBlock;
  if (block.count() && (block.x != shape.block.x || block.y != shape.block.y ||
                        block.z != shape.block.z))
    refuse("blocks of " + text(shape.block) +
           " threads, but it was compiled for " + text(block));
  if (parameterBytes < info.parameterBytes)
    refuse(std::to_string(parameterBytes) + " bytes of parameters, expected " +
           std::to_string(info.parameterBytes));
  if (info.sharedBytes + uint64_t(shape.dynamicSharedBytes) > 227 * 1024)
    refuse("more than 227 KiB of shared memory");
}

void pipewright::ptx::runGrid(const ModuleData &module, const Entry &entry,
                              const LaunchShape &shape,
                              const std::vector<std::byte> &parameters,
                              Memory &memory) {
  checkShape(entry.info, shape, parameters.size());
  static thread_local Scratch registers, local, shared;
  Block block;
  block.module = &module;
  block.entry = &entry;
  block.parameters = parameters.data();
  block.memory = &memory;
  block.tracks = memory.tracks();
  block.regions.resize(entry.cacheEntries);
  block.shape = shape;
  block.sharedBytes = entry.info.sharedBytes + shape.dynamicSharedBytes;
  block.shared = shared.get(block.sharedBytes);
  block.sharedCells.resize((block.sharedBytes + 3) / 4);
  const uint64_t warps = (shape.block.count() + warpSize - 1) / warpSize;
  // Without barriers each warp runs to its end: one register file will do.
  const uint64_t files = entry.hasBarrier ? warps : 1;
  std::byte *file = registers.get(files * entry.registerBytes);
  const uint64_t localBytes = uint64_t(warpSize) * entry.info.localBytes;
  std::byte *stack = local.get(files * localBytes);
  block.warps.resize(warps);
  for (uint64_t i = 0; i < warps; ++i) {
    Warp &warp = block.warps[i];
    const uint64_t own = entry.hasBarrier ? i : 0;
    warp.block = &block;
    warp.index = static_cast<uint32_t>(i);
    warp.registers = file + own * entry.registerBytes;
    warp.local = stack + own * localBytes;
    if (i < files)
      setConstants(warp);
  }
  for (uint32_t z = 0; z < shape.grid.z; ++z)
    for (uint32_t y = 0; y < shape.grid.y; ++y)
      for (uint32_t x = 0; x < shape.grid.x; ++x) {
        block.index = {x, y, z};
        runBlock(block);
      }
}
