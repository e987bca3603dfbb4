//===- SizeNotices.h - Both ends compare sizes of transfers ----*- C++ -*-===//
//
// Each end of a transfer tells the other its size over the control plane. As
// the hosts of two ranks may post transfers of both directions in different
// orders, a notice says which transfer it is about. While there are notices
// that nobody has heard, nothing else may use the control plane's links.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_SIZENOTICES_H
#define PIPEWRIGHT_RUNTIME_CUDA_SIZENOTICES_H

#include "runtime/net/Transport.h"

#include <deque>
#include <map>
#include <utility>

namespace pipewright::runtime {

class SizeNotices {
public:
  explicit SizeNotices(Transport &control) : control(control) {}

  /// A transfer was given; `isSend`: this rank is its sender. Never blocks.
  /// The number of the transfer, for compare.
  int64_t tell(int64_t peer, bool isSend, int64_t bytes);

  /// Waits until the peer has given the transfer too. Throws an Error when its
  /// size is another one, or DeadlinePassed when it does not come.
  void compare(int64_t peer, bool isSend, int64_t number, int64_t bytes);

  /// Once all transfers were compared: forgets them.
  void finish();

private:
  struct Notice {
    int64_t isSend;
    int64_t number;
    int64_t bytes;
  };
  /// What is between this rank and one other.
  struct PeerSizes {
    int64_t sends = 0, receives = 0;
    /// Notices that were asked for before this rank gave a transfer itself.
    int64_t ahead = 0;
    /// Sizes that were sent and not confirmed yet, and that are expected and
    /// not received yet.
    std::deque<Notice> sent, expected;
    /// Received, but not asked for yet: sizes by (isSend of the peer, number).
    std::map<std::pair<bool, int64_t>, int64_t> received;
  };

  void expect(int64_t peer, PeerSizes &with);

  Transport &control;
  std::map<int64_t, PeerSizes> peers;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_SIZENOTICES_H
