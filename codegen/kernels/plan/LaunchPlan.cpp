//===- LaunchPlan.cpp - how a planned kernel is launched ------------------===//

#include "codegen/kernels/plan/LaunchPlan.h"

#include "codegen/kernels/plan/ElementEmitter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace pipewright::codegen {

/// Accesses of 16 bytes and more need this alignment.
static constexpr int64_t kScratchAlignment = 16;

/// Sums that a thread keeps in registers while it walks over rows.
static int64_t maxSumsOfThread(const Team &team) {
  // All threads of a block share 65536 registers.
  return team.threads > 512 ? 16 : team.threads > 256 ? 32 : 72;
}

/// Sums of a thread that leave its registers room for a row beside them.
static constexpr int64_t kMaxSumsBesideRow = 32;

/// What blocks may use of the 48 KiB of shared memory that need no asking.
static constexpr int64_t kMaxSharedSums = 40 * 1024;

/// Rows up to this length are shared by one warp at most: 24 columns a thread.
static constexpr int64_t kMaxWarpColumns = 768;

/// Rows up to this length stay in the registers of a block.
static constexpr int64_t kMaxShortColumns = 8192;
static constexpr int64_t kMaxRegisterColumns = 16384;

/// Every GPU since sm_80 has 99 KiB of shared memory for a block; a little is
/// left for what warps tell each other. sm_90 has room for two such blocks.
static constexpr int64_t kMaxCacheBytes = 99 * 1024 - 512;

Team teamFor(int64_t columns) {
  Team team;
  team.columns = columns;
  // Rows of another length start at addresses that are not aligned.
  team.width = columns % 4 == 0 ? 4 : 1;
  // A thread that loads eight elements at once still loads only a small part
  // of a row this long.
  if (columns > kMaxRegisterColumns && columns % 8 == 0)
    team.width = 8;
  team.chunks = columns / team.width;
  if (columns <= kMaxWarpColumns)
    team.threads = std::min<int64_t>(32, llvm::PowerOf2Ceil(team.chunks));
  else if (columns <= kMaxShortColumns)
    team.threads = std::max<int64_t>(128, llvm::PowerOf2Ceil(columns) / 16);
  else if (columns <= kMaxRegisterColumns)
    team.threads = 1024;
  else
    // While one block waits at the end of a pass another has work.
    team.threads = 512;
  team.slots = llvm::divideCeil(team.chunks, team.threads);
  return team;
}

Team rowsTeamFor(int64_t columns) {
  Team team = teamFor(columns);
  team.threads = std::max<int64_t>(team.threads, 32);
  team.slots = llvm::divideCeil(team.chunks, team.threads);
  return team;
}

RowGroups groupsFor(int64_t rows, int64_t columns) {
  // Enough blocks to fill a GPU, while partial sums stay a small part of the
  // traffic. Longer rows fill it by tiles, too.
  bool middle = columns > kMaxWarpColumns && columns <= 2048;
  int64_t chunks = teamFor(columns).chunks;
  RowGroups groups;
  // Half a warp, a warp or a block to a group.
  groups.perBlock = chunks <= 16 ? 8 : columns <= kMaxWarpColumns ? 4 : 1;
  // With only one tile of columns, a row alone keeps too few loads in flight,
  // so more blocks share the rows.
  groups.blocks = std::clamp<int64_t>(llvm::divideCeil(rows, middle ? 8 : 16),
                                      1, chunks <= 32 ? 1024 : 512);
  return groups;
}

//===----------------------------------------------------------------------===//
// RowSplit
//===----------------------------------------------------------------------===//

int64_t RowSplit::size(bool ofReduced) const {
  int64_t product = 1;
  for (auto [size, isReduced] : llvm::zip(shape, reduced))
    if (isReduced == ofReduced)
      product *= size;
  return product;
}

AffineExpr RowSplit::row(AffineExpr kept, AffineExpr summed) const {
  SmallVector<int64_t> keptShape, summedShape;
  for (auto [size, isReduced] : llvm::zip(shape, reduced))
    (isReduced ? summedShape : keptShape).push_back(size);
  SmallVector<Index> keptDigits = split(kept, keptShape);
  SmallVector<Index> summedDigits = split(summed, summedShape);
  SmallVector<Index> digits;
  size_t nextKept = 0, nextSummed = 0;
  for (bool isReduced : reduced)
    digits.push_back(isReduced ? summedDigits[nextSummed++]
                               : keptDigits[nextKept++]);
  return linearize(digits, shape, kept.getContext());
}

