//===- Dataset.cpp - What each input of each step gets --------------------===//

#include "runtime/io/Dataset.h"
#include "runtime/core/Error.h"
#include "runtime/core/Hash.h"
#include "runtime/core/Philox.h"

#include <algorithm>

using namespace pipewright::runtime;

/// A Feistel network over the next even number of bits permutes a power of
/// four; values behind the end are permuted again until they fall inside.
int64_t pipewright::runtime::permute(int64_t position, int64_t count,
                                     uint64_t key) {
  int half = 1;
  while (half < 31 && (int64_t{1} << 2 * half) < count)
    ++half;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  uint64_t value = position;
  do {
    uint64_t left = value >> half, right = value & mask;
    for (uint32_t round = 0; round < 4; ++round) {
      const uint64_t mixed = left ^ (philox(key, static_cast<uint32_t>(right),
                                            round, 0, 0x5a17)[0] &
                                     mask);
      left = right;
      right = mixed;
    }
    value = left << half | right;
  } while (value >= static_cast<uint64_t>(count));
  return static_cast<int64_t>(value);
}

static int64_t findInput(const Program &program, const std::string &name,
                         const char *option) {
  std::string known;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    if (!program.inputs[i].isData())
      continue;
    if (program.inputs[i].name == name)
      return i;
    known += (known.empty() ? "'" : ", '") +
             std::string(program.inputs[i].name) + "'";
  }
  fail(option, ": the model has no input '", name, "'; its inputs are ", known);
}

Dataset::Dataset(const Program &program, const std::vector<DataSpec> &specs,
                 const char *option, Missing missing) {
  for (size_t i = 0; i < program.inputs.size(); ++i)
    slots.emplace_back(program, i);
  sources.resize(slots.size());
  std::vector<SourcePair> pairs(slots.size());
  // Those that refer to another input come after it.
  for (const bool refers : {false, true})
    for (const DataSpec &spec : specs) {
      const bool does = spec.second.rfind("from:", 0) == 0 ||
                        spec.second.rfind("same:", 0) == 0;
      if (does == refers)
        open(program, spec, option, pairs);
    }
  wireCompanions(program, option, missing, pairs);
  checkCounts(program);
}

/// "1/255" or "0.5"; 0 where it is no such number.
static double parseFactor(const std::string &text) {
  char *end = nullptr;
  double factor = std::strtod(text.c_str(), &end);
  if (end != text.c_str() && *end == '/') {
    const char *divisor = end + 1;
    factor /= std::strtod(divisor, &end);
    if (end == divisor)
      return 0;
  }
  return *end || !std::isfinite(factor) ? 0 : factor;
}

/// NAME=scaled:X:FILE
void Dataset::openScaled(const Program &program, const DataSpec &spec,
                         const char *option, std::vector<SourcePair> &pairs) {
  const auto &[name, text] = spec;
  const size_t begin = text.find(':') + 1, colon = text.find(':', begin);
  const double factor = parseFactor(text.substr(begin, colon - begin));
  if (colon == std::string::npos || factor == 0)
    fail(option, " ", name, "=", text,
         ": expects scaled:X:FILE with a number X, such as 1/255");
  open(program, {name, text.substr(colon + 1)}, option, pairs);
  const int64_t input = findInput(program, name, option);
  const InputSlot &slot = slots[input];
  if (slot.info.type != ElementType::F32)
    fail(option, " ", name, "=", text, ": only f32 is scaled, but '", name,
         "' expects ", typeText(slot.info.type));
  Source &source = *sources[input];
  source.remark.clear();
  source.read = [factor, read = source.read, count = slot.sampleElements](
                    int64_t sample, void *destination) {
    read(sample, destination);
    float *values = static_cast<float *>(destination);
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<float>(values[i] * factor);
  };
}

