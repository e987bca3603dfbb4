//===- ChromeTraceTests.cpp - Traces written, read and trusted --*- C++ -*-===//
//
// Predicted traces read back, costs taken from traces, and everything that
// can be wrong with one.
//
//===----------------------------------------------------------------------===//

#include "ScheduleTesting.h"

#include "passes/schedules/files/ChromeTrace.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

#include "gtest/gtest.h"

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

std::string traceOf(const Schedule &schedule, const TaskCosts &costs,
                    const MeasuredTrace *measured = nullptr) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeChromeTrace(os, schedule, valueOf(simulate(schedule, costs)), measured);
  return text;
}

/// As the runtime writes it.
std::string eventOf(const char *kind, int stage, int microBatch, double start,
                    double length, int step = 0, int rank = 0) {
  char text[256];
  std::snprintf(text, sizeof text,
                "{\"ph\":\"X\",\"pid\":0,\"tid\":%d,\"name\":\"any\",\"cat\":"
                "\"task\",\"ts\":%f,\"dur\":%f,\"args\":{\"kind\":\"%s\","
                "\"stage\":%d,\"micro_batch\":%d,\"step\":%d}}",
                rank, start, length, kind, stage, microBatch, step);
  return text;
}

std::string listOf(std::vector<std::string> events) {
  std::string text = "[";
  for (const std::string &event : events)
    text += (text.size() > 1 ? ",\n" : "") + event;
  return text + "]";
}

} // namespace

TEST(ChromeTrace, NamesEventsAsTheRuntimeDoes) {
  Schedule schedule = buildSchedule("1f1b", 2, 2, 2);
  TaskCosts costs = TaskCosts::uniform(2, 1e-3, 2e-3);
  std::string text = traceOf(schedule, costs);
  for (const char *line :
       {"{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":"
        "\"predicted\"}}",
        "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{"
        "\"name\":\"rank 1\"}}",
        "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":\"B1.0\",\"cat\":\"task\","
        "\"ts\":2000.000,\"dur\":2000.000,\"args\":{\"kind\":\"B\",\"stage\":1,"
        "\"micro_batch\":0,\"step\":0}}",
        "\"name\":\"U0\"",
        "{\"ph\":\"X\",\"pid\":1,\"tid\":0,\"name\":\"wait receive rank 1\","
        "\"cat\":\"wait\",\"ts\":2000.000,\"dur\":2000.000}"})
    EXPECT_NE(text.find(line), std::string::npos) << line << " in\n" << text;
}

TEST(ChromeTrace, ReadsWhatItWrites) {
  Schedule schedule = buildSchedule("breadth-first", 2, 4, 3);
  TaskCosts costs = TaskCosts::uniform(4, 1e-3, 2e-3);
  costs.stages[2].forward = 3e-3;
  costs.stages[1].update = 5e-4;
  MeasuredTrace trace = valueOf(parseChromeTrace(traceOf(schedule, costs)));
  EXPECT_EQ(trace.ranks(), 2);
  EXPECT_EQ(messageOf(checkTrace(trace, schedule)), "");
  EXPECT_EQ(trace.tasks.size(),
            schedule.order[0].size() + schedule.order[1].size());
  TaskCosts read = valueOf(costsFromTrace(trace, 4));
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_NEAR(read.stages[stage].forward, costs.stages[stage].forward, 1e-8);
    EXPECT_NEAR(read.stages[stage].backward, 2e-3, 1e-8);
    EXPECT_NEAR(read.stages[stage].inputGradient, 1e-3, 1e-8);
    EXPECT_NEAR(read.stages[stage].update, costs.stages[stage].update, 1e-8);
  }
  // Both runs beside each other: the measured one is read.
  Schedule other = buildSchedule("gpipe", 1, 1, 1);
  MeasuredTrace both = valueOf(parseChromeTrace(
      traceOf(other, TaskCosts::uniform(1, 9e-3, 9e-3), &trace)));
  EXPECT_EQ(both.tasks.size(), trace.tasks.size());
}

