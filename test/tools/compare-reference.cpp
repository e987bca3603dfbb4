//===- compare-reference.cpp - Training against PyTorch's numbers ---------===//
//
// Compares a run's losses (the JSONL log) and the gradients of its first step
// (safetensors) with a file of tools/reference/make_reference.py, or its losses
// and final weights with one of make_stale_reference.py, and prints how much of
// the tolerance was used. Exit code 1 when something is outside.
//
// Tolerances, float32 against PyTorch in float64:
// - a gradient: 1e-4 of its norm, estimated by 16 random projections; or, where
//   batch normalization over few samples amplifies rounding more than that,
//   what PyTorch's own float32 is off by: four times its error in this tensor
//   or twice that in its worst one, since such errors are samples of chaos;
//   plus 1e-6 of the norm of all gradients together, for those that are zero
//   in exact arithmetic (the bias of a key projection, a convolution's bias
//   before a normalization).
// - a final weight: 1e-5 of its norm, or four times what PyTorch's own float32
//   is off by; training has moved each by 1e-2 at least.
// - the norm of all gradients of a step: 1e-5 relative.
// - a loss: 1e-4 relative, or four times PyTorch's own float32 error.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Safetensors.h"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using nlohmann::json;
using namespace pipewright::runtime;

/// +1 or -1 by splitmix64 of the index, as `signs` in make_reference.py.
static double sign(uint64_t index, uint64_t projection) {
  uint64_t z = (index + (projection << 40) + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return (z ^ (z >> 31)) & 1 ? 1.0 : -1.0;
}

/// A number of each step of the log.
static std::vector<double> readSteps(const char *path, const char *key) {
  std::ifstream file(path);
  std::vector<double> numbers;
  for (std::string line; std::getline(file, line);) {
    json record = json::parse(line);
    if (record.contains("step") && record.contains(key))
      numbers.push_back(record[key]);
  }
  return numbers;
}

static bool compareSteps(const char *what, const json &expected,
                         const std::vector<double> &got, double tolerance) {
  if (got.size() < expected.size()) {
    std::printf("expects %zu %s, but got %zu\n", expected.size(), what,
                got.size());
    return false;
  }
  double worst = 0;
  for (size_t step = 0; step < expected.size(); ++step) {
    double reference = expected[step];
    worst = std::max(worst, std::abs(got[step] - reference) /
                                std::max(1e-30, std::abs(reference)));
  }
  std::printf("%s: worst relative error %.1e of %.1e\n", what, worst,
              tolerance);
  return worst <= tolerance;
}

/// The norm of a tensor's difference from the reference, estimated.
static double errorOf(const json &entry, const TensorView &tensor) {
  const std::vector<float> data = tensor.values<float>();
  size_t count = data.size();
  double squares = 0;
  const json &projections = entry["projections"];
  for (size_t k = 0; k < projections.size(); ++k) {
    double dot = 0;
    for (size_t i = 0; i < count; ++i)
      dot += data[i] * sign(i, k);
    squares += std::pow(dot - projections[k].get<double>(), 2);
  }
  return std::sqrt(squares / projections.size());
}

static bool compareGradients(const json &expected, const char *path) {
  SafetensorsReader file(path);
  double total = 0;
  double worstOfPyTorch = 0;
  for (const auto &[name, entry] : expected.items()) {
    total += std::pow(entry["norm"].get<double>(), 2);
    double own = entry["float32_error"];
    if (own < 1) // More: zero in exact arithmetic.
      worstOfPyTorch = std::max(worstOfPyTorch, own);
  }
  total = std::sqrt(total);
  double worst = 0;
  std::string worstName;
  bool inside = true;
  for (const auto &[name, entry] : expected.items()) {
    TensorView tensor = file.find(name, ElementType::F32, entry["shape"]);
    double error = errorOf(entry, tensor);
    double norm = entry["norm"];
    double relative = std::max(
        {1e-4, 4 * entry["float32_error"].get<double>(), 2 * worstOfPyTorch});
    double allowed = std::min(relative, 1.0) * norm + 1e-6 * total;
    if (error / allowed > worst || std::isnan(error)) {
      worst = error / allowed;
      worstName = name;
    }
    if (!(error <= allowed)) {
      std::printf("gradient '%s': error %.3e, allowed %.3e, norm %.3e\n",
                  name.c_str(), error, allowed, norm);
      inside = false;
    }
  }
  std::printf("gradients: %zu tensors, worst uses %.1f %% of its tolerance "
              "('%s')\n",
              expected.size(), 100 * worst, worstName.c_str());
  return inside;
}

static bool compareWeights(const json &expected, const char *path) {
  SafetensorsReader file(path);
  double worst = 0;
  std::string worstName;
  for (const auto &[name, entry] : expected.items()) {
    TensorView tensor = file.find(name, ElementType::F32, entry["shape"]);
    double allowed = std::max(1e-5, 4 * entry["float32_error"].get<double>()) *
                     entry["norm"].get<double>();
    double used = errorOf(entry, tensor) / allowed;
    if (used > worst || std::isnan(used)) {
      worst = used;
      worstName = name;
    }
    if (!(used <= 1))
      std::printf("weight '%s': error is %.1f times what is allowed\n",
                  name.c_str(), used);
  }
  std::printf("weights: %zu tensors, worst uses %.1f %% of its tolerance "
              "('%s')\n",
              expected.size(), 100 * worst, worstName.c_str());
  return worst <= 1;
}

int main(int argc, char **argv) {
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr, "usage: compare-reference REFERENCE.json LOG.jsonl "
                         "GRADIENTS.safetensors|- [OPTIMIZER]\n"
                         "or, for stale weights, final weights in place of "
                         "gradients\n");
    return 2;
  }
  try {
    std::ifstream stream(argv[1]);
    json reference = json::parse(stream);
    json losses = reference["losses"];
    if (argc == 5)
      losses = reference["optimizers"].at(argv[4])["losses"];
    double tolerance =
        std::max(1e-4, 4 * reference["float32_loss_error"].get<double>());
    bool same =
        compareSteps("losses", losses, readSteps(argv[2], "loss"), tolerance);
    if (reference.contains("gradient_norms"))
      same &= compareSteps("norms", reference["gradient_norms"],
                           readSteps(argv[2], "gradient_norm"), 1e-5);
    if (reference.contains("weights"))
      same &= compareWeights(reference["weights"], argv[3]);
    else if (std::string(argv[3]) != "-")
      same &= compareGradients(reference["gradients"], argv[3]);
    return same ? 0 : 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
