//===- PlanCosts.cpp - Reads costs and times of a plan ----------*- C++ -*-===//
//
// Both stand for themselves: a plan may have either, and no other part needs
// them.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/files/PlanCosts.h"

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::schedules::plan;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

static llvm::Error readStageCosts(const Value &value, const JsonPath &place,
                                  StageCosts &stage) {
  struct Seconds {
    llvm::StringRef key;
    double &value;
  };
  const Object *object = nullptr;
  if (llvm::Error error =
          readObject(value, place,
                     {"forward", "backward", "input_gradient",
                      "weight_gradient", "recompute", "update", "stash_bytes",
                      "kept_bytes", "weight_stash_bytes"},
                     object))
    return error;
  for (auto [key, seconds] :
       {Seconds{"forward", stage.forward}, Seconds{"backward", stage.backward},
        Seconds{"input_gradient", stage.inputGradient},
        Seconds{"weight_gradient", stage.weightGradient},
        Seconds{"recompute", stage.recompute},
        Seconds{"update", stage.update}}) {
    auto read = [&seconds = seconds](const Value &v, const JsonPath &at) {
      return readSeconds(v, at, seconds);
    };
    if (llvm::Error error = readIfGiven(*object, place, key, read))
      return error;
  }
  if (llvm::Error error =
          readIfGiven(*object, place, "stash_bytes", [&](auto &v, auto at) {
            return readInteger(v, at, stage.stashBytes, anySize);
          }))
    return error;
  if (llvm::Error error =
          readIfGiven(*object, place, "kept_bytes", [&](auto &v, auto at) {
            return readInteger(v, at, stage.keptBytes, {-1, anySize.most});
          }))
    return error;
  return readIfGiven(
      *object, place, "weight_stash_bytes", [&](auto &v, auto at) {
        return readInteger(v, at, stage.weightStashBytes, {-1, anySize.most});
      });
}

static llvm::Error readLink(const Value &value, const JsonPath &place,
                            int64_t numRanks, TaskCosts &costs) {
  const Object *object = nullptr;
  if (llvm::Error error = readObject(
          value, place, {"from", "to", "latency", "bandwidth"}, object))
    return error;
  std::pair<int32_t, int32_t> ranks;
  for (auto [key, rank] :
       {std::pair<llvm::StringRef, int32_t *>{"from", &ranks.first},
        {"to", &ranks.second}}) {
    auto read = [&, rank = rank](const Value &v, const JsonPath &at) {
      return readInteger(v, at, *rank, {0, numRanks - 1});
    };
    if (llvm::Error error = readRequired(*object, place, key, read))
      return error;
  }
  LinkCosts &link = costs.links[ranks];
  if (llvm::Error error =
          readIfGiven(*object, place, "latency", [&](auto &v, auto at) {
            return readSeconds(v, at, link.latency);
          }))
    return error;
  return readIfGiven(*object, place, "bandwidth", [&](auto &v, auto at) {
    return readBandwidth(v, at, link.bandwidth);
  });
}

/// Which ranks are on one host, and the network between hosts.
static llvm::Error readHosts(const Value &value, const JsonPath &place,
                             Hosts &hosts) {
  const Object *object = nullptr;
  if (llvm::Error error = readObject(
          value, place,
          {"ranks", "begins", "replicas_cross", "latency", "bandwidth"},
          object))
    return error;
  if (llvm::Error error =
          readRequired(*object, place, "ranks", [&](auto &v, auto at) {
            return readInteger(v, at, hosts.ranks, {1, int64_t(1) << 20});
          }))
    return error;
  auto readBegins = [&](const Value &value, const JsonPath &at) -> llvm::Error {
    const Array *list = nullptr;
    if (llvm::Error error = readArray(value, at, list))
      return error;
    hosts.begins.resize(list->size());
    for (auto [i, entry] : llvm::enumerate(*list))
      if (llvm::Error error = readInteger(entry, at.at(i), hosts.begins[i],
                                          {0, hosts.ranks - 1}))
        return error;
    return llvm::Error::success();
  };
  if (llvm::Error error = readIfGiven(*object, place, "begins", readBegins))
    return error;
  if (llvm::Error error = readIfGiven(
          *object, place, "replicas_cross",
          [&](const Value &v, const JsonPath &at) -> llvm::Error {
            if (!v.getAsBoolean())
              return refuseAt(at, "expects true or false, found {0}", show(v));
            hosts.replicasCross = *v.getAsBoolean();
            return llvm::Error::success();
          }))
    return error;
  if (llvm::Error error =
          readIfGiven(*object, place, "latency", [&](auto &v, auto at) {
            return readSeconds(v, at, hosts.network.latency);
          }))
    return error;
  return readIfGiven(*object, place, "bandwidth", [&](auto &v, auto at) {
    return readBandwidth(v, at, hosts.network.bandwidth);
  });
}

