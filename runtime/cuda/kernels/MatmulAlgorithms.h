//===- MatmulAlgorithms.h - Algorithms that were the fastest ---*- C++ -*-===//
//
// cuBLASLt's heuristic names the algorithm that it takes for the fastest; on
// an H200 others of its list took up to 18 % less time. So a run may time them
// once, and keep in a file which one each product takes from then on: runs with
// the same file give the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_MATMULALGORITHMS_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_MATMULALGORITHMS_H

#include "runtime/cuda/CublasLt.h"

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace pipewright::runtime {

/// Those of the ranks of a process; they may share it.
class MatmulAlgorithms {
public:
  /// Reads the file. Where there is none, it is written when all `ranks` are
  /// set up. Throws an Error if it cannot be read, or is of another version of
  /// cuBLASLt.
  MatmulAlgorithms(std::string path, int64_t ranks);

  /// Whether there was no file.
  bool isMeasuring() const { return measuring; }
  /// That of a product on a card: of the file, or what `measure` returns, which
  /// the ranks of a card share. One is measured at a time. Throws an Error
  /// where there is a file that has none.
  std::optional<cublasLtMatmulAlgo_t>
  find(const std::string &card, const std::string &product,
       const std::function<std::optional<cublasLtMatmulAlgo_t>()> &measure);
  [[noreturn]] void refuse(const std::string &product) const;

  /// Of a rank of this process, once.
  void endSetUp();

private:
  void read();
  void write() const;

  using Key = std::pair<std::string, std::string>;

  const std::string path;
  int64_t ranksInSetUp;
  bool measuring = false;
  std::mutex mutex;
  std::map<Key, cublasLtMatmulAlgo_t> algorithms;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_MATMULALGORITHMS_H
