//===- Socket.cpp - TCP connections with deadlines ------------------------===//

#include "runtime/net/Socket.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace pipewright::runtime;

/// More than any run; the clock's own numbers end after some centuries.
static constexpr double forever = 1e9;

Deadline::Deadline(double seconds)
    : end(Clock::now() +
          std::chrono::duration_cast<Clock::duration>(
              std::chrono::duration<double>(std::min(seconds, forever)))) {}

int Deadline::milliseconds(int most) const {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, most));
}

void Socket::close() {
  if (descriptor >= 0)
    ::close(descriptor);
  descriptor = -1;
}

bool Socket::waitFor(short events, int milliseconds) const {
  pollfd entry = {descriptor, events, 0};
  return ::poll(&entry, 1, milliseconds) > 0;
}

static bool isTemporary(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

bool Socket::sendAll(const void *data, size_t bytes,
                     const Deadline &deadline) const {
  const char *next = static_cast<const char *>(data);
  while (bytes) {
    const ssize_t sent =
        ::send(descriptor, next, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && !isTemporary(errno))
      return false;
    if (sent > 0) {
      next += sent;
      bytes -= sent;
    } else if (deadline.passed()) {
      return false;
    } else {
      waitFor(POLLOUT, deadline.milliseconds(1000));
    }
  }
  return true;
}

bool Socket::receiveAll(void *data, size_t bytes,
                        const Deadline &deadline) const {
  char *next = static_cast<char *>(data);
  while (bytes) {
    const ssize_t received = ::recv(descriptor, next, bytes, MSG_DONTWAIT);
    if (received == 0 || (received < 0 && !isTemporary(errno)))
      return false;
    if (received > 0) {
      next += received;
      bytes -= received;
    } else if (deadline.passed()) {
      return false;
    } else {
      waitFor(POLLIN, deadline.milliseconds(1000));
    }
  }
  return true;
}

/// "" if there is no such end any more.
static std::string numericAddress(int (*name)(int, sockaddr *, socklen_t *),
                                  int descriptor) {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  char text[NI_MAXHOST] = "";
  auto *generic = reinterpret_cast<sockaddr *>(&address);
  if (name(descriptor, generic, &length) == 0)
    getnameinfo(generic, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  // How an IPv6 socket writes IPv4 addresses.
  const std::string mapped = "::ffff:";
  return std::strncmp(text, mapped.c_str(), mapped.size()) == 0
             ? text + mapped.size()
             : text;
}

std::string Socket::peerAddress() const {
  return numericAddress(getpeername, descriptor);
}

std::string Socket::localAddress() const {
  return numericAddress(getsockname, descriptor);
}

int Socket::port() const {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  char text[NI_MAXSERV] = "0";
  auto *generic = reinterpret_cast<sockaddr *>(&address);
  if (getsockname(descriptor, generic, &length) == 0)
    getnameinfo(generic, length, nullptr, 0, text, sizeof text, NI_NUMERICSERV);
  return std::atoi(text);
}

namespace {
struct FreeAddresses {
  void operator()(addrinfo *list) const { freeaddrinfo(list); }
};
} // namespace
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

/// Null, and why in `reason`, for a name that nobody knows.
static Addresses findAddresses(const char *host, int port, int flags,
                               std::string &reason) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo *list = nullptr;
  const int code =
      getaddrinfo(host, std::to_string(port).c_str(), &hints, &list);
  if (code)
    reason = gai_strerror(code);
  return Addresses(code ? nullptr : list);
}

/// An empty Socket, and errno, if the address cannot be had.
static Socket tryToListen(const addrinfo &address) {
  // Whoever has gone between poll(2) and accept(2) holds nobody up.
  Socket socket(::socket(address.ai_family,
                         address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                         address.ai_protocol));
  if (!socket)
    return {};
  const int on = 1;
  // A port that another run has just left is free.
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(socket.get(), address.ai_addr, address.ai_addrlen) ||
      ::listen(socket.get(), 1024))
    return {};
  return socket;
}

Socket pipewright::runtime::listenAt(const std::string &host, int port) {
  std::string reason;
  const Addresses list = findAddresses(host.c_str(), port, 0, reason);
  bool elsewhere = false;
  for (addrinfo *at = list.get(); at; at = at->ai_next) {
    if (Socket socket = tryToListen(*at))
      return socket;
    if (errno == EADDRINUSE)
      fail("port ", port, " is taken: set MASTER_PORT to one that is free on ",
           host);
    elsewhere |= errno == EADDRNOTAVAIL;
    reason = std::strerror(errno);
  }
  if (elsewhere)
    fail("cannot listen at ", host,
         ", which is no address of this machine: on rank 0 set MASTER_ADDR to "
         "one of its own, or to 0.0.0.0 to listen at all of them");
  fail("cannot listen at ", host, ", port ", port, ": ", reason);
}

/// For a connection that carries small frames, and must notice when the other
/// host has gone.
static void configure(const Socket &socket) {
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const int seconds = 10, probes = 3;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, &seconds,
             sizeof seconds);
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  const unsigned unacknowledged = 40000; // milliseconds
  setsockopt(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged,
             sizeof unacknowledged);
}

Socket pipewright::runtime::acceptFrom(const Socket &listener) {
  Socket socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket)
    configure(socket);
  return socket;
}

/// Whether the connection is there before the deadline; else errno says why.
static bool finishConnecting(const Socket &socket, const Deadline &deadline) {
  if (!socket.waitFor(POLLOUT, deadline.milliseconds(5000))) {
    errno = ETIMEDOUT;
    return false;
  }
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  errno = error;
  return error == 0;
}

static Socket tryToConnect(const addrinfo &address, const Deadline &deadline) {
  Socket socket(::socket(address.ai_family,
                         address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                         address.ai_protocol));
  if (!socket)
    return {};
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) &&
      (errno != EINPROGRESS || !finishConnecting(socket, deadline)))
    return {};
  configure(socket);
  return socket;
}

Socket pipewright::runtime::connectTo(const std::string &host, int port,
                                      const Deadline &deadline,
                                      std::string &reason) {
  do {
    const Addresses list = findAddresses(host.c_str(), port, 0, reason);
    for (addrinfo *at = list.get(); at; at = at->ai_next) {
      if (Socket socket = tryToConnect(*at, deadline))
        return socket;
      reason = std::strerror(errno);
    }
    std::this_thread::sleep_for(
        std::chrono::milliseconds(deadline.milliseconds(20)));
  } while (!deadline.passed());
  return {};
}

bool pipewright::runtime::isLoopback(const std::string &numericAddress) {
  return numericAddress == "::1" || numericAddress.rfind("127.", 0) == 0;
}
