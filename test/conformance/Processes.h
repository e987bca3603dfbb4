//===- Processes.h - Ranks as processes of this test -----------*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_CONFORMANCE_PROCESSES_H
#define PIPEWRIGHT_TEST_CONFORMANCE_PROCESSES_H

#include "test/conformance/FreePort.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <vector>

namespace pipewright::runtime {

/// The running test itself.
inline std::string executable() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return std::string(path, std::max<ssize_t>(length, 0));
}

/// All that a process that was started by popen says.
inline std::string readAll(std::FILE *pipe) {
  std::string output;
  std::array<char, 512> piece;
  while (std::fgets(piece.data(), piece.size(), pipe))
    output += piece.data();
  return output;
}

/// What each of `ranks` processes in the scenario says, by rank.
inline std::vector<std::string>
runProcesses(int64_t ranks, const std::string &scenario,
             const std::string &environment = "", int port = freePort()) {
  std::vector<std::FILE *> pipes;
  for (int64_t r = 0; r < ranks; ++r) {
    const std::string command =
        environment + " RANK=" + std::to_string(r) +
        " WORLD_SIZE=" + std::to_string(ranks) +
        " MASTER_ADDR=localhost MASTER_PORT=" + std::to_string(port) +
        " timeout 300 '" + executable() + "' --scenario " + scenario + " 2>&1";
    pipes.push_back(popen(command.c_str(), "r"));
  }
  std::vector<std::string> outputs;
  for (std::FILE *pipe : pipes) {
    outputs.push_back(readAll(pipe));
    pclose(pipe);
  }
  return outputs;
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_CONFORMANCE_PROCESSES_H
