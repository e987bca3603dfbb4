//===- TcpAcceptor.cpp - Accepts authenticated connections ----------------===//

#include "runtime/net/TcpAcceptor.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <poll.h>
#include <sys/socket.h>
#include <utility>
#include <vector>

using namespace pipewright::runtime;
using namespace pipewright::runtime::tcp;

static Socket openReserve() { return Socket(open("/dev/null", O_CLOEXEC)); }

Acceptor::Acceptor(
    const Socket &listener, int64_t self, const JobKey &key,
    std::function<void(const std::string &, const Introduction &)> turnedAway)
    : listener(listener), self(self), key(key),
      turnedAway(std::move(turnedAway)), reserve(openReserve()) {}

/// Until a connection comes or one can be read, for a while at most.
void Acceptor::sleep(const Deadline &deadline) {
  std::vector<pollfd> entries = {{listener.get(), POLLIN, 0}};
  for (const PendingConnection &connection : pending)
    entries.push_back({connection.socket.get(), POLLIN, 0});
  ::poll(entries.data(), entries.size(), deadline.milliseconds(100));
}

void Acceptor::dropOne() {
  std::map<std::string, int64_t> counts;
  for (const PendingConnection &connection : pending)
    ++counts[connection.address];
  const auto crowd =
      std::max_element(counts.begin(), counts.end(),
                       [](auto &a, auto &b) { return a.second < b.second; });
  pending.erase(std::find_if(pending.begin(), pending.end(),
                             [&](const PendingConnection &connection) {
                               return connection.address == crowd->first;
                             }));
}

void Acceptor::acceptAll() {
  // A crowd must not keep connections that are there already from being read.
  for (size_t accepted = 0; accepted < maxPending / 2; ++accepted) {
    Socket socket = acceptFrom(listener);
    if (!socket && (errno == EMFILE || errno == ENFILE) && !pending.empty()) {
      dropOne();
      socket = acceptFrom(listener);
    } else if (!socket && (errno == EMFILE || errno == ENFILE)) {
      // The one that is dropped comes again if it is of the job.
      reserve.close();
      acceptFrom(listener);
      reserve = openReserve();
      return;
    }
    if (!socket)
      return;
    if (pending.size() >= maxPending)
      dropOne();
    const Challenge challenge = challengeWith(freshNonce());
    const std::string address = socket.peerAddress();
    if (socket.sendAll(&challenge, sizeof challenge, Deadline(0)))
      pending.push_back({std::move(socket),
                         address,
                         Deadline(handshakeSeconds),
                         challenge,
                         {},
                         0});
  }
}

/// Reads no more than an Introduction, and no more than is there.
Acceptor::Verdict Acceptor::listenTo(PendingConnection &connection) {
  while (connection.bytesRead < sizeof(Introduction)) {
    char *next = reinterpret_cast<char *>(&connection.introduction) +
                 connection.bytesRead;
    const ssize_t got =
        recv(connection.socket.get(), next,
             sizeof(Introduction) - connection.bytesRead, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return connection.deadline.passed() ? Verdict::Stranger : Verdict::Waits;
    if (got <= 0)
      return Verdict::Stranger;
    connection.bytesRead += got;
    if (connection.bytesRead >= sizeof magic &&
        !isOurs(connection.introduction))
      return Verdict::Stranger;
  }
  return judge(connection);
}

Acceptor::Verdict Acceptor::judge(PendingConnection &connection) {
  const bool welcome =
      holds(connection.introduction, connection.challenge, self, key);
  const Answer answer = answerTo(connection.introduction, connection.challenge,
                                 self, welcome, key);
  const bool told =
      connection.socket.sendAll(&answer, sizeof answer, Deadline(0));
  if (!welcome)
    turnedAway(connection.address, connection.introduction);
  return welcome && told ? Verdict::Proven : Verdict::Stranger;
}

Socket Acceptor::next(Introduction &introduction, const Deadline &deadline) {
  sleep(deadline);
  acceptAll();
  for (auto connection = pending.begin(); connection != pending.end();) {
    const Verdict verdict = listenTo(*connection);
    if (verdict == Verdict::Proven) {
      introduction = connection->introduction;
      Socket socket = std::move(connection->socket);
      pending.erase(connection);
      return socket;
    }
    connection = verdict == Verdict::Stranger ? pending.erase(connection)
                                              : std::next(connection);
  }
  return {};
}
