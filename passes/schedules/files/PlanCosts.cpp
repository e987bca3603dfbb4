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
using llvm::json::Value;

static llvm::Error readStageCosts(const Value &value, const JsonPath &place,
                                  StageCosts &stage) {
  return readObject(
      value, place,
      {{"forward", seconds(stage.forward)},
       {"backward", seconds(stage.backward)},
       {"input_gradient", seconds(stage.inputGradient)},
       {"weight_gradient", seconds(stage.weightGradient)},
       {"recompute", seconds(stage.recompute)},
       {"update", seconds(stage.update)},
       {"stash_bytes", integer(stage.stashBytes, anySize)},
       {"kept_bytes", integer(stage.keptBytes, {-1, anySize.most})},
       {"weight_stash_bytes",
        integer(stage.weightStashBytes, {-1, anySize.most})}});
}

static llvm::Error readLink(const Value &value, const JsonPath &place,
                            int64_t numRanks, TaskCosts &costs) {
  std::pair<int32_t, int32_t> ranks;
  auto readLatency = [&](const Value &value, const JsonPath &at) {
    return readSeconds(value, at, costs.links[ranks].latency);
  };
  auto readSpeed = [&](const Value &value, const JsonPath &at) {
    return readBandwidth(value, at, costs.links[ranks].bandwidth);
  };
  if (llvm::Error error = readObject(
          value, place,
          {required({"from", integer(ranks.first, {0, numRanks - 1})}),
           required({"to", integer(ranks.second, {0, numRanks - 1})}),
           {"latency", readLatency},
           {"bandwidth", readSpeed}}))
    return error;
  costs.links.try_emplace(ranks);
  return llvm::Error::success();
}

/// Which ranks are on one host, and the network between hosts.
static llvm::Error readHosts(const Value &value, const JsonPath &place,
                             int64_t ranks, Hosts &hosts) {
  hosts.mesh.pipe = ranks;
  auto readMap = [&](const Value &value, const JsonPath &at) -> llvm::Error {
    std::optional<runtime::ProcessMap> map =
        runtime::processMapNamed(value.getAsString().value_or(""));
    if (!map)
      return refuseAt(at, "expects {0}, found {1}", runtime::processMapNames(),
                      show(value));
    hosts.mesh.map = *map;
    return llvm::Error::success();
  };
  return readObject(
      value, place,
      {required({"ranks", integer(hosts.processes, {1, int64_t(1) << 20})}),
       {"replicas", integer(hosts.mesh.data, {1, int64_t(1) << 20})},
       {"process_map", readMap},
       {"latency", seconds(hosts.network.latency)},
       {"bandwidth", bandwidth(hosts.network.bandwidth)}});
}

llvm::Error pipewright::schedules::plan::readCosts(const Value &value,
                                                   const JsonPath &place,
                                                   PlanFile &plan) {
  const Schedule &schedule = plan.schedule;
  TaskCosts &costs = plan.costs.emplace();
  auto readStage = [&](const Value &value, const JsonPath &at, size_t) {
    return readStageCosts(value, at, costs.stages.emplace_back());
  };
  auto readStages = [&](const Value &value, const JsonPath &at) {
    return readEach(value, at, readStage, schedule.stages, "stages");
  };
  auto readLinks = [&](const Value &value, const JsonPath &at) {
    return readEach(value, at,
                    [&](const Value &link, const JsonPath &at, size_t) {
                      return readLink(link, at, schedule.ranks, costs);
                    });
  };
  return readObject(value, place,
                    {required({"stages", readStages}),
                     {"link_latency", seconds(costs.linkLatency)},
                     {"link_bandwidth", bandwidth(costs.linkBandwidth)},
                     {"links", readLinks},
                     {"pair_factor", seconds(costs.pairFactor)},
                     {"hosts",
                      [&](const Value &value, const JsonPath &at) {
                        return readHosts(value, at, schedule.ranks,
                                         costs.hosts);
                      }},
                     {"host_latency", seconds(costs.hostLink.latency)},
                     {"host_bandwidth", bandwidth(costs.hostLink.bandwidth)}});
}

llvm::Error pipewright::schedules::plan::readTimes(const Value &value,
                                                   const JsonPath &place,
                                                   PlanFile &plan) {
  const Schedule &schedule = plan.schedule;
  auto readTask = [&](const Value &value, const JsonPath &at,
                      size_t) -> llvm::Error {
    TaskTime &time = plan.times.back().emplace_back();
    double *ends[] = {&time.start, &time.end};
    auto readEnd = [&](const Value &value, const JsonPath &at, size_t end) {
      return readSeconds(value, at, *ends[end]);
    };
    if (llvm::Error error =
            readEach(value, at, readEnd, 2, "times (start and end)"))
      return error;
    if (time.end < time.start)
      return refuseAt(at, "expects an end after the start, found {0}",
                      show(value));
    return llvm::Error::success();
  };
  auto readRank = [&](const Value &value, const JsonPath &at, size_t rank) {
    plan.times.emplace_back();
    return readEach(value, at, readTask, schedule.order[rank].size(), "tasks");
  };
  return readEach(value, place, readRank, schedule.ranks, "ranks");
}
