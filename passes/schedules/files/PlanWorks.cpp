//===- PlanWorks.cpp - Reads the works of a plan ----------------*- C++ -*-===//

#include "passes/schedules/files/PlanWorks.h"

#include "passes/schedules/files/PlanFormat.h"
#include "passes/schedules/files/PlanValues.h"
#include "support/Text.h"

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::schedules::plan;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

/// The ranks, and how many tasks of each come before its post and its wait.
static llvm::Error readMembers(const Object &object, const JsonPath &place,
                               const Schedule &schedule, Work &work) {
  auto readRank = [&](const Value &value, const JsonPath &at,
                      Work::Member &member) {
    return readInteger(value, at, member.rank, {0, schedule.ranks - 1});
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
  auto eachBy = [&](auto read) {
    return [&, read](const Value &value, const JsonPath &at) -> llvm::Error {
      const Array *list = nullptr;
      if (llvm::Error error =
              readArray(value, at, list, work.members.size(), "members"))
        return error;
      for (auto [i, entry] : llvm::enumerate(*list))
        if (llvm::Error error = read(entry, at.at(i), work.members[i]))
          return error;
      return llvm::Error::success();
    };
  };
  if (const Value *ranks = object.get("ranks"))
    if (const Array *list = ranks->getAsArray())
      work.members.resize(list->size());
  if (work.members.empty())
    return refuseAt(place.at("ranks"), "expects a list of ranks");
  if (llvm::Error error =
          readRequired(object, place, "ranks", eachBy(readRank)))
    return error;
  if (llvm::Error error =
          readRequired(object, place, "posted", eachBy(readPosted)))
    return error;
  if (llvm::Error error =
          readRequired(object, place, "waited", eachBy(readWaited)))
    return error;
  return readIfGiven(object, place, "left", eachBy(readLeft));
}

static llvm::Error readWork(const Object &object, const JsonPath &place,
                            PlanFile &plan) {
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
    const Array *ends = nullptr;
    if (llvm::Error error = readArray(value, at, ends, 2, "ends"))
      return error;
    if (llvm::Error error = readSeconds((*ends)[0], at.at(0), timed.time.start))
      return error;
    return readSeconds((*ends)[1], at.at(1), timed.time.end);
  };
  if (llvm::Error error = readRequired(object, place, "kind", readKind))
    return error;
  if (llvm::Error error = readRequired(object, place, "of", readName))
    return error;
  if (llvm::Error error =
          readRequired(object, place, "bytes", [&](auto &v, auto at) {
            return readInteger(v, at, work.bytes, anySize);
          }))
    return error;
  if (llvm::Error error =
          readIfGiven(object, place, "replicas", [&](auto &v, auto at) {
            return readInteger(v, at, work.replicas, {1, int64_t(1) << 20});
          }))
    return error;
  // Of works before this one: there is no circle of them.
  const int64_t before = static_cast<int64_t>(plan.timedWorks.size()) - 1;
  auto readNeeds = [&](const Value &value, const JsonPath &at) -> llvm::Error {
    const Array *list = nullptr;
    if (llvm::Error error = readArray(value, at, list))
      return error;
    if (!list->empty() && before == 0)
      return refuseAt(at, "expects no work, as none is before this one");
    for (auto [i, entry] : llvm::enumerate(*list))
      if (llvm::Error error = readInteger(
              entry, at.at(i), work.needs.emplace_back(), {0, before - 1}))
        return error;
    llvm::sort(work.needs);
    work.needs.erase(llvm::unique(work.needs), work.needs.end());
    return llvm::Error::success();
  };
  if (llvm::Error error = readIfGiven(object, place, "needs", readNeeds))
    return error;
  auto readStash = [&](const Value &value, const JsonPath &at) -> llvm::Error {
    const Array *list = nullptr;
    if (llvm::Error error =
            readArray(value, at, list, 2, "numbers: a stage, a micro-batch"))
      return error;
    Task &of = work.stash.emplace();
    if (llvm::Error error = readInteger((*list)[0], at.at(0), of.stage,
                                        {0, plan.schedule.stages - 1}))
      return error;
    return readInteger((*list)[1], at.at(1), of.microBatch,
                       {0, plan.schedule.microBatches - 1});
  };
  if (llvm::Error error = readIfGiven(object, place, "stash", readStash))
    return error;
  if (llvm::Error error = readIfGiven(object, place, "time", readTime))
    return error;
  if (llvm::Error error = readMembers(object, place, plan.schedule, work))
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
  const Array *list = nullptr;
  if (llvm::Error error = readArray(value, place, list))
    return error;
  for (auto [i, entry] : llvm::enumerate(*list)) {
    const Object *object = nullptr;
    JsonPath at = place.at(i);
    if (llvm::Error error =
            readObject(entry, at,
                       {"kind", "of", "bytes", "ranks", "posted", "waited",
                        "left", "time", "replicas", "needs", "stash"},
                       object))
      return error;
    if (llvm::Error error = readWork(*object, at, plan))
      return error;
  }
  return llvm::Error::success();
}