static RowSplit splitOf(const Root &root, const Nest &nest) {
  linalg::GenericOp op = root.reduction();
  SmallVector<int64_t> domain = op.getStaticLoopRanges();
  RowSplit split;
  unsigned cut = *findCut(domain, nest.columns);
  for (unsigned i = 0; i < cut; ++i) {
    split.shape.push_back(domain[i]);
    split.reduced.push_back(op.getIteratorTypesArray()[i] ==
                            utils::IteratorType::reduction);
  }
  return split;
}

//===----------------------------------------------------------------------===//
// LaunchPlan
//===----------------------------------------------------------------------===//

int64_t LaunchPlan::allocate(Type element, int64_t size) {
  int64_t offset = llvm::alignTo(scratchBytes, kScratchAlignment);
  scratchBytes =
      offset + size * (storageType(element).getIntOrFloatBitWidth() / 8);
  return offset;
}

const PartialSums *LaunchPlan::sumsOf(const Root &root) const {
  for (const PartialSums &partial : sums)
    if (partial.root == &root)
      return &partial;
  return nullptr;
}

void LaunchPlan::addSums(const Root &root, const RowSplit &split, int64_t count,
                         int64_t elements) {
  Type element = cast<RankedTensorType>(root.tensor.getType()).getElementType();
  sums.push_back(
      {&root, split, count, allocate(element, count * elements), elements});
}

static Launch makeLaunch(LaunchKind kind, unsigned nest,
                         ArrayRef<const Root *> roots) {
  Launch launch;
  launch.kind = kind;
  launch.nest = nest;
  launch.roots = llvm::to_vector(roots);
  return launch;
}

void LaunchPlan::addColumnSums(unsigned number, ArrayRef<const Root *> roots,
                               ArrayRef<const Root *> others, LaunchKind kind,
                               bool afterRows, const Nest &nest) {
  Launch launch = makeLaunch(kind, number, others);
  launch.split = splitOf(*roots.front(), nest);
  launch.afterRows = afterRows;
  llvm::append_range(launch.roots, roots);
  RowGroups groups = groupsFor(launch.split.summed(), nest.columns);
  Team team = rowsTeamFor(nest.columns);
  int64_t perThread = team.slots * team.width * roots.size();
  launch.sumsInShared =
      kind == LaunchKind::RowsAndColumns && perThread > kMaxSumsBesideRow &&
      perThread * team.threads * groups.perBlock * 4 <= kMaxSharedSums;
  if (groups.blocks > 1)
    for (const Root *root : roots)
      addSums(*root, launch.split, groups.blocks,
              launch.split.kept() * nest.columns);
  launches.push_back(std::move(launch));
}

/// Lets a block keep so many columns of all rows that it reads again, if they
/// fit.
static bool placeCache(Launch &launch, const Nest &nest, int64_t columns) {
  std::vector<CachedRow> cache;
  int64_t bytes = 0;
  for (Value argument : nest.readAgain) {
    Type element = cast<RankedTensorType>(argument.getType()).getElementType();
    cache.push_back({argument, bytes});
    bytes = llvm::alignTo(
        bytes + columns * (storageType(element).getIntOrFloatBitWidth() / 8),
        kScratchAlignment);
  }
  if (bytes > kMaxCacheBytes)
    return false;
  launch.cache = std::move(cache);
  launch.cachedColumns = columns;
  launch.sharedBytes = bytes;
  return true;
}

/// Lets a block keep rows that it reads again, or as much of their beginning as
/// fits.
void LaunchPlan::addCache(Launch &launch, const Nest &nest) {
  Team team = teamFor(nest.columns);
  if (team.isShort() || nest.readAgain.empty() ||
      placeCache(launch, nest, nest.columns))
    return;
  for (int64_t steps = team.fullSteps(); steps > 0; --steps)
    if (placeCache(launch, nest, steps * team.columnsPerStep()))
      return;
}

