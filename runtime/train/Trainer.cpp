//===- Trainer.cpp - The life of one rank ---------------------------------===//

#include "runtime/train/Trainer.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
#include "runtime/core/Text.h"
#include "runtime/io/JsonLines.h"
#include "runtime/net/Gather.h"
#include "runtime/trace/Profile.h"
#include "runtime/trace/Trace.h"
#include "runtime/train/Batches.h"
#include "runtime/train/BestWeights.h"
#include "runtime/train/Checkpoints.h"
#include "runtime/train/ErrorText.h"
#include "runtime/train/Evaluate.h"
#include "runtime/train/FlightReport.h"
#include "runtime/train/Progress.h"
#include "runtime/train/Record.h"
#include "runtime/train/Replay.h"
#include "runtime/train/Report.h"
#include "runtime/train/SkippedSteps.h"
#include "runtime/train/Stop.h"
#include "runtime/train/WeightFiles.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <set>
#include <sstream>

using namespace pipewright::runtime;

using Clock = std::chrono::steady_clock;

static double secondsFrom(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// Where waits have deadlines: reading weights or writing them
/// to a slow disk takes longer than a step.
static constexpr double patientSeconds = 3600;

namespace {

/// What the training of one rank goes through, in order.
class Trainer {
public:
  Trainer(const Options &options, Worker &rank, RankFactory &factory,
          const Launch &launch)
      : options(options), rank(rank), launch(launch),
        program(rank.wholeProgram()), speaks(rank.transport().rank() == 0),
        replay(options, rank, factory), record(options, rank, factory),
        skipped(rank), factory(factory) {}

  /// Returns the exit code.
  int run();

private:
  void train();
  /// Those of step `number`, or of several that run together.
  void chooseSamples(int64_t number, Batches &batches);
  /// One call of the program: one step, or several that run together.
  void step(int64_t number, Batches &batches, Progress &progress);
  /// Runs it, twice where it is to be checked.
  void runStep(int64_t number, Batches &batches,
               const std::vector<float> &learningRates);
  void evaluateAt(int64_t number, Progress &progress);
  bool compareWeights(int64_t done);
  /// Finds trouble with the samples of step `number`, if there is such a step.
  void lookAhead(int64_t number);
  /// Between two steps: makes a checkpoint whole, and begins one.
  void keepCheckpoint(int64_t done);
  void keepLastCheckpoint(int64_t done);
  /// A checkpoint is not what the run is for: training goes on.
  void warn(const std::string &remark) {
    if (!remark.empty())
      say("warning: " + remark);
  }
  int64_t samplesBefore(int64_t number) const;
  /// Where the run stands when `done` steps are done.
  Checkpoints::Position positionBehind(int64_t done) const;
  void keepWeights();
  void finish();
  void sayRemarks();
  void say(const std::string &text) {
    if (!speaks)
      return;
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }

  const Options &options;
  Worker &rank;
  const Launch launch;
  const Program &program;
  const bool speaks;
  JsonLines log;
  std::unique_ptr<Checkpoints> checkpoints;
  Checkpoints::Position start;
  std::unique_ptr<BestWeights> best;
  /// Of all ranks, after the last step.
  Checkpoints::Votes votes;
  std::unique_ptr<Dataset> data, evalData;
  Trace trace;
  Profile profile;
  Replay replay;
  Record record;
  SkippedSteps skipped;
  RankFactory &factory;
  /// Two runs of a step differed; everything is as it was before it.
  bool disagrees = false;
  /// How weights that several ranks hold differ; the same on all of them.
  std::string difference;
  StepTimes stepTimes, collectiveWaits;
  Clock::time_point stepEnd;
  /// In the last step.
  Traffic sent;
  bool evaluated = false;
  /// What this rank cannot go on with; it ends with this when all have saved.
  std::string trouble;
  /// All ranks have agreed to stop after the step that is done.
  bool stops = false;
  /// Steps done when they stopped; -1: all were.
  int64_t stoppedAfter = -1;
  std::string saved;
};

} // namespace

int Trainer::run() {
  if (!options.replay.empty()) {
    say(headerText(program, options, launch));
    sayRemarks();
    return replayRecord(options, rank,
                        [this](const std::string &line) { say(line); });
  }
  if (!options.checkpoint.empty() && options.steps > 0)
    checkpoints = std::make_unique<Checkpoints>(options, rank, factory);
  if (options.steps > 0)
    data = std::make_unique<Dataset>(program, options.data, "--data");
  if (!options.evalData.empty())
    evalData =
        std::make_unique<Dataset>(program, options.evalData, "--eval-data");
  say(headerText(program, options, launch));
  sayRemarks();
  for (const Dataset *each : {data.get(), evalData.get()})
    for (const std::string &remark :
         each ? each->remarks() : std::vector<std::string>())
      say("note: " + remark);
  if (speaks)
    if (const std::string missing = missingWeights(program, options.weights);
        !missing.empty())
      say("warning: " + missing);
  if (checkpoints)
    start = checkpoints->resume([this](const std::string &line) { say(line); });
  skipped.setCount(start.skipped);
  if (options.keepBest != Options::Best::None && options.steps > 0)
    best = std::make_unique<BestWeights>(options, rank, start.step > 0);
  if (speaks)
    log.open(options.log, start.step);
  if (!options.predict.empty()) {
    say(predict(rank, options));
    return Done;
  }
  if (!options.guess.empty()) {
    evaluated = true;
    const std::string drawn = guess(rank, options);
    say((options.steps ? "guesses before training\n" : "guesses\n") + drawn);
  }
  if (options.steps > 0)
    train();
  else if (evalData) {
    Progress progress(0, 0, 0);
    evaluateAt(0, progress);
  }
  if (!options.guess.empty() && options.steps && stoppedAfter < 0) {
    const std::string drawn = guess(rank, options);
    say("guesses after training\n" + drawn);
  }
  finish();
  if (!checkpoints)
    return disagrees ? Disagree : Done;
  const int64_t done = stoppedAfter < 0 ? options.steps : stoppedAfter;
  if (disagrees)
    return Disagree;
  return checkpoints->last() < done ? NotKept
         : stoppedAfter < 0         ? Done
                                    : ResumeMe;
}

void Trainer::evaluateAt(int64_t number, Progress &progress) {
  evaluated = true;
  const Evaluation evaluation = evaluateData(rank, *evalData, options);
  const std::string notKept = best ? best->compare(number, evaluation) : "";
  if (!speaks)
    return;
  progress.evaluation(number, evaluationText(evaluation, options.metrics));
  if (!notKept.empty())
    say("warning: the best weights could not be kept: " + notKept);
  const auto metrics = evaluation.values(options.metrics);
  std::vector<JsonLines::Field> fields = {{"step", static_cast<double>(number)},
                                          {"eval_loss", evaluation.loss}};
  std::vector<std::string> names;
  for (const auto &[name, value] : metrics)
    names.push_back("eval_" + name);
  for (size_t i = 0; i < names.size(); ++i)
    fields.emplace_back(names[i].c_str(), metrics[i].second);
  log.write(fields);
}

void Trainer::train() {
  // The next step's inputs are loaded while one runs.
  const Share share = Share::of(rank);
  std::array<Batches, 2> batches = {Batches(program, *data, share),
                                    Batches(program, *data, share)};
  const int64_t together = program.updates;
  Progress progress(options.steps, batches[0].batchSamples() / together,
                    data->tokensPerSample());
  watchForStop(speaks);
  const int64_t first = start.step / together;
  for (const int64_t number : {first, first + 1}) {
    lookAhead(number);
    if (!trouble.empty())
      fail(trouble);
  }
  trouble = weightTrouble(rank);
  if (!trouble.empty())
    fail(trouble);
  stepEnd = Clock::now();
  for (int64_t done = start.step; done < options.steps; done += together) {
    // Where steps run together, after those that hold the one asked for.
    const int64_t before = std::max<int64_t>(0, done - together);
    if (evalData &&
        (done == 0 || done / options.evalEvery != before / options.evalEvery))
      evaluateAt(done, progress);
    const int64_t number = done / together;
    Batches &now = batches[number % 2], &next = batches[1 - number % 2];
    chooseSamples(number, now);
    chooseSamples(number + 1, next);
    now.following = done + together < options.steps ? &next : nullptr;
    step(number, now, progress);
    if (disagrees) {
      stoppedAfter = done;
      break;
    }
    if (done == start.step && !options.dumpGradients.empty())
      saveGradients(rank, options.dumpGradients);
    if (compareWeights(done + together))
      break;
    if (stops && done + together < options.steps) {
      stoppedAfter = done + together;
      break;
    }
    if (done + together < options.steps)
      keepCheckpoint(done + together);
  }
  // First of all: whatever comes then may fail.
  keepWeights();
  if (evalData && stoppedAfter < 0)
    evaluateAt(options.steps, progress);
}

/// Where several ranks hold a weight: true if it is no longer the same.
bool Trainer::compareWeights(int64_t done) {
  if (done >= options.steps || options.compareEvery == 0 ||
      done / options.compareEvery ==
          (done - program.updates) / options.compareEvery)
    return false;
  difference = weightTrouble(rank);
  if (difference.empty())
    return false;
  stoppedAfter = done;
  return true;
}

/// A step that has begun cannot be taken back, so what can be known of its
/// samples is looked at while the weights before it are whole. Two steps ahead:
/// a GPU loads the next step's while one runs.
void Trainer::lookAhead(int64_t number) {
  if (number * program.updates >= options.steps)
    return;
  Batches batches(program, *data, Share::of(rank));
  chooseSamples(number, batches);
  try {
    for (const int64_t input : rank.program().inputs) {
      data->checkFiles(input);
      const int64_t samples =
          data->slot(input).batched ? batches.ownSamples() : 1;
      for (int64_t i = 0; i < samples; ++i)
        data->check(input, batches.sampleAt(batches.ownPosition(i)));
    }
  } catch (const Error &error) {
    trouble = error.what();
  }
}

/// The weights after the last step, wherever they can be written. Of ranks that
/// cannot go on the training ends here.
void Trainer::keepWeights() {
  const auto rows =
      gatherNumbers(rank.transport(), {static_cast<double>(stopSignal()),
                                       static_cast<double>(!trouble.empty())});
  int number = 0;
  bool fails = !difference.empty();
  for (const std::vector<double> &row : rows) {
    number = number ? number : static_cast<int>(row[0]);
    fails |= row[1] != 0;
  }
  const int64_t done = stoppedAfter < 0 ? options.steps : stoppedAfter;
  const std::string steps =
      std::to_string(done) + " of " + std::to_string(options.steps);
  if (disagrees && speaks)
    std::fprintf(stderr,
                 "error: step %lld gave other numbers when it was run again: "
                 "%s; the weights are those before it\n",
                 static_cast<long long>(done + 1), replay.message().c_str());
  if (stoppedAfter >= 0 && !fails && !disagrees)
    say(std::string("stopped    by ") + signalName(number) + " after step " +
        steps);
  if (!fails)
    keepLastCheckpoint(done);
  std::string where = ": nothing was saved";
  if (!options.save.empty()) {
    const double patience = rank.transport().deadline();
    if (platformOf(program).hasDeadlines())
      rank.transport().setDeadline(patientSeconds);
    // What was to be the result of all steps is not what is there now.
    const Saved result = saveWeights(
        rank, options.save + (fails && stoppedAfter >= 0 ? ".stopped" : ""));
    saved = result.path;
    where = saved.empty() ? ": the weights could not be saved"
                          : ", whose weights are in '" + saved + "'";
    if (trouble.empty() && speaks)
      trouble = result.trouble;
    rank.transport().setDeadline(patience);
  }
  // What was saved is what the first holders have, in any case.
  if (difference.empty())
    difference = weightTrouble(rank);
  const std::string ended = "; training ended after step " + steps + where;
  if (!trouble.empty())
    fail(trouble, ended);
  if (difference.empty())
    return;
  disagrees = true;
  if (speaks)
    std::fprintf(stderr, "error: %s\n", printable(difference + ended).c_str());
}

/// What several ranks say alike is said once.
void Trainer::sayRemarks() {
  std::set<std::string> said;
  for (const std::string &remarks :
       gatherTexts(rank.transport(),
                   rank.remarks() + platformOf(program).remarks(program))) {
    std::stringstream lines(remarks);
    for (std::string line; std::getline(lines, line);)
      if (said.insert(line).second)
        say(line);
  }
}

Checkpoints::Position Trainer::positionBehind(int64_t done) const {
  return {done, samplesBefore(done / program.updates), skipped.count()};
}

int64_t Trainer::samplesBefore(int64_t number) const {
  return start.samples + (number - start.step / program.updates) *
                             program.batchMicroBatches() *
                             program.microBatchSize;
}

void Trainer::chooseSamples(int64_t number, Batches &batches) {
  const int64_t first = samplesBefore(number);
  batches.setOrder([this, first](int64_t position) {
    return options.shuffle ? data->shuffled(first + position, options.seed)
                           : data->inOrder(first + position);
  });
}

void Trainer::runStep(int64_t number, Batches &batches,
                      const std::vector<float> &learningRates) {
  auto run = [&] {
    rank.takeSent();
    rank.beginStep(number, learningRates);
    rank.runStep();
    sent = rank.takeSent();
  };
  const int64_t done = (number + 1) * program.updates;
  if (record.isDue(done)) {
    if (checkpoints)
      warn(checkpoints->finish());
    record.begin(done - program.updates, skipped.count(), *data, batches,
                 learningRates);
    return record.run(run);
  }
  if (!replay.isDue(done))
    return run();
  // Inputs of the next step are loaded while this one runs for the last time.
  Batches *const following = batches.following;
  disagrees = !replay.check([&](bool isLast) {
    batches.following = isLast ? following : nullptr;
    rank.takeLosses();
    run();
  });
}

void Trainer::step(int64_t number, Batches &batches, Progress &progress) {
  rank.setBatchIo(&batches);
  const int64_t together = program.updates;
  std::vector<float> learningRates;
  for (int64_t update = 0; update < together; ++update)
    learningRates.push_back(
        options.learningRateAt(number * together + update - skipped.count()));
  const bool traced =
      !options.trace.empty() &&
      (number + 1) * together + options.traceSteps > options.steps;
  if (number * together == start.step && !options.dumpGradients.empty())
    rank.captureGradients();
  if (traced) {
    trace.beginStep(number);
    rank.setTrace(&trace);
  }
  const bool profiled =
      (number + 1) * together + options.profileSteps > options.steps;
  rank.setProfile(profiled ? &profile : nullptr);

  const auto start = Clock::now();
  // Evaluations, checkpoints, comparisons of weights.
  const double between = secondsFrom(stepEnd, start);
  skipped.begin();
  runStep(number, batches, learningRates);
  if (disagrees)
    return;
  const bool isSkipped = skipped.end();
  if (traced) {
    trace.stop();
    rank.setTrace(nullptr);
  }
  std::vector<double> totals;
  for (const auto &[sum, count] : rank.takeLosses()) {
    totals.push_back(sum);
    totals.push_back(static_cast<double>(count));
  }
  lookAhead(number + 2);
  // One rank that stops is enough, and all stop at the same step.
  const int64_t done = (number + 1) * together;
  votes = checkpoints ? checkpoints->votes(done, done - together)
                      : Checkpoints::Votes();
  totals.push_back(votes.done);
  totals.push_back(votes.due);
  totals.push_back(stopSignal() != 0 || !trouble.empty());
  rank.flight().wait(FlightRecorder::EndOfStep, 0);
  rank.transport().sumToAll(totals.data(), totals.size());
  rank.flight().end();
  stops = totals.back() > 0;
  votes = {.done = totals[totals.size() - 3], .due = totals[totals.size() - 2]};
  stepEnd = Clock::now();
  const double seconds = secondsFrom(start, stepEnd);

  if (profiled)
    profile.endSteps(together, seconds);
  else
    stepTimes.add(seconds);
  collectiveWaits.add(rank.takeCollectiveWait());
  std::vector<double> losses;
  for (int64_t update = 0; update < together; ++update)
    losses.push_back(totals[2 * update] / totals[2 * update + 1]);
  if (record.isDue(done))
    say(record.finish(losses));
  if (!speaks)
    return;
  for (int64_t update = 0; update < together; ++update) {
    const int64_t step = number * together + update + 1;
    const double loss = losses[update];
    // Steps that run together are shown when the last one is done.
    if (update + 1 == together)
      progress.step(step, loss, seconds / together);
    try {
      std::vector<std::pair<const char *, double>> row = {
          {"step", static_cast<double>(step)},
          {"loss", loss},
          {"learning_rate", learningRates[update]},
          {"seconds", seconds / together},
          {"seconds_between", between / together},
          {"samples_per_second", batches.batchSamples() / seconds}};
      if (options.clipNorm > 0)
        row.emplace_back("gradient_norm", rank.gradientNorm());
      if (isSkipped)
        row.emplace_back("skipped", 1);
      log.write(row);
    } catch (const Error &error) {
      trouble = error.what();
    }
    if (isSkipped)
      say(skipped.message(step));
    else if (totals[2 * update + 1] > 0 && !std::isfinite(loss))
      fail("the loss is ", loss, " at step ", step,
           ": try a smaller --lr than ", options.learningRate,
           ", or look for values in the data that are no finite numbers; no "
           "weights were saved");
  }
}

void Trainer::keepCheckpoint(int64_t done) {
  if (checkpoints)
    warn(checkpoints->keep(votes, positionBehind(done)));
}

void Trainer::keepLastCheckpoint(int64_t done) {
  if (!checkpoints)
    return;
  warn(checkpoints->finish());
  if (checkpoints->last() != done)
    warn(checkpoints->keepNow(positionBehind(done)));
}

void Trainer::finish() {
  Transport &transport = rank.transport();
  const std::string summary =
      summaryText(rank, options, launch, {stepTimes, collectiveWaits, sent},
                  evaluated, log);
  if (options.steps > 0)
    say(summary);
  if (!skipped.summary().empty())
    say(skipped.summary());
  if (platformOf(program).hasDeadlines())
    transport.setDeadline(patientSeconds);
  const bool whole = options.steps > 0 && stoppedAfter < 0;
  if (options.profileSteps > 0 && whole) {
    const auto texts = gatherTexts(transport, profile.toText());
    for (size_t r = 1; r < texts.size(); ++r)
      profile.merge(texts[r]);
    say("\n" + profile.table(transport.size()));
  }
  if (!options.trace.empty() && whole) {
    // A timetable is that of one replica.
    const auto rows = gatherTexts(
        transport, rank.replica() == 0 ? trace.toJson(rank.number()) : "");
    if (speaks)
      writeTrace(options.trace, rows, program.planJson);
  }
  if (!saved.empty())
    say("saved      " + saved);
  if (best && !best->summary().empty())
    say("best       " + best->summary());
  if (checkpoints && checkpoints->last() > 0)
    say("checkpoint " + options.checkpoint + "/step-" +
        std::to_string(checkpoints->last()) +
        (stoppedAfter < 0 ? "" : "; the same command with --resume goes on"));
  if (checkpoints && checkpoints->failures() > 0)
    say("warning: " + std::to_string(checkpoints->failures()) +
        " of the checkpoints could not be written: " +
        checkpoints->latestFailure());
  transport.barrier();
}

int pipewright::runtime::runRank(const Options &options, RankFactory &factory,
                                 bool processes, Transport &transport) {
  transport.setDeadline(std::max(options.timeout, patientSeconds));
  transport.setSilence(options.timeout);
  const std::unique_ptr<Worker> rank = factory.createRank(transport);
  // Deadlines of transfers tell more than that some rank does not come to the
  // end of the step.
  const bool hasDeadlines = platformOf(rank->wholeProgram()).hasDeadlines();
  if (!hasDeadlines)
    transport.setDeadline(std::numeric_limits<double>::infinity());
  try {
    keepFlight(options, *rank);
    rank->setSeed(options.seed);
    rank->setClipNorm(options.clipNorm);
    rank->setSkipsNan(options.skipsNan);
    rank->setUp();
    rank->rehearse();
    loadWeights(*rank, options.weights);
    transport.barrier();
    if (hasDeadlines)
      transport.setDeadline(2 * options.timeout);
    const int code =
        Trainer(options, *rank, factory, {processes, factory.describe()}).run();
    rank->flight().removeFile();
    return code;
  } catch (const Aborted &error) {
    rank->abort();
    throw Aborted(writeFlight(options, *rank, error.what()));
  } catch (const std::exception &error) {
    const std::string message =
        writeFlight(options, *rank, ranked(transport.rank(), messageOf(error)));
    // The message goes first: it is the cause of whatever others find broken.
    transport.abort(message);
    rank->abort();
    throw Error(message);
  }
}
