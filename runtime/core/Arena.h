//===- Arena.h - One planned block of memory per rank ----------*- C++ -*-===//
//
// The compiler has given every value an offset; a rank owns exactly one block
// of memory, made and touched at start-up. A Buffer is a range of it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_ARENA_H
#define PIPEWRIGHT_RUNTIME_CORE_ARENA_H

#include <cstdint>

namespace pipewright::runtime {

/// A range of the rank's arena. Zero bytes means "not there" (an operand that
/// is optional).
struct Buffer {
  int64_t offset = 0;
  int64_t bytes = 0;

  /// A part of this buffer.
  constexpr Buffer at(int64_t begin, int64_t size) const {
    return {offset + begin, size};
  }
  constexpr explicit operator bool() const { return bytes != 0; }
};

/// Page-aligned, zero-filled memory that remembers how much of it was used.
class Arena {
public:
  /// Throws an Error when the system has not that much memory.
  explicit Arena(int64_t bytes);
  /// Memory of somebody else, perhaps a GPU's: only addresses are made here.
  Arena(void *memory, int64_t bytes)
      : base(static_cast<char *>(memory)), size(bytes), owned(false) {}
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  char *resolve(Buffer buffer) {
    const int64_t end = buffer.offset + buffer.bytes;
    if (end > highWaterMark) {
      if (end > size)
        failOutside(buffer);
      highWaterMark = end;
    }
    return base + buffer.offset;
  }

  int64_t bytes() const { return size; }
  /// The end of the highest buffer that was ever asked for.
  int64_t peak() const { return highWaterMark; }

private:
  [[noreturn]] void failOutside(Buffer buffer) const;

  char *base = nullptr;
  int64_t size = 0;
  int64_t highWaterMark = 0;
  bool owned = true;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_ARENA_H
