//===- TcpPeer.cpp - The other end of a TCP connection --------------------===//

#include "runtime/transport/TcpPeer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>

using namespace pipewright::runtime::tcp;

/// Frames of data are short enough that one of Failed soon has its turn.
static constexpr int64_t dataFrameBytes = 1 << 20;

/// How much one connection may take in before the others have their turn.
static constexpr int64_t readShare = 4 << 20;

//===----------------------------------------------------------------------===//
// What goes out
//===----------------------------------------------------------------------===//

void Peer::enqueue(Header frame, std::vector<char> owned) {
  outgoing.push_back({frame, nullptr, std::move(owned), 0, nullptr});
}

void Peer::matchSends() {
  while (!ready.empty() && sendsMatched < sends.size()) {
    Send &send = sends[sendsMatched++];
    const int64_t expected = ready.front();
    ready.pop_front();
    if (expected != send.bytes) {
      send.expected = expected;
      enqueue({Header::WrongSize, send.bytes});
      continue;
    }
    send.left = send.bytes;
    int64_t offset = 0;
    do {
      const int64_t part = std::min(dataFrameBytes, send.bytes - offset);
      outgoing.push_back(
          {{Header::Data, part}, send.data + offset, {}, 0, &send});
      offset += part;
    } while (offset < send.bytes);
  }
}

void Peer::write() {
  while (!outgoing.empty() && !lost) {
    Outgoing &frame = outgoing.front();
    const char *bytes = frame.payload ? frame.payload : frame.owned.data();
    const int64_t total = frame.total();
    const int64_t head = sizeof(Header);
    iovec parts[2];
    int count = 0;
    if (frame.done < head)
      parts[count++] = {reinterpret_cast<char *>(&frame.header) + frame.done,
                        static_cast<size_t>(head - frame.done)};
    const int64_t offset = std::max<int64_t>(0, frame.done - head);
    if (total - head > offset)
      parts[count++] = {const_cast<char *>(bytes) + offset,
                        static_cast<size_t>(total - head - offset)};
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t sent =
        sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      // A broken connection may still hold the reason: reading finds out.
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        outgoing.clear();
      return;
    }
    frame.done += sent;
    if (frame.done < total)
      return;
    if (frame.send)
      frame.send->left -= frame.header.bytes;
    outgoing.pop_front();
  }
}

//===----------------------------------------------------------------------===//
// What comes in
//===----------------------------------------------------------------------===//

/// True when all bytes are there; marks the peer as lost when no more come.
bool Peer::readInto(void *to, int64_t bytes, int64_t &done) {
  while (done < bytes) {
    const ssize_t received = recv(socket.get(), static_cast<char *>(to) + done,
                                  bytes - done, MSG_DONTWAIT);
    if (received < 0 && errno == EINTR)
      continue;
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return false;
    if (received <= 0) {
      lost = true;
      return false;
    }
    done += received;
  }
  return true;
}

void Peer::beginPayload() {
  payloadRead = 0;
  const bool buffered =
      header.kind == Header::Values || header.kind == Header::Failed;
  payload.resize(buffered ? header.bytes : 0);
}

/// Where the bytes behind the header go; null if there are none.
char *Peer::payloadPlace() {
  if (header.kind != Header::Data)
    return payload.empty() ? nullptr : payload.data();
  Receive &receive = receives.at(receivesFilled);
  return receive.data + receive.received;
}

/// Acts on a frame that is complete; false if there is no such kind.
bool Peer::endPayload() {
  headerRead = 0;
  switch (header.kind) {
  case Header::Ready:
    ready.push_back(header.bytes);
    matchSends();
    return true;
  case Header::Data: {
    Receive &receive = receives.at(receivesFilled);
    receive.received += header.bytes;
    if (receive.received == receive.bytes) {
      receive.done = true;
      ++receivesFilled;
    }
    return true;
  }
  case Header::WrongSize:
    receives.at(receivesFilled++).sent = header.bytes;
    return true;
  case Header::Values: {
    std::vector<double> &received = values.emplace_back();
    received.resize(header.bytes / sizeof(double));
    if (header.bytes)
      std::memcpy(received.data(), payload.data(), header.bytes);
    return true;
  }
  case Header::Failed:
    if (!failure)
      failure.emplace(payload.begin(), payload.end());
    return true;
  case Header::Bye:
    saidBye = true;
    return true;
  }
  return false;
}

bool Peer::read() {
  for (int64_t share = 0; share < readShare;) {
    if (headerRead < static_cast<int64_t>(sizeof(Header))) {
      if (!readInto(&header, sizeof(Header), headerRead))
        return true;
      beginPayload();
    }
    const bool follows = header.kind == Header::Data ||
                         header.kind == Header::Values ||
                         header.kind == Header::Failed;
    const int64_t before = payloadRead;
    if (follows && !readInto(payloadPlace(), header.bytes, payloadRead))
      return true;
    share += sizeof(Header) + payloadRead - before;
    if (!endPayload())
      return false;
  }
  return true;
}
