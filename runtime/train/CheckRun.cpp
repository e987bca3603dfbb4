//===- CheckRun.cpp - What is wrong before any work is done ---------------===//

#include "runtime/train/CheckRun.h"
#include "runtime/core/Error.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/Dataset.h"
#include "runtime/train/Evaluate.h"
#include "runtime/train/Preflight.h"
#include "runtime/train/WeightFiles.h"

using namespace pipewright::runtime;

static void checkAmount(const Program &program, const Dataset &dataset,
                        const char *option) {
  const int64_t needed = program.batchMicroBatches() * program.microBatchSize;
  if (dataset.samples() < needed)
    fail(option, ": the data has ", dataset.samples(), " samples, but ",
         program.updates == 1
             ? std::string("one step takes ")
             : std::to_string(program.updates) + " steps together take ",
         needed);
}

void pipewright::runtime::checkRun(const Program &program,
                                   const Options &options) {
  if (!options.preflight.empty())
    return checkPreflight(options);
  checkEvaluation(program, options);
  checkWeights(program, options.weights);
  if (options.steps > 0) {
    const Dataset dataset(program, options.data, "--data");
    checkAmount(program, dataset, "--data");
    dataset.validate();
  }
  if (!options.evalData.empty()) {
    const Dataset dataset(program, options.evalData, "--eval-data");
    checkAmount(program, dataset, "--eval-data");
    dataset.validate();
  }
  // Gradients of one update are cleared before those of all stages are whole.
  if (!options.dumpGradients.empty() && program.updates > 1)
    fail("--dump-gradients: the schedule of this program updates the weights ",
         program.updates,
         " times in a step, so there is no moment at which "
         "all gradients are there; compile with another schedule");
  if (!options.predict.empty())
    Dataset(program, options.predict, "--predict", Dataset::Missing::Zeros)
        .validate();
  for (const std::string &path :
       {options.save, options.trace, options.dumpGradients})
    if (!path.empty() && options.steps > 0)
      AtomicFile probe(path);
}
