//===- Dataset.h - What each input of each step gets -----------*- C++ -*-===//
//
// Joins the sources of all inputs, checks them against the model and against
// each other, and says which sample stands where. Sampling is a function of
// seed and position alone: every rank finds the same samples by itself and
// reads only the inputs that it needs.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_IO_DATASET_H
#define PIPEWRIGHT_RUNTIME_IO_DATASET_H

#include "runtime/io/Source.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::runtime {

/// NAME=FILE as the user gave it.
using DataSpec = std::pair<std::string, std::string>;

class Dataset {
public:
  enum class Missing { Fail, Zeros };

  /// Opens and checks everything. `option` is how messages name the option
  /// that the specs came from.
  Dataset(const Program &program, const std::vector<DataSpec> &specs,
          const char *option, Missing missing = Missing::Fail);

  /// Number of samples; Source::endless when nothing bounds it.
  int64_t samples() const { return count; }
  /// Samples that share no element.
  int64_t disjointSamples() const;
  /// Whether some input is a text of tokens, and how many a sample has.
  int64_t tokensPerSample() const { return tokens; }

  /// Sample at a position of the training order: every sample once, shuffled
  /// anew for each pass over the data.
  int64_t shuffled(int64_t position, uint64_t seed) const;
  /// Sample at a position of the order in the file, again from the start
  /// after the end.
  int64_t inOrder(int64_t position) const;

  /// Reads one sample of an input and checks its values.
  void read(int64_t input, int64_t sample, void *destination) const;
  /// Throws an Error if a sample of an input has values that the model cannot
  /// take. Reads nothing of inputs that cannot have any.
  void check(int64_t input, int64_t sample);
  /// Throws an Error if the files of an input have become shorter.
  void checkFiles(int64_t input) const;
  /// How many labels of a sample a loss counts.
  int64_t countLabels(const LabelCount &counted, int64_t sample) const;
  const InputSlot &slot(int64_t input) const { return slots[input]; }
  /// What a person may not expect of the data, a line each.
  std::vector<std::string> remarks() const;
  /// A hash of how many samples an input has, and of some of them; 0 where it
  /// has no data of its own.
  uint64_t fingerprint(int64_t input) const;

  /// Throws an Error when values lie outside of what the model can take;
  /// reads all of the data unless that is more than some seconds' work.
  void validate() const;

private:
  void open(const Program &program, const DataSpec &spec, const char *option,
            std::vector<SourcePair> &pairs);
  void openScaled(const Program &program, const DataSpec &spec,
                  const char *option, std::vector<SourcePair> &pairs);
  void wireCompanions(const Program &program, const char *option,
                      Missing missing, std::vector<SourcePair> &pairs);
  void checkCounts(const Program &program);
  void checkValues(int64_t input, int64_t sample, const void *values) const;

  static bool isLimited(const InputSlot &slot) {
    return slot.info.type == ElementType::I64 && slot.info.limit > 0;
  }

  std::vector<InputSlot> slots;
  std::vector<std::optional<Source>> sources;
  int64_t count = Source::endless;
  int64_t stride = 1;
  int64_t tokens = 0;
  /// What `check` reads into.
  std::vector<int64_t> scratch;
};

/// A bijection of [0, count) without a table: position -> index.
int64_t permute(int64_t position, int64_t count, uint64_t key);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_IO_DATASET_H
