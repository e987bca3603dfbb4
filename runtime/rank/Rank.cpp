//===- Rank.cpp - One worker of the pipeline ------------------------------===//

#include "runtime/rank/Rank.h"
#include "runtime/core/Error.h"
#include "runtime/net/Transport.h"
#include "runtime/rank/RankGroups.h"
#include "runtime/rank/StepDigest.h"
#include "runtime/trace/Trace.h"

#include <algorithm>
#include <cstring>

using namespace pipewright::runtime;

Rank::Rank(const Program &program, Transport &processes)
    : whole(program), place(program.mesh().placeOf(processes.rank())),
      processes(processes),
      groups(std::make_unique<RankGroups>(program, processes)),
      recorder(processes.recorder()),
      arena(program.ranks.at(place.position).arenaBytes),
      clipNorm(program.optimizer.clipNorm), losses(program.updates) {}

Rank::Rank(const Program &program, Transport &processes, NoArena)
    : whole(program), place(program.mesh().placeOf(processes.rank())),
      processes(processes),
      groups(std::make_unique<RankGroups>(program, processes)),
      recorder(processes.recorder()), arena(0),
      clipNorm(program.optimizer.clipNorm), losses(program.updates) {}

Rank::~Rank() { dropLibraries(); }

Transport &Rank::pipeline() { return groups->pipeline(); }

void Rank::dropLibraries() {
  for (auto &[key, state] : libraries)
    delete state;
  libraries.clear();
}

void Rank::loadInput(int64_t input, int64_t microBatch, Buffer destination) {
  io->load(input, microBatch, data<void>(destination), destination.bytes);
  if (digest)
    digest->add(StepDigest::Kind::Input, input, microBatch,
                data<void>(destination), destination.bytes);
}

void Rank::storeOutput(int64_t output, int64_t microBatch, Buffer source) {
  io->store(output, microBatch, data<void>(source), source.bytes);
}

void Rank::reportLoss(int64_t microBatch, Buffer loss) {
  addLoss(microBatch, *data<float>(loss));
}

void Rank::addLoss(int64_t microBatch, float loss) {
  auto &[sum, count] =
      losses.at(microBatch * whole.updates / whole.microBatches);
  sum += loss;
  if (digest)
    digest->add(StepDigest::Kind::Loss, 0, microBatch, &loss, sizeof loss);
  ++count;
}

void Rank::read(Buffer buffer, void *destination) {
  if (buffer)
    std::memcpy(destination, data<void>(buffer), buffer.bytes);
}

void Rank::write(Buffer buffer, const void *source) {
  if (buffer)
    std::memcpy(data<void>(buffer), source, buffer.bytes);
}

std::vector<std::pair<double, int64_t>> Rank::takeLosses() {
  std::vector<std::pair<double, int64_t>> taken(losses.size());
  taken.swap(losses);
  return taken;
}

std::pair<double, int64_t> Rank::takeLoss() {
  std::pair<double, int64_t> total;
  for (const auto &[sum, count] : takeLosses()) {
    total.first += sum;
    total.second += count;
  }
  return total;
}

void Rank::postSend(int64_t peer, Buffer buffer) {
  recorder.post(FlightRecorder::PostSend, peer);
  if (digest)
    digest->add(StepDigest::Kind::Send, peer, data<void>(buffer), buffer.bytes);
  pipeline().postSend(peer, data<void>(buffer), buffer.bytes);
}

void Rank::postReceive(int64_t peer, Buffer buffer) {
  recorder.post(FlightRecorder::PostReceive, peer);
  if (digest)
    digest->post(StepDigest::Kind::Receive, peer, buffer);
  pipeline().postReceive(peer, data<void>(buffer), buffer.bytes);
}

void Rank::waitSend(int64_t peer) {
  const auto since = trace ? Trace::Clock::now() : Trace::Clock::time_point();
  recorder.wait(FlightRecorder::WaitSend, peer);
  pipeline().waitSend(peer);
  recorder.end();
  if (trace)
    trace->wait("send", peer, since);
}

