//===- TcpPeer.cpp - The other end of a TCP connection --------------------===//

#include "runtime/net/TcpPeer.h"

#include <algorithm>
#include <cerrno>
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

void Peer::matchSends(Lane lane) {
  LaneState &state = at(lane);
  while (!state.ready.empty() && state.sendsMatched < state.sends.size()) {
    Send &send = state.sends[state.sendsMatched++];
    const int64_t expected = state.ready.front();
    state.ready.pop_front();
    if (expected != send.bytes) {
      send.expected = expected;
      enqueue({Header::WrongSize, send.bytes, lane});
      continue;
    }
    send.left = send.bytes;
    int64_t offset = 0;
    do {
      const int64_t part = std::min(dataFrameBytes, send.bytes - offset);
      outgoing.push_back(
          {{Header::Data, part, lane}, send.data + offset, {}, 0, &send});
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
    if (frame.send)
      dataMoved += sent;
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

Expected Peer::expected(Lane lane) const {
  const LaneState &state = lanes[static_cast<int64_t>(lane)];
  Expected now;
  if (state.receivesFilled < state.receives.size()) {
    const Receive &receive = state.receives[state.receivesFilled];
    now.receive = receive.bytes;
    now.lacks = receive.bytes - receive.received;
  }
  now.ready = static_cast<int64_t>(state.ready.size());
  now.ended = saidBye;
  return now;
}

char *Peer::dataPlace(Lane lane) {
  const Receive &receive = at(lane).open();
  return receive.data + receive.received;
}

void Peer::tookData(Lane lane, int64_t bytes) {
  at(lane).open().received += bytes;
  dataMoved += bytes;
}

void Peer::endData(Lane lane) {
  Receive &receive = at(lane).open();
  if (receive.received != receive.bytes)
    return;
  receive.done = true;
  ++at(lane).receivesFilled;
}

void Peer::tookReady(Lane lane, int64_t bytes) {
  at(lane).ready.push_back(bytes);
  matchSends(lane);
}

void Peer::tookWrongSize(Lane lane, int64_t bytes) {
  at(lane).open().sent = bytes;
  ++at(lane).receivesFilled;
}

void Peer::tookFailed(std::string message) {
  // It is printed: nothing that a terminal would obey.
  for (char &c : message)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
      c = ' ';
  if (!failure)
    failure = std::move(message);
}

int64_t Peer::read() {
  int64_t share = 0;
  while (!broken && share < readShare) {
    const FrameReader::Room room = reader.room(*this);
    const ssize_t received =
        recv(socket.get(), room.place, room.bytes, MSG_DONTWAIT);
    if (received < 0 && errno == EINTR)
      continue;
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      break;
    if (received <= 0) {
      lost = true;
      break;
    }
    share += received;
    broken = true;
    reader.filled(received, *this);
    broken = false;
  }
  return share;
}
