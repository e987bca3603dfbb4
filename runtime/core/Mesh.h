//===- Mesh.h - How processes are numbered ---------------------*- C++ -*-===//
//
// All processes of a run are a box: position in the pipeline x replica (data
// parallel) x shard (tensor parallel). This file alone knows which number a
// process has. Launchers fill hosts in the order of numbers, so neighbours in
// number are on one host: shards of one stage, which talk most, then replicas
// or positions, as the map says. Unless it says pairs, a mesh of P x 1 x 1
// numbers processes as the pipeline numbers its ranks.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_MESH_H
#define PIPEWRIGHT_RUNTIME_CORE_MESH_H

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipewright::runtime {

/// Where a process stands.
struct Place {
  int64_t position = 0;
  int64_t replica = 0;
  int64_t shard = 0;

  friend bool operator==(const Place &, const Place &) = default;
};

/// The one thing in which the members of a group differ.
enum class Axis { Pipe, Data, Tensor };
constexpr Axis allAxes[] = {Axis::Pipe, Axis::Data, Axis::Tensor};

/// In which order positions and replicas are numbered.
enum class ProcessMap {
  /// Replicas of a position beside each other, then the next position: what
  /// they sum stays on a host.
  Replicas,
  /// Positions beside each other, then the next replica: what a pipeline sends
  /// stays on a host.
  Pipelines,
  /// The same, with position p beside P-1-p: 0, P-1, 1, P-2, ... What BPipe
  /// moves stays on a host.
  Pairs,
};
constexpr ProcessMap allProcessMaps[] = {
    ProcessMap::Replicas, ProcessMap::Pipelines, ProcessMap::Pairs};

/// As options, plans and IR have it.
constexpr const char *nameOf(ProcessMap map) {
  return map == ProcessMap::Replicas    ? "replicas"
         : map == ProcessMap::Pipelines ? "pipelines"
                                        : "pairs";
}

/// The map of that name, if there is one.
constexpr std::optional<ProcessMap> processMapNamed(std::string_view name) {
  for (const ProcessMap map : allProcessMaps)
    if (name == nameOf(map))
      return map;
  return std::nullopt;
}

/// `replicas, pipelines or pairs`
inline std::string processMapNames() {
  std::string names;
  for (const ProcessMap map : allProcessMaps)
    names += (names.empty()                         ? ""
              : map == *std::rbegin(allProcessMaps) ? " or "
                                                    : ", ") +
             std::string(nameOf(map));
  return names;
}

struct Mesh {
  int64_t pipe = 1;
  int64_t data = 1;
  int64_t tensor = 1;
  ProcessMap map = ProcessMap::Replicas;

  constexpr int64_t size() const { return pipe * data * tensor; }

  constexpr int64_t extent(Axis axis) const {
    return axis == Axis::Pipe ? pipe : axis == Axis::Data ? data : tensor;
  }

  constexpr int64_t processAt(Place place) const {
    const int64_t stage = map == ProcessMap::Replicas
                              ? place.replica + data * place.position
                              : slotOf(place.position) + pipe * place.replica;
    return place.shard + tensor * stage;
  }
  constexpr Place placeOf(int64_t process) const {
    const int64_t stage = process / tensor;
    const int64_t shard = process % tensor;
    return map == ProcessMap::Replicas
               ? Place{stage / data, stage % data, shard}
               : Place{positionIn(stage % pipe), stage / pipe, shard};
  }

  /// The processes that differ from that one in the axis alone, itself among
  /// them, by position, replica or shard. These are the members of its group,
  /// in the order in which collectives add.
  std::vector<int64_t> groupOf(int64_t process, Axis axis) const {
    std::vector<int64_t> members;
    Place place = placeOf(process);
    int64_t &moving = axis == Axis::Pipe   ? place.position
                      : axis == Axis::Data ? place.replica
                                           : place.shard;
    for (moving = 0; moving < extent(axis); ++moving)
      members.push_back(processAt(place));
    return members;
  }

  /// All groups of the axis, by their first members: each process is in one.
  std::vector<std::vector<int64_t>> groups(Axis axis) const {
    std::vector<std::vector<int64_t>> all;
    for (int64_t process = 0; process < size(); ++process)
      if (std::vector<int64_t> group = groupOf(process, axis);
          group.front() == process)
        all.push_back(std::move(group));
    return all;
  }

  /// The processes at these positions that have the replica and the shard of
  /// that one: where a tied weight is held.
  std::vector<int64_t> holders(int64_t process,
                               const std::vector<int64_t> &positions) const {
    std::vector<int64_t> members;
    Place place = placeOf(process);
    for (place.position = 0; place.position < pipe; ++place.position)
      for (const int64_t position : positions)
        if (position == place.position)
          members.push_back(processAt(place));
    return members;
  }

  friend constexpr bool operator==(const Mesh &, const Mesh &) = default;

private:
  /// Where in its pipeline a position is numbered.
  constexpr int64_t slotOf(int64_t position) const {
    const int64_t other = pipe - 1 - position;
    return map != ProcessMap::Pairs ? position
           : position <= other      ? 2 * position
                                    : 2 * other + 1;
  }
  constexpr int64_t positionIn(int64_t slot) const {
    return map != ProcessMap::Pairs ? slot
           : slot % 2 == 0          ? slot / 2
                                    : pipe - 1 - slot / 2;
  }
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_MESH_H
