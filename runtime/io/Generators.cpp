//===- Generators.cpp - Data out of nothing -------------------------------===//
//
// For benchmarks, smoke tests and inputs that are constant by nature, such as
// attention masks and positions.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/core/Philox.h"
#include "runtime/io/Source.h"

#include <charconv>
#include <cmath>

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

/// Normal numbers for floats, uniform ones in [0, limit) for integers, and
/// coin flips for booleans; a function of input, sample and element alone.
static double randomValue(const InputSlot &slot, int64_t limit, int64_t sample,
                          int64_t element) {
  const auto words = philox(
      0x70697065, static_cast<uint32_t>(element), static_cast<uint32_t>(sample),
      static_cast<uint32_t>(sample >> 32), static_cast<uint32_t>(slot.number));
  if (slot.info.type != ElementType::F32)
    return static_cast<double>(
        (words[0] | static_cast<uint64_t>(words[1]) << 32) % limit);
  const double u = (words[0] + 0.5) / 4294967296.0;
  const double angle = words[1] * (2 * M_PI / 4294967296.0);
  return std::sqrt(-2 * std::log(u)) * std::cos(angle);
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
    source.read = [=](int64_t sample, void *out) {
      writeValues(type, count, out, [&](int64_t i) {
        return randomValue(slot, limit, sample, i);
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
