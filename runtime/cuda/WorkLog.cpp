//===- WorkLog.cpp - How far the streams of a rank are --------------------===//

#include "runtime/cuda/WorkLog.h"
#include "runtime/trace/Trace.h"

using namespace pipewright::runtime;

void WorkLog::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  for (Row &row : rows) {
    row.pieces.clear();
    row.finished = 0;
  }
  markers.giveBackAll();
}

void WorkLog::add(Stream stream, Piece piece) {
  std::lock_guard<std::mutex> lock(mutex);
  for (Row &row : rows)
    if (row.stream == stream) {
      row.pieces.push_back(piece);
      return;
    }
  rows.push_back({stream, {piece}, 0});
}

void WorkLog::task(CUstream stream, const char *kind, int64_t stage,
                   int64_t microBatch) {
  CUevent marker = markers.take();
  PIPEWRIGHT_CUDA(cuEventRecord(marker, stream));
  add(compute, {Piece::Type::Task, marker, kind, stage, microBatch});
}

void WorkLog::transfer(Stream stream, int64_t bytes, CUevent done,
                       std::shared_ptr<const std::atomic<bool>> recorded) {
  add(stream, {.type = Piece::Type::Transfer,
               .done = done,
               .bytes = bytes,
               .recorded = std::move(recorded)});
}

void WorkLog::wait(Stream stream, CUevent done) {
  add(compute, {.type = Piece::Type::Wait, .done = done, .stream = stream});
}

bool WorkLog::advance(std::vector<Row> &rows) {
  bool further = false;
  for (Row &row : rows)
    for (; row.finished < row.pieces.size(); ++row.finished) {
      const Piece &piece = row.pieces[row.finished];
      if ((piece.recorded && !*piece.recorded) ||
          cudaDriver().cuEventQuery(piece.done) != CUDA_SUCCESS)
        break;
      further = true;
    }
  return further;
}

bool WorkLog::advance() {
  std::lock_guard<std::mutex> lock(mutex);
  return advance(rows);
}

static std::string streamText(Stream stream) {
  switch (stream.kind) {
  case Stream::Kind::Compute:
    return "compute";
  case Stream::Kind::Send:
    return "send to rank " + std::to_string(stream.peer);
  case Stream::Kind::Receive:
    return "receive from rank " + std::to_string(stream.peer);
  case Stream::Kind::Collective:
    return "collective";
  case Stream::Kind::ToHost:
    return "copy to the host";
  case Stream::Kind::FromHost:
    return "copy from the host";
  }
  return "";
}

std::string WorkLog::position(const std::vector<Row> &rows) {
  std::string text;
  for (const Row &row : rows) {
    if (row.finished == row.pieces.size())
      continue;
    const Piece &piece = row.pieces[row.finished];
    text += (text.empty() ? "" : ", ") + streamText(row.stream);
    switch (piece.type) {
    case Piece::Type::Task:
      text +=
          " stands at " + taskName(piece.kind, piece.stage, piece.microBatch);
      break;
    case Piece::Type::Wait:
      text += " waits for " + streamText(piece.stream);
      break;
    case Piece::Type::Transfer:
      text += " stands at transfer " + std::to_string(row.finished + 1) +
              " of " + std::to_string(row.pieces.size()) + " (" +
              std::to_string(piece.bytes) + " bytes)";
      break;
    }
  }
  return text;
}

std::string WorkLog::position() const { return position(rows); }

std::string WorkLog::inspect() {
  std::unique_lock<std::mutex> lock(mutex);
  std::vector<Row> copy = rows;
  lock.unlock();
  advance(copy);
  return position(copy);
}

bool WorkLog::waitsForPeer() const {
  for (const Row &row : rows)
    if (row.stream == compute && row.finished < row.pieces.size())
      return row.pieces[row.finished].type == Piece::Type::Wait;
  return false;
}
