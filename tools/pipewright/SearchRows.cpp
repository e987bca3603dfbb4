//===- SearchRows.cpp - The options of --search ---------------------------===//

#include "tools/pipewright/ConfigurationSearch.h"

using namespace mlir;

namespace pipewright::tool {

using enum OptionSpelling::Kind;

static constexpr int64_t kMostWorkers = 1024;

static ReadOption<SearchOptions> number(int64_t SearchOptions::*place,
                                        int64_t most, const char *what) {
  return [=](const OptionSpelling &row, const OptionValues &given,
             SearchOptions &options) -> llvm::Error {
    if (!given.isGiven(row.name))
      return llvm::Error::success();
    if (llvm::Error error =
            option::readCount(row.name, given[row.name], options.*place))
      return error;
    if (options.*place > most)
      return option::fail("--", row.name, " tries at most ", most, " ", what,
                          ", but got ", options.*place);
    return llvm::Error::success();
  };
}

static llvm::Error readWorkers(const OptionValues &given,
                               SearchOptions &options) {
  if (options.workers > 0 || !given.isGiven("ranks"))
    return llvm::Error::success();
  int64_t ranks = 0, replicas = 1;
  if (llvm::Error error = option::readCount("ranks", given["ranks"], ranks))
    return error;
  options.ranksAreWorkers = !given.isGiven("data-parallel");
  if (!options.ranksAreWorkers)
    if (llvm::Error error = option::readCount("data-parallel",
                                              given["data-parallel"], replicas))
      return error;
  if (ranks > kMostWorkers / replicas)
    return option::fail("--search tries at most ", kMostWorkers,
                        " workers, but got --ranks ", ranks,
                        options.ranksAreWorkers
                            ? std::string()
                            : " --data-parallel " + std::to_string(replicas));
  options.workers = ranks * replicas;
  return llvm::Error::success();
}

static llvm::Error readSearch(const OptionSpelling &row,
                              const OptionValues &given,
                              SearchOptions &options) {
  options.isWanted = given.isSet(row.name);
  if (!options.isWanted && options.batch > 0)
    return option::fail("--batch goes with --", row.name,
                        "; else give --micro-batches and --micro-batch-size");
  if (!options.isWanted && !options.pareto.empty())
    return option::fail("--pareto goes with --", row.name);
  if (!options.isWanted && options.tune > 0)
    return option::fail("--tune goes with --", row.name);
  return llvm::Error::success();
}

const std::vector<OptionRow<SearchOptions>> &searchRows() {
  static const std::vector<OptionRow<SearchOptions>> rows =
      under<OptionRow<SearchOptions>>(
          Heading::Pipeline,
          {{{"workers", "N",
             "plan: one table of all ways to make N workers ranks and "
             "replicas, with and without --zero; --micro-batches are those of "
             "the whole step then. With --search and without it, --ranks N "
             "are the workers, in one or several pipelines"},
            number(&SearchOptions::workers, kMostWorkers, "workers")},
           {{"batch", "B", "The samples of a step of all replicas (--search)"},
            number(&SearchOptions::batch, 1 << 20, "samples")},
           {{"tune", "N",
             "compile, train: run programs of the best N for some steps on "
             "this machine and take the fastest (--search)"},
            number(&SearchOptions::tune, 64, "programs")},
           {{"pareto", "OUT.svg",
             "Draw the memory and the step of all ways, in place of leaving "
             "out what cannot be the fastest (--search)"},
            option::file(&SearchOptions::pareto)},
           {{.name = "search",
             .help = "Choose --ranks, --data-parallel, --zero, "
                     "--micro-batch-size, --micro-batches, --schedule, "
                     "--loops and --remat for --workers and --batch: the "
                     "fastest of all that fit --memory-limit. What is given "
                     "stays as it is; --batch gives --micro-batches",
             .kind = Flag},
            readSearch}});
  return rows;
}

llvm::Expected<SearchOptions> readSearchOptions(const OptionValues &given,
                                                const OptionValues &ofModel) {
  auto options = readOptions<SearchOptions>(searchRows(), given);
  if (!options || !options->isWanted)
    return options;
  if (llvm::Error error = readWorkers(ofModel, *options))
    return std::move(error);
  if (options->workers == 0 || options->batch == 0)
    return option::fail("--search expects --workers N (or --ranks N) and "
                        "--batch B, the samples of a step");
  return options;
}

} // namespace pipewright::tool
