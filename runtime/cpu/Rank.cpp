//===- Rank.cpp - A worker that computes on CPUs --------------------------===//

#include "runtime/cpu/Rank.h"
#include "runtime/net/Transport.h"
#include "runtime/rank/RankGroups.h"
#include "runtime/rank/StepDigest.h"
#include "runtime/trace/Trace.h"

#include <algorithm>
#include <cstring>

using namespace pipewright::runtime;

Rank::Rank(const Program &program, Transport &processes)
    : Worker(program, processes), arena(this->program().arenaBytes) {}

/// Before the arena, which the state of libraries points into.
Rank::~Rank() {
  leaveGroups();
  dropLibraries();
}

void Rank::setUp() {
  if (program().setUp)
    program().setUp(*this);
}

//===----------------------------------------------------------------------===//
// What crosses the border of a step
//===----------------------------------------------------------------------===//

void Rank::loadInput(int64_t input, int64_t microBatch, Buffer destination) {
  batchIo().load(input, microBatch, data<void>(destination), destination.bytes);
  if (StepDigest *digest = digesting())
    digest->add(StepDigest::Kind::Input, input, microBatch,
                data<void>(destination), destination.bytes);
}

void Rank::storeOutput(int64_t output, int64_t microBatch, Buffer source) {
  if (batchIo().wants(output, microBatch))
    batchIo().store(output, microBatch, data<void>(source), source.bytes);
}

void Rank::reportLoss(int64_t microBatch, Buffer loss) {
  addLoss(microBatch, *data<float>(loss));
}

void Rank::loadHyper(Buffer destination) {
  std::copy_n(hyper(), wholeProgram().optimizer.scalars.size(),
              data<float>(destination));
}

void Rank::read(Buffer buffer, void *destination) {
  if (buffer)
    std::memcpy(destination, data<void>(buffer), buffer.bytes);
}

void Rank::write(Buffer buffer, const void *source) {
  if (buffer)
    std::memcpy(data<void>(buffer), source, buffer.bytes);
}

//===----------------------------------------------------------------------===//
// Transfers and collectives
//===----------------------------------------------------------------------===//

void Rank::postSend(int64_t peer, Buffer buffer) {
  flight().post(FlightRecorder::PostSend, peer);
  if (StepDigest *digest = digesting())
    digest->add(StepDigest::Kind::Send, peer, data<void>(buffer), buffer.bytes);
  pipeline().postSend(peer, data<void>(buffer), buffer.bytes);
}

void Rank::postReceive(int64_t peer, Buffer buffer) {
  flight().post(FlightRecorder::PostReceive, peer);
  if (StepDigest *digest = digesting())
    digest->post(StepDigest::Kind::Receive, peer, buffer);
  pipeline().postReceive(peer, data<void>(buffer), buffer.bytes);
}

void Rank::waitSend(int64_t peer) {
  const auto since = Trace::Clock::now();
  flight().wait(FlightRecorder::WaitSend, peer);
  pipeline().waitSend(peer);
  flight().end();
  if (Trace *trace = tracing())
    trace->wait("send", peer, since);
}

void Rank::waitReceive(int64_t peer) {
  const auto since = Trace::Clock::now();
  flight().wait(FlightRecorder::WaitReceive, peer);
  pipeline().waitReceive(peer);
  flight().end();
  if (StepDigest *digest = digesting()) {
    const Buffer buffer = digest->takePosted(StepDigest::Kind::Receive, peer);
    digest->add(StepDigest::Kind::Receive, peer, data<void>(buffer),
                buffer.bytes);
  }
  if (Trace *trace = tracing())
    trace->wait("receive", peer, since);
}

