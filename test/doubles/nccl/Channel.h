//===- Channel.h - One direction between two ranks -------------*- C++ -*-===//
//
// Unix-domain sockets, so that ranks may be threads or processes. Nothing is
// buffered: the receiver says that it is ready, and for what; only then do
// bytes flow. Where sizes or types differ nothing flows, for ever.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_NCCL_CHANNEL_H
#define PIPEWRIGHT_TEST_DOUBLES_NCCL_CHANNEL_H

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::doubles {

/// Owns a file descriptor.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(Descriptor &&other) noexcept
      : number(std::exchange(other.number, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~Descriptor();

  explicit operator bool() const { return number >= 0; }
  int get() const { return number; }
  /// The other end reads and writes no more; our waits end.
  void cut() const;

private:
  int number = -1;
};

/// A socket in the abstract name space: it goes with its owner.
Descriptor listenAs(const std::string &name);
/// Empty if nobody has that name, or nobody came for a while.
Descriptor connectAs(const std::string &name);
Descriptor acceptFrom(const Descriptor &listener, int milliseconds);

/// Bytes that go both ways over one socket, as far as they can without
/// waiting.
class Exchange {
public:
  enum class Status { Working, Done, Broken };

  Exchange(int socket, const void *out, size_t outBytes, void *in,
           size_t inBytes)
      : socket(socket), out(static_cast<const char *>(out)),
        in(static_cast<char *>(in)), outLeft(outBytes), inLeft(inBytes) {}

  Status step();
  int descriptor() const { return socket; }
  short events() const;

private:
  int socket;
  const char *out;
  char *in;
  size_t outLeft, inLeft;
};

/// What a receiver is ready for.
struct Ready {
  uint64_t bytes = 0;
  uint64_t type = 0;

  friend bool operator==(const Ready &, const Ready &) = default;
};

/// One transfer over a channel.
class Transfer {
public:
  Transfer(int socket, bool isSend, void *data, Ready what);

  Exchange::Status step();
  int descriptor() const { return socket; }
  short events() const;

private:
  void begin();

  int socket;
  bool isSend;
  void *data;
  Ready own, other;
  Exchange current;
  bool begun = false;
  /// The ends differ: hangs, as NCCL does.
  bool stuck = false;
};

/// Sleeps a few milliseconds, or less if one of the sockets is ready.
void sleepFor(const std::vector<std::pair<int, short>> &sockets);

} // namespace pipewright::doubles

#endif // PIPEWRIGHT_TEST_DOUBLES_NCCL_CHANNEL_H
