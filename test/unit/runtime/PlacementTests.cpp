//===- PlacementTests.cpp -------------------------------------------------===//

#include "runtime/cpu/Threads.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <thread>

using namespace pipewright::runtime;

static int coresOfThread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return CPU_COUNT(&set);
}

// What a rank starts beside itself would else share the rank's core with it.
TEST(Placement, AThreadBesideARankRunsOnTheCoresOfAll) {
  int ofRank = 0, inherited = 0, beside = 0, all = 0;
  std::thread([&] {
    const Placement placement(1, 1, false);
    all = static_cast<int>(placement.cores.size());
    placement.apply(0);
    ofRank = coresOfThread();
    std::thread([&] {
      inherited = coresOfThread();
      placement.leave();
      beside = coresOfThread();
    }).join();
  }).join();
  EXPECT_EQ(ofRank, 1);
  EXPECT_EQ(inherited, 1);
  EXPECT_EQ(beside, all);
}
