//===- GivenTimesTests.cpp - Times said by hand ---------------------------===//

#include "ScheduleTesting.h"

#include "passes/schedules/files/GivenTimes.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

/// A file of this content that is gone afterwards.
class StageTimes {
public:
  StageTimes(llvm::StringRef suffix, llvm::StringRef text) {
    llvm::SmallString<64> made;
    std::error_code error =
        llvm::sys::fs::createTemporaryFile("stage-times", suffix, made);
    EXPECT_FALSE(error);
    path = made.str().str();
    llvm::raw_fd_ostream(path, error) << text;
  }
  ~StageTimes() { std::remove(path.c_str()); }

  llvm::Expected<GivenTimes> read() const { return readStageTimes(path); }
  /// The error without the file's name.
  std::string refusal() const {
    std::string message = messageOf(read());
    return llvm::StringRef(message).starts_with(path)
               ? message.substr(path.size())
               : message;
  }

private:
  std::string path;
};

} // namespace

static Schedule shapeOf(llvm::StringRef policy, int64_t ranks, int64_t stages) {
  return buildSchedule(policy, ranks, stages, 2 * ranks);
}

TEST(GivenTimes, HalvesAndWholesFollowFromEachOther) {
  StageCosts whole = valueOf(parseTimes("F=1.5,B=3")).rows[0];
  EXPECT_EQ(whole.forward, 1.5);
  EXPECT_EQ(whole.inputGradient, 1.5);
  EXPECT_EQ(whole.weightGradient, 1.5);
  EXPECT_EQ(whole.recompute, 1.5);
  EXPECT_EQ(whole.update, 0);
  StageCosts halves = valueOf(parseTimes("W=1.25,F=1,I=.5,U=.125")).rows[0];
  EXPECT_EQ(halves.backward, 1.75);
  EXPECT_EQ(halves.update, .125);
  // Both halves at once may be faster than one after the other.
  EXPECT_EQ(valueOf(parseTimes("F=1,I=1,W=1,B=1.5")).rows[0].backward, 1.5);
}

TEST(GivenTimes, HaveUnitsOrNone) {
  const GivenTimes times = valueOf(parseTimes("F=1.5ms,I=.25s,W=80 us,U=0"));
  EXPECT_TRUE(times.inSeconds);
  EXPECT_DOUBLE_EQ(times.rows[0].forward, 1.5e-3);
  EXPECT_DOUBLE_EQ(times.rows[0].inputGradient, 0.25);
  EXPECT_DOUBLE_EQ(times.rows[0].weightGradient, 80e-6);
  EXPECT_EQ(times.describe(), "F=1.5ms B=250.08ms I=250ms W=80us");
  EXPECT_FALSE(valueOf(parseTimes("F=1,B=2")).inSeconds);
  EXPECT_FALSE(valueOf(parseTimes("F=0,B=0")).inSeconds);
  EXPECT_EQ(messageOf(parseTimes("F=1ms,B=2")),
            "has times with and without a unit: 1ms and 2");
  for (const char *text : {"", "ms", "1m", "1e400s", "-1us", "nan s", "1 s s"})
    EXPECT_FALSE(parseTime(text)) << text;
}

TEST(GivenTimes, BelongToARanksShare) {
  GivenTimes times = valueOf(parseTimes("F=1,B=2"));
  TaskCosts one = valueOf(times.costsOf(shapeOf("gpipe", 4, 4)));
  TaskCosts two = valueOf(times.costsOf(shapeOf("zb-v", 4, 8)));
  TaskCosts copies = valueOf(times.costsOf(shapeOf("dualpipe", 4, 4)));
  EXPECT_EQ(one.stages[3].forward, 1);
  EXPECT_EQ(two.stages[7].forward, .5);
  EXPECT_EQ(two.stages[7].backward, 1);
  EXPECT_EQ(copies.stages[7].forward, 1);
}

