//===- Mesh.h - How processes are numbered ---------------------*- C++ -*-===//
//
// All processes of a run are a box: position in the pipeline x replica (data
// parallel) x shard (tensor parallel). This file alone knows which number a
// process has: neighbours in number are shards of one stage, which talk most,
// then come replicas, then positions. A mesh of P x 1 x 1 numbers processes as
// the pipeline numbers its ranks.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_MESH_H
#define PIPEWRIGHT_RUNTIME_CORE_MESH_H

#include <cstdint>
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

struct Mesh {
  int64_t pipe = 1;
  int64_t data = 1;
  int64_t tensor = 1;

  constexpr int64_t size() const { return pipe * data * tensor; }

  constexpr int64_t extent(Axis axis) const {
    return axis == Axis::Pipe ? pipe : axis == Axis::Data ? data : tensor;
  }

  constexpr int64_t processAt(Place place) const {
    return place.shard + tensor * (place.replica + data * place.position);
  }
  constexpr Place placeOf(int64_t process) const {
    return {process / (tensor * data), process / tensor % data,
            process % tensor};
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
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_MESH_H
