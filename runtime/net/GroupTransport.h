//===- GroupTransport.h - Some ranks of a transport ------------*- C++ -*-===//
//
// The members of a group are numbered from 0, as if there were no others, so
// that whoever talks to the group needs to know nothing of the rest. Posts and
// waits go over the whole transport, on the same lanes: what two processes say
// to each other stays in one order, whatever groups they share. Errors name
// processes as the whole transport does.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_GROUPTRANSPORT_H
#define PIPEWRIGHT_RUNTIME_NET_GROUPTRANSPORT_H

#include "runtime/core/Traffic.h"
#include "runtime/net/Transport.h"

#include <utility>
#include <vector>

namespace pipewright::runtime {

class GroupTransport : public Transport {
public:
  /// `members` are ranks of `whole`, which outlives this. Throws an Error
  /// unless they are all there, each once, and this rank is one of them.
  GroupTransport(Transport &whole, std::vector<int64_t> members);

  int64_t rank() const override { return self; }
  int64_t size() const override { return static_cast<int64_t>(members.size()); }
  void postSend(Line to, const void *data, int64_t bytes) override {
    if (to.lane != Lane::Control)
      sent += {1, bytes};
    whole.postSend(inWhole(to), data, bytes);
  }
  void postReceive(Line from, void *data, int64_t bytes) override {
    whole.postReceive(inWhole(from), data, bytes);
  }
  void waitSend(Line to) override { whole.waitSend(inWhole(to)); }
  void waitReceive(Line from) override { whole.waitReceive(inWhole(from)); }
  bool isOver(Line line, bool isSend) override {
    return whole.isOver(inWhole(line), isSend);
  }
  void poll() override { whole.poll(); }
  std::unique_ptr<Collectives>
  openShared(const std::vector<int64_t> &members) override;
  /// Ends the ranks outside of the group as well: a run ends as one.
  void abort(const std::string &message) override { whole.abort(message); }
  int64_t nameOf(int64_t member) const override {
    return whole.nameOf(members[member]);
  }

  /// What this member has sent to others since the last call, without barriers
  /// and sums.
  Traffic takeSent() { return std::exchange(sent, {}); }

private:
  Line inWhole(Line line) const { return {members.at(line.peer), line.lane}; }

  Transport &whole;
  const std::vector<int64_t> members;
  int64_t self = -1;
  Traffic sent;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_GROUPTRANSPORT_H
