//===- Socket.h - TCP connections with deadlines ---------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_NET_SOCKET_H
#define PIPEWRIGHT_RUNTIME_NET_SOCKET_H

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace pipewright::runtime {

/// A moment after which a wait gives up; never, for an infinite number of
/// seconds.
class Deadline {
public:
  explicit Deadline(double seconds);

  bool passed() const { return Clock::now() >= end; }
  /// For poll(2): what is left, at most `most`.
  int milliseconds(int most) const;

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end;
};

/// Owns a file descriptor.
class Socket {
public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor(descriptor) {}
  Socket(Socket &&other) noexcept
      : descriptor(std::exchange(other.descriptor, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~Socket() { close(); }

  explicit operator bool() const { return descriptor >= 0; }
  int get() const { return descriptor; }
  void close();

  /// Sleeps until one of poll(2)'s events happens, or for a while. True if one
  /// did.
  bool waitFor(short events, int milliseconds) const;

  /// All bytes, or false: the deadline has passed, or the other end is gone.
  bool sendAll(const void *data, size_t bytes, const Deadline &deadline) const;
  bool receiveAll(void *data, size_t bytes, const Deadline &deadline) const;

  /// Numeric address of the other end; "" if there is none any more.
  std::string peerAddress() const;
  /// The same of this end.
  std::string localAddress() const;
  /// The port that a listening socket got.
  int port() const;

private:
  int descriptor = -1;
};

/// Listens at the host's first address that is one of this machine's; at all
/// of its addresses only if the host is 0.0.0.0 or ::. Port 0: any free one.
/// Throws an Error if the port is taken, or no address is of this machine.
Socket listenAt(const std::string &host, int port);

/// A connection from anyone; without one an empty Socket, and errno. Returns at
/// once.
Socket acceptFrom(const Socket &listener);

/// Tries until someone listens there. Past the deadline it returns an empty
/// Socket, and why in `reason`.
Socket connectTo(const std::string &host, int port, const Deadline &deadline,
                 std::string &reason);

/// "127.0.0.1", "::1" and what else never leaves a machine.
bool isLoopback(const std::string &numericAddress);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_SOCKET_H