/// Opens the source that one NAME=FILE stands for.
void Dataset::open(const Program &program, const DataSpec &spec,
                   const char *option, std::vector<SourcePair> &pairs) {
  const auto &[name, text] = spec;
  const int64_t input = findInput(program, name, option);
  const InputSlot &slot = slots[input];
  if (sources[input])
    fail(option, " gives input '", name, "' twice");
  if (text.rfind("scaled:", 0) == 0)
    return openScaled(program, spec, option, pairs);
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string rest =
      colon == std::string::npos ? "" : text.substr(colon + 1);
  if (kind == "from" || kind == "same") {
    const int64_t other = findInput(program, rest, option);
    if (!sources[other])
      fail(option, " ", name, "=", text, ": input '", rest, "' has no data");
    if (kind == "same") {
      if (slots[other].info.type != slot.info.type ||
          slots[other].sampleElements != slot.sampleElements)
        fail(option, " ", name, "=", text, ": '", rest, "' has samples of ",
             shapeText(slots[other].sampleShape), " ",
             typeText(slots[other].info.type), ", but '", name, "' expects ",
             shapeText(slot.sampleShape), " ", typeText(slot.info.type));
      sources[input] = sources[other];
      return;
    }
    if (!pairs[other].companion)
      fail(option, " ", name, "=", text, ": the data of '", rest,
           "' has nothing beside it (tokens and cifar have)");
    sources[input] = pairs[other].companion(slot);
    return;
  }
  const bool isText =
      kind == "tokens" || kind == "bytes" || kind == "u16" || kind == "i32";
  const bool generated =
      kind == "random" || kind == "zeros" || kind == "ones" || kind == "range";
  // A file may be named as a format is; with a colon it is the format.
  if (isText && colon != std::string::npos) {
    pairs[input] = openTokens(kind, rest, slot);
    tokens = slot.sampleElements;
  } else if ((kind == "cifar10" || kind == "cifar100") &&
             colon != std::string::npos)
    pairs[input] = openCifar(kind, rest, slot);
  else if (generated)
    pairs[input] = openGenerator(kind, rest, slot);
  else
    pairs[input] = openNpy(text, slot);
  sources[input] = pairs[input].main;
}

/// Gives inputs without data what lies beside the data of another one, when
/// there is exactly one way to do so.
void Dataset::wireCompanions(const Program &program, const char *option,
                             Missing missing, std::vector<SourcePair> &pairs) {
  std::vector<int64_t> open;
  for (size_t i = 0; i < slots.size(); ++i)
    if (!sources[i] && slots[i].info.isData())
      open.push_back(i);
  for (int64_t input : open) {
    const SourcePair *partner = nullptr;
    int64_t partners = 0;
    for (const SourcePair &pair : pairs)
      if (pair.fits && pair.fits(slots[input])) {
        partner = &pair;
        ++partners;
      }
    const int64_t rivals =
        !partner ? 0 : std::count_if(open.begin(), open.end(), [&](int64_t i) {
          return partner->fits(slots[i]);
        });
    if (partners == 1 && rivals == 1)
      sources[input] = partner->companion(slots[input]);
    else if (missing == Missing::Zeros)
      sources[input] = openGenerator("zeros", "", slots[input]).main;
    else
      fail("input '", program.inputs[input].name, "' (",
           typeText(program.inputs[input].type), ", ",
           shapeText(program.inputs[input].shape), ") has no data: give ",
           option, " ", program.inputs[input].name, "=FILE");
  }
}

/// All inputs must have the same number of samples, at least one step's.
void Dataset::checkCounts(const Program &program) {
  size_t first = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    // Nothing, or without an end.
    if (!sources[i] || sources[i]->samples == Source::endless)
      continue;
    const Source &source = *sources[i];
    if (count == Source::endless) {
      count = source.samples;
      first = i;
    }
    if (source.samples != count)
      fail("input '", program.inputs[first].name, "' has ", count, " samples (",
           sources[first]->description, "), but input '",
           program.inputs[i].name, "' has ", source.samples, " (",
           source.description, ")");
    stride = std::max(stride, source.stride);
  }
  if (count <= 0)
    fail("input '", program.inputs[first].name, "' has no samples (",
         sources[first]->description, ")");
}

int64_t Dataset::disjointSamples() const {
  return count == Source::endless ? count : (count + stride - 1) / stride;
}

int64_t Dataset::shuffled(int64_t position, uint64_t seed) const {
  if (count == Source::endless)
    return position;
  const int64_t pass = position / count;
  // A key of its own for each pass over the data.
  const auto key = philox(seed, static_cast<uint32_t>(pass), 0, 0, 0xda7a);
  return permute(position % count, count,
                 key[0] | static_cast<uint64_t>(key[1]) << 32);
}

