//===- Levels.cpp - The levels by name, and what each promises ------------===//
//
// See Levels.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipelines/Levels.h"

#include "dialects/pipe/PipeDialect.h"
#include "passes/nn/Passes.h"
#include "passes/pipe/Passes.h"

using namespace mlir;

namespace pipewright {

llvm::ArrayRef<std::pair<llvm::StringRef, Level>> namesOfLevels() {
  static constexpr std::pair<llvm::StringRef, Level> names[] = {
      {"import", Level::Import},
      {"staged", Level::Staged},
      {"unrolled", Level::Unrolled},
      {"scheduled", Level::Scheduled},
      {"allocated", Level::Allocated}};
  return names;
}

llvm::StringRef nameOf(Level level) {
  return namesOfLevels()[static_cast<size_t>(level)].first;
}

Level levelOf(ModuleOp module) {
  auto has = [&]<class Op>(std::type_identity<Op>) {
    return !module.getOps<Op>().empty();
  };
  if (has(std::type_identity<pipe::ArenaOp>()))
    return Level::Allocated;
  if (has(std::type_identity<pipe::RankOp>()))
    return Level::Scheduled;
  if (has(std::type_identity<pipe::StepOp>()))
    return Level::Unrolled;
  return has(std::type_identity<pipe::StageOp>()) ? Level::Staged
                                                  : Level::Import;
}

void buildVerification(OpPassManager &pm, Level level, bool hasStreams) {
  if (level == Level::Import) {
    pm.addPass(nn::createNNVerifyImported());
    return;
  }
  pm.addPass(pipe::createPipeVerifyStaged());
  if (level == Level::Unrolled)
    pm.addPass(pipe::createPipeVerifyUnrolled());
  if (level >= Level::Scheduled)
    pm.addPass(pipe::createPipeVerifySchedule());
  if (level == Level::Allocated) {
    pm.addPass(pipe::createPipeVerifyAllocated());
    if (hasStreams)
      pm.addPass(pipe::createPipeVerifyStreams());
  }
}

} // namespace pipewright
