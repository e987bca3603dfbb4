//===- MatmulAlgorithms.cpp - Algorithms that were the fastest ------------===//

#include "runtime/cuda/kernels/MatmulAlgorithms.h"
#include "runtime/core/Error.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/JsonFile.h"

#include <algorithm>
#include <filesystem>

using namespace pipewright::runtime;

static constexpr const char *formatName = "pipewright algorithms 1";
/// Of a file: some hundred products of 300 bytes.
static constexpr int64_t maxBytes = 16 << 20;
static constexpr size_t words =
    sizeof(cublasLtMatmulAlgo_t::data) / sizeof(uint64_t);

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

MatmulAlgorithms::MatmulAlgorithms(std::string given, int64_t ranks)
    : path(std::move(given)), ranksInSetUp(ranks) {
  std::error_code error;
  measuring = !std::filesystem::exists(path, error);
  if (measuring)
    // That it cannot be written is said before anything is timed.
    AtomicFile(path, AtomicFile::Target::RegularFile);
  else
    read();
}

/// NVIDIA's header: the words may be kept, and used with the same version.
static cublasLtMatmulAlgo_t readAlgorithm(const nlohmann::json &json) {
  const auto &list = json.get_ref<const nlohmann::json::array_t &>();
  if (list.size() != words)
    fail("an algorithm has ", words, " words");
  cublasLtMatmulAlgo_t algorithm = {};
  std::transform(list.begin(), list.end(), algorithm.data, readChecksum);
  return algorithm;
}

void MatmulAlgorithms::read() {
  const auto parse = [&](const nlohmann::json &json) {
    for (const auto &each :
         json.at("products").get_ref<const nlohmann::json::array_t &>())
      algorithms.insert_or_assign({each.at("card").get<std::string>(),
                                   each.at("product").get<std::string>()},
                                  readAlgorithm(each.at("algorithm")));
    return wholeNumber(json.at("cublaslt"));
  };
  const int64_t version =
      readFormat(path, "list of algorithms", maxBytes, formatName, parse);
  if (version != static_cast<int64_t>(cublasLt().cublasLtGetVersion()))
    fail("--algorithms: '", path, "' is of cuBLASLt ", version,
         ", but this is ", cublasLt().cublasLtGetVersion(),
         ": remove it, and the next run makes it anew");
}

void MatmulAlgorithms::write() const {
  auto products = nlohmann::ordered_json::array();
  for (const auto &[key, algorithm] : algorithms) {
    auto list = nlohmann::ordered_json::array();
    for (const uint64_t word : algorithm.data)
      list.push_back(checksumText(word));
    products.push_back({{"card", key.first},
                        {"product", key.second},
                        {"algorithm", std::move(list)}});
  }
  const nlohmann::ordered_json json = {
      {"format", formatName},
      {"cublaslt", cublasLt().cublasLtGetVersion()},
      {"products", std::move(products)}};
  const std::string text = json.dump(1) + "\n";
  AtomicFile file(path, AtomicFile::Target::RegularFile);
  file.write(text.data(), text.size());
  file.commit();
}

//===----------------------------------------------------------------------===//
// What ranks ask
//===----------------------------------------------------------------------===//

std::optional<cublasLtMatmulAlgo_t> MatmulAlgorithms::find(
    const std::string &card, const std::string &product,
    const std::function<std::optional<cublasLtMatmulAlgo_t>()> &measure) {
  const std::lock_guard lock(mutex);
  const Key key = {card, product};
  if (const auto found = algorithms.find(key); found != algorithms.end())
    return found->second;
  if (!measuring)
    fail("--algorithms: '", path, "' has none for ", product, " on ", card,
         ": it is of another program or card; give another file, or remove it, "
         "and the next run makes it anew");
  const std::optional<cublasLtMatmulAlgo_t> measured = measure();
  if (measured)
    algorithms.emplace(key, *measured);
  return measured;
}

void MatmulAlgorithms::refuse(const std::string &product) const {
  fail("--algorithms: '", path, "' has one for ", product,
       " that cuBLASLt does not take: remove it, and the next run makes it "
       "anew");
}

void MatmulAlgorithms::endSetUp() {
  const std::lock_guard lock(mutex);
  if (--ranksInSetUp == 0 && measuring)
    write();
}
