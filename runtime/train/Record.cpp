//===- Record.cpp - A step that is kept, to be run again ------------------===//

#include "runtime/train/Record.h"
#include "runtime/core/Error.h"
#include "runtime/core/ExitCode.h"
#include "runtime/io/CheckpointFolder.h"
#include "runtime/io/Npy.h"
#include "runtime/net/Gather.h"
#include "runtime/rank/Worker.h"
#include "runtime/train/Findings.h"

#include <cstdio>
#include <filesystem>

using namespace pipewright::runtime;

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

bool Record::isDue(int64_t done) const {
  const int64_t first = done - rank.wholeProgram().updates;
  return first < options.recordStep && options.recordStep <= done;
}

void Record::writeInputs(const Dataset &data, const Batches &batches) {
  const Program &program = rank.wholeProgram();
  for (int64_t i = 0; i < static_cast<int64_t>(program.inputs.size()); ++i) {
    if (!program.inputs[i].isData())
      continue;
    const InputSlot &slot = data.slot(i);
    const int64_t samples = slot.batched ? record.samples : 1;
    std::vector<char> values(samples * slot.sampleBytes());
    for (int64_t s = 0; s < samples; ++s)
      data.read(i, batches.sampleAt(s), values.data() + s * slot.sampleBytes());
    std::vector<int64_t> shape = slot.sampleShape;
    if (slot.batched)
      shape.insert(shape.begin(), samples);
    const std::string file = "input-" + std::to_string(i) + ".npy";
    writeNpy(folder + "/" + file, program.inputs[i].type, shape, values.data());
    record.inputs.push_back({program.inputs[i].name, file});
  }
}

/// Rank 0 writes what is not a rank's own.
bool Record::anyFailed() {
  return gatherNumbers(rank.transport(),
                       {static_cast<double>(!failure.empty())})[0][0] != 0;
}

void Record::begin(int64_t stepsBefore, int64_t skipped, const Dataset &data,
                   const Batches &batches,
                   const std::vector<float> &learningRates) {
  const Program &program = rank.wholeProgram();
  folder =
      options.recordFolder + "/record-" + std::to_string(options.recordStep);
  record = {.model = program.name,
            .step = stepsBefore,
            .seed = options.seed,
            .learningRates = learningRates,
            .clipNorm = options.clipNorm,
            .skipsNan = options.skipsNan,
            .skipped = skipped,
            .microBatchSize = program.microBatchSize,
            .samples = batches.batchSamples(),
            .threadsPerRank = rank.threads(),
            .plan = program.planHash(),
            .inputs = {},
            .losses = {},
            .results = {}};
  failure.clear();
  digest.reset();
  if (rank.transport().rank() == 0)
    try {
      std::filesystem::create_directories(folder);
      writeInputs(data, batches);
      writeStepRecord(folder, record);
    } catch (const std::exception &error) {
      failure = error.what();
    }
  if (anyFailed())
    return;
  Options into = options;
  into.checkpoint = folder;
  Checkpoints state(into, rank, factory);
  failure = state.keepNow({.step = stepsBefore});
}

void Record::run(const std::function<void()> &step) {
  digest = digestOf(rank, step);
}

std::string Record::finish(const std::vector<double> &losses) {
  const std::vector<std::string> texts = gatherTexts(
      rank.transport(),
      textOf(StepResults{resultsOf(rank, *digest), digest->entries()}));
  digest.reset();
  if (failure.empty())
    try {
      for (const std::string &text : texts)
        record.results.push_back(stepResultsOf(text));
      record.losses = losses;
      if (rank.transport().rank() == 0)
        writeStepRecord(folder, record);
    } catch (const std::exception &error) {
      failure = error.what();
    }
  return failure.empty()
             ? "recorded   step " + std::to_string(options.recordStep) +
                   " in '" + folder + "'; --replay " + folder + " runs it again"
             : "warning: step " + std::to_string(options.recordStep) +
                   " could not be recorded: " + failure;
}

//===----------------------------------------------------------------------===//
// Running it again
//===----------------------------------------------------------------------===//

void pipewright::runtime::followRecord(Options &options,
                                       const Program &program) {
  const StepRecord record = readStepRecord(options.replay);
  const int64_t samples = program.batchMicroBatches() * program.microBatchSize;
  if (record.microBatchSize != program.microBatchSize ||
      record.samples != samples)
    fail("--replay: '", options.replay, "' is of ",
         record.samples / std::max<int64_t>(1, record.microBatchSize),
         " micro-batches of ", record.microBatchSize, " samples, but this ",
         "program takes ", program.batchMicroBatches(), " of ",
         program.microBatchSize);
  constexpr int64_t maxSteps = INT64_MAX / 2;
  if (record.step > maxSteps || record.step % program.updates != 0)
    fail("--replay: '", options.replay, "' begins behind step ", record.step,
         ", where this program begins no step");
  if (static_cast<int64_t>(record.learningRates.size()) != program.updates)
    fail("--replay: '", options.replay, "' is of ", record.learningRates.size(),
         " steps that run together, but this program runs ", program.updates);
  auto clips = [](double norm) {
    return norm > 0 ? "clips gradients" : "does not clip gradients";
  };
  if ((record.clipNorm > 0) != (program.optimizer.clipNorm > 0))
    fail("--replay: '", options.replay, "' is of a program that ",
         clips(record.clipNorm), ", but this one ",
         clips(program.optimizer.clipNorm));
  options.clipNorm = record.clipNorm;
  options.skipsNan = record.skipsNan;
  for (const StepRecord::Input &input : record.inputs)
    options.data.push_back({input.name, options.replay + "/" + input.file});
  options.seed = record.seed;
  options.shuffle = false;
  options.steps = record.step + program.updates;
  options.save.clear();
  if (options.threadsPerRank == 0)
    options.threadsPerRank = record.threadsPerRank;
}

