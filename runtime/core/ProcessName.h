//===- ProcessName.h - What errors call a process --------------*- C++ -*-===//
//
// Processes of a run are numbered by their place (Mesh.h). People know ranks,
// and replicas where there are any; so errors say these.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_PROCESSNAME_H
#define PIPEWRIGHT_RUNTIME_CORE_PROCESSNAME_H

#include "runtime/core/Mesh.h"

#include <string>

namespace pipewright::runtime {

/// The mesh that numbers are of; called before ranks start. Until then each is
/// a rank.
void nameProcessesBy(const Mesh &mesh);

/// `rank 1`, `rank 1 of replica 0`
std::string processName(int64_t process);
/// The same without the word: `1`, `1 of replica 0`
std::string processNumber(int64_t process);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_PROCESSNAME_H
