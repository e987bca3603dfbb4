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

void pipewright::runtime::shareParts(Worker &rank, const TensorInfo &original,
                                     const TensorInfo &copy) {
  Transport &processes = rank.transport();
  GroupTransport replicas(processes, rank.wholeProgram().mesh().groupOf(
                                         processes.rank(), Axis::Data));
  const int64_t ratio = original.buffer.bytes / copy.buffer.bytes;
  std::vector<char> piece;
  for (int64_t owner = 0; owner < replicas.size(); ++owner) {
    const TensorPart of = original.partOf(owner);
    const Buffer part =
        copy.buffer.at(of.begin / ratio, of.buffer.bytes / ratio);
    for (int64_t at = 0; at < part.bytes; at += pieceBytes) {
      const Buffer now = part.at(at, std::min(pieceBytes, part.bytes - at));
      piece.resize(now.bytes);
      if (owner != rank.replica()) {
        replicas.postReceive(owner, piece.data(), now.bytes);
        replicas.waitReceive(owner);
        rank.write(now, piece.data());
        continue;
      }
      rank.read(now, piece.data());
      for (int64_t other = 0; other < replicas.size(); ++other)
        if (other != owner) {
          replicas.postSend(other, piece.data(), now.bytes);
          replicas.waitSend(other);
        }
    }
  }
}
