//===- Fingerprints.cpp - What files of a run hold ------------------------===//

#include "runtime/train/Fingerprints.h"
#include "runtime/io/Dataset.h"
#include "runtime/io/WeightSource.h"
#include "runtime/net/Agreement.h"

using namespace pipewright::runtime;

static constexpr char remedy[] =
    "give every process a copy of the same file, or the same file";

static void checkData(const Program &program,
                      const std::vector<DataSpec> &specs, const char *option,
                      Transport &transport) {
  if (specs.empty())
    return;
  const Dataset data(program, specs, option, Dataset::Missing::Zeros);
  for (int64_t input = 0; input < static_cast<int64_t>(program.inputs.size());
       ++input)
    checkAgreement(transport, std::to_string(data.fingerprint(input)),
                   "content for " + std::string(option) + " " +
                       program.inputs[input].name,
                   remedy);
}

void pipewright::runtime::checkSameFiles(const Program &program,
                                         const Options &options,
                                         Transport &transport) {
  const std::string &weights = options.weights.path;
  checkAgreement(transport,
                 options.weights.isRandom()
                     ? weights
                     : std::to_string(WeightSource(weights).fingerprint()),
                 "initial weights (" + weights + ")", remedy);
  if (options.steps > 0)
    checkData(program, options.data, "--data", transport);
  checkData(program, options.evalData, "--eval-data", transport);
  checkData(program, options.predict, "--predict", transport);
}
