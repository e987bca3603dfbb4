//===- WorkLog.h - How far the streams of a rank are -----------*- C++ -*-===//
//
// Remembers what a step has enqueued, with an event behind each piece: to see
// progress while the host waits, and to say where each stream stands when
// there is none.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_WORKLOG_H
#define PIPEWRIGHT_RUNTIME_CUDA_WORKLOG_H

#include "runtime/cuda/Device.h"
#include "runtime/cuda/Stream.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace pipewright::runtime {

class WorkLog {
public:
  /// A step begins.
  void clear();
  /// Called behind the work of a task.
  void task(CUstream stream, const char *kind, int64_t stage,
            int64_t microBatch);
  /// A transfer; `done` is its event, which may be recorded later.
  void transfer(Stream stream, int64_t bytes, CUevent done,
                std::shared_ptr<const std::atomic<bool>> recorded = nullptr);
  /// `compute` waits for a transfer of that stream.
  void wait(Stream stream, CUevent done);

  /// Looks how far the streams are. True if any has come further.
  bool advance();
  /// "compute waits for receive from rank 0, receive from rank 0 stands at
  /// transfer 3 of 4 (1024 bytes)", by the last advance; "" if all is done.
  std::string position() const;
  /// Whether tasks wait for another rank, by the last advance.
  bool waitsForPeer() const;
  /// Looks how far the streams are, and says it as `position` does. For another
  /// thread, while the one that enqueues may hang in the driver.
  std::string inspect();

private:
  struct Piece {
    enum class Type { Task, Transfer, Wait };
    Type type;
    CUevent done;
    /// What a task does.
    const char *kind = nullptr;
    int64_t stage = 0, microBatch = 0;
    /// How many bytes a transfer has, and whether its event is recorded.
    int64_t bytes = 0;
    std::shared_ptr<const std::atomic<bool>> recorded = nullptr;
    /// What a wait is for.
    Stream stream = compute;
  };
  struct Row {
    Stream stream;
    std::vector<Piece> pieces;
    size_t finished = 0;
  };

  void add(Stream stream, Piece piece);
  static bool advance(std::vector<Row> &rows);
  static std::string position(const std::vector<Row> &rows);

  /// Guards the rows against `inspect`.
  std::mutex mutex;
  std::vector<Row> rows;
  EventPool markers{CU_EVENT_DISABLE_TIMING};
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_WORKLOG_H
