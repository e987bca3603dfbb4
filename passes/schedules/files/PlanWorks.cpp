//===- PlanWorks.cpp - Reads the works of a plan ----------------*- C++ -*-===//

#include "passes/schedules/files/PlanWorks.h"

#include "passes/schedules/files/PlanFormat.h"
#include "passes/schedules/files/PlanValues.h"
#include "support/Text.h"

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::schedules::plan;
using llvm::json::Array;
using llvm::json::Value;

static llvm::Error readWork(const Value &value, const JsonPath &place,
                            PlanFile &plan) {
  const Schedule &schedule = plan.schedule;
  TimedWork &timed = plan.timedWorks.emplace_back();
  Work &work = timed.work;
  auto readKind = [&](const Value &value, const JsonPath &at) -> llvm::Error {
    for (const ResourceWord &known : resourceWords)
      if (value.getAsString() == llvm::StringRef(known.word)) {
        work.on = known.on;
        return llvm::Error::success();
      }
    for (const runtime::CollectiveFacts &facts : runtime::allCollectives)
      if (value.getAsString() == llvm::StringRef(facts.text) && !facts.rooted) {
        work.kind = facts.kind;
        return llvm::Error::success();
      }
    return refuseAt(
        at,
        "expects a collective without a root, transfer, copy to host or copy "
        "from host, found {0}",
        show(value));
  };
  auto readName = [&](const Value &value, const JsonPath &at) -> llvm::Error {
    if (!value.getAsString())
      return refuseAt(at, "expects what it is of, found {0}", show(value));
    work.name = text::printable(text::shortened(*value.getAsString()));
    return llvm::Error::success();
  };
  auto readTime = [&](const Value &value, const JsonPath &at) -> llvm::Error {
    double *ends[] = {&timed.time.start, &timed.time.end};
    auto readEnd = [&](const Value &value, const JsonPath &at, size_t end) {
      return readSeconds(value, at, *ends[end]);
    };
    return readEach(value, at, readEnd, 2, "ends");
  };
  // Of works before this one: there is no circle of them.
  const int64_t before = static_cast<int64_t>(plan.timedWorks.size()) - 1;
  auto readNeeds = [&](const Value &value, const JsonPath &at) -> llvm::Error {
    const Array *list = value.getAsArray();
    if (list && !list->empty() && before == 0)
      return refuseAt(at, "expects no work, as none is before this one");
    auto readNeed = [&](const Value &value, const JsonPath &at, size_t) {
      return readInteger(value, at, work.needs.emplace_back(), {0, before - 1});
    };
    if (llvm::Error error = readEach(value, at, readNeed))
      return error;
    llvm::sort(work.needs);
    work.needs.erase(llvm::unique(work.needs), work.needs.end());
    return llvm::Error::success();
  };
  auto readStash = [&](const Value &value, const JsonPath &at) {
    Task &of = work.stash.emplace();
    const std::pair<int32_t *, int64_t> numbers[] = {
        {&of.stage, schedule.stages}, {&of.microBatch, schedule.microBatches}};
    auto readNumber = [&](const Value &value, const JsonPath &at, size_t i) {
      return readInteger(value, at, *numbers[i].first,
                         {0, numbers[i].second - 1});
    };
    return readEach(value, at, readNumber, 2,
                    "numbers: a stage, a micro-batch");
  };

  // The ranks, and how many tasks of each come before its post and its wait.
  auto readRanks = [&](const Value &value, const JsonPath &at) -> llvm::Error {
    const Array *list = value.getAsArray();
    if (!list || list->empty())
      return refuseAt(at, "expects a list of ranks");
    return readEach(
        value, at, [&](const Value &rank, const JsonPath &at, size_t) {
          return readInteger(rank, at, work.members.emplace_back().rank,
                             {0, schedule.ranks - 1});
        });
  };
  auto ofEach = [&](auto read) {
    return [&work, read](const Value &value, const JsonPath &at) {
      auto readMember = [&](const Value &value, const JsonPath &at, size_t i) {
        return read(value, at, work.members[i]);
      };
      return readEach(value, at, readMember, work.members.size(), "members");
    };
  };
  auto mostOf = [&](const Work::Member &member) {
    return static_cast<int64_t>(schedule.order[member.rank].size());
  };
  auto readPosted = [&](const Value &value, const JsonPath &at,
                        Work::Member &member) {
    return readInteger(value, at, member.posted, {0, mostOf(member)});
  };
  auto readWaited = [&](const Value &value, const JsonPath &at,
                        Work::Member &member) {
    return readInteger(value, at, member.waited,
                       {member.posted, mostOf(member)});
  };
  auto readLeft = [&](const Value &value, const JsonPath &at,
                      Work::Member &member) -> llvm::Error {
    const std::optional<double> share = value.getAsNumber();
    if (!share || !(*share >= 0 && *share < 1) ||
        (*share > 0 && member.posted == 0))
      return refuseAt(at,
                      "expects a share of the task before its post, at "
                      "least 0 and below 1, found {0}",
                      show(value));
    member.left = *share;
    return llvm::Error::success();
  };
  if (llvm::Error error = readObject(
          value, place,
          {required({"kind", readKind}),
           required({"of", readName}),
           required({"bytes", integer(work.bytes, anySize)}),
           required({"ranks", readRanks}),
           required({"posted", ofEach(readPosted)}),
           required({"waited", ofEach(readWaited)}),
           {"left", ofEach(readLeft)},
           {"time", readTime},
           {"replicas", integer(work.replicas, {1, int64_t(1) << 20})},
           {"needs", readNeeds},
           {"stash", readStash}}))
    return error;
  if (work.on == Resource::Link &&
      (work.members.size() != 2 || work.replicas > 1 ||
       work.members[0].rank == work.members[1].rank))
    return refuseAt(place, "expects a transfer between two ranks");
  if (work.isCopy() && (work.members.size() != 1 || work.replicas > 1))
    return refuseAt(place, "expects a copy of one rank");
  if (work.isCopy() && !work.stash)
    return refuseAt(place, "expects the stash that it copies");
  if (work.stash && work.on == Resource::Group)
    return refuseAt(place.at("stash"), "is of transfers and copies only");
  if (work.replicas > 1 && work.members.size() > 1)
    return refuseAt(place, "expects several ranks or several replicas of one, "
                           "found both");
  int64_t replicas = plan.replicas();
  if (work.replicas > 1 && replicas != work.replicas)
    return refuseAt(place.at("replicas"), "expects {0}, as before, found {1}",
                    replicas, work.replicas);
  return llvm::Error::success();
}

llvm::Error plan::readWorks(const Value &value, const JsonPath &place,
                            PlanFile &plan) {
  if (!plan.lists.empty())
    return refuseAt(place, "their places are between tasks, and instructions "
                           "have messages there too: leave out one of both");
  return readEach(value, place,
                  [&](const Value &work, const JsonPath &at, size_t) {
                    return readWork(work, at, plan);
                  });
}
