//===- FormKernels.cpp - turn groups of ops into kernels ------------------===//
//
// Moves each group that KernelGroups.cpp finds into a function, shares equal
// functions, and calls them by nn.launch.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"
#include "passes/nn/kernels/KernelGroups.h"

#include "dialects/nn/NNLocation.h"
#include "dialects/nn/NNOps.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNFORMKERNELS
#include "passes/nn/Passes.h.inc"

//===----------------------------------------------------------------------===//
// Running statistics
//===----------------------------------------------------------------------===//

/// momentum * running + (1 - momentum) * scale * batch, as ops.
static void updateRunning(OpBuilder &b, Location loc, FlatSymbolRefAttr weight,
                          Value batch, double momentum, double scale) {
  Value running = ParameterOp::create(b, loc, batch.getType(), weight);
  Value kept = MulOp::create(b, loc, running, createScalar(b, loc, momentum));
  Value share = createScalar(b, loc, (1.0 - momentum) * scale);
  Value fresh = MulOp::create(b, loc, batch, share);
  Value sum = AddOp::create(b, loc, kept, fresh);
  AssignStateOp::create(b, loc, weight, sum,
                        b.getF32FloatAttr(static_cast<float>(momentum)));
}

/// Kernels have no effects: the update of running statistics becomes ops.
static void splitRunningStatistics(Block &body) {
  for (auto norm : llvm::make_early_inc_range(body.getOps<BatchNormOp>())) {
    if (!norm.getRunningMeanAttr())
      continue;
    OpBuilder b(norm->getContext());
    b.setInsertionPointAfter(norm);
    double momentum = norm.getMomentum().convertToDouble();
    updateRunning(b, norm.getLoc(), norm.getRunningMeanAttr(), norm.getMean(),
                  momentum, 1.0);
    double count = double(norm.getX().getType().getNumElements()) /
                   norm.getMean().getType().getNumElements();
    updateRunning(b, norm.getLoc(), norm.getRunningVarianceAttr(),
                  norm.getVariance(), momentum,
                  norm.getSampleVariance() ? count / (count - 1.0) : 1.0);
    norm.dropEffects();
  }
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// What the op contributes to a kernel's name; nothing if it says little.
static StringRef nameOf(Operation *op) {
  if (isLeaf(op) || isa<CastOp, ViewOpInterface, BroadcastToOp>(op))
    return "";
  if (isa<AddOp>(op))
    for (Value operand : op->getOperands()) {
      auto type = cast<RankedTensorType>(operand.getType());
      auto result = cast<RankedTensorType>(op->getResult(0).getType());
      if (type.getRank() == 1 && result.getRank() > 1)
        return "bias";
    }
  return op->getName().stripDialect();
}

static std::string nameKernel(ArrayRef<Operation *> ops) {
  constexpr size_t kMaxParts = 4;
  llvm::SetVector<StringRef> parts;
  for (Operation *op : ops)
    if (StringRef name = nameOf(op); !name.empty())
      parts.insert(name);
  if (parts.empty())
    parts.insert(ops.back()->getName().stripDialect());
  // An op beside its own gradient reads as one.
  constexpr StringLiteral backward = "_backward";
  SmallVector<std::string> kept;
  for (StringRef part : parts) {
    if (part.ends_with(backward) &&
        parts.contains(part.drop_back(backward.size())))
      continue;
    bool hasGradient = parts.contains((part + backward).str());
    kept.push_back(hasGradient ? (part + "_and_gradient").str() : part.str());
  }
  // The beginning says what it is, the end what it is for.
  if (kept.size() > kMaxParts)
    kept.erase(kept.begin() + kMaxParts - 1, kept.end() - 1);
  std::string name = llvm::join(kept, "_");
  RankedTensorType widest;
  for (Operation *op : ops)
    for (Value result : op->getResults()) {
      auto type = cast<RankedTensorType>(result.getType());
      if (!widest || type.getNumElements() > widest.getNumElements())
        widest = type;
    }
  name += "_";
  if (widest.getRank() == 0)
    name += "scalar";
  llvm::raw_string_ostream os(name);
  llvm::interleave(widest.getShape(), os, "x");
  return name;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {

class KernelFormer {
public:
  explicit KernelFormer(ModuleOp kernels) : kernels(kernels), symbols(kernels) {
    for (auto kernel : kernels.getOps<func::FuncOp>())
      known[hashOf(kernel)].push_back(kernel);
  }

  void form(ArrayRef<Operation *> ops);

private:
  /// Equal for functions that differ in names and locations only.
  static llvm::hash_code hashOf(func::FuncOp kernel);
  /// One of those, which the module has already.
  func::FuncOp findEqual(func::FuncOp kernel) const;

  ModuleOp kernels;
  SymbolTable symbols;
  /// By their hashes.
  std::map<size_t, SmallVector<func::FuncOp, 1>> known;
};

} // namespace

llvm::hash_code KernelFormer::hashOf(func::FuncOp kernel) {
  llvm::hash_code hash = hash_value(kernel.getFunctionType());
  for (Operation &op : kernel.getBody().front())
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(
                                     &op, OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::IgnoreLocations));
  return hash;
}

func::FuncOp KernelFormer::findEqual(func::FuncOp kernel) const {
  auto found = known.find(hashOf(kernel));
  if (found == known.end())
    return nullptr;
  for (func::FuncOp other : found->second)
    if (other.getFunctionType() == kernel.getFunctionType() &&
        OperationEquivalence::isRegionEquivalentTo(
            &kernel.getBody(), &other.getBody(),
            OperationEquivalence::IgnoreLocations))
      return other;
  return nullptr;
}

/// True if an op that is not `inside` the kernel uses the value, also through
/// views that are cloned into the kernel.
static bool usedOutside(Value value, const SetVector<Operation *> &inside) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (!inside.contains(user))
      return true;
    return isa<ViewOpInterface>(user) &&
           usedOutside(user->getResult(0), inside);
  });
}

