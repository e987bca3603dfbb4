//===- Worker.cpp - One process or thread of a run ------------------------===//

#include "runtime/rank/Worker.h"
#include "runtime/core/Error.h"
#include "runtime/net/Transport.h"
#include "runtime/rank/RankGroups.h"
#include "runtime/rank/StepDigest.h"
#include "runtime/trace/Trace.h"

using namespace pipewright::runtime;

Worker::Worker(const Program &program, Transport &processes)
    : whole(program), place(program.mesh().placeOf(processes.rank())),
      processes(processes),
      groups(std::make_unique<RankGroups>(program, processes)),
      recorder(processes.recorder()), clipNorm(program.optimizer.clipNorm),
      losses(program.updates) {}

Worker::~Worker() {
  leaveGroups();
  dropLibraries();
}

Transport &Worker::pipeline() { return groups->pipeline(); }

void Worker::leaveGroups() { groups.reset(); }

void Worker::dropLibraries() {
  for (auto &[key, state] : libraries)
    delete state;
  libraries.clear();
}

void Worker::addLoss(int64_t microBatch, float loss) {
  auto &[sum, count] =
      losses.at(microBatch * whole.updates / whole.microBatches);
  sum += loss;
  if (digest)
    digest->add(StepDigest::Kind::Loss, 0, microBatch, &loss, sizeof loss);
  ++count;
}

std::vector<std::pair<double, int64_t>> Worker::takeLosses() {
  std::vector<std::pair<double, int64_t>> taken(losses.size());
  taken.swap(losses);
  return taken;
}

std::pair<double, int64_t> Worker::takeLoss() {
  std::pair<double, int64_t> total;
  for (const auto &[sum, count] : takeLosses()) {
    total.first += sum;
    total.second += count;
  }
  return total;
}

int64_t Worker::finishCollective() {
  const auto since = Trace::Clock::now();
  const RankGroups::Begun begun = groups->oldest();
  recorder.wait(FlightRecorder::WaitCollective, begun.group);
  groups->finishOldest();
  recorder.end();
  if (trace)
    trace->waitCollective(begun.what.facts().text, begun.group, begun.since,
                          since);
  return begun.group;
}

bool Worker::wantsOutputs(int64_t microBatch) {
  for (size_t output = 0; output < whole.outputs.size(); ++output)
    if (io->wants(output, microBatch))
      return true;
  return false;
}

void Worker::beginStep(int64_t step, std::vector<float> learningRates) {
  stepNumber = step;
  notFinite = nullptr;
  recorder.beginStep(step);
  rates = std::move(learningRates);
  beginUpdate(0);
}

void Worker::beginUpdate(int64_t number) {
  updateNumber = number;
  ++version;
  scalars.clear();
  for (const StepScalar &scalar : whole.optimizer.scalars)
    scalars.push_back(
        valueAt(stepNumber * whole.updates + number - skippedUpdates, scalar,
                whole.optimizer, rates.at(number)));
}

void Worker::callBeforeUpdate() {
  if (beforeUpdate)
    std::exchange(beforeUpdate, nullptr)();
}

void Worker::keepGradients(std::vector<std::vector<float>> sums) {
  captured = std::move(sums);
  for (std::vector<float> &values : captured)
    for (float &value : values)
      value *= whole.optimizer.gradientScale;
}

LibraryState *&Worker::librarySlot(const void *key) {
  for (auto &[known, state] : libraries)
    if (known == key)
      return state;
  return libraries.emplace_back(key, nullptr).second;
}
