//===- Tokens.cpp - Texts as sequences of tokens --------------------------===//
//
// A sample is a window of as many tokens as the input has; its companion is
// the same window one token later, which is what a language model predicts.
// Windows may begin anywhere, but never cross the end of a file.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/io/DataFile.h"
#include "runtime/io/Source.h"

#include <cstring>
#include <memory>

using namespace pipewright::runtime;

namespace {

struct Shard {
  std::shared_ptr<DataFile> file;
  /// Where in the file the tokens begin.
  int64_t begin = 0;
  int64_t count = 0;
  int64_t width = 1;

  template <class Token>
  void widen(int64_t first, int64_t number, int64_t *out) const {
    const unsigned char *at = file->view(begin + first * width, number * width);
    for (int64_t i = 0; i < number; ++i) {
      Token token;
      std::memcpy(&token, at + i * sizeof(Token), sizeof(Token));
      out[i] = token;
    }
  }
  void read(int64_t first, int64_t number, int64_t *out) const {
    width == 1   ? widen<uint8_t>(first, number, out)
    : width == 2 ? widen<uint16_t>(first, number, out)
                 : widen<uint32_t>(first, number, out);
  }
};

/// All files of one text and where windows begin.
struct Text {
  std::vector<Shard> shards;
  int64_t length = 0;

  int64_t windows(const Shard &shard) const { return shard.count - length; }

  void read(int64_t sample, int64_t shift, int64_t *out) const {
    size_t shard = 0;
    while (sample >= windows(shards[shard]))
      sample -= windows(shards[shard++]);
    shards[shard].read(sample + shift, length, out);
  }
};

} // namespace

/// The shards that llm.c writes: 256 int32 of header, of which the first
/// three are mark, version and number of tokens.
static Shard openLlmc(const std::string &path) {
  constexpr int64_t headerBytes = 256 * 4;
  Shard shard;
  shard.file = std::make_shared<DataFile>(path);
  int32_t header[3] = {0, 0, 0};
  if (shard.file->bytes() >= headerBytes)
    shard.file->read(0, sizeof header, header);
  if (header[0] != 20240520 && header[0] != 20240801)
    fail("'", path, "' is no token shard: it begins with ", header[0],
         ", but expects 20240520 (plain text is bytes:FILE, raw 16-bit tokens "
         "are u16:FILE)");
  shard.width = header[0] == 20240520 ? 2 : 4;
  shard.count = header[2];
  shard.begin = headerBytes;
  const int64_t expected = headerBytes + shard.count * shard.width;
  if (header[1] != 1 && header[1] != 7)
    fail("'", path, "' is a token shard of version ", header[1],
         ", but only 1 is known");
  if (shard.count < 0 || shard.file->bytes() != expected)
    fail("'", path, "' is truncated: ", shard.count, " tokens need ", expected,
         " bytes, but it has ", shard.file->bytes());
  return shard;
}

static Shard openRaw(const std::string &path, int64_t width) {
  Shard shard;
  shard.file = std::make_shared<DataFile>(path);
  shard.width = width;
  shard.count = shard.file->bytes() / width;
  if (shard.file->bytes() % width)
    fail("'", path, "' has ", shard.file->bytes(),
         " bytes, which is no multiple of ", width, " (bytes of a token)");
  return shard;
}

SourcePair pipewright::runtime::openTokens(const std::string &kind,
                                           const std::string &paths,
                                           const InputSlot &slot) {
  if (slot.info.type != ElementType::I64 || !slot.batched)
    fail("input '", slot.info.name, "' expects ", typeText(slot.info.type),
         " of shape ", shapeText(slot.info.shape), ", but '", kind,
         ":' gives i64 tokens");
  auto text = std::make_shared<Text>();
  text->length = slot.sampleElements;
  Source source;
  for (const std::string &path : splitCommas(paths)) {
    text->shards.push_back(kind == "tokens"  ? openLlmc(path)
                           : kind == "bytes" ? openRaw(path, 1)
                           : kind == "u16"   ? openRaw(path, 2)
                                             : openRaw(path, 4));
    const Shard &shard = text->shards.back();
    if (shard.count <= text->length)
      fail("'", path, "' has ", shard.count, " tokens, but input '",
           slot.info.name, "' expects at least ", text->length + 1,
           " (one window and its next token)");
    source.samples += text->windows(shard);
  }
  if (text->shards.empty())
    fail("--data ", slot.info.name, "=", kind, ":... names no file");
  source.stride = text->length;
  source.description = kind + ":" + paths;
  source.largest = kind == "bytes" ? 255 : -1;
  source.read = [text](int64_t sample, void *out) {
    text->read(sample, 0, static_cast<int64_t *>(out));
  };
  source.check = [text] {
    for (const Shard &shard : text->shards)
      shard.file->checkSize();
  };
  SourcePair pair = {source, {}, {}};
  pair.fits = [length = text->length](const InputSlot &other) {
    return other.info.type == ElementType::I64 && other.batched &&
           other.sampleElements == length;
  };
  pair.companion = [text, source, fits = pair.fits](const InputSlot &other) {
    if (!fits(other))
      fail("input '", other.info.name, "' expects ", typeText(other.info.type),
           " samples of shape ", shapeText(other.sampleShape),
           ", but next tokens are i64 of ", text->length);
    Source next = source;
    next.description = "next tokens of " + source.description;
    next.read = [text](int64_t sample, void *out) {
      text->read(sample, 1, static_cast<int64_t *>(out));
    };
    return next;
  };
  return pair;
}