/// Erases views and leaves that nobody uses.
static void eraseDead(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if ((isa<ViewOpInterface, SubviewOp>(op) || isLeaf(&op)) && op.use_empty())
      op.erase();
}

void KernelFormer::form(ArrayRef<Operation *> ops) {
  llvm::SmallPtrSet<Operation *, 16> members(ops.begin(), ops.end());
  // Views between members and leaves are cloned into the kernel; views of what
  // comes from outside stay there.
  SetVector<Value> inputs;
  SetVector<Operation *> inside;
  auto enter = [&](auto &self, Value value) -> void {
    Operation *producer = value.getDefiningOp();
    if (producer && members.contains(producer))
      return;
    Operation *source = stripReshapes(value).getDefiningOp();
    bool internal = source && (members.contains(source) || isLeaf(source));
    if (!internal) {
      inputs.insert(value);
      return;
    }
    for (Value operand : producer->getOperands())
      self(self, operand);
    inside.insert(producer);
  };
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      enter(enter, operand);
    inside.insert(op);
  }

  SmallVector<Value> outputs;
  for (Operation *op : ops) {
    RowSpace space = cast<KernelOpInterface>(op).getRowSpace();
    for (auto [result, form] : llvm::zip_equal(op->getResults(), space.results))
      if (form == ResultForm::WholeInMemory || usedOutside(result, inside))
        outputs.push_back(result);
  }
  if (outputs.empty())
    outputs.push_back(ops.back()->getResult(0));

  OpBuilder builder(kernels.getContext());
  Location loc = ops.back()->getLoc();
  SmallVector<Type> inputTypes =
      llvm::map_to_vector(inputs, [](Value value) { return value.getType(); });
  SmallVector<Type> outputTypes =
      llvm::map_to_vector(outputs, [](Value value) { return value.getType(); });
  auto kernel = func::FuncOp::create(
      loc, nameKernel(ops), builder.getFunctionType(inputTypes, outputTypes));
  kernel.setPrivate();
  Block *entry = kernel.addEntryBlock();
  builder.setInsertionPointToEnd(entry);
  IRMapping mapping;
  for (auto [input, argument] : llvm::zip(inputs, entry->getArguments()))
    mapping.map(input, argument);
  for (Operation *op : inside)
    builder.clone(*op, mapping);
  SmallVector<Value> returned = llvm::map_to_vector(
      outputs, [&](Value value) { return mapping.lookup(value); });
  func::ReturnOp::create(builder, loc, returned);

  if (func::FuncOp equal = findEqual(kernel)) {
    kernel->erase();
    kernel = equal;
  } else {
    known[hashOf(kernel)].push_back(kernel);
    symbols.insert(kernel);
  }
  builder.setInsertionPoint(ops.back());
  auto reference =
      SymbolRefAttr::get(kernels.getSymNameAttr(),
                         FlatSymbolRefAttr::get(kernel.getSymNameAttr()));
  SmallVector<Location> made = llvm::map_to_vector(
      outputs, [](Value output) { return output.getLoc(); });
  auto launch = LaunchOp::create(builder, withResults(loc, made), outputTypes,
                                 reference, inputs.getArrayRef());
  for (auto [from, to] : llvm::zip(outputs, launch.getResults()))
    from.replaceAllUsesWith(to);
  // Views inside the group that nobody else uses go first.
  for (Operation *op : llvm::reverse(inside.getArrayRef())) {
    if (members.contains(op) || (op->use_empty() && !isLeaf(op)))
      op->erase();
  }
}

