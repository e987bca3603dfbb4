//===- FreePort.h - A port for one test alone -------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_CONFORMANCE_FREEPORT_H
#define PIPEWRIGHT_TEST_CONFORMANCE_FREEPORT_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pipewright::runtime {

/// Binds a socket of this type to the port of 127.0.0.1; -1 where it is taken.
inline int bindLocally(int type, int port) {
  const int descriptor = socket(AF_INET, type | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  if (type == SOCK_STREAM)
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(descriptor, reinterpret_cast<sockaddr *>(&address),
           sizeof address) == 0)
    return descriptor;
  close(descriptor);
  return -1;
}

/// A TCP port of 127.0.0.1 that nobody listens at, below those that connections
/// get. Tests run side by side, and some want that nobody comes: until this
/// process ends it keeps the UDP port of that number, so that others pass on.
inline int freePort() {
  constexpr int first = 10000, count = 20000;
  static int offset = getpid() % count;
  for (;; offset = (offset + 1) % count) {
    const int port = first + offset;
    const int reservation = bindLocally(SOCK_DGRAM, port);
    if (reservation < 0)
      continue;
    const int listener = bindLocally(SOCK_STREAM, port);
    if (listener >= 0 && listen(listener, 1) == 0) {
      close(listener);
      return port;
    }
    if (listener >= 0)
      close(listener);
    close(reservation);
  }
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_CONFORMANCE_FREEPORT_H
