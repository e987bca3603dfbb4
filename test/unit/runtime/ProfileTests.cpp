//===- ProfileTests.cpp - What the table of a profile says ----------------===//

#include "runtime/trace/Profile.h"

#include "gtest/gtest.h"

using namespace pipewright::runtime;

static const char *const head = "| call | calls | ms | share | GB/s | TFLOP/s "
                                "|\n|---|---|---|---|---|---|\n";

TEST(Profile, GivesFiguresOfOneStepLongestFirst) {
  Profile profile;
  for (int step = 0; step < 2; ++step) {
    profile.add({"short"}, 0.001);
    for (int call = 0; call < 3; ++call)
      profile.add({"matmul 2 x 3 x 4", 2e9, 3e11}, 0.001);
  }
  profile.endSteps(2, 0.016);
  EXPECT_EQ(profile.table(1),
            std::string(head) +
                "| `matmul 2 x 3 x 4` | 3 | 3.000 | 75.0 % | 2000 | 300.0 |\n"
                "| `short` | 1 | 1.000 | 25.0 % |  |  |\n"
                "\nA step took 8.000 ms (without CUDA graphs), calls on 1 rank "
                "4.000 ms of it together; the mean of 2.\n");
}

TEST(Profile, AddsUpRanksToTheBit) {
  Profile own, other;
  own.add({"both, with blanks", 1, 1.0 / 3}, 0.1);
  own.endSteps(1, 0.25);
  other.add({"both, with blanks", 1, 1.0 / 3}, 0.2);
  other.add({"one"}, 1e-9);
  own.merge(other.toText());
  Profile all;
  all.add({"both, with blanks", 1, 1.0 / 3}, 0.1);
  all.add({"both, with blanks", 1, 1.0 / 3}, 0.2);
  all.add({"one"}, 1e-9);
  EXPECT_EQ(own.toText(), all.toText());
  EXPECT_NE(own.table(2).find("calls on 2 ranks 300.000 ms"), std::string::npos)
      << own.table(2);
}

TEST(Profile, NothingMeasuredIsAnEmptyTable) {
  EXPECT_EQ(Profile().table(1).rfind(head, 0), 0u);
}
