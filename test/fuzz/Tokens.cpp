//===- Tokens.cpp - Fuzz target: token shards and CIFAR -------------------===//
//
// The bytes are a token shard, and in one of the forms without a header that
// tells them apart; which one follows from their number.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/DataFiles.h"
#include "test/fuzz/InputFile.h"

using namespace pipewright;
using namespace pipewright::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Program text =
      fuzz::programOf({{"tokens", ElementType::I64, {2, 4}, 1000},
                       {"targets", ElementType::I64, {8}, 1000}});
  static const Program images =
      fuzz::programOf({{"image", ElementType::F32, {2, 3, 32, 32}},
                       {"label", ElementType::I64, {2}, 100}});
  const std::string path = fuzz::inputFile(data, size);
  fuzz::readData(text, "tokens:" + path);
  static const char *const texts[] = {"bytes:", "u16:", "i32:"};
  fuzz::readData(text, texts[size % 3] + path);
  fuzz::readData(images, (size % 2 ? "cifar10:" : "cifar100:") + path);
  return 0;
}