void LaunchPlan::planNest(const RowPlan &plan, unsigned number) {
  const Nest &nest = plan.nests[number];
  SmallVector<const Root *> elements, scalars, rows, others;
  // Sums over rows, by how they see the rows and as many as fit in registers.
  SmallVector<SmallVector<const Root *>> groups;
  Team team = teamFor(nest.columns);
  bool hasRowSums = false;
  auto isReducedRow = [](const Root *root) {
    return root->kind == RootKind::RowReduction ||
           root->kind == RootKind::RowAccumulation;
  };
  for (const Root &root : plan.roots)
    if (root.nest == number && isReducedRow(&root))
      hasRowSums = true;
  int64_t perThread = hasRowSums ? team.slots * team.width : team.width;
  size_t most = std::max<int64_t>(1, maxSumsOfThread(team) / perThread);
  for (const Root &root : plan.roots) {
    if (root.nest != number || root.rowTemporary)
      continue;
    if (root.kind != RootKind::ElementAccumulation) {
      others.push_back(&root);
      if (root.kind == RootKind::Element)
        elements.push_back(&root);
      else if (root.kind == RootKind::RowScalar)
        scalars.push_back(&root);
      else
        rows.push_back(&root);
      continue;
    }
    auto group = llvm::find_if(groups, [&](const auto &members) {
      return members.size() < most &&
             splitOf(*members.front(), nest) == splitOf(root, nest);
    });
    if (group == groups.end())
      groups.push_back({&root});
    else
      group->push_back(&root);
  }

  size_t firstLaunch = launches.size(), firstSums = sums.size();
  size_t done = 0;
  if (!hasRowSums) {
    if (!groups.empty())
      addColumnSums(number, groups[done++], elements, LaunchKind::Columns,
                    false, nest);
    else if (!elements.empty())
      launches.push_back(makeLaunch(LaunchKind::Elements, number, elements));
    if (!scalars.empty())
      launches.push_back(makeLaunch(LaunchKind::RowScalars, number, scalars));
  } else if (!groups.empty() && team.isShort() &&
             perThread <= maxSumsOfThread(team)) {
    addColumnSums(number, groups[done++], others, LaunchKind::RowsAndColumns,
                  false, nest);
  } else {
    launches.push_back(makeLaunch(LaunchKind::Rows, number, others));
    addCache(launches.back(), nest);
  }
  // What is left reads the values of rows from memory.
  if (done < groups.size())
    for (const Root *root : rows)
      if (!root->stored && root->kind == RootKind::RowReduction)
        scratch[root->tensor] = allocate(
            cast<RankedTensorType>(root->tensor.getType()).getElementType(),
            nest.rows);
  for (; done < groups.size(); ++done)
    addColumnSums(number, groups[done], {}, LaunchKind::Columns,
                  launches.size() > firstLaunch, nest);
  for (const Root *root : rows)
    if (root->kind == RootKind::RowAccumulation) {
      RowSplit split = splitOf(*root, nest);
      addSums(*root, split, split.summed(), split.kept());
    }
  if (sums.size() == firstSums)
    return;
  Launch finish = makeLaunch(LaunchKind::Sums, number, {});
  finish.sums.assign(sums.begin() + firstSums, sums.end());
  launches.push_back(std::move(finish));
}

LaunchPlan::LaunchPlan(const RowPlan &plan) {
  // Sixteen bytes of the widest tensor among the largest.
  int64_t most = 0, bytes = 4;
  auto look = [&](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || tensor.getNumElements() < most)
      return;
    int64_t own =
        storageType(tensor.getElementType()).getIntOrFloatBitWidth() / 8;
    bytes = tensor.getNumElements() > most ? own : std::max(own, bytes);
    most = tensor.getNumElements();
  };
  for (const Root &root : plan.roots) {
    look(root.tensor.getType());
    if (Operation *op = root.tensor.getDefiningOp())
      for (BlockArgument argument : op->getBlock()->getArguments())
        look(argument.getType());
    if (root.stored && root.result < 0) {
      auto type = cast<RankedTensorType>(root.tensor.getType());
      scratch[root.tensor] =
          allocate(type.getElementType(), type.getNumElements());
    }
  }
  width = bytes == 2 ? 8 : 4;
  for (const Nest &nest : plan.nests)
    most = std::max(most, nest.elements);
  isSmall = most < std::numeric_limits<int32_t>::max();
  for (unsigned number = 0; number < plan.nests.size(); ++number)
    planNest(plan, number);
  isSmall &= scratchBytes <= std::numeric_limits<int32_t>::max();
}

} // namespace pipewright::codegen
