//===- MessageCollectives.h - Collectives by messages ----------*- C++ -*-===//
//
// One direct exchange: each member sends to each owner what that one adds, and
// owners send what they have. Sums that are handed out go out in `finish`
// alone: to hide all of an all-reduce, give its two halves.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_MESSAGECOLLECTIVES_H
#define PIPEWRIGHT_RUNTIME_NET_MESSAGECOLLECTIVES_H

#include "runtime/net/Collectives.h"
#include "runtime/net/Transport.h"

#include <deque>

namespace pipewright::runtime {

class MessageCollectives : public Collectives {
public:
  explicit MessageCollectives(Transport &group) : group(group) {}

  void begin(const Collective &collective, void *data, void *scratch) override;
  void finish() override;

private:
  struct Begun {
    const Collective *collective;
    char *data;
    char *scratch;
    /// How many messages of it are over.
    int64_t over = 0;
    bool isAdded = false;
  };

  /// Who gets something from whom, and who gives.
  template <class Receive, class Send>
  void exchange(const Collective &what, bool toOwners, const Receive &receive,
                const Send &send);
  void postToOwners(const Begun &begun);
  void postFromOwners(const Begun &begun, Lane lane);
  void wait(Begun &begun, bool toOwners, Lane lane);
  void addOwned(const Begun &begun);

  Transport &group;
  std::deque<Begun> begun;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_MESSAGECOLLECTIVES_H
