//===- TcpDoor.h - Lets in who proves to be of the job ----------*- C++ -*-===//
//
// Accepts connections and hears each one's proof, without waiting for any: it
// may be a stranger that says nothing, or nonsense. Strangers are dropped, and
// neither their number nor their silence keeps anybody else out.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_TCPDOOR_H
#define PIPEWRIGHT_RUNTIME_NET_TCPDOOR_H

#include "runtime/net/Socket.h"
#include "runtime/net/TcpHandshake.h"

#include <functional>
#include <list>
#include <string>

namespace pipewright::runtime::tcp {

/// How long one may stand at the door, and how many may.
constexpr double doorSeconds = 5;
constexpr size_t mostGuests = 64;

class Door {
public:
  /// `turnedAway` hears of those that speak our words without the right proof:
  /// their address and what they say.
  Door(const Socket &listener, int64_t self, const JobKey &key,
       std::function<void(const std::string &, const Introduction &)>
           turnedAway);

  /// The next who has proven to be of the job, or an empty Socket after a
  /// while.
  Socket next(Introduction &introduction, const Deadline &deadline);

private:
  struct Guest {
    Socket socket;
    std::string address;
    Deadline patience;
    Challenge challenge;
    Introduction introduction;
    size_t heard = 0;
  };
  enum class Verdict { Waits, Stranger, Proven };

  void sleep(const Deadline &deadline);
  void acceptAll();
  /// Frees a place: of those with most guests from one address, the oldest's.
  void dropOne();
  Verdict listenTo(Guest &guest);
  Verdict judge(Guest &guest);

  const Socket &listener;
  const int64_t self;
  const JobKey &key;
  const std::function<void(const std::string &, const Introduction &)>
      turnedAway;
  std::list<Guest> guests;
  /// Given up to accept, and drop, a guest when descriptors have run out.
  Socket reserve;
};

} // namespace pipewright::runtime::tcp

#endif // PIPEWRIGHT_RUNTIME_NET_TCPDOOR_H
