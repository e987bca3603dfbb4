//===- Evaluate.cpp - Forward-only runs of the model ----------------------===//

#include "runtime/train/Evaluate.h"
#include "runtime/core/Error.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/Npy.h"
#include "runtime/net/Gather.h"
#include "runtime/net/Transport.h"
#include "runtime/train/Batches.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

using namespace pipewright::runtime;

/// One forward-only step on whatever the rank's BatchIo gives.
static void runForward(Worker &rank) {
  // Weights may have changed since packed copies were made.
  rank.beginStep(rank.step(), 0);
  rank.runEvaluation();
}

/// Sums over all ranks, with the loss's, become what they mean.
static Evaluation wholeEvaluation(Worker &rank, const Evaluation &counts,
                                  std::pair<double, double> loss) {
  double totals[] = {loss.first, loss.second, counts.right, counts.amongFive,
                     counts.counted};
  rank.transport().sumToAll(totals, std::size(totals));
  return {totals[0] / totals[1], totals[2], totals[3], totals[4]};
}

Evaluation pipewright::runtime::evaluateData(Worker &rank,
                                             const Dataset &dataset,
                                             const Options &options) {
  const Program &program = rank.wholeProgram();
  const int64_t size = program.batchMicroBatches() * program.microBatchSize;
  const int64_t samples = dataset.disjointSamples();
  const int64_t count = std::clamp<int64_t>(
      samples == Source::endless ? 1 : samples / size, 1, options.evalBatches);
  // The mean is over the labels of all batches.
  Batches batches(program, dataset, Share::of(rank),
                  count * program.batchMicroBatches());
  batches.setOrder([&](int64_t position) { return dataset.inOrder(position); });
  MetricIo metrics(program, batches, options.metrics);
  rank.setBatchIo(&metrics);
  rank.takeLoss();
  for (int64_t batch = 0; batch < count; ++batch) {
    batches.moveTo(batch * program.batchMicroBatches());
    runForward(rank);
  }
  const auto [sum, number] = rank.takeLoss();
  return wholeEvaluation(rank, metrics.counts(),
                         {sum, static_cast<double>(number)});
}

static int64_t findOutput(const Program &program, const std::string &name) {
  std::string known;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    if (program.outputs[i].name == name)
      return i;
    known += (known.empty() ? "'" : ", '") +
             std::string(program.outputs[i].name) + "'";
  }
  fail("--output: the program has no output '", name, "'; its outputs are ",
       known.empty() ? "none" : known);
}

/// Inputs that are generated in training are so in a prediction as well.
static std::vector<DataSpec> withGenerated(const Options &options,
                                           std::vector<DataSpec> specs) {
  for (const DataSpec &spec : options.data)
    for (const char *kind : {"ones", "range", "zeros"})
      if (spec.second == kind &&
          std::none_of(specs.begin(), specs.end(), [&](const DataSpec &s) {
            return s.first == spec.first;
          }))
        specs.push_back(spec);
  return specs;
}

/// Whether --predict has the labels of the loss.
static bool hasLabels(const Program &program, const Options &options) {
  const LabelCount *labels = findLabels(program);
  return labels &&
         std::any_of(options.predict.begin(), options.predict.end(),
                     [&](const DataSpec &spec) {
                       return spec.first == program.inputs[labels->input].name;
                     });
}

/// Writes the outputs that this rank has; only one that computes one has it.
static void writeOutputs(const Program &program, const Options &options,
                         const std::vector<std::vector<char>> &all,
                         int64_t samples) {
  const int64_t size = program.microBatches * program.microBatchSize;
  for (const auto &[name, path] : options.outputs) {
    const int64_t number = findOutput(program, name);
    const OutputInfo &output = program.outputs[number];
    const std::vector<char> &values = all[number];
    if (values.empty())
      continue;
    std::vector<int64_t> shape = output.shape;
    const int64_t microBatches =
        (samples + size - 1) / size * program.microBatches;
    if (shape.empty())
      shape = {microBatches};
    else if (shape[0] % program.microBatchSize == 0)
      shape[0] = shape[0] / program.microBatchSize * samples;
    else
      shape.insert(shape.begin(), microBatches);
    writeNpy(path, output.type, shape, values.data());
  }
}