void Rank::waitReceive(int64_t peer) {
  const auto since = trace ? Trace::Clock::now() : Trace::Clock::time_point();
  recorder.wait(FlightRecorder::WaitReceive, peer);
  pipeline().waitReceive(peer);
  recorder.end();
  if (digest) {
    const Buffer buffer = digest->takePosted(StepDigest::Kind::Receive, peer);
    digest->add(StepDigest::Kind::Receive, peer, data<void>(buffer),
                buffer.bytes);
  }
  if (trace)
    trace->wait("receive", peer, since);
}

void Rank::postCollective(const GroupRequest &request) {
  recorder.post(FlightRecorder::PostCollective, request.group);
  if (digest) {
    // Where nothing is added, or not all is handed out, a part of the range is
    // what was there before.
    if (factsOf(request.kind).reduces)
      digest->add(StepDigest::Kind::Addend, request.group,
                  data<void>(request.range), request.range.bytes);
    digest->post(StepDigest::Kind::Sum, request.group,
                 factsOf(request.kind).replicates ? request.range : Buffer());
  }
  groups->begin(request.group, collectiveOf(whole, request),
                data<void>(request.range), request.scratch,
                data<void>(request.scratch));
}

void Rank::waitCollective() {
  const auto since = trace ? Trace::Clock::now() : Trace::Clock::time_point();
  const RankGroups::Begun begun = groups->oldest();
  recorder.wait(FlightRecorder::WaitCollective, begun.group);
  groups->finishOldest();
  recorder.end();
  if (digest)
    if (const Buffer range =
            digest->takePosted(StepDigest::Kind::Sum, begun.group))
      digest->add(StepDigest::Kind::Sum, begun.group, data<void>(range),
                  range.bytes);
  if (trace)
    trace->waitCollective(begun.what.facts().text, begun.group, begun.since,
                          since);
}

void Rank::poll() { processes.poll(); }

void Rank::loadHyper(Buffer destination) {
  std::copy(scalars.begin(), scalars.end(), data<float>(destination));
}

void Rank::setTrace(Trace *newTrace) {
  trace = newTrace;
  observed = isObserved();
}

void Rank::setBeforeUpdate(std::function<void()> wait) {
  beforeUpdate = std::move(wait);
  observed = isObserved();
}

void Rank::setDigest(StepDigest *newDigest) {
  digest = newDigest;
  observed = isObserved();
}

void Rank::beginStep(int64_t step, std::vector<float> learningRates) {
  stepNumber = step;
  recorder.beginStep(step);
  rates = std::move(learningRates);
  beginUpdate(0);
}

void Rank::beginUpdate(int64_t number) {
  updateNumber = number;
  ++version;
  scalars.clear();
  for (const StepScalar &scalar : whole.optimizer.scalars)
    scalars.push_back(valueAt(stepNumber * whole.updates + number, scalar,
                              whole.optimizer, rates.at(number)));
}

void Rank::captureGradients() {
  capturing = true;
  observed = true;
}

void Rank::observeTask(const char *kind, int64_t stage, int64_t microBatch) {
  if (beforeUpdate && kind[0] == 'U') {
    std::exchange(beforeUpdate, nullptr)();
    observed = isObserved();
  }
  if (capturing && kind[0] == 'U')
    copyGradients();
  if (kind[0] == 'U')
    microBatch = updateNumber;
  if (digest)
    digest->beginTask(kind, stage, microBatch);
  if (trace)
    trace->task(kind, stage, microBatch);
}

void Rank::copyGradients() {
  std::vector<std::vector<float>> sums;
  for (const TensorInfo &tensor : program().tensors) {
    std::vector<float> &values = sums.emplace_back();
    if (!tensor.isWholeGradient())
      continue;
    values.resize(tensor.buffer.bytes / sizeof(float));
    read(tensor.buffer, values.data());
  }
  keepGradients(std::move(sums));
}

void Rank::keepGradients(std::vector<std::vector<float>> sums) {
  captured = std::move(sums);
  for (std::vector<float> &values : captured)
    for (float &value : values)
      value *= whole.optimizer.gradientScale;
  capturing = false;
  observed = isObserved();
}

LibraryState *&Rank::librarySlot(const void *key) {
  for (auto &[known, state] : libraries)
    if (known == key)
      return state;
  return libraries.emplace_back(key, nullptr).second;
}