llvm::Error pipewright::schedules::plan::readCosts(const Value &value,
                                                   const JsonPath &place,
                                                   PlanFile &plan) {
  const Schedule &schedule = plan.schedule;
  TaskCosts &costs = plan.costs.emplace();
  const Object *object = nullptr;
  if (llvm::Error error =
          readObject(value, place,
                     {"stages", "link_latency", "link_bandwidth", "links",
                      "pair_factor", "hosts", "host_latency", "host_bandwidth"},
                     object))
    return error;
  auto readStages = [&](const Value &value, const JsonPath &at) -> llvm::Error {
    const Array *list = nullptr;
    if (llvm::Error error =
            readArray(value, at, list, schedule.stages, "stages"))
      return error;
    for (auto [i, entry] : llvm::enumerate(*list))
      if (llvm::Error error =
              readStageCosts(entry, at.at(i), costs.stages.emplace_back()))
        return error;
    return llvm::Error::success();
  };
  auto readLinks = [&](const Value &value, const JsonPath &at) -> llvm::Error {
    const Array *list = nullptr;
    if (llvm::Error error = readArray(value, at, list))
      return error;
    for (auto [i, entry] : llvm::enumerate(*list))
      if (llvm::Error error = readLink(entry, at.at(i), schedule.ranks, costs))
        return error;
    return llvm::Error::success();
  };
  if (llvm::Error error = readRequired(*object, place, "stages", readStages))
    return error;
  if (llvm::Error error = readIfGiven(*object, place, "links", readLinks))
    return error;
  if (llvm::Error error =
          readIfGiven(*object, place, "link_latency", [&](auto &v, auto at) {
            return readSeconds(v, at, costs.linkLatency);
          }))
    return error;
  if (llvm::Error error =
          readIfGiven(*object, place, "link_bandwidth", [&](auto &v, auto at) {
            return readBandwidth(v, at, costs.linkBandwidth);
          }))
    return error;
  if (llvm::Error error =
          readIfGiven(*object, place, "host_latency", [&](auto &v, auto at) {
            return readSeconds(v, at, costs.hostLink.latency);
          }))
    return error;
  if (llvm::Error error =
          readIfGiven(*object, place, "host_bandwidth", [&](auto &v, auto at) {
            return readBandwidth(v, at, costs.hostLink.bandwidth);
          }))
    return error;
  if (llvm::Error error =
          readIfGiven(*object, place, "hosts", [&](auto &v, auto at) {
            return readHosts(v, at, costs.hosts);
          }))
    return error;
  return readIfGiven(*object, place, "pair_factor", [&](auto &v, auto at) {
    return readSeconds(v, at, costs.pairFactor);
  });
}

llvm::Error pipewright::schedules::plan::readTimes(const Value &value,
                                                   const JsonPath &place,
                                                   PlanFile &plan) {
  const Schedule &schedule = plan.schedule;
  const Array *ranks = nullptr;
  if (llvm::Error error =
          readArray(value, place, ranks, schedule.ranks, "ranks"))
    return error;
  for (auto [rank, entry] : llvm::enumerate(*ranks)) {
    const Array *list = nullptr;
    JsonPath at = place.at(rank);
    if (llvm::Error error =
            readArray(entry, at, list, schedule.order[rank].size(), "tasks"))
      return error;
    std::vector<TaskTime> &times = plan.times.emplace_back(list->size());
    for (auto [i, pair] : llvm::enumerate(*list)) {
      const Array *ends = nullptr;
      JsonPath atTask = at.at(i);
      if (llvm::Error error =
              readArray(pair, atTask, ends, 2, "times (start and end)"))
        return error;
      if (llvm::Error error =
              readSeconds((*ends)[0], atTask.at(size_t(0)), times[i].start))
        return error;
      if (llvm::Error error =
              readSeconds((*ends)[1], atTask.at(1), times[i].end))
        return error;
      if (times[i].end < times[i].start)
        return refuseAt(atTask, "expects an end after the start, found {0}",
                        show(pair));
    }
  }
  return llvm::Error::success();
}
