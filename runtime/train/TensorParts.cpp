//===- TensorParts.cpp - Tensors that replicas have parts of --------------===//

#include "runtime/train/TensorParts.h"
#include "runtime/net/GroupTransport.h"
#include "runtime/rank/Worker.h"

#include <algorithm>
#include <vector>

using namespace pipewright::runtime;

/// Of what one message takes from a replica.
static constexpr int64_t pieceBytes = int64_t{1} << 24;

void pipewright::runtime::collectParts(Worker &rank, const TensorInfo &tensor,
                                       int64_t home, const ReadOwnPart &read,
                                       char *whole) {
  Transport &processes = rank.transport();
  GroupTransport replicas(processes, rank.wholeProgram().mesh().groupOf(
                                         processes.rank(), Axis::Data));
  const bool isHome = rank.replica() == home;
  std::vector<char> piece;
  for (int64_t replica = 0; replica < replicas.size(); ++replica) {
    const bool isOwn = replica == rank.replica();
    if (!isHome && !isOwn)
      continue;
    const TensorPart part = tensor.partOf(replica);
    for (int64_t at = 0; at < part.buffer.bytes; at += pieceBytes) {
      const int64_t now = std::min(pieceBytes, part.buffer.bytes - at);
      char *to = isHome ? whole + part.begin + at : nullptr;
      if (isHome && isOwn) {
        read(at, now, to);
      } else if (isHome) {
        replicas.postReceive(replica, to, now);
        replicas.waitReceive(replica);
      } else {
        piece.resize(now);
        read(at, now, piece.data());
        replicas.postSend(home, piece.data(), now);
        replicas.waitSend(home);
      }
    }
  }
}

void pipewright::runtime::collectWeights(Worker &rank) {
  for (const TensorInfo &tensor : rank.program().tensors) {
    if (!tensor.isWeight() || !tensor.isSharded())
      continue;
    const Buffer own = tensor.partOf(rank.replica()).buffer;
    std::vector<char> whole(rank.replica() == 0 ? tensor.buffer.bytes : 0);
    collectParts(
        rank, tensor, /*home=*/0,
        [&](int64_t begin, int64_t bytes, void *destination) {
          rank.read(own.at(begin, bytes), destination);
        },
        whole.data());
    if (rank.replica() == 0)
      rank.write(tensor.buffer, whole.data());
  }
}
