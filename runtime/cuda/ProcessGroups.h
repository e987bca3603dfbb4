//===- ProcessGroups.h - Links and groups of processes ----------*- C++ -*-===//
//
// A program speaks of the ranks of one replica, links and groups of GPUs of
// processes.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_PROCESSGROUPS_H
#define PIPEWRIGHT_RUNTIME_CUDA_PROCESSGROUPS_H

#include "runtime/core/Program.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace pipewright::runtime {

/// The links (from, to) of all replicas, in one order.
std::vector<std::pair<int64_t, int64_t>> linksOf(const Program &program);

/// The groups of all replicas, in one order. One that lists ranks is one of
/// each replica's processes; one of replicas is one for each rank.
std::vector<std::vector<int64_t>> groupsOf(const Program &program);

/// The place in `groupsOf` of what the program's group `group` is for a
/// process, whether it is a member or not.
int64_t groupNumber(const Program &program, int64_t group, int64_t process);

/// Whether a rank is in any group.
bool isInGroups(const Program &program, int64_t rank);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_PROCESSGROUPS_H