/// Throws an Error unless the entries of a record are those of this program.
static void checkEntries(const StepDigest &recorded, const StepDigest &now,
                         const std::string &folder) {
  const auto &a = recorded.entries(), &b = now.entries();
  bool isSame = a.size() == b.size();
  for (size_t i = 0; isSame && i < a.size(); ++i)
    isSame = a[i].kind == b[i].kind && a[i].place == b[i].place &&
             a[i].number == b[i].number;
  if (!isSame)
    fail("'", folder, "' is not what this program has recorded: its lines ",
         "are of other messages or tensors");
}

/// On rank 0: what differs of what a step gives whatever the plan.
static std::string differenceByName(Worker &rank, const StepRecord &record,
                                    const StepDigest &now) {
  const std::vector<std::string> texts = gatherTexts(
      rank.transport(), textOf(StepResults{resultsOf(rank, now), {}}));
  std::map<std::string, uint64_t> then, here;
  for (const StepResults &each : record.results)
    then.insert(each.named.begin(), each.named.end());
  for (const std::string &text : texts)
    here.merge(stepResultsOf(text).named);
  std::string first;
  int64_t differing = 0;
  for (const auto &[name, hash] : here) {
    const auto found = then.find(name);
    if (found != then.end() && found->second == hash)
      continue;
    first = first.empty() ? name : first;
    ++differing;
  }
  if (differing == 0)
    return "";
  return std::to_string(differing) + " of " + std::to_string(here.size()) +
         " losses, gradients and weights, " + first +
         " among them; the record is of another plan, which may add up in "
         "another order";
}

/// "2.30258", of each step that ran together.
static std::string lossText(const std::vector<double> &losses) {
  std::string text;
  for (const double loss : losses) {
    char number[32];
    std::snprintf(number, sizeof number, "%.9g", loss);
    text += (text.empty() ? "" : ", ") + std::string(number);
  }
  return text;
}

int pipewright::runtime::replayRecord(
    const Options &options, Worker &rank,
    const std::function<void(const std::string &)> &say) {
  const Program &program = rank.wholeProgram();
  Transport &transport = rank.transport();
  const StepRecord record = readStepRecord(options.replay);
  const std::string state =
      CheckpointFolder(options.replay).folderOf(record.step);
  if (transport.rank() == 0)
    readCheckpoint(state);
  transport.barrier();
  loadCheckpoint(rank, state);

  const Dataset data(program, options.data, "--replay");
  Batches batches(program, data, Share::of(rank));
  batches.setOrder([](int64_t position) { return position; });
  rank.setBatchIo(&batches);
  rank.setSkippedUpdates(record.skipped);
  const StepDigest now = digestOf(rank, [&] {
    rank.beginStep(record.step / program.updates, record.learningRates);
    rank.runStep();
  });
  std::vector<double> sums;
  for (const auto &[sum, count] : rank.takeLosses()) {
    sums.push_back(sum);
    sums.push_back(static_cast<double>(count));
  }
  transport.sumToAll(sums.data(), static_cast<int64_t>(sums.size()));
  std::vector<double> losses;
  for (size_t i = 0; i < sums.size(); i += 2)
    losses.push_back(sums[i] / sums[i + 1]);
  say("step " + std::to_string(options.steps) + "   loss " + lossText(losses) +
      (record.hasResults() ? ", recorded " + lossText(record.losses) : ""));
  if (!record.hasResults()) {
    say("replayed   '" + options.replay +
        "', whose step did not come to its end when it was recorded");
    return Done;
  }

  const bool isSamePlan =
      record.plan == program.planHash() &&
      static_cast<int64_t>(record.results.size()) == transport.size();
  std::string difference;
  bool differs = false;
  if (isSamePlan) {
    const StepDigest then(record.results[transport.rank()].entries);
    checkEntries(then, now, options.replay);
    differs = !agree(rank, then, now);
    if (differs)
      difference = firstDifferenceOfAll(rank, then, now);
  } else {
    difference = differenceByName(rank, record, now);
    differs =
        gatherNumbers(transport,
                      {static_cast<double>(!difference.empty())})[0][0] != 0;
  }
  say("replayed   '" + options.replay + "': " +
      (differs ? "other numbers: " + difference
       : isSamePlan
           ? "the same bits, of all messages, losses, gradients and weights"
           : "the same bits, of all losses, gradients and weights"));
  return differs ? Disagree : Done;
}
