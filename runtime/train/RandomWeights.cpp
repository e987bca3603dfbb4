//===- RandomWeights.cpp - Initial weights without a file -----------------===//

#include "runtime/train/RandomWeights.h"
#include "runtime/core/Error.h"
#include "runtime/core/Philox.h"
#include "runtime/train/FilterLayout.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

using namespace pipewright::runtime;

void pipewright::runtime::checkRandomWeights(const Program &program) {
  for (const RankProgram &rank : program.ranks)
    for (const TensorInfo &weight : rank.tensors)
      if (weight.isWeight() &&
          (weight.role == Role::Constant || weight.type != ElementType::F32))
        fail("--weights random: '", weight.name,
             "' is a constant of the model and has to come from a file");
}

/// FNV-1a: the key of a weight's random numbers.
static uint64_t hashName(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

static bool endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

/// The value of a weight that is not drawn.
static float constantValue(const TensorInfo &weight) {
  const std::string_view name = weight.name;
  if (weight.role == Role::State)
    return name.find("var") != std::string_view::npos ? 1.0f : 0.0f;
  return endsWith(name, "bias") ? 0.0f : 1.0f;
}

/// Elements [first, first + values.size()) of a matrix or filter.
static void drawNormal(uint64_t key, int64_t first, float deviation,
                       std::vector<float> &values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t element = static_cast<uint64_t>(first) + i;
    const auto words = philox(key, static_cast<uint32_t>(element),
                              static_cast<uint32_t>(element >> 32), 0, 0);
    // Box and Muller's transform; the half keeps the logarithm finite.
    const double u = (words[0] + 0.5) / 4294967296.0;
    const double angle = words[1] * (2 * M_PI / 4294967296.0);
    values[i] = deviation * static_cast<float>(std::sqrt(-2 * std::log(u)) *
                                               std::cos(angle));
  }
}

static void drawWeight(Worker &rank, const TensorInfo &weight) {
  const int64_t elements =
      weight.buffer.bytes / static_cast<int64_t>(sizeof(float));
  const std::string_view shape = weight.shape;
  const bool isMatrix = shape.find('x') != std::string_view::npos;
  const int64_t outputs = isMatrix ? std::atoll(weight.shape) : elements;
  const float deviation =
      1.0f / std::sqrt(static_cast<float>(std::max<int64_t>(
                 1, elements / std::max<int64_t>(1, outputs))));
  // Numbers go by the place in a file.
  std::vector<float> values;
  auto draw = [&](int64_t first, int64_t count) {
    values.assign(count, constantValue(weight));
    if (isMatrix && weight.role == Role::Parameter)
      drawNormal(hashName(weight.name), first, deviation, values);
  };
  const auto [begin, own] = weight.storedOn(rank.replica());
  // A filter is reordered as a whole.
  if (weight.channelsLast) {
    draw(0, elements);
    rank.write(own, filterForMemory(weight, values.data()).data() + begin);
    return;
  }
  constexpr int64_t width = sizeof(float), piece = width << 20;
  for (int64_t at = 0; at < own.bytes; at += piece) {
    const int64_t now = std::min(piece, own.bytes - at);
    draw((begin + at) / width, now / width);
    rank.write(own.at(at, now), values.data());
  }
}

void pipewright::runtime::drawWeights(Worker &rank) {
  for (const TensorInfo &weight : rank.program().tensors)
    if (weight.isWeight())
      drawWeight(rank, weight);
}
