//===- SizeNotices.cpp - Both ends compare sizes of transfers -------------===//

#include "runtime/cuda/SizeNotices.h"

using namespace pipewright::runtime;

void SizeNotices::expect(int64_t peer, PeerSizes &with) {
  Notice &answer = with.expected.emplace_back();
  control.postReceive(peer, &answer, sizeof answer);
}

int64_t SizeNotices::tell(int64_t peer, bool isSend, int64_t bytes) {
  PeerSizes &with = peers[peer];
  const int64_t number = isSend ? with.sends++ : with.receives++;
  const Notice &notice = with.sent.emplace_back(Notice{isSend, number, bytes});
  if (with.ahead > 0)
    --with.ahead;
  else
    expect(peer, with);
  control.postSend(peer, &notice, sizeof notice);
  return number;
}

void SizeNotices::compare(int64_t peer, bool isSend, int64_t number,
                          int64_t bytes) {
  PeerSizes &with = peers[peer];
  const std::pair<bool, int64_t> wanted = {!isSend, number};
  while (!with.received.contains(wanted)) {
    // The peer may have given more than this rank, and what is waited for last.
    if (with.expected.empty()) {
      expect(peer, with);
      ++with.ahead;
    }
    control.waitReceive(peer);
    const Notice &notice = with.expected.front();
    with.received[{notice.isSend != 0, notice.number}] = notice.bytes;
    with.expected.pop_front();
  }
  const int64_t other = with.received.extract(wanted).mapped();
  if (other == bytes)
    return;
  if (isSend)
    failSizes(control.rank(), peer, bytes, other);
  failSizes(peer, control.rank(), other, bytes);
}

void SizeNotices::finish() {
  for (auto &[peer, with] : peers)
    for (; !with.sent.empty(); with.sent.pop_front())
      control.waitSend(peer);
  peers.clear();
}
