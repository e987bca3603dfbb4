//===- Faults.cpp - What the environment asks to go wrong -----------------===//
//
//   PIPEWRIGHT_DOUBLE_NCCL_DELAY=MICROSECONDS  at most, before each transfer
//   PIPEWRIGHT_DOUBLE_NCCL_EXIT=[RANK:]N       the process ends at its N-th
//   PIPEWRIGHT_DOUBLE_NCCL_ERROR=[RANK:]N      an error at its N-th transfer
//   PIPEWRIGHT_DOUBLE_NCCL_STALL=[RANK:]N      nothing moves from the N-th on
//   PIPEWRIGHT_DOUBLE_NCCL_CONNECT=MICROSECONDS  for each communicator
//   PIPEWRIGHT_DOUBLE_NCCL_LOST=1              communicators never get ready
//   PIPEWRIGHT_DOUBLE_NCCL_STUCK=1             aborts never come to an end
//
// RANK is the environment's; transfers count from 1, the first exchange of
// each link among them.
//
//===----------------------------------------------------------------------===//

#include "test/doubles/nccl/Communicator.h"

#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>
#include <unistd.h>

using namespace pipewright::doubles;

static std::string ownRank() {
  for (const char *name : {"RANK", "OMPI_COMM_WORLD_RANK"})
    if (const char *rank = std::getenv(name))
      return rank;
  return "";
}

/// The N of [RANK:]N; -1 if there is none for this rank.
static int64_t turnOf(const char *variable) {
  const char *text = std::getenv(variable);
  if (!text)
    return -1;
  const std::string value = text;
  const size_t colon = value.find(':');
  if (colon == std::string::npos)
    return std::stoll(value);
  return value.substr(0, colon) == ownRank()
             ? std::stoll(value.substr(colon + 1))
             : -1;
}

bool pipewright::doubles::neverMeets() {
  const char *lost = std::getenv("PIPEWRIGHT_DOUBLE_NCCL_LOST");
  return lost && std::atoi(lost);
}

std::chrono::microseconds pipewright::doubles::connectTime() {
  const char *time = std::getenv("PIPEWRIGHT_DOUBLE_NCCL_CONNECT");
  return std::chrono::microseconds(time ? std::atoll(time) : 0);
}

bool pipewright::doubles::neverAborts() {
  const char *stuck = std::getenv("PIPEWRIGHT_DOUBLE_NCCL_STUCK");
  return stuck && std::atoi(stuck);
}

static void delay() {
  const char *most = std::getenv("PIPEWRIGHT_DOUBLE_NCCL_DELAY");
  if (!most)
    return;
  static std::mutex mutex;
  static std::mt19937 random(7);
  std::unique_lock<std::mutex> lock(mutex);
  const auto time =
      std::uniform_int_distribution<int64_t>(0, std::stoll(most))(random);
  lock.unlock();
  std::this_thread::sleep_for(std::chrono::microseconds(time));
}

Fault pipewright::doubles::strike() {
  static std::atomic<int64_t> count{0};
  const int64_t number = ++count;
  delay();
  // As a crash does: nobody is told.
  if (turnOf("PIPEWRIGHT_DOUBLE_NCCL_EXIT") == number)
    _exit(9);
  const int64_t last = turnOf("PIPEWRIGHT_DOUBLE_NCCL_STALL");
  if (last >= 0 && last <= number)
    return Fault::Stall;
  return turnOf("PIPEWRIGHT_DOUBLE_NCCL_ERROR") == number ? Fault::Error
                                                          : Fault::None;
}