int64_t Dataset::inOrder(int64_t position) const {
  return count == Source::endless ? position : position * stride % count;
}

void Dataset::read(int64_t input, int64_t sample, void *destination) const {
  sources[input]->read(sample, destination);
  checkValues(input, sample, destination);
}

void Dataset::check(int64_t input, int64_t sample) {
  const InputSlot &slot = slots[input];
  if (!isLimited(slot) || (sources[input]->largest >= 0 &&
                           sources[input]->largest < slot.info.limit))
    return;
  scratch.resize(slot.sampleElements);
  read(input, sample, scratch.data());
}

void Dataset::checkFiles(int64_t input) const {
  if (sources[input] && sources[input]->check)
    sources[input]->check();
}

int64_t Dataset::countLabels(const LabelCount &counted, int64_t sample) const {
  const InputSlot &slot = slots.at(counted.input);
  const auto &shape = slot.info.shape;
  std::vector<int64_t> labels(slot.sampleElements);
  read(counted.input, sample, labels.data());
  const int64_t width =
      elementCount({shape.begin() + !shape.empty(), shape.end()});
  int64_t count = 0;
  for (int64_t row = 0; row < slot.sampleElements; row += width)
    for (const auto &[begin, end] : counted.ranges)
      for (int64_t i = begin; i < end; ++i)
        count += labels[row + i] != counted.ignored;
  return count;
}

void Dataset::checkValues(int64_t input, int64_t sample,
                          const void *values) const {
  const InputSlot &slot = slots[input];
  if (!isLimited(slot))
    return;
  const int64_t *numbers = static_cast<const int64_t *>(values);
  for (int64_t i = 0; i < slot.sampleElements; ++i) {
    const bool inside = numbers[i] >= 0 && numbers[i] < slot.info.limit;
    if (!inside && numbers[i] != slot.info.ignored)
      fail("input '", slot.info.name, "' expects values in [0, ",
           slot.info.limit, "), but sample ", sample, " of ",
           sources[input]->description, " has ", numbers[i]);
  }
}

void Dataset::validate() const {
  constexpr int64_t maxElements = 50'000'000;
  for (size_t i = 0; i < slots.size(); ++i) {
    const InputSlot &slot = slots[i];
    if (!sources[i])
      continue;
    const Source &source = *sources[i];
    if (!isLimited(slot) ||
        (source.largest >= 0 && source.largest < slot.info.limit))
      continue;
    const int64_t bound = source.samples == Source::endless
                              ? 1
                              : std::max<int64_t>(source.samples, 1);
    std::vector<int64_t> sample(slot.sampleElements);
    int64_t read_ = 0;
    for (int64_t s = 0; s < bound && read_ < maxElements;) {
      read(i, s, sample.data());
      read_ += slot.sampleElements;
      if (s == bound - 1)
        break;
      // The last window is read too, whatever the stride.
      s = std::min(s + source.stride, bound - 1);
    }
  }
}

std::vector<std::string> Dataset::remarks() const {
  std::vector<std::string> all;
  for (const std::optional<Source> &source : sources)
    if (source && !source->remark.empty())
      all.push_back(source->remark);
  return all;
}

uint64_t Dataset::fingerprint(int64_t input) const {
  constexpr int64_t most = 64;
  if (!sources[input])
    return 0;
  const InputSlot &slot = slots[input];
  Hash hash;
  hash.addWord(static_cast<uint64_t>(count));
  hash.addWord(static_cast<uint64_t>(slot.sampleBytes()));
  std::vector<char> sample(slot.sampleBytes());
  // The first and the last sample, and others at even distances.
  const int64_t last =
      (count == Source::endless || !slot.batched ? 1 : count) - 1;
  const int64_t samples = std::min(most, last + 1);
  for (int64_t i = 0; i < samples; ++i) {
    read(input, last * i / std::max<int64_t>(1, samples - 1), sample.data());
    hash.addBytes(sample.data(), slot.sampleBytes());
  }
  return hash.value();
}
