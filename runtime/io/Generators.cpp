//===- Generators.cpp - Data out of nothing -------------------------------===//
//
// For benchmarks, smoke tests and inputs that are constant by nature, such as
// attention masks and positions.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/core/Philox.h"
#include "runtime/io/Source.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

using namespace pipewright::runtime;

/// Writes value(i) into element i in the input's own type.
template <class Value>
static void writeValues(ElementType type, int64_t count, void *out,
                        const Value &value) {
  for (int64_t i = 0; i < count; ++i) {
    const double v = value(i);
    switch (type) {
    case ElementType::F32:
      static_cast<float *>(out)[i] = static_cast<float>(v);
      break;
    case ElementType::I64:
      static_cast<int64_t *>(out)[i] = static_cast<int64_t>(v);
      break;
    case ElementType::I1:
    case ElementType::I8:
      static_cast<int8_t *>(out)[i] = static_cast<int8_t>(v);
      break;
    case ElementType::BF16:
      // Programs cast their inputs themselves.
      fail("input of type bf16");
    }
  }
}

static constexpr uint32_t key = 0x70697065;

/// Of an element of a sample of an input.
static uint64_t randomWord(const InputSlot &slot, int64_t sample,
                           int64_t element) {
  const auto words = philox(
      key, static_cast<uint32_t>(element), static_cast<uint32_t>(sample),
      static_cast<uint32_t>(sample >> 32), static_cast<uint32_t>(slot.number));
  return words[0] | static_cast<uint64_t>(words[1]) << 32;
}

/// Normal numbers (Box and Muller, 1958), drawn once: to draw each element of
/// a batch of images anew takes longer than a GPU's step on it.
static const std::vector<float> &normalNumbers() {
  static const std::vector<float> numbers = [] {
    std::vector<float> drawn(1 << 16);
    for (size_t i = 0; i < drawn.size(); ++i) {
      const auto words = philox(key, static_cast<uint32_t>(i), 0, 0, 0);
      const double u = (words[0] + 0.5) / 4294967296.0;
      const double angle = words[1] * (2 * M_PI / 4294967296.0);
      drawn[i] =
          static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(angle));
    }
    return drawn;
  }();
  return numbers;
}

/// Each sample of floats begins at a place of its own among the normal numbers,
/// and goes round.
static void copyNormals(const InputSlot &slot, int64_t sample, int64_t count,
                        float *out) {
  const std::vector<float> &numbers = normalNumbers();
  const auto size = static_cast<int64_t>(numbers.size());
  auto from =
      static_cast<int64_t>(randomWord(slot, sample, 0) % numbers.size());
  for (int64_t done = 0; done < count; from = 0) {
    const int64_t now = std::min(count - done, size - from);
    std::copy_n(numbers.data() + from, now, out + done);
    done += now;
  }
}

SourcePair pipewright::runtime::openGenerator(const std::string &kind,
                                              const std::string &argument,
                                              const InputSlot &slot) {
  Source source;
  source.description = kind;
  source.samples = Source::endless;
  const ElementType type = slot.info.type;
  const int64_t count = slot.sampleElements;
  if (kind == "random") {
    if (!argument.empty()) {
      const char *last = argument.c_str() + argument.size();
      const auto [stop, error] =
          std::from_chars(argument.c_str(), last, source.samples);
      if (stop != last || error != std::errc() || source.samples <= 0)
        fail("'random:", argument, "' expects a number of samples from 1 to ",
             Source::endless);
    }
    const int64_t limit = type == ElementType::I64 ? slot.info.limit : 2;
    if (limit <= 0)
      fail("input '", slot.info.name,
           "' has no known limit, so random integers cannot be drawn for it");
    // Normal numbers for floats, uniform ones in [0, limit) for integers, coin
    // flips for booleans; a function of input and sample alone.
    source.read = [=](int64_t sample, void *out) {
      if (type == ElementType::F32)
        copyNormals(slot, sample, count, static_cast<float *>(out));
      else
        writeValues(type, count, out, [&](int64_t i) {
          return static_cast<double>(randomWord(slot, sample, i) % limit);
        });
    };
  } else if (kind == "range") {
    const int64_t last = slot.sampleShape.empty() ? 1 : slot.sampleShape.back();
    source.read = [=](int64_t, void *out) {
      writeValues(type, count, out,
                  [&](int64_t i) { return static_cast<double>(i % last); });
    };
  } else {
    const double value = kind == "ones" ? 1 : 0;
    source.read = [=](int64_t, void *out) {
      writeValues(type, count, out, [&](int64_t) { return value; });
    };
  }
  return {std::move(source), {}, {}};
}
