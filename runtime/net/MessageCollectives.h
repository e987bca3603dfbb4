//===- MessageCollectives.h - Collectives by messages ----------*- C++ -*-===//
//
// One direct exchange: each member sends to each owner what that one adds, and
// owners send what they have. Sums go out as soon as their owner waits for
// something, whatever it is, or polls (Errand in Transport.h): nobody needs the
// others to wait for the same.
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
  ~MessageCollectives() override;

  void begin(const Collective &collective, void *data, void *scratch) override;
  void finish() override;

private:
  struct Begun final : Errand {
    Begun(MessageCollectives &owner, const Collective &collective, void *data,
          void *scratch)
        : owner(owner), collective(collective), data(static_cast<char *>(data)),
          scratch(static_cast<char *>(scratch)) {}
    bool advance() override { return owner.goOn(*this, false); }

    MessageCollectives &owner;
    const Collective &collective;
    char *const data;
    char *const scratch;
    /// How many messages of its first half, or only one, are over, and of its
    /// second half.
    int64_t over = 0, secondOver = 0;
    /// The sums of what this member owns are there.
    bool isAdded = false;
  };

  /// Who gets something from whom, and who gives.
  template <class Receive, class Send>
  void exchange(const Collective &what, bool toOwners, const Receive &receive,
                const Send &send);
  void postToOwners(const Begun &begun);
  void postFromOwners(const Begun &begun, Lane lane);
  bool wait(const Begun &begun, bool toOwners, Lane lane, int64_t &over,
            bool blocks);
  bool goOn(Begun &begun, bool blocks);
  void addOwned(const Begun &begun);

  Transport &group;
  std::deque<Begun> begun;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_MESSAGECOLLECTIVES_H
