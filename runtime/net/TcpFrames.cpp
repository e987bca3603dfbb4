//===- TcpFrames.cpp - What ranks say to each other over TCP --------------===//

#include "runtime/net/TcpFrames.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <cstring>

using namespace pipewright::runtime;
using namespace pipewright::runtime::tcp;

/// How much a buffer grows at a time, once it is full.
static constexpr int64_t growth = 64 << 10;

//===----------------------------------------------------------------------===//
// What may come
//===----------------------------------------------------------------------===//

static const char *nameOf(int32_t kind) {
  switch (kind) {
  case Header::Ready:
    return "Ready";
  case Header::Data:
    return "Data";
  case Header::WrongSize:
    return "WrongSize";
  case Header::Failed:
    return "Failed";
  case Header::Bye:
    return "Bye";
  case Header::Beat:
    return "Beat";
  }
  return nullptr;
}

/// Data for the oldest open receive, or the size that it has instead.
static std::string findReceiveViolation(const Header &header,
                                        const Expected &expected) {
  if (expected.receive < 0)
    return "nothing, as no receive is posted";
  const std::string receive =
      "a receive of " + std::to_string(expected.receive) + " bytes";
  if (header.kind == Header::WrongSize)
    return header.bytes < 0 || header.bytes == expected.receive ||
                   expected.lacks != expected.receive
               ? "no other size in the middle of " + receive
               : "";
  const int64_t least = expected.lacks > 0;
  return header.bytes < least || header.bytes > expected.lacks
             ? std::to_string(least) + " to " + std::to_string(expected.lacks) +
                   " bytes that " + receive + " lacks"
             : "";
}

static std::string findExpectation(const Header &header,
                                   const Expected &expected) {
  const int64_t bytes = header.bytes;
  switch (header.kind) {
  case Header::Ready:
    if (expected.ready >= maxReady)
      return "at most " + std::to_string(maxReady) + " receives posted ahead";
    return bytes < 0 ? "a size of at least 0" : "";
  case Header::Data:
  case Header::WrongSize:
    return findReceiveViolation(header, expected);
  case Header::Failed:
    return bytes < 0 || bytes > maxFailedBytes
               ? "at most " + std::to_string(maxFailedBytes) + " bytes"
               : "";
  case Header::Bye:
    return bytes != 0 ? "0 bytes" : "";
  case Header::Beat:
    return bytes != sizeof(Sign) ? std::to_string(sizeof(Sign)) + " bytes" : "";
  }
  return "a kind of 1 to 6";
}

std::string pipewright::runtime::tcp::findViolation(const Header &header,
                                                    const Expected &expected) {
  const std::string wanted = expected.ended ? "nothing after its Bye"
                                            : findExpectation(header, expected);
  if (wanted.empty())
    return "";
  const char *name = nameOf(header.kind);
  return "a frame of " +
         (name ? std::string(name) : "kind " + std::to_string(header.kind)) +
         " with " + std::to_string(header.bytes) + " bytes, where it expects " +
         wanted;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Whether bytes follow that are no Data.
bool FrameReader::isBuffered() const {
  return header.kind == Header::Failed || header.kind == Header::Beat;
}

FrameReader::Room FrameReader::room(FrameTaker &taker) {
  const int64_t size = sizeof(Header);
  if (headerRead < size)
    return {reinterpret_cast<char *>(&header) + headerRead, size - headerRead};
  const int64_t left = header.bytes - payloadRead;
  if (!isBuffered())
    return {taker.dataPlace(header.lane), left};
  if (payloadRead == static_cast<int64_t>(payload.size()))
    payload.resize(payloadRead + std::min(left, growth));
  return {payload.data() + payloadRead,
          static_cast<int64_t>(payload.size()) - payloadRead};
}

/// A header is whole.
void FrameReader::begin(FrameTaker &taker) {
  if (!isLane(static_cast<int32_t>(header.lane)))
    fail("a frame on lane ", static_cast<int32_t>(header.lane),
         ", where it expects one of 0 to ", laneCount - 1);
  if (const std::string found =
          findViolation(header, taker.expected(header.lane));
      !found.empty())
    throw Error(found);
  payloadRead = 0;
  payload.clear();
}

/// A frame is whole.
void FrameReader::end(FrameTaker &taker) {
  headerRead = 0;
  switch (header.kind) {
  case Header::Ready:
    return taker.tookReady(header.lane, header.bytes);
  case Header::Data:
    return taker.endData(header.lane);
  case Header::WrongSize:
    return taker.tookWrongSize(header.lane, header.bytes);
  case Header::Failed:
    return taker.tookFailed({payload.begin(), payload.end()});
  case Header::Bye:
    return taker.tookBye();
  case Header::Beat: {
    Sign sign;
    std::memcpy(&sign, payload.data(), sizeof sign);
    return taker.tookBeat(sign);
  }
  }
}

void FrameReader::filled(int64_t bytes, FrameTaker &taker) {
  if (headerRead < static_cast<int64_t>(sizeof(Header))) {
    headerRead += bytes;
    if (headerRead < static_cast<int64_t>(sizeof(Header)))
      return;
    begin(taker);
  } else {
    payloadRead += bytes;
    if (header.kind == Header::Data)
      taker.tookData(header.lane, bytes);
  }
  const bool follows = header.kind == Header::Data || isBuffered();
  if (!follows || payloadRead == header.bytes)
    end(taker);
}

void FrameReader::feed(const char *data, int64_t bytes, FrameTaker &taker) {
  while (bytes > 0) {
    const Room next = room(taker);
    const int64_t part = std::min(bytes, next.bytes);
    std::memcpy(next.place, data, part);
    filled(part, taker);
    data += part;
    bytes -= part;
  }
}
