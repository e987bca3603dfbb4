//===- TcpAcceptor.h - Accepts authenticated connections -------*- C++ -*-===//
//
// Accepts connections and reads what authenticates each, without waiting for
// any: it may be a stranger's, who sends nothing, or anything. Strangers are
// dropped, and neither their number nor their silence keeps anybody else out.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_TCPACCEPTOR_H
#define PIPEWRIGHT_RUNTIME_NET_TCPACCEPTOR_H

#include "runtime/net/Socket.h"
#include "runtime/net/TcpHandshake.h"

#include <functional>
#include <list>
#include <string>

namespace pipewright::runtime::tcp {

/// How long a connection may take to authenticate, and how many may be at it.
constexpr double handshakeSeconds = 5;
constexpr size_t maxPending = 64;

class Acceptor {
public:
  /// `turnedAway` is called for connections that speak the protocol without the
  /// right key: with their address and what they have sent.
  Acceptor(const Socket &listener, int64_t self, const JobKey &key,
           std::function<void(const std::string &, const Introduction &)>
               turnedAway);

  /// The next authenticated connection, or an empty Socket after a while.
  Socket next(Introduction &introduction, const Deadline &deadline);

private:
  struct PendingConnection {
    Socket socket;
    std::string address;
    Deadline deadline;
    Challenge challenge;
    Introduction introduction;
    size_t bytesRead = 0;
  };
  enum class Verdict { Waits, Stranger, Proven };

  void sleep(const Deadline &deadline);
  void acceptAll();
  /// Frees a place: the oldest one of the address that has the most.
  void dropOne();
  Verdict listenTo(PendingConnection &connection);
  Verdict judge(PendingConnection &connection);

  const Socket &listener;
  const int64_t self;
  const JobKey &key;
  const std::function<void(const std::string &, const Introduction &)>
      turnedAway;
  std::list<PendingConnection> pending;
  /// Given up to accept, and drop, a connection when descriptors have run out.
  Socket reserve;
};

} // namespace pipewright::runtime::tcp

#endif // PIPEWRIGHT_RUNTIME_NET_TCPACCEPTOR_H