/// Leaves that an op needs as a tensor in memory.
static SmallVector<Operation *> leavesInMemory(Block &body) {
  SmallVector<Operation *> leaves;
  for (Operation &op : body) {
    if (!isLeaf(&op))
      continue;
    SmallVector<Operation *> users(op.getUsers());
    bool needed = false;
    while (!users.empty()) {
      Operation *user = users.pop_back_val();
      if (isa<ViewOpInterface>(user)) {
        llvm::append_range(users, user->getUsers());
      } else {
        needed = true;
      }
    }
    if (needed)
      leaves.push_back(&op);
  }
  return leaves;
}

/// Groups the compiled ops of a body into functions and replaces each group by
/// an `nn.launch`.
static LogicalResult formKernels(Block &body, KernelFormer &former) {
  eraseDead(body);
  splitRunningStatistics(body);
  for (const KernelGroup &group : groupOps(body))
    former.form(group.ops);
  for (Operation *leaf : leavesInMemory(body))
    former.form(leaf);
  eraseDead(body);
  // A launch stands where the last op of its group stood; what used the first
  // ones may stand before it.
  if (!sortTopologically(&body))
    return body.getParentOp()->emitOpError(
        "has kernels that depend on each other");
  return success();
}

namespace {
struct FormKernels : impl::NNFormKernelsBase<FormKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<Block *> bodies;
    module.walk<WalkOrder::PreOrder>([&](Block *block) {
      if (isa<ModuleOp>(block->getParentOp()) && block->getParentOp() != module)
        return WalkResult::skip();
      if (llvm::any_of(*block, llvm::IsaPred<KernelOpInterface>))
        bodies.push_back(block);
      return WalkResult::advance();
    });
    if (bodies.empty())
      return;
    auto kernels = module.lookupSymbol<ModuleOp>("kernels");
    if (!kernels) {
      OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
      kernels = ModuleOp::create(builder, module.getLoc(), "kernels");
    }
    KernelFormer former(kernels);
    for (Block *body : bodies)
      if (failed(formKernels(*body, former)))
        return signalPassFailure();
  }
};
} // namespace
} // namespace pipewright::nn
