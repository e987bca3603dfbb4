//===- Hash.h - FNV-1a, to find what differs ------------------*- C++ -*-===//
//
// Finds mistakes, such as an old copy of a file, not forgeries. Two different
// contents have the same hash less often than a disk breaks.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_HASH_H
#define PIPEWRIGHT_RUNTIME_CORE_HASH_H

#include <cstdint>
#include <cstring>
#include <string_view>

namespace pipewright::runtime {

class Hash {
public:
  void addWord(uint64_t word) { hash = (hash ^ word) * prime; }
  /// By words of eight bytes; the rest counts as if zeros followed.
  void addBytes(const void *data, int64_t bytes) {
    const char *from = static_cast<const char *>(data);
    for (int64_t at = 0; at < bytes; at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, from + at, bytes - at < 8 ? bytes - at : 8);
      addWord(word);
    }
  }
  /// A text and its length.
  void addText(std::string_view text) {
    addWord(text.size());
    addBytes(text.data(), static_cast<int64_t>(text.size()));
  }
  uint64_t value() const { return hash; }

private:
  static constexpr uint64_t prime = 0x100000001b3u;
  uint64_t hash = 0xcbf29ce484222325u;
};

/// The same of bytes that come in parts, wherever they are parted.
class StreamHash {
public:
  void addBytes(const void *data, int64_t bytes) {
    const char *from = static_cast<const char *>(data);
    if (waiting > 0) {
      const int64_t now = bytes < 8 - waiting ? bytes : 8 - waiting;
      std::memcpy(word + waiting, from, now);
      waiting += now;
      from += now;
      bytes -= now;
      if (waiting < 8)
        return;
      hash.addBytes(word, 8);
      waiting = 0;
    }
    const int64_t whole = bytes / 8 * 8;
    hash.addBytes(from, whole);
    waiting = bytes - whole;
    std::memcpy(word, from + whole, waiting);
  }
  uint64_t value() const {
    Hash end = hash;
    end.addBytes(word, waiting);
    return end.value();
  }

private:
  Hash hash;
  char word[8];
  /// Bytes of `word` that are there.
  int64_t waiting = 0;
};

inline uint64_t hashOf(std::string_view text) {
  Hash hash;
  hash.addText(text);
  return hash.value();
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_HASH_H
