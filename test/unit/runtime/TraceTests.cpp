//===- TraceTests.cpp - What a trace says of a step -----------------------===//
//
// Names, arguments, and that nobody works while waiting. That the compiler
// reads such traces is tested with a real program (tools/pipewright/draw.test).
//
//===----------------------------------------------------------------------===//

#include "runtime/trace/Trace.h"

#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

#include <thread>

using namespace pipewright::runtime;
using nlohmann::json;

/// The complete events of a trace, in order.
static std::vector<json> eventsOf(const Trace &trace, int64_t rank) {
  std::string text = "[" + trace.toJson(rank);
  text.resize(text.rfind(','));
  std::vector<json> events;
  for (const json &event : json::parse(text + "]"))
    if (event["ph"] == "X")
      events.push_back(event);
  return events;
}

static void work() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

TEST(Trace, NamesTasksAsTheTimetableDoes) {
  Trace trace;
  trace.beginStep(6);
  trace.task("F", 1, 3);
  trace.task("W", 1, 3);
  trace.task("U", 1, 0);
  trace.stop();
  trace.beginStep(7);
  trace.task("U", 2, 1);
  trace.stop();
  const std::vector<json> events = eventsOf(trace, 5);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["name"], "F1.3");
  EXPECT_EQ(events[0]["tid"], 5);
  EXPECT_EQ(events[0]["cat"], "task");
  EXPECT_EQ(
      events[0]["args"],
      json({{"kind", "F"}, {"stage", 1}, {"micro_batch", 3}, {"step", 6}}));
  EXPECT_EQ(events[1]["name"], "W1.3");
  EXPECT_EQ(events[2]["name"], "U1");
  EXPECT_EQ(events[3]["name"], "U2.1");
  EXPECT_EQ(events[3]["args"]["step"], 7);
}

TEST(Trace, TasksEndWhereWaitsBegin) {
  Trace trace;
  trace.beginStep(0);
  trace.task("F", 0, 0);
  work();
  const auto since = Trace::Clock::now();
  work();
  trace.wait("receive", 1, since);
  work();
  trace.task("B", 0, 0);
  work();
  trace.stop();
  const std::vector<json> events = eventsOf(trace, 0);
  ASSERT_EQ(events.size(), 3u);
  auto begin = [&](size_t i) { return events[i]["ts"].get<double>(); };
  auto end = [&](size_t i) {
    return begin(i) + events[i]["dur"].get<double>();
  };
  EXPECT_EQ(events[1]["name"], "wait receive rank 1");
  EXPECT_EQ(events[1]["cat"], "wait");
  EXPECT_NEAR(end(0), begin(1), 0.01);
  EXPECT_GE(end(1) - begin(1), 2000);
  EXPECT_GE(begin(2), end(1) + 2000);
  EXPECT_GE(end(2) - begin(2), 2000);
}

TEST(Trace, CollectivesHaveARowOfTheirOwn) {
  Trace trace;
  trace.beginStep(0);
  trace.task("B", 0, 1);
  const auto begun = Trace::Clock::now();
  work();
  const auto since = Trace::Clock::now();
  trace.waitCollective("all-reduce", 2, begun, since);
  const std::vector<json> events = eventsOf(trace, 1);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1]["name"], "wait all-reduce group 2");
  EXPECT_EQ(events[1]["tid"], 1);
  EXPECT_EQ(events[2]["name"], "all-reduce group 2");
  EXPECT_EQ(events[2]["cat"], "collective");
  EXPECT_NE(events[2]["tid"], 1);
  EXPECT_GT(events[2]["dur"], events[1]["dur"]);
}
