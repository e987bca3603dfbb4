//===- LevelText.cpp - A model that is text of a level --------------------===//
//
// See LevelText.h. What was decided before the import level's text was printed,
// the command line decides anew; text of later levels was made with it.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/LevelText.h"

#include "codegen/target/Target.h"
#include "dialects/pipe/PipeDialect.h"
#include "frontends/Frontends.h"
#include "passes/step/CostModel.h"
#include "tools/pipewright/Messages.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using pipewright::pipe::PipeDialect;

namespace pipewright::tool {

/// The target and the precision that text was made for, by the machine that its
/// decisions were made for; none if no target has that.
static std::optional<std::pair<const codegen::Target *, Precision>>
findMachine(ModuleOp module) {
  Attribute machine = pipe::programOf(module).machine;
  if (!machine)
    return std::nullopt;
  auto isFor = [&](const codegen::Target &target, Precision precision) {
    if (auto name = dyn_cast<StringAttr>(machine))
      return name.getValue() == target.machineName(precision);
    return machine ==
           machineAttribute(target.machine(precision), module.getContext());
  };
  bool hasBF16 = module
                     .walk([](Operation *op) {
                       for (Type type : op->getResultTypes())
                         if (getElementTypeOrSelf(type).isBF16())
                           return WalkResult::interrupt();
                       return WalkResult::advance();
                     })
                     .wasInterrupted();
  for (const codegen::Target *target : codegen::allTargets())
    for (Precision precision : target->precisions())
      if ((precision == Precision::BF16) == hasBF16 &&
          isFor(*target, precision))
        return std::pair(target, precision);
  return std::nullopt;
}

std::map<std::string, std::string> LevelText::options() const {
  std::map<std::string, std::string> all;
  ModuleOp module = *model.module;
  if (level == Level::Import)
    return all;
  if (auto found = findMachine(module)) {
    all["target"] = found->first->name().str();
    all["precision"] = nameOf(found->second).str();
  }
  // From here on they are in the ops themselves.
  if (level >= Level::Scheduled)
    return all;
  pipe::ProgramFields program = pipe::programOf(module);
  if (program.ranks)
    all["ranks"] = std::to_string(*program.ranks);
  if (program.microBatches)
    all["micro-batches"] = std::to_string(*program.microBatches);
  if (program.replicas > 1)
    all["data-parallel"] = std::to_string(program.replicas);
  if (program.replicas > 1 ||
      program.processMap != runtime::ProcessMap::Replicas)
    all["process-map"] = nameOf(program.processMap);
  if (program.zero > 0)
    all["zero"] = std::to_string(program.zero);
  if (program.schedule)
    all["schedule"] = program.schedule.str();
  int64_t stages =
      llvm::count_if(module.getOps<pipe::StageOp>(), [](pipe::StageOp stage) {
        return !stage.getMirrorsAttr();
      });
  all["stages"] = std::to_string(stages);
  return all;
}

static void removeDecisions(ModuleOp module) {
  for (NamedAttribute attribute :
       llvm::to_vector(module->getDiscardableAttrs()))
    if (isa_and_nonnull<PipeDialect>(attribute.getNameDialect()))
      module->removeDiscardableAttr(attribute.getName());
}

llvm::Expected<std::shared_ptr<LevelText>> readLevelText(StringRef path) {
  if (!frontend::isLevelText(path))
    return nullptr;
  auto text = std::make_shared<LevelText>();
  text->context = std::make_shared<MLIRContext>();
  text->context->loadDialect<nn::NNDialect, PipeDialect, func::FuncDialect>();
  text->path = path.str();
  ScopedDiagnosticHandler handler(text->context.get(), [](Diagnostic &each) {
    printDiagnostic(each);
    return success();
  });
  frontend::ImportOptions options;
  options.modelPath = path.str();
  auto model = frontend::importModel(options, *text->context);
  if (failed(model))
    return codegen::diagnosed();
  text->model = std::move(*model);
  text->level = levelOf(*text->model.module);
  if (text->level == Level::Import)
    removeDecisions(*text->model.module);
  if (text->level >= Level::Scheduled)
    text->mesh = pipe::programOf(*text->model.module).mesh();
  return text;
}

} // namespace pipewright::tool