void Rank::postCollective(const GroupRequest &request) {
  flight().post(FlightRecorder::PostCollective, request.group);
  if (StepDigest *digest = digesting()) {
    // Where nothing is added, or not all is handed out, a part of the range is
    // what was there before.
    if (factsOf(request.kind).reduces)
      digest->add(StepDigest::Kind::Addend, request.group,
                  data<void>(request.range), request.range.bytes);
    digest->post(StepDigest::Kind::Sum, request.group,
                 factsOf(request.kind).replicates ? request.range : Buffer());
  }
  collectives().begin(request.group, collectiveOf(wholeProgram(), request),
                      data<void>(request.range), request.scratch,
                      data<void>(request.scratch));
}

/// Calls `wait`, and adds the seconds that it takes to `sum`.
template <class Wait>
static auto addSeconds(double &sum, Wait wait) {
  struct Stopwatch {
    double &sum;
    const Trace::Clock::time_point since = Trace::Clock::now();
    ~Stopwatch() {
      sum += std::chrono::duration<double>(Trace::Clock::now() - since).count();
    }
  } stopwatch{sum};
  return wait();
}

void Rank::waitCollective() {
  const int64_t group =
      addSeconds(collectiveWait, [&] { return finishCollective(); });
  if (StepDigest *digest = digesting())
    if (const Buffer range = digest->takePosted(StepDigest::Kind::Sum, group))
      digest->add(StepDigest::Kind::Sum, group, data<void>(range), range.bytes);
}

void Rank::mergeStatistics(int64_t stage) {
  addSeconds(collectiveWait, [&] { sumStatistics(stage); });
}

void Rank::clipGradients() {
  addSeconds(collectiveWait, [&] { scaleToNorm(); });
}

double Rank::takeCollectiveWait() { return std::exchange(collectiveWait, 0); }

Traffic Rank::takeSent() { return collectives().takeSent(); }

void Rank::poll() { transport().poll(); }

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

void Rank::task(const char *kind, int64_t stage, int64_t microBatch) {
  const bool isUpdate = kind[0] == 'U';
  if (isUpdate)
    microBatch = update();
  flight().task(kind[0], stage, microBatch);
  if (isUpdate)
    callBeforeUpdate();
  if (isUpdate && !capturing.empty())
    copyGradients(stage);
  if (StepDigest *digest = digesting())
    digest->beginTask(kind, stage, microBatch);
  if (Trace *trace = tracing())
    trace->task(kind, stage, microBatch);
}

void Rank::captureGradients() {
  const Table<TensorInfo> &tensors = program().tensors;
  copied.assign(tensors.size(), {});
  // A rank that updates nothing still has what it was told before.
  capturing.clear();
  for (const TensorInfo &tensor : tensors)
    capturing.push_back(tensor.isWholeGradient());
}

void Rank::copyGradients(int64_t stageOfUpdate) {
  bool isAll = true;
  for (size_t i = 0; i < capturing.size(); ++i) {
    const TensorInfo &tensor = program().tensors[i];
    if (capturing[i] && (tensor.stage < 0 || tensor.stage == stageOfUpdate)) {
      copied[i].resize(tensor.buffer.bytes / sizeof(float));
      const TensorPart part = tensor.storedOn(replica());
      read(part.buffer, copied[i].data() + part.begin / sizeof(float));
      capturing[i] = false;
    }
    isAll &= !capturing[i];
  }
  if (!isAll)
    return;
  capturing.clear();
  keepGradients(std::exchange(copied, {}));
}

std::vector<double>
Rank::squaresOf(const std::vector<const TensorInfo *> &gradients) {
  std::vector<double> squares;
  for (const TensorInfo *tensor : gradients)
    squares.push_back(
        sumOfSquares(data<float>(tensor->buffer),
                     tensor->buffer.bytes / int64_t{sizeof(float)}));
  return squares;
}

void Rank::beginStatistics() {
  if (replica() == 0)
    return;
  for (const TensorInfo &tensor : program().tensors)
    if (tensor.isRunning())
      std::fill_n(data<char>(tensor.buffer), tensor.buffer.bytes, 0);
}
