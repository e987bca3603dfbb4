//===- WorkLog.h - How far the streams of a rank are -----------*- C++ -*-===//
//
// Remembers what a step has enqueued, with an event behind each piece: to see
// progress while the host waits, and to say where each stream stands when
// there is none.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_DEVICE_WORKLOG_H
#define PIPEWRIGHT_RUNTIME_DEVICE_WORKLOG_H

#include "runtime/device/Driver.h"
#include "runtime/device/Stream.h"

#include <string>
#include <vector>

namespace pipewright::runtime {

class WorkLog {
public:
  WorkLog() = default;
  ~WorkLog();
  WorkLog(const WorkLog &) = delete;
  WorkLog &operator=(const WorkLog &) = delete;

  /// A step begins.
  void clear();
  /// Behind the work of a task.
  void task(CUstream stream, const char *kind, int64_t stage,
            int64_t microBatch);
  /// A transfer; `done` is its event.
  void transfer(Stream stream, int64_t bytes, CUevent done);

  /// Looks how far the streams are. True if any has come further.
  bool advance();
  /// "compute stands at F0.1 (task 2 of 8), receive from rank 0 at transfer 3
  /// of 4 (1024 bytes)", by the last advance; "" if all is done.
  std::string position() const;

private:
  struct Piece {
    /// Null: a transfer.
    const char *kind;
    int64_t stage, microBatch, bytes;
    CUevent done;
  };
  struct Row {
    Stream stream;
    std::vector<Piece> pieces;
    size_t finished = 0;
  };

  Row &row(Stream stream);

  std::vector<Row> rows;
  std::vector<CUevent> markers;
  size_t markersUsed = 0;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_DEVICE_WORKLOG_H
