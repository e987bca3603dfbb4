//===- WorkLog.cpp - How far the streams of a rank are --------------------===//

#include "runtime/device/WorkLog.h"
#include "runtime/trace/Trace.h"

using namespace pipewright::runtime;

WorkLog::~WorkLog() {
  for (CUevent marker : markers)
    cudaDriver().cuEventDestroy(marker);
}

void WorkLog::clear() {
  for (Row &row : rows) {
    row.pieces.clear();
    row.finished = 0;
  }
  markersUsed = 0;
}

WorkLog::Row &WorkLog::row(Stream stream) {
  for (Row &row : rows)
    if (row.stream == stream)
      return row;
  return rows.emplace_back(Row{stream, {}, 0});
}

void WorkLog::task(CUstream stream, const char *kind, int64_t stage,
                   int64_t microBatch) {
  if (markersUsed == markers.size()) {
    markers.emplace_back();
    PIPEWRIGHT_CUDA(cuEventCreate(&markers.back(), CU_EVENT_DISABLE_TIMING));
  }
  CUevent marker = markers[markersUsed++];
  PIPEWRIGHT_CUDA(cuEventRecord(marker, stream));
  row(compute).pieces.push_back({kind, stage, microBatch, 0, marker});
}

void WorkLog::transfer(Stream stream, int64_t bytes, CUevent done) {
  row(stream).pieces.push_back({nullptr, 0, 0, bytes, done});
}

bool WorkLog::advance() {
  bool further = false;
  for (Row &row : rows)
    while (row.finished < row.pieces.size() &&
           cudaDriver().cuEventQuery(row.pieces[row.finished].done) ==
               CUDA_SUCCESS) {
      ++row.finished;
      further = true;
    }
  return further;
}

static std::string streamText(Stream stream) {
  switch (stream.kind) {
  case Stream::Kind::Compute:
    return "compute";
  case Stream::Kind::Send:
    return "send to rank " + std::to_string(stream.peer);
  case Stream::Kind::Receive:
    return "receive from rank " + std::to_string(stream.peer);
  }
  return "";
}

std::string WorkLog::position() const {
  std::string text;
  for (const Row &row : rows) {
    if (row.finished == row.pieces.size())
      continue;
    const Piece &piece = row.pieces[row.finished];
    const std::string number = std::to_string(row.finished + 1) + " of " +
                               std::to_string(row.pieces.size());
    text += (text.empty() ? "" : ", ") + streamText(row.stream) + " stands at ";
    if (piece.kind)
      text += taskName(piece.kind, piece.stage, piece.microBatch) + " (task " +
              number + ")";
    else
      text +=
          "transfer " + number + " (" + std::to_string(piece.bytes) + " bytes)";
  }
  return text;
}
