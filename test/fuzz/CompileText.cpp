//===- CompileText.cpp - Fuzz target: text of the import level ------------===//
//
// The bytes are text of the import level, compiled as by `-o OUT --no-build`.
// Its weights may be @w, of 8x4, and @b, of 4.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/CompileToFolder.h"
#include "test/fuzz/InputFile.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <random>
#include <string_view>

using namespace pipewright;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

static std::string weights() {
  std::string header =
      R"({"w":{"dtype":"F32","shape":[8,4],"data_offsets":[0,128]},)"
      R"("b":{"dtype":"F32","shape":[4],"data_offsets":[128,144]}})";
  uint64_t length = header.size();
  return std::string(reinterpret_cast<const char *>(&length), 8) + header +
         std::string(144, '\0');
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const fuzz::TemporaryFolder folder;
  static const std::string values = weights();
  folder.write("model.safetensors", values.data(), values.size());
  folder.write("model.mlir", data, size);
  frontend::ImportOptions options;
  options.modelPath = folder.path("model.mlir");
  fuzz::compileToFolder(options, size % 3 == 0 ? 2 : 1);
  return 0;
}

//===----------------------------------------------------------------------===//
// Mutants
//===----------------------------------------------------------------------===//

namespace {

/// Random bytes are hardly ever text that parses: here words, numbers and lines
/// change places.
class TextMutator {
public:
  TextMutator(std::string &text, unsigned seed) : text(text), random(seed) {}

  void mutate() {
    switch (below(4)) {
    case 0:
      return replaceNumber();
    case 1:
      return replaceWord();
    default:
      return changeLine();
    }
  }

private:
  size_t below(size_t bound) { return bound ? random() % bound : 0; }

  /// Begin and length of a run of characters that `isPart` takes.
  template <class IsPart>
  std::pair<size_t, size_t> someRun(IsPart isPart) {
    auto at =
        std::find_if(text.begin() + below(text.size()), text.end(), isPart);
    auto end = std::find_if_not(at, text.end(), isPart);
    return {at - text.begin(), end - at};
  }
  static bool isDigit(char c) { return std::isdigit(c); }
  static bool isOfWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' ||
           c == '_' || c == '%' || c == '@';
  }

  void replaceNumber() {
    static constexpr const char *numbers[] = {
        "0",  "1",  "2",          "4",          "8",
        "-1", "-8", "4294967296", "1000000000", "9223372036854775807"};
    auto [at, size] = someRun(isDigit);
    text.replace(at, size, numbers[below(std::size(numbers))]);
  }

  void replaceWord() {
    auto [at, size] = someRun(isOfWord);
    auto [from, length] = someRun(isOfWord);
    text.replace(at, size, text.substr(from, length));
  }

  /// Removes a line, or repeats it somewhere.
  void changeLine() {
    auto lineAt = [&] {
      size_t at = text.rfind('\n', below(text.size()));
      return at == std::string::npos ? 0 : at + 1;
    };
    size_t at = lineAt();
    size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string line = text.substr(at, end - at);
    if (below(2))
      text.erase(at, line.size());
    else
      text.insert(lineAt(), line);
  }

  std::string &text;
  std::mt19937 random;
};

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  std::string text(reinterpret_cast<const char *>(data), size);
  if (seed % 8 == 0 || text.empty())
    return LLVMFuzzerMutate(data, size, maxSize);
  TextMutator(text, seed).mutate();
  text.resize(std::min(text.size(), maxSize));
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