std::string pipewright::runtime::predict(Worker &rank, const Options &options) {
  const Program &program = rank.wholeProgram();
  const Dataset dataset(program, withGenerated(options, options.predict),
                        "--predict", Dataset::Missing::Zeros);
  const int64_t size = program.microBatches * program.microBatchSize;
  const int64_t samples =
      dataset.samples() == Source::endless ? size : dataset.disjointSamples();
  const bool isLabelled = hasLabels(program, options);
  Batches batches(program, dataset, Share());
  MetricIo metrics(program, batches,
                   isLabelled ? options.metrics : std::vector<Metric>());
  std::pair<double, double> loss;
  int64_t lossSamples = 0;
  // One replica is enough, and has all outputs in their order; others run the
  // same where it needs them.
  const bool isCounted = rank.replica() == 0;
  if (isCounted || program.evaluatesTogether) {
    rank.setBatchIo(&metrics);
    rank.takeLoss();
    std::vector<std::vector<char>> all(program.outputs.size());
    for (int64_t first = 0; first < samples; first += size) {
      const int64_t now = std::min(size, samples - first);
      if (isCounted && !options.outputs.empty())
        batches.outputs.assign(program.outputs.size(), {});
      metrics.setSamples(now);
      // The last step is filled up with the last sample.
      batches.setOrder([&](int64_t position) {
        return dataset.inOrder(std::min(first + position, samples - 1));
      });
      runForward(rank);
      const auto [sum, number] = rank.takeLoss();
      if (now == size && isCounted) {
        loss.first += sum;
        loss.second += static_cast<double>(number);
        lossSamples += size;
      }
      for (size_t i = 0; i < batches.outputs.size(); ++i)
        all[i].insert(all[i].end(), batches.outputs[i].begin(),
                      batches.outputs[i].end());
    }
    if (isCounted)
      writeOutputs(program, options, all, samples);
  }
  const Evaluation evaluation =
      wholeEvaluation(rank, isCounted ? metrics.counts() : Evaluation(), loss);
  std::string text = "evaluated " + std::to_string(samples) + " samples";
  // Fewer samples than a step takes have metrics, but no loss.
  if (isLabelled)
    text += ": " + evaluationText(evaluation, options.metrics) +
            (0 < lossSamples && lossSamples < samples
                 ? " (loss: of the first " + std::to_string(lossSamples) + ")"
                 : "");
  return isCounted ? text : "";
}

namespace {

/// What --guess works on: the token input and the logits.
struct LanguageModel {
  int64_t input = -1;
  int64_t output = -1;
  int64_t length = 0;
  int64_t vocabulary = 0;
};

/// Puts the text into the first sample and keeps the logits of it.
class GuessIo : public BatchIo {
public:
  GuessIo(const Program &program, const Dataset &dataset,
          const LanguageModel &model, const std::string &text)
      : others(program, dataset, Share()), model(model), text(text) {
    others.setOrder([](int64_t) { return int64_t{0}; });
  }

  std::vector<float> logits;

  void load(int64_t input, int64_t microBatch, void *destination,
            int64_t bytes) override {
    if (input != model.input) {
      others.load(input, microBatch, destination, bytes);
      return;
    }
    std::memset(destination, 0, bytes);
    int64_t *tokens = static_cast<int64_t *>(destination);
    if (microBatch == 0)
      for (size_t i = 0; i < text.size(); ++i)
        tokens[i] = static_cast<unsigned char>(text[i]);
  }

  void store(int64_t output, int64_t microBatch, const void *source,
             int64_t) override {
    if (output != model.output || microBatch != 0)
      return;
    const float *values = static_cast<const float *>(source);
    logits.assign(values, values + text.size() * model.vocabulary);
  }

  bool wants(int64_t output, int64_t microBatch) override {
    return output == model.output && microBatch == 0;
  }

private:
  Batches others;
  const LanguageModel &model;
  const std::string &text;
};

} // namespace