TEST(ChromeTrace, TakesMediansOverStepsAndMicroBatches) {
  MeasuredTrace trace = valueOf(parseChromeTrace(listOf(
      {eventOf("F", 0, 0, 1000, 900, 4), eventOf("F", 0, 1, 2000, 100, 4),
       eventOf("F", 0, 0, 7000, 120, 5), eventOf("F", 0, 1, 7200, 110, 5),
       eventOf("B", 0, 0, 7400, 400, 5), eventOf("U", 0, 0, 8000, 7, 5)})));
  EXPECT_EQ(trace.lastStep(), 5);
  EXPECT_EQ(trace.last().size(), 4u);
  EXPECT_NEAR(trace.last()[1].time.start, 200e-6, 1e-9);
  TaskCosts known = TaskCosts::uniform(1);
  known.stages[0].inputGradient = 3;
  known.stages[0].weightGradient = 1;
  known.stages[0].stashBytes = 77;
  TaskCosts costs = valueOf(costsFromTrace(trace, known));
  EXPECT_NEAR(costs.stages[0].forward, 115e-6, 1e-9);
  EXPECT_NEAR(costs.stages[0].recompute, 115e-6, 1e-9);
  EXPECT_NEAR(costs.stages[0].backward, 400e-6, 1e-9);
  EXPECT_NEAR(costs.stages[0].inputGradient, 300e-6, 1e-9);
  EXPECT_NEAR(costs.stages[0].weightGradient, 100e-6, 1e-9);
  EXPECT_NEAR(costs.stages[0].update, 7e-6, 1e-9);
  EXPECT_EQ(costs.stages[0].stashBytes, 77);
}

TEST(ChromeTrace, MakesAWholeBackwardOfItsHalves) {
  MeasuredTrace trace = valueOf(parseChromeTrace(
      "{\"traceEvents\":" +
      listOf({eventOf("F", 0, 0, 0, 10), eventOf("I", 0, 0, 10, 30),
              eventOf("W", 0, 0, 40, 20)}) +
      "}"));
  TaskCosts costs = valueOf(costsFromTrace(trace, 1));
  EXPECT_NEAR(costs.stages[0].backward, 50e-6, 1e-9);
  EXPECT_NEAR(costs.stages[0].weightGradient, 20e-6, 1e-9);
}

TEST(ChromeTrace, SaysOfWhichProgramItIs) {
  auto programOf = [](const std::string &plan) {
    return valueOf(
               parseChromeTrace(listOf(
                   {R"({"ph":"M","pid":0,"name":"plan","args":)" + plan + "}",
                    eventOf("F", 0, 0, 0, 10)})))
        .program;
  };
  auto program =
      programOf(R"({"target":"cuda","precision":"bf16","micro_batch_size":4,)"
                R"("stages":[{"layers":"a .. b"},{"layers":"c"}]})");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->target, "cuda");
  EXPECT_EQ(program->precision, "bf16");
  EXPECT_EQ(program->microBatchSize, 4);
  EXPECT_EQ(program->layers, (std::vector<std::string>{"a .. b", "c"}));
  // What is no plan says nothing.
  EXPECT_FALSE(programOf("7"));
  EXPECT_FALSE(programOf(R"({"stages":3})"));
  program = programOf(R"({"stages":[3,{"layers":[]}],"target":1})");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->target, "");
  EXPECT_EQ(program->layers, (std::vector<std::string>{"", ""}));
}

TEST(ChromeTrace, RefusesWhatIsNoTrace) {
  auto refusal = [](std::string text) {
    return messageOf(parseChromeTrace(text));
  };
  EXPECT_NE(refusal("loss 3").find("is not a Chrome trace: "),
            std::string::npos);
  EXPECT_EQ(refusal("{\"a\":1}"),
            "is not a Chrome trace: expects a list of events");
  EXPECT_EQ(refusal("[1]"), "is not a Chrome trace: event 0 is not an object");
  EXPECT_EQ(refusal("[]"),
            "has no task in it; expects what a program's --trace wrote");
  EXPECT_EQ(refusal(std::string(1 << 20, '[')),
            "is not a Chrome trace: its lists are nested more than 64 deep");
  std::string noStage = "event 0 expects a rank (tid) and the arguments kind, "
                        "stage, micro_batch and step, as a program's --trace "
                        "writes them";
  EXPECT_EQ(refusal(listOf({eventOf("Q", 0, 0, 0, 1)})), noStage);
  EXPECT_EQ(refusal(listOf({eventOf("F", -1, 0, 0, 1)})), noStage);
  EXPECT_EQ(refusal("[{\"ph\":\"X\",\"cat\":\"task\",\"tid\":0}]"), noStage);
  for (double duration : {-1., 1e16})
    EXPECT_EQ(refusal(listOf({eventOf("F", 0, 0, 0, duration)})),
              "event 0 expects a time (ts) and a duration (dur) of 0 to 1e15 "
              "microseconds");
  EXPECT_NE(messageOf(readChromeTrace("no-such-file.json,other.json"))
                .find("trace 'no-such-file.json' cannot be read: "),
            std::string::npos);
  EXPECT_NE(messageOf(readChromeTrace("no-such-file.json"))
                .find("trace 'no-such-file.json' cannot be read: "),
            std::string::npos);
}

