//===- ConfigurationTable.cpp - What a search found, as text --------------===//
//
// The best ways with what each loses to the first of them, for people, and all
// of them for programs.
//
//===----------------------------------------------------------------------===//

#include "codegen/plan/Plan.h"
#include "support/Text.h"
#include "tools/pipewright/ConfigurationSearch.h"
#include "tools/pipewright/PlanChoice.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace pipewright::tool {

/// Where one loses most of what it loses to the best.
static std::string lossOf(const Configuration &one, const Configuration &best) {
  const std::pair<double, const char *> losses[] = {
      {one.work - best.work, "work of the busiest rank"},
      {one.waiting - best.waiting, "waiting for other ranks"},
      {one.exposed - best.exposed, "sums that nothing hides"}};
  auto largest = *llvm::max_element(losses);
  if (!isShorterStep(best.step, one.step))
    return "";
  return llvm::formatv("{0} more, most of it {1}",
                       codegen::formatSeconds(one.step - best.step),
                       largest.second);
}

/// The method, without its argument.
llvm::StringRef ConfigurationSearch::cutOf(const Configuration &one) const {
  llvm::StringRef balance = one.balance;
  return (balance.empty() ? given["balance"] : balance).split(':').first;
}

void ConfigurationSearch::print(llvm::raw_ostream &os) const {
  constexpr size_t most = 10;
  os << "model " << text::printable(model) << ": "
     << codegen::count(wanted.workers, "worker") << ", "
     << codegen::count(wanted.batch, "sample") << " in a step";
  if (memoryLimit)
    os << ", at most " << codegen::formatBytes(*memoryLimit) << " on a rank";
  else if (hasLimit)
    os << ", at most the memory that ranks of --machine have";
  os << "\n"
     << planned.size() << " of "
     << planned.size() + alike + slower + tooLarge + impossible
     << " ways planned";
  if (alike > 0)
    os << ", " << alike
       << (alike > 1 ? " are the same programs" : " is the same program");
  if (slower > 0)
    os << ", " << slower << " cannot be faster";
  if (tooLarge > 0)
    os << ", " << tooLarge << " need more memory";
  if (impossible > 0)
    os << ", " << impossible << " are not possible";
  os << "; * no other is as fast with less memory\n\n"
     << llvm::formatv("  {0,-18} {1,-6} {2,-14} {3,6} {4,-5} {5,-10} {6,10} "
                      "{7,10}\n",
                      "ranks x replicas", "ZeRO", "micro-batches", "stages",
                      "cut", "recomputed", "step", "arena");
  const Configuration &best = planned.front();
  for (const Configuration &one : llvm::ArrayRef(planned).take_front(most)) {
    std::string loss = lossOf(one, best);
    os << llvm::formatv(
              "{0} {1,-18} {2,-6} {3,-14} {4,6} {5,-5} {6,-10} {7,10} {8,10}",
              one.isOnFront ? "*" : " ",
              llvm::formatv("{0} x {1}", one.ranks, one.replicas).str(),
              one.zero,
              llvm::formatv("{0} of {1}", one.microBatches, one.microBatchSize)
                  .str(),
              one.stages, cutOf(one), one.memoryWords(),
              codegen::formatSeconds(one.step),
              codegen::formatBytes(one.arenaBytes))
       << (loss.empty() ? "" : "  ") << loss << "\n";
  }
  if (planned.size() > most)
    os << "  and " << planned.size() - most << " more\n";
  os << "\nthe fastest: " << optionsOf(best) << "\n";
}

llvm::json::Value ConfigurationSearch::toJson() const {
  llvm::json::Array all;
  for (const Configuration &one : planned)
    all.push_back(llvm::json::Object{{"ranks", one.ranks},
                                     {"replicas", one.replicas},
                                     {"zero", one.zero},
                                     {"micro_batches", one.microBatches},
                                     {"micro_batch_size", one.microBatchSize},
                                     {"schedule", one.schedule},
                                     {"stages", one.stages},
                                     {"remat", one.remat},
                                     {"balance", cutOf(one)},
                                     {"recomputes_early", one.hasEarlyTasks()},
                                     {"offloads", one.hostBytes > 0},
                                     {"process_map", one.processMap},
                                     {"options", optionsOf(one)},
                                     {"host_bytes", one.hostBytes},
                                     {"step_seconds", one.step},
                                     {"work_seconds", one.work},
                                     {"waiting_seconds", one.waiting},
                                     {"exposed_seconds", one.exposed},
                                     {"arena_bytes", one.arenaBytes},
                                     {"is_on_front", one.isOnFront}});
  return llvm::json::Object{
      {"workers", wanted.workers},
      {"batch", wanted.batch},
      {"memory_limit", memoryLimit ? llvm::json::Value(*memoryLimit)
                                   : llvm::json::Value(nullptr)},
      {"planned", std::move(all)},
      {"same_programs", alike},
      {"slower", slower},
      {"too_large", tooLarge},
      {"impossible", impossible}};
}

} // namespace pipewright::tool
