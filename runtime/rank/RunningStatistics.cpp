//===- RunningStatistics.cpp - One of what all replicas have --------------===//
//
// A running statistic is s = decay * s + b_i after micro-batch i. Of D replicas
// with M micro-batches each, replica d runs those from d * M on. With
// a = decay^M, all of them in their order make of s
//
//   a^D s + a^(D-1) c_0 + ... + a c_(D-2) + c_(D-1),
//
// where c_d is what replica d makes of 0. Replica 0 begins with s and has
// a s + c_0, so this is the sum over replicas of what each has times a^(D-1-d).
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/net/Collectives.h"
#include "runtime/rank/RankGroups.h"
#include "runtime/rank/StepDigest.h"
#include "runtime/rank/Worker.h"

#include <algorithm>
#include <cmath>

using namespace pipewright::runtime;

namespace {

/// Where the numbers of a stage are put together: taken once, as large as the
/// largest stage needs.
struct MergeSpace : LibraryState {
  std::vector<float> numbers, scratch;

  int64_t bytes() const {
    return static_cast<int64_t>((numbers.capacity() + scratch.capacity()) *
                                sizeof(float));
  }
};

} // namespace

/// Calls `visit` with each statistic of a stage, and what those of this rank
/// count for.
template <class Visit>
static void forEachStatistic(const Worker &rank, int64_t stage, Visit visit) {
  const Program &whole = rank.wholeProgram();
  const auto behind = static_cast<double>(
      whole.microBatches * (whole.replicas - 1 - rank.replica()));
  for (const TensorInfo &tensor : rank.program().tensors)
    if (tensor.isRunning() && tensor.stage == stage)
      visit(tensor.buffer,
            static_cast<float>(std::pow(double(tensor.decay), behind)));
}

void Worker::sumStatistics(int64_t stage) {
  if (!groups->isIdle())
    fail("running statistics of stage ", stage,
         " are merged while a collective is under way, which would have to be "
         "over first");
  MergeSpace &space = library<MergeSpace>();
  auto &[numbers, scratch] = space;
  const int64_t before = space.bytes();
  numbers.clear();
  forEachStatistic(*this, stage, [&](Buffer own, float weight) {
    const size_t begin = numbers.size();
    numbers.resize(begin + own.bytes / sizeof(float));
    read(own, &numbers[begin]);
    for (size_t i = begin; i < numbers.size(); ++i)
      numbers[i] *= weight;
  });
  const auto group = std::find_if(
      whole.groups.begin(), whole.groups.end(),
      [](const GroupInfo &members) { return members.axis == Axis::Data; });
  const int64_t number = group - whole.groups.begin();
  const auto bytes = static_cast<int64_t>(numbers.size() * sizeof(float));
  Collective sum = collectiveOf(whole, {CollectiveKind::AllReduce, number,
                                        ElementType::F32, Buffer{0, bytes}});
  scratch.resize(runtime::scratchBytes(sum, replica()) / sizeof(float));
  countScratch(space.bytes() - before);
  if (digest)
    digest->add(StepDigest::Kind::Addend, number, numbers.data(), bytes);
  recorder.post(FlightRecorder::PostCollective, number);
  groups->begin(number, std::move(sum), numbers.data(),
                Buffer{0, static_cast<int64_t>(scratch.size() * sizeof(float))},
                scratch.data());
  finishCollective();
  if (digest)
    digest->add(StepDigest::Kind::Sum, number, numbers.data(), bytes);
  const float *next = numbers.data();
  forEachStatistic(*this, stage, [&](Buffer own, float) {
    write(own, next);
    next += own.bytes / sizeof(float);
  });
}