TEST(GivenTimes, RowsAreConsecutiveParts) {
  StageTimes file("csv", "\xef\xbb\xbf F , B\r\n1,2\r\n2,4\r\n3,6\r\n4,8\r\n");
  GivenTimes times = valueOf(file.read());
  TaskCosts four = valueOf(times.costsOf(shapeOf("gpipe", 4, 4)));
  EXPECT_EQ(four.stages[2].forward, 3);
  TaskCosts two = valueOf(times.costsOf(shapeOf("gpipe", 2, 2)));
  EXPECT_EQ(two.stages[0].forward, 3);
  EXPECT_EQ(two.stages[1].backward, 14);
  // The second copy's stages are the same parts.
  TaskCosts copies = valueOf(times.costsOf(shapeOf("dualpipe", 2, 2)));
  EXPECT_EQ(copies.stages[3].forward, 7);
}

TEST(GivenTimes, RowsAreSpreadOverMoreStages) {
  StageTimes file("csv", "F,I,W,U\n1,2,3,4\n5,6,7,8\n");
  GivenTimes times = valueOf(file.read());
  Schedule shape = shapeOf("breadth-first", 2, 4);
  EXPECT_EQ(times.stagesPerRow(shape), 2);
  TaskCosts costs = valueOf(times.costsOf(shape));
  EXPECT_EQ(costs.stages[1].forward, .5);
  EXPECT_EQ(costs.stages[2].inputGradient, 3);
  EXPECT_EQ(costs.stages[3].update, 4);
  EXPECT_EQ(times.stagesPerRow(shapeOf("gpipe", 2, 2)), 1);
  EXPECT_TRUE(llvm::StringRef(messageOf(times.costsOf(shapeOf("gpipe", 3, 3))))
                  .ends_with("has 2 rows, but the schedule has 3 stages; "
                             "expects a row for each, or a divisor or multiple "
                             "of 3 rows, to be spread over stages or summed"));
}

TEST(GivenTimes, RefuseWhatIsNoTable) {
  struct Case {
    const char *suffix, *text, *refusal;
  };
  for (
      auto [suffix, text, refusal] : {
          Case{"csv", "", ": expects a row for each stage, but there is none"},
          {"csv", "F,B\n", ": expects a row for each stage, but there is none"},
          {"csv", "F,Q\n1,1\n",
           ":1: does not know the column 'Q'; expects stage, F, B, I, W, R, U"},
          {"csv", "F,B,F\n", ":1: has the column 'F' twice"},
          {"csv", "stage,stage\n", ":1: has the column 'stage' twice"},
          {"csv", "F,B\n1,2\n1\n",
           ":3: expects 2 cells, as in the header, but got 1"},
          {"csv", "F,B\n1,inf\n",
           ":2: column B expects a number from 0 to 1E+09, with or without s, "
           "ms or us, but got 'inf'"},
          {"csv", "F,B\n1,-1\n",
           ":2: column B expects a number from 0 to 1E+09, with or without s, "
           "ms or us, but got '-1'"},
          {"csv", "F,B\n1,\n",
           ":2: column B expects a number from 0 to 1E+09, with or without s, "
           "ms or us, but got ''"},
          {"csv", "stage,F,B\n1,1,1\n", ":2: expects stage 0, but got '1'"},
          {"csv", "B\n1\n", ":2: expects F, the time of a forward"},
          {"json", "{}", ": expects a list, found {}"},
          {"json", "[]", ": expects a row for each stage, but there is none"},
          {"json", "[1]", "[0]: expects an object, found 1"},
          {"json", "[{\"F\":1,\"forward\":2}]",
           "[0]: does not know the key 'forward'; expects stage, F, B, I, W, "
           "R, U"},
          {"json", "[{\"F\":1,\"B\":\"2\"}]",
           "[0].B: expects a number from 0 to 1E+09, found \"2\""},
          {"json", "[{\"F\":1}]",
           "[0]: expects B, the time of a backward, or I and W, its halves"},
          {"json", "[{\"F\":1,\"B\":2,\"stage\":1}]",
           "[0].stage: expects a whole number from 0 to 0, found 1"},
      })
    EXPECT_EQ(StageTimes(suffix, text).refusal(), refusal) << text;
  EXPECT_NE(StageTimes("json", "[{\"F\":").refusal(), "");
  EXPECT_NE(StageTimes("json", std::string(1 << 20, '['))
                .refusal()
                .find("its lists are nested more than 64 deep"),
            std::string::npos);
  EXPECT_NE(StageTimes("csv", std::string("F,B\0\n1,2\n", 9)).refusal(), "");
  std::string message = messageOf(parseTimes(std::string(1 << 20, '9')));
  EXPECT_LT(message.size(), 300u);
}