TEST(ChromeTrace, PutsTheFilesOfRanksTogether) {
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("trace", folder));
  std::string paths;
  for (int rank = 0; rank < 2; ++rank) {
    std::string path = (folder + "/" + std::to_string(rank)).str();
    std::error_code error;
    llvm::raw_fd_ostream(path, error)
        << listOf({eventOf("F", rank, 0, 5000 + 10 * rank, 10, 3, rank)});
    paths += (rank ? "," : "") + path;
  }
  MeasuredTrace trace = valueOf(readChromeTrace(paths));
  llvm::sys::fs::remove_directories(folder);
  EXPECT_EQ(trace.ranks(), 2);
  ASSERT_EQ(trace.last().size(), 2u);
  EXPECT_NEAR(trace.last()[1].time.start, 10e-6, 1e-9) << "one clock for both";
}

TEST(ChromeTrace, RefusesATraceOfAnotherProgram) {
  MeasuredTrace trace = valueOf(parseChromeTrace(
      listOf({eventOf("F", 0, 0, 0, 10), eventOf("F", 1, 2, 5, 10)})));
  EXPECT_EQ(messageOf(costsFromTrace(trace, 1)),
            "is of another program: it has F1.2, but this one has 1 stage");
  EXPECT_EQ(messageOf(costsFromTrace(trace, 3)),
            "is of another program: it has no forward of stage 2");
  EXPECT_EQ(messageOf(checkTrace(trace, buildSchedule("1f1b", 2, 2, 4))),
            "is of another program: it has F1.2 on rank 0, but this one has "
            "stage 1 on rank 1");
  EXPECT_EQ(messageOf(checkTrace(trace, buildSchedule("1f1b", 1, 2, 1))),
            "is of another program: it has F1.2, but this one has 1 "
            "micro-batch");
  EXPECT_EQ(messageOf(checkTrace(trace, buildSchedule("1f1b", 1, 1, 3))),
            "is of another program: it has F1.2, but this one has 1 stage");
  EXPECT_EQ(messageOf(checkTrace(trace, buildSchedule("1f1b", 1, 2, 4))), "");
}

TEST(ChromeTrace, KeepsMeasuredCollectives) {
  auto collective = [](double start, int rank) {
    return "{\"ph\":\"X\",\"pid\":0,\"tid\":" +
           std::to_string(1000000 * (rank + 2) - 1) +
           ",\"name\":\"all-reduce group 0\",\"cat\":\"collective\",\"ts\":" +
           std::to_string(start) + ",\"dur\":3}";
  };
  std::string text =
      listOf({eventOf("F", 0, 0, 100, 10, 0, 0), eventOf("B", 0, 0, 110, 20, 0),
              collective(131, 0), eventOf("F", 0, 0, 200, 10, 1),
              eventOf("F", 1, 0, 212, 10, 1, 1), collective(240, 0),
              collective(240, 1)});
  MeasuredTrace trace = valueOf(parseChromeTrace(text));
  ASSERT_EQ(trace.collectives.size(), 3u);
  EXPECT_EQ(trace.collectives[0].step, 0);
  EXPECT_NEAR(trace.collectives[0].time.start, 31e-6, 1e-12);
  ASSERT_EQ(trace.lastCollectives().size(), 2u);
  EXPECT_EQ(trace.lastCollectives()[1].rank, 1);
  EXPECT_EQ(trace.lastCollectives()[1].name, "all-reduce group 0");
  EXPECT_NEAR(trace.lastCollectives()[1].time.start, 40e-6, 1e-12);
  EXPECT_NEAR(trace.lastCollectives()[1].time.end, 43e-6, 1e-12);

  // Written beside a prediction and read again they are the same.
  Schedule schedule = buildSchedule("1f1b", 2, 2, 1);
  std::string written =
      traceOf(schedule, TaskCosts::uniform(2, 1e-3, 2e-3), &trace);
  EXPECT_NE(
      written.find("\"tid\":1000001,\"name\":\"all-reduce group 0\",\"cat\":"
                   "\"collective\",\"ts\":40.000,\"dur\":3.000}"),
      std::string::npos)
      << written;
  MeasuredTrace again = valueOf(parseChromeTrace(written));
  ASSERT_EQ(again.collectives.size(), 2u);
  EXPECT_EQ(again.collectives[1].rank, 1);
  EXPECT_NEAR(again.collectives[1].time.start, 40e-6, 1e-12);
}

TEST(ChromeTrace, RefusesCollectivesOfNoRank) {
  for (const char *row : {"5", "-1", "\"a\"", "999999"})
    EXPECT_EQ(messageOf(parseChromeTrace(listOf(
                  {eventOf("F", 0, 0, 0, 1),
                   std::string("{\"ph\":\"X\",\"pid\":0,\"tid\":") + row +
                       ",\"name\":\"x\",\"cat\":\"collective\",\"ts\":0,"
                       "\"dur\":1}"}))),
              "event 1 expects the row of a rank's collectives (tid), as a "
              "program's --trace writes them");
}