/// Finds i64 tokens [samples, length] and f32 logits over them.
static LanguageModel findLanguageModel(const Program &program) {
  LanguageModel model;
  const int64_t size = program.microBatchSize;
  for (size_t i = 0; i < program.inputs.size() && model.input < 0; ++i) {
    const InputSlot slot(program, i);
    if (slot.info.type != ElementType::I64 || !slot.batched ||
        slot.sampleElements < 2)
      continue;
    for (size_t o = 0; o < program.outputs.size(); ++o) {
      const OutputInfo &output = program.outputs[o];
      if (output.type != ElementType::F32 || output.shape.size() < 2 ||
          elementCount(output.shape) !=
              size * slot.sampleElements * output.shape.back() ||
          output.shape.back() < 2)
        continue;
      model = {static_cast<int64_t>(i), static_cast<int64_t>(o),
               slot.sampleElements, output.shape.back()};
      break;
    }
  }
  if (model.input < 0)
    fail("--guess expects a model from tokens [samples, length] to an output "
         "of logits [samples, length, vocabulary]");
  return model;
}

static std::string legible(int64_t byte) {
  if (byte >= 32 && byte < 127)
    return std::string(1, static_cast<char>(byte));
  return byte == '\n' ? "\u21b5" : "\u00b7";
}

/// Two rows of equal length, a guess below the byte that it is about.
static std::string drawGuesses(const std::string &text,
                               const std::vector<int64_t> &guesses) {
  constexpr size_t width = 72;
  std::string drawn;
  for (size_t begin = 0; begin < text.size(); begin += width) {
    std::string above = "  text   ", below = "  guess  ";
    for (size_t i = begin; i < std::min(text.size(), begin + width); ++i) {
      above += legible(static_cast<unsigned char>(text[i]));
      below += i ? legible(guesses[i - 1]) : " ";
    }
    drawn += above + "\n" + below + "\n";
  }
  int64_t right = 0;
  for (size_t i = 1; i < text.size(); ++i)
    right += guesses[i - 1] == static_cast<unsigned char>(text[i]);
  drawn += "  " + std::to_string(right) + " of " +
           std::to_string(text.size() - 1) + " bytes guessed; then comes '" +
           legible(guesses.back()) + "'\n";
  return drawn;
}

std::string pipewright::runtime::guess(Worker &rank, const Options &options) {
  const Program &program = rank.wholeProgram();
  const LanguageModel model = findLanguageModel(program);
  const std::string text =
      options.guess.substr(0, static_cast<size_t>(model.length));
  const Dataset dataset(program, withGenerated(options, {}), "--data",
                        Dataset::Missing::Zeros);
  GuessIo io(program, dataset, model, text);
  rank.setBatchIo(&io);
  const bool isCounted = rank.replica() == 0;
  if (isCounted || program.evaluatesTogether)
    runForward(rank);
  rank.takeLoss();
  std::string drawn;
  if (isCounted && !io.logits.empty()) {
    std::vector<int64_t> guesses;
    for (size_t i = 0; i < text.size(); ++i) {
      const float *row = io.logits.data() + i * model.vocabulary;
      guesses.push_back(std::max_element(row, row + model.vocabulary) - row);
    }
    drawn = drawGuesses(text, guesses);
  }
  std::string joined;
  for (const std::string &part : gatherTexts(rank.transport(), drawn))
    joined += part;
  return joined;
}

void pipewright::runtime::checkEvaluation(const Program &program,
                                          const Options &options) {
  const char *wanted = !options.evalData.empty()  ? "--eval-data"
                       : !options.predict.empty() ? "--predict"
                       : !options.guess.empty()   ? "--guess"
                                                  : nullptr;
  if (wanted)
    for (const RankProgram &rank : program.ranks)
      if (!rank.evaluate)
        fail(wanted, ": the program was compiled without evaluation");
  if (!options.guess.empty()) {
    const LanguageModel model = findLanguageModel(program);
    const int64_t limit = program.inputs[model.input].limit;
    for (unsigned char byte : options.guess)
      if (limit > 0 && byte >= limit)
        fail("--guess: byte ", int{byte}, " is outside of the ", limit,
             " tokens of the model");
  }
  if (!options.predict.empty() && options.outputs.empty() &&
      !hasLabels(program, options))
    fail("--predict has no use for what it would compute: give --output "
         "NAME=FILE, or the labels of the loss beside the inputs");
  if (!options.metrics.empty()) {
    if (options.evalData.empty() && options.predict.empty())
      fail("--metrics expects --eval-data or --predict beside it");
    checkMetrics(program, options.metrics);
  }
  for (const auto &[name, path] : options.outputs) {
    findOutput(program, name);
    // Fails now, not after the work, when the folder cannot be written to.
    AtomicFile probe(path);
  }
}
