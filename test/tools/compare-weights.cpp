//===- compare-weights.cpp - Two runs of one model ------------------------===//
//
// Compares two files (safetensors) that must hold the same tensors, and prints
// the largest difference: its norm, relative to the tensor's. Exit code 1 when
// that is above the tolerance.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Safetensors.h"
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

using nlohmann::json;
using namespace pipewright::runtime;

/// The table of tensors at the start of a file.
static json readHeader(const char *path) {
  std::ifstream file(path, std::ios::binary);
  uint64_t size = 0;
  file.read(reinterpret_cast<char *>(&size), sizeof size);
  std::string text(size, ' ');
  file.read(text.data(), static_cast<std::streamsize>(size));
  json header = json::parse(text);
  header.erase("__metadata__");
  return header;
}

/// The norm of the difference over that of the first.
static double relativeError(const TensorView &a, const TensorView &b) {
  const std::vector<float> first = a.values<float>();
  const std::vector<float> second = b.values<float>();
  double difference = 0, norm = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    difference += std::pow(double(first[i]) - second[i], 2);
    norm += std::pow(double(first[i]), 2);
  }
  return std::sqrt(difference / std::max(norm, 1e-30));
}

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: compare-weights A.safetensors B.safetensors "
                         "TOLERANCE\n");
    return 2;
  }
  try {
    SafetensorsReader a(argv[1]), b(argv[2]);
    json header = readHeader(argv[1]);
    if (header.size() != readHeader(argv[2]).size()) {
      std::printf("expects the same tensors in both files\n");
      return 1;
    }
    double worst = 0, tolerance = std::atof(argv[3]);
    std::string worstName;
    size_t tensors = 0;
    for (const auto &[name, entry] : header.items()) {
      if (entry["dtype"] != "F32")
        continue;
      ++tensors;
      double error =
          relativeError(a.find(name, ElementType::F32, entry["shape"]),
                        b.find(name, ElementType::F32, entry["shape"]));
      // Not a number counts as worst.
      if (!(error <= worst)) {
        worst = error;
        worstName = name;
      }
    }
    std::printf("%zu weights: worst relative difference %.1e of %.1e ('%s')\n",
                tensors, worst, tolerance, worstName.c_str());
    return worst <= tolerance && tensors > 0 ? 0 : 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
