//===- Source.h - Where the values of one input come from ------*- C++ -*-===//
//
// Every data format is turned into this: a number of samples, and a way to
// read one of them in the element type that the model wants.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_IO_SOURCE_H
#define PIPEWRIGHT_RUNTIME_IO_SOURCE_H

#include "runtime/core/Program.h"

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace pipewright::runtime {

/// An input as data formats see it: one sample of it.
struct InputSlot {
  const InputInfo &info;
  int64_t number = 0;
  /// Dimensions of one sample; of the whole micro-batch when not `batched`.
  std::vector<int64_t> sampleShape;
  int64_t sampleElements = 0;
  /// False: dimension 0 is no multiple of the samples, so that every
  /// micro-batch gets the same values.
  bool batched = true;

  InputSlot(const Program &program, int64_t number);
  int64_t sampleBytes() const { return sampleElements * byteWidth(info.type); }
};

struct Source {
  static constexpr int64_t endless = std::numeric_limits<int64_t>::max();

  int64_t samples = 0;
  /// How far apart samples lie that share no element (windows of a text).
  int64_t stride = 1;
  std::function<void(int64_t sample, void *destination)> read;
  /// Throws an Error if the samples can be seen to be there no more, at once.
  /// May be empty.
  std::function<void()> check;
  /// What it is and where it came from, for messages.
  std::string description;
  /// What a person may not expect of the values; empty: nothing.
  std::string remark;
  /// Largest value that can occur, if known without reading samples; else -1.
  int64_t largest = -1;
};

/// A file may give several inputs (image and label, tokens and next tokens).
struct SourcePair {
  Source main;
  /// Makes the second source, for an input that fits it. May be empty.
  std::function<Source(const InputSlot &)> companion;
  /// Whether an input could be the second one without being asked.
  std::function<bool(const InputSlot &)> fits;
};

/// Dimensions as "4x128"; "scalar" for none.
std::string shapeText(const std::vector<int64_t> &shape);
/// The dimensions of a TensorInfo's shape text.
std::vector<int64_t> parseShape(const char *text);
/// Throws an Error where a dimension is negative or the product does not fit in
/// 64 bits.
int64_t elementCount(const std::vector<int64_t> &shape);
/// Bytes of a tensor of elements of `width` bytes, for shapes that come from a
/// file: nothing where a dimension is negative or the product does not fit.
std::optional<int64_t> checkedBytes(const std::vector<int64_t> &shape,
                                    int64_t width);

/// The formats. Each throws an Error that names the file and the input when
/// the file does not fit the input.
SourcePair openNpy(const std::string &path, const InputSlot &slot);
/// kind: "tokens" (llm.c shard), "bytes", "u16", "i32"; paths joined by ','.
SourcePair openTokens(const std::string &kind, const std::string &paths,
                      const InputSlot &slot);
/// kind: "cifar10" or "cifar100"; paths joined by ','.
SourcePair openCifar(const std::string &kind, const std::string &paths,
                     const InputSlot &slot);
/// kind: "zeros", "ones", "range", "random"; argument: number of samples of
/// "random", "" for endless.
SourcePair openGenerator(const std::string &kind, const std::string &argument,
                         const InputSlot &slot);

/// The parts of `text` between commas.
std::vector<std::string> splitCommas(const std::string &text);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_IO_SOURCE_H
