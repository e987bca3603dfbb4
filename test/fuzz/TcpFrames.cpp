//===- TcpFrames.cpp - Fuzz target: what a peer says over TCP -------------===//
//
// The first bytes say what this rank has posted, and in which pieces the
// others arrive; those are the stream. Buffers have exactly the bytes that
// their receive has. The same stream is also taken for an introduction, which
// nobody without the key can make.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/net/TcpHandshake.h"
#include "runtime/net/TcpPeer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace pipewright::runtime;
using namespace pipewright::runtime::tcp;

static void require(bool condition, const char *what) {
  if (condition)
    return;
  std::fprintf(stderr, "error: %s\n", what);
  std::abort();
}

namespace {

/// One rank's end of a connection, with what it has posted.
class Connection {
public:
  Connection(int64_t receives, int64_t sends, int64_t bytes,
             int64_t controlBytes) {
    LaneState &transfers = peer.at(Lane::Transfers);
    for (int64_t i = 0; i < receives; ++i)
      transfers.receives.push_back({newBuffer(bytes * i), bytes * i});
    for (int64_t i = 0; i < sends; ++i)
      transfers.sends.push_back({newBuffer(bytes * i), bytes * i});
    if (controlBytes >= 0)
      peer.at(Lane::Control)
          .receives.push_back({newBuffer(controlBytes), controlBytes});
  }

  void feed(const char *data, int64_t bytes) {
    peer.feed(data, bytes);
    for (const LaneState &lane : peer.lanes) {
      for (const Receive &receive : lane.receives)
        require(receive.received <= receive.bytes &&
                    (!receive.done || receive.received == receive.bytes),
                "a receive has more, or less, than its bytes");
      require(lane.receivesFilled <= lane.receives.size() &&
                  lane.sendsMatched <= lane.sends.size(),
              "more messages are done than were posted");
    }
  }

private:
  char *newBuffer(int64_t bytes) { return buffers.emplace_back(bytes).data(); }

  Peer peer;
  std::vector<std::vector<char>> buffers;
};

} // namespace

static void introduce(const char *data, size_t size) {
  static const JobKey key = JobKey::fromEnvironment("fuzzed");
  Introduction introduction;
  if (size < sizeof introduction)
    return;
  std::memcpy(&introduction, data, sizeof introduction);
  require(!holds(introduction, challengeWith({}), 0, key),
          "an introduction without the key is believed");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 4)
    return 0;
  const char *stream = reinterpret_cast<const char *>(data) + 4;
  size -= 4;
  introduce(stream, size);
  Connection connection(data[0] % 4, data[0] / 4 % 4, data[1],
                        data[2] == 0 ? -1 : 8 * (data[2] % 8));
  const size_t piece = data[3] == 0 ? size : data[3];
  try {
    for (size_t at = 0; at < size; at += piece)
      connection.feed(stream + at,
                      static_cast<int64_t>(std::min(piece, size - at)));
  } catch (const Error &) {
    // The peer broke a rule.
  }
  return 0;
}
