//===- OpCosts.cpp - What each op of a model comes to ---------------------===//

#include "passes/step/OpCosts.h"

#include "dialects/nn/NNLocation.h"
#include "dialects/pipe/PipeDialect.h"
#include "passes/step/CostModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace pipewright {

/// In place of a file's name: lines are numbers of ops.
static constexpr llvm::StringLiteral kNumbered = "<op of the model>";

int64_t numberOps(ModuleOp imported) {
  auto function = imported.lookupSymbol<func::FuncOp>("model");
  if (!function || function.isExternal())
    return 0;
  MLIRContext *context = imported.getContext();
  unsigned number = 0;
  for (Operation &op : function.getBody().front())
    op.setLoc(FusedLoc::get(
        context,
        {op.getLoc(), FileLineColLoc::get(context, kNumbered, number++, 0)}));
  return number;
}

using Numbers = llvm::SmallSetVector<int64_t, 4>;

static void findNumbers(Location loc, Numbers &numbers) {
  loc->walk([&](Location part) {
    if (auto line = dyn_cast<FileLineColLoc>(part);
        line && line.getFilename() == kNumbered)
      numbers.insert(line.getLine());
    return WalkResult::advance();
  });
}

namespace {

class OpCosts {
public:
  OpCosts(int64_t ops, const MachineModel &machine)
      : costs(ops), machine(machine) {}

  void add(pipe::StageOp stage);
  std::vector<OpCost> take() { return std::move(costs); }

private:
  void share(Location loc, double OpCost::*place, double amount);
  void addSeconds(Operation *body, double OpCost::*place);
  void addKept(ArrayRef<Value> values, double OpCost::*place);

  std::vector<OpCost> costs;
  const MachineModel &machine;
  SymbolTableCollection kernels;
};

} // namespace

void OpCosts::share(Location loc, double OpCost::*place, double amount) {
  Numbers numbers;
  findNumbers(loc, numbers);
  for (int64_t number : numbers)
    if (number < static_cast<int64_t>(costs.size()))
      costs[number].*place += amount / static_cast<double>(numbers.size());
}

void OpCosts::addSeconds(Operation *body, double OpCost::*place) {
  if (!body)
    return;
  Block &block = body->getRegion(0).front();
  for (auto op = block.begin(); op != block.end(); ++op)
    share(
        op->getLoc(), place,
        workOf(llvm::make_range(op, std::next(op)), machine, kernels).seconds);
}

void OpCosts::addKept(ArrayRef<Value> values, double OpCost::*place) {
  for (Value value : values)
    if (auto type = dyn_cast<RankedTensorType>(value.getType());
        type && value.getDefiningOp())
      share(nn::locationOf(value), place,
            static_cast<double>(pipe::byteSize(type)));
}

void OpCosts::add(pipe::StageOp stage) {
  addSeconds(stage.getForward(), &OpCost::forward);
  addSeconds(stage.getBackward(), &OpCost::backward);
  addSeconds(stage.getInputGradient(), &OpCost::inputGradient);
  addSeconds(stage.getWeightGradient(), &OpCost::weightGradient);
  addSeconds(stage.getRecompute(), &OpCost::recompute);
  addKept(keptForBackward(stage), &OpCost::keptBytes);
  addKept(keptForWeights(stage), &OpCost::weightKeptBytes);
}

std::vector<OpCost> costsOfOps(ModuleOp staged, int64_t ops,
                               const MachineModel &machine) {
  OpCosts costs(ops, machine);
  for (auto stage : staged.getOps<pipe::StageOp>())
    costs.add(stage);
  return costs.take();
}

} // namespace pipewright
