//===- Channel.cpp - One direction between two ranks ----------------------===//

#include "test/doubles/nccl/Channel.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

using namespace pipewright::doubles;

Descriptor::~Descriptor() {
  if (number >= 0)
    ::close(number);
}

void Descriptor::cut() const {
  if (number >= 0)
    ::shutdown(number, SHUT_RDWR);
}

static std::pair<sockaddr_un, socklen_t> addressOf(const std::string &name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // A zero byte in front: no file.
  std::memcpy(address.sun_path + 1, name.data(),
              std::min(name.size(), sizeof address.sun_path - 1));
  return {address, offsetof(sockaddr_un, sun_path) + 1 + name.size()};
}

static Descriptor open() {
  return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

Descriptor pipewright::doubles::listenAs(const std::string &name) {
  const auto [address, length] = addressOf(name);
  Descriptor socket = open();
  if (bind(socket.get(), reinterpret_cast<const sockaddr *>(&address),
           length) ||
      ::listen(socket.get(), 64))
    return {};
  return socket;
}

Descriptor pipewright::doubles::connectAs(const std::string &name) {
  const auto [address, length] = addressOf(name);
  Descriptor socket = open();
  if (connect(socket.get(), reinterpret_cast<const sockaddr *>(&address),
              length))
    return {};
  return socket;
}

Descriptor pipewright::doubles::acceptFrom(const Descriptor &listener,
                                           int milliseconds) {
  pollfd entry = {listener.get(), POLLIN, 0};
  if (::poll(&entry, 1, milliseconds) <= 0)
    return {};
  return Descriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

static bool isTemporary() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

Exchange::Status Exchange::step() {
  if (outLeft) {
    const ssize_t sent =
        ::send(socket, out, outLeft, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && !isTemporary())
      return Status::Broken;
    out += std::max<ssize_t>(sent, 0);
    outLeft -= std::max<ssize_t>(sent, 0);
  }
  if (inLeft) {
    const ssize_t got = ::recv(socket, in, inLeft, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && !isTemporary()))
      return Status::Broken;
    in += std::max<ssize_t>(got, 0);
    inLeft -= std::max<ssize_t>(got, 0);
  }
  return outLeft || inLeft ? Status::Working : Status::Done;
}

short Exchange::events() const {
  return static_cast<short>((outLeft ? POLLOUT : 0) | (inLeft ? POLLIN : 0));
}

Transfer::Transfer(int socket, bool isSend, void *data, Ready what)
    : socket(socket), isSend(isSend), data(data), own(what),
      current(socket, nullptr, 0, nullptr, 0) {}

/// A sender hears first, a receiver speaks first.
void Transfer::begin() {
  begun = true;
  current = isSend ? Exchange(socket, nullptr, 0, &other, sizeof other)
                   : Exchange(socket, &own, sizeof own, nullptr, 0);
}

static bool isClosed(int socket) {
  pollfd entry = {socket, POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) > 0 && entry.revents != 0;
}

Exchange::Status Transfer::step() {
  if (!begun)
    begin();
  if (stuck)
    return isClosed(socket) ? Exchange::Status::Broken
                            : Exchange::Status::Working;
  Exchange::Status status = current.step();
  if (status != Exchange::Status::Done || !data)
    return status;
  if (isSend && own != other) {
    stuck = true;
    return Exchange::Status::Working;
  }
  // The bytes themselves, once.
  void *bytes = std::exchange(data, nullptr);
  current = isSend ? Exchange(socket, bytes, own.bytes, nullptr, 0)
                   : Exchange(socket, nullptr, 0, bytes, own.bytes);
  return current.step();
}

short Transfer::events() const { return stuck ? POLLRDHUP : current.events(); }

void pipewright::doubles::sleepFor(
    const std::vector<std::pair<int, short>> &sockets) {
  std::vector<pollfd> entries;
  for (const auto &[socket, events] : sockets)
    entries.push_back({socket, events, 0});
  ::poll(entries.data(), entries.size(), 5);
}
