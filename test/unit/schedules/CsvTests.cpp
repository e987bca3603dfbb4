//===- CsvTests.cpp - PyTorch's CSV, read and written -----------*- C++ -*-===//
//
// Small files by hand, for what the format says and what is wrong with a file.
// PyTorch's own files are in PyTorchTests.cpp.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/MessageOrder.h"
#include "passes/schedules/files/Csv.h"

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

std::string tasksOf(const Schedule &schedule, int rank) {
  std::string text;
  for (const Task &task : schedule.order[rank])
    text += (text.empty() ? "" : " ") + task.name() +
            (task.overlapsNext ? "&" : "");
  return text;
}

std::string errorOf(llvm::StringRef text) {
  return messageOf(parseCsv(text, "plan.csv"));
}

constexpr char oneFOneB[] = "0F0,0F1,,0B0,0F2,0B1,,0B2\n"
                            ",1F0,1B0,1F1,1B1,1F2,1B2,\n";

TEST(Csv, ReadsComputeOnly) {
  CsvSchedule csv = valueOf(parseCsv(oneFOneB, "plan.csv"));
  EXPECT_EQ(csv.schedule.ranks, 2);
  EXPECT_EQ(csv.schedule.stages, 2);
  EXPECT_EQ(csv.schedule.microBatches, 3);
  EXPECT_EQ(tasksOf(csv.schedule, 0), "F0.0 F0.1 B0.0 F0.2 B0.1 B0.2 U0");
  EXPECT_EQ(tasksOf(csv.schedule, 1), "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 U1");
  EXPECT_FALSE(csv.hasMessages());
  EXPECT_TRUE(csv.notes.empty());
  EXPECT_EQ(messageOf(checkSchedule(csv.schedule)), "");
  EXPECT_EQ(csv.schedule.order, buildSchedule("1f1b", 2, 2, 3).order);
}

TEST(Csv, WritesTheTimeSteps) {
  EXPECT_EQ(valueOf(writeComputeOnlyCsv(buildSchedule("1f1b", 2, 2, 3))),
            oneFOneB);
  EXPECT_EQ(valueOf(writeComputeOnlyCsv(buildSchedule("gpipe", 1, 1, 2))),
            "0F0,0F1,0B0,0B1\n");
}

TEST(Csv, BlanksAndLineEndsCarryNothing) {
  for (const char *text : {"\xef\xbb\xbf"
                           "0F0 , ,0B0\r\n1F0,1B0,,\r\n\r\n",
                           ",0F0,0B0\n\"1F0\",1B0", "0F0,0B0\n1F0,1B0,,,,"}) {
    CsvSchedule csv = valueOf(parseCsv(text, "plan.csv"));
    ASSERT_EQ(csv.schedule.ranks, 2);
    EXPECT_EQ(tasksOf(csv.schedule, 0), "F0.0 B0.0 U0");
    EXPECT_EQ(tasksOf(csv.schedule, 1), "F1.0 B1.0 U1");
  }
}

TEST(Csv, BIsTheInputGradientWhereThereIsW) {
  CsvSchedule csv = valueOf(parseCsv("0F0,0B0,0W0\n1F0,1B0,1W0\n", "plan.csv"));
  EXPECT_EQ(tasksOf(csv.schedule, 0), "F0.0 I0.0 W0.0 U0");
  ASSERT_EQ(csv.notes.size(), 1u);
  EXPECT_NE(csv.notes[0].find("gradient of the input"), std::string::npos);
}

TEST(Csv, BWIsBothInTheOldDialect) {
  CsvSchedule csv = valueOf(
      parseCsv("0F0,0BW0,0F1,0BW1\n1F0,1B0,1F1,1B1,1W0,1W1\n", "plan.csv"));
  EXPECT_EQ(tasksOf(csv.schedule, 0), "F0.0 B0.0 F0.1 B0.1 U0");
  EXPECT_EQ(tasksOf(csv.schedule, 1), "F1.0 I1.0 F1.1 I1.1 W1.0 W1.1 U1");
  EXPECT_EQ(messageOf(checkSchedule(csv.schedule)), "");
}

TEST(Csv, TheDialectIsThatOfTheWholeFile) {
  // A W that was forgotten is not a full backward.
  CsvSchedule csv = valueOf(parseCsv("0F0,0B0\n1F0,1B0,1W0\n", "plan.csv"));
  EXPECT_EQ(messageOf(checkSchedule(csv.schedule)), "rank 0 never runs W0.0");
  // A file that has I uses today's letters.
  csv = valueOf(parseCsv("0F0,0B0,0W0\n1F0,1I0,1W0\n", "plan.csv"));
  EXPECT_EQ(messageOf(checkSchedule(csv.schedule)),
            "rank 0 runs both B0.0 and W0.0, which is part of it");
}

TEST(Csv, PairsAreRead) {
  CsvSchedule csv = valueOf(parseCsv(
      "0F0,0F1,(0F2;0B0)OVERLAP_F_B,( 0B1 ; 0F3 )OVERLAP_F_B,0B2,0B3\n",
      "plan.csv"));
  EXPECT_EQ(tasksOf(csv.schedule, 0),
            "F0.0 F0.1 F0.2& B0.0 B0.1& F0.3 B0.2 B0.3 U0");
  EXPECT_EQ(valueOf(writeComputeOnlyCsv(csv.schedule)),
            "0F0,0F1,(0F2;0B0)OVERLAP_F_B,(0B1;0F3)OVERLAP_F_B,0B2,0B3\n");
}

TEST(Csv, ForwardsOnly) {
  CsvSchedule csv = valueOf(parseCsv("0F0,0F1\n1F0,1F1\n", "plan.csv"));
  EXPECT_TRUE(csv.schedule.forwardOnly);
  EXPECT_EQ(tasksOf(csv.schedule, 1), "F1.0 F1.1");
  EXPECT_EQ(messageOf(checkSchedule(csv.schedule)), "");
}

TEST(Csv, WhatIsNotPartOfASchedule) {
  CsvSchedule csv = valueOf(
      parseCsv("0UNSHARD,0F0,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD\n",
               "plan.csv"));
  EXPECT_EQ(tasksOf(csv.schedule, 0), "F0.0 B0.0 U0");
  ASSERT_EQ(csv.notes.size(), 1u);
  EXPECT_EQ(csv.notes[0].rfind("left out: 1 REDUCE_GRAD, 1 RESHARD, 1 UNSHARD, "
                               "1 WAIT_REDUCE_GRAD",
                               0),
            0u);
}

constexpr char comms[] =
    "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0SEND_F2,0RECV_B1,0B1,0RECV_B2,"
    "0B2\n"
    "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1RECV_F2,1B1,1SEND_B1,1F2,1B2,"
    "1SEND_B2\n";

std::string listOf(const CsvSchedule &csv, int rank) {
  std::string text;
  for (const RankInstruction &instruction : csv.lists[rank]) {
    if (!text.empty())
      text += ' ';
    if (instruction.kind == InstructionKind::Task) {
      text += instruction.task.name();
      continue;
    }
    constexpr const char *words[] = {"", "s", "r", "ws", "wr"};
    text += words[static_cast<int>(instruction.kind)];
    text += instruction.transfer.kind == TransferKind::Forward ? "F" : "G";
    text += std::to_string(instruction.transfer.microBatch);
  }
  return text;
}

TEST(Csv, ReadsMessages) {
  CsvSchedule csv = valueOf(parseCsv(comms, "plan.csv"));
  EXPECT_EQ(csv.schedule.order, buildSchedule("1f1b", 2, 2, 3).order);
  ASSERT_TRUE(csv.hasMessages());
  EXPECT_EQ(listOf(csv, 0),
            "F0.0 sF0 F0.1 sF1 rG0 wrG0 B0.0 F0.2 sF2 rG1 wrG1 B0.1 rG2 wrG2 "
            "B0.2 wsF0 wsF1 wsF2 U0");
  EXPECT_EQ(listOf(csv, 1),
            "rF0 wrF0 F1.0 rF1 B1.0 sG0 wrF1 F1.1 rF2 B1.1 sG1 wrF2 F1.2 B1.2 "
            "sG2 wsG0 wsG1 wsG2 U1");
  EXPECT_EQ(messageOf(checkInstructions(csv.lists)), "");
  EXPECT_EQ(messageOf(checkDataFlow(csv.schedule, csv.lists)), "");
}

TEST(Csv, SendWaitsWhereTheFileSaysSo) {
  CsvSchedule csv = valueOf(parseCsv(
      "0F0,0SEND_F0,0F1,0SEND_F1,0WAIT_SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1RECV_F1,1F1,1F0,1B0,1SEND_B0,1B1,1SEND_B1,1WAIT_SEND_B0,"
      "1WAIT_SEND_B1\n",
      "plan.csv"));
  // On one link the older message is done when the younger is.
  EXPECT_EQ(listOf(csv, 0),
            "F0.0 sF0 F0.1 sF1 wsF0 wsF1 rG0 wrG0 B0.0 rG1 wrG1 B0.1 U0");
  EXPECT_EQ(listOf(csv, 1),
            "rF0 rF1 wrF0 wrF1 F1.1 F1.0 B1.0 sG0 B1.1 sG1 wsG0 wsG1 U1");
  EXPECT_EQ(messageOf(checkInstructions(csv.lists)), "");
  EXPECT_EQ(messageOf(checkDataFlow(csv.schedule, csv.lists)), "");
}

TEST(Csv, MessagesInWrongPlacesAreTheCheckersMatter) {
  CsvSchedule csv = valueOf(parseCsv("0F0,0SEND_F0,0RECV_B0,0B0\n"
                                     "1F0,1RECV_F0,1B0,1SEND_B0\n",
                                     "plan.csv"));
  EXPECT_EQ(messageOf(checkInstructions(csv.lists)), "");
  EXPECT_EQ(messageOf(checkDataFlow(csv.schedule, csv.lists)),
            "rank 1 runs F1.0 before it has received the output of "
            "stage 0 for stage 1, micro-batch 0");
}

TEST(Csv, WrittenMessagesAreReadBack) {
  for (const auto &[layout, name, description, pytorch] : channelLayouts) {
    Schedule schedule = buildSchedule("dualpipev", 3, 6, 8);
    TaskCosts costs = TaskCosts::uniform(schedule.stages);
    InstructionLists lists =
        valueOf(orderMessages(schedule, costs, {}, layout));
    for (bool withSendWaits : {true, false}) {
      std::string text =
          valueOf(writeComputeCommsCsv(schedule, lists, {}, withSendWaits));
      CsvSchedule csv = valueOf(parseCsv(text, "plan.csv"));
      EXPECT_EQ(csv.schedule.order, schedule.order);
      EXPECT_EQ(messageOf(checkDataFlow(csv.schedule, csv.lists)), "");
      EXPECT_EQ(messageOf(checkInstructions(csv.lists, {layout, {}})), "");
      // A second time it is the same text: nothing was lost.
      EXPECT_EQ(valueOf(writeComputeCommsCsv(csv.schedule, csv.lists, {},
                                             withSendWaits)),
                text);
    }
  }
}

TEST(Csv, ErrorsNameLineAndCell) {
  struct Case {
    const char *text, *error;
  };
  for (auto [text, error] : {
           Case{"", "plan.csv: expects a line of actions per rank, but the "
                    "file is empty"},
           Case{"0F0,0B0\n\n1F0,1B0\n",
                "plan.csv:2: expects the actions of rank 1, found none"},
           Case{"0F0,0B0\n,,\n",
                "plan.csv:2: expects the actions of rank 1, found none"},
           Case{"0F0,hello,0B0\n",
                "plan.csv:1: cell 2: expects an action such as 0F1 (stage, "
                "kind, micro-batch; kinds are F, B, I, W, SEND_F, RECV_F, "
                "SEND_B, RECV_B), found 'hello'"},
           Case{"0F0,0B0\n1F0,,1B\n",
                "plan.csv:2: cell 3: expects a stage, 'B' and a micro-batch, "
                "found '1B'"},
           Case{"0F0,0B0x\n", "plan.csv:1: cell 2: expects a stage, 'B' and a "
                              "micro-batch, found '0B0x'"},
           Case{"0F0,0UNSHARD3\n", "plan.csv:1: cell 2: expects a stage and "
                                   "'UNSHARD', found '0UNSHARD3'"},
           Case{"0F0,0F99999999999\n",
                "plan.csv:1: cell 2: expects numbers of at most 2147483647, "
                "found '0F99999999999'"},
           Case{"0F0,\x01\xfe\n",
                "plan.csv:1: cell 2: expects an action such as 0F1 (stage, "
                "kind, micro-batch; kinds are F, B, I, W, SEND_F, RECV_F, "
                "SEND_B, RECV_B), found '\\x01\\xfe'"},
           Case{"0F0,(0F1;0B0)\n", "plan.csv:1: cell 2: expects a pair such as "
                                   "(0F7;7B3)OVERLAP_F_B, or a group such as "
                                   "(0SEND_F7;0RECV_B3)BATCH_P2P, found "
                                   "'(0F1;0B0)'"},
           Case{"0F0,(0F1)OVERLAP_F_B\n",
                "plan.csv:1: cell 2: expects an action such as 0F1 (stage, "
                "kind, micro-batch; kinds are F, B, I, W, SEND_F, RECV_F, "
                "SEND_B, RECV_B), found ''"},
           Case{"0F0,(0F1;0SEND_F0)OVERLAP_F_B\n",
                "plan.csv:1: cell 2: expects a pair such as "
                "(0F7;7B3)OVERLAP_F_B, or a group such as "
                "(0SEND_F7;0RECV_B3)BATCH_P2P, found "
                "'(0F1;0SEND_F0)OVERLAP_F_B'"},
           Case{"0F0,0B0\n1F0,0B1\n",
                "plan.csv:2: cell 2: '0B1' runs stage 0, which is on rank 0 "
                "(line 1); expects each stage on one rank"},
           Case{"0F0,0B0\n2F0,2B0\n",
                "plan.csv:2: stage 2 occurs, but stage 1 does not; expects "
                "all stages from 0 on"},
           Case{"0F0,0F2,0B0,0B2\n",
                "plan.csv: micro-batch 2 occurs, but micro-batch 1 does not; "
                "expects all micro-batches from 0 on"},
           Case{"0F0,0F1,0B0,0B1\n1F0,1B0,1B1\n",
                "plan.csv:2: stage 1 has 1 forward, but there are 2 "
                "micro-batches"},
           Case{"0F0,0B0,0B0\n",
                "plan.csv:1: cell 3: '0B0' is in cell 2 already"},
           Case{"0F0,0B0\n1F0,1SEND_F0,1B0\n",
                "plan.csv:2: cell 2: '1SEND_F0', but stage 1 is the last"},
           Case{"0RECV_F0,0F0,0B0\n1F0,1B0\n",
                "plan.csv:1: cell 1: '0RECV_F0', but stage 0 is the first"},
           Case{"0F0,0B0\n1F0,0SEND_F0,1B0\n",
                "plan.csv:2: cell 2: '0SEND_F0' is a message of stage 0, "
                "which is on rank 0 (line 1)"},
           Case{"0F0,0SEND_F0,1F0,1B0,0B0\n",
                "plan.csv:1: cell 2: '0SEND_F0', but stages 0 and 1 are both "
                "on rank 0; expects no message between them"},
           Case{"0F0,0SEND_F7,0B0\n1F0,1B0\n",
                "plan.csv:1: cell 2: '0SEND_F7', but the file has tasks of 2 "
                "stages and 1 micro-batches"},
       })
    EXPECT_EQ(errorOf(text), error);
}

TEST(Csv, RefusesWhatTheFormatCannotSay) {
  auto refusal = [](const Schedule &schedule,
                    llvm::ArrayRef<StageEdge> edges = {}) {
    return messageOf(writeComputeOnlyCsv(schedule, edges));
  };
  Schedule schedule = buildSchedule("gpipe", 3, 3, 2);
  EXPECT_EQ(refusal(schedule, {{0, 1}, {1, 2}, {0, 2}}),
            "cannot be written as PyTorch's CSV: stage 0 feeds stage 2, and "
            "PyTorch sends to the next stage only");

  Schedule recompute = schedule;
  recompute.order[1].insert(recompute.order[1].begin() + 2,
                            Task::recompute(1, 0));
  EXPECT_EQ(refusal(recompute), "cannot be written as PyTorch's CSV: there is "
                                "no letter for recomputation (R1.0)");

  Schedule twice = schedule;
  twice.updates = 2;
  twice.weightRule = WeightRule::Newest;
  for (auto [rank, order] : llvm::enumerate(twice.order))
    order.push_back(Task::update(static_cast<int32_t>(rank), 1));
  EXPECT_EQ(refusal(twice),
            "cannot be written as PyTorch's CSV: it updates weights inside of "
            "the step, for which there is no letter");

  Schedule copies = buildSchedule("gpipe", 2, 2, 2);
  copies.copies = 2;
  copies.order[0] = {Task::forward(0, 0), Task::backward(0, 0),
                     Task::update(0)};
  copies.order[1] = {Task::forward(1, 1), Task::backward(1, 1),
                     Task::update(1)};
  EXPECT_EQ(refusal(copies),
            "cannot be written as PyTorch's CSV: it has 2 copies of each "
            "stage, and a stage of a CSV is on one rank");

  Schedule pair = buildSchedule("gpipe", 1, 1, 2);
  pair.order[0][0].overlapsNext = true;
  EXPECT_EQ(refusal(pair),
            "cannot be written as PyTorch's CSV: F0.0 overlaps with F0.1, but "
            "PyTorch overlaps a forward with a backward only");

  EXPECT_EQ(refusal(buildSchedule("forward-only", 2, 2, 2)),
            "cannot be written as PyTorch's CSV: it has forwards only, and "
            "PyTorch expects a backward of each");

  Schedule idle = buildSchedule("gpipe", 2, 2, 2);
  ++idle.ranks;
  idle.order.emplace_back();
  EXPECT_EQ(refusal(idle),
            "cannot be written as PyTorch's CSV: rank 2 has no stage");

  Schedule broken = schedule;
  broken.order[0].erase(broken.order[0].begin());
  EXPECT_EQ(refusal(broken), "rank 0 never runs F0.0");
}

TEST(Csv, RefusesMessagesThatTheFormatCannotSay) {
  Schedule schedule = buildSchedule("gpipe", 2, 2, 1);
  std::vector<StageEdge> two = {{0, 1, 8}, {0, 1, 4}};
  TaskCosts costs = TaskCosts::uniform(2);
  EXPECT_EQ(messageOf(writeComputeCommsCsv(
                schedule, valueOf(orderMessages(schedule, costs, two)), two)),
            "cannot be written as PyTorch's CSV: several tensors, or none, go "
            "from one stage to the next, and a CSV has one message and its "
            "gradient from each stage to the next");

  InstructionLists lists = valueOf(orderMessages(schedule, costs));
  lists[0].push_back(RankInstruction::message(InstructionKind::PostSend,
                                              Transfer::ofWork(0), 1, 4));
  EXPECT_EQ(messageOf(writeComputeCommsCsv(schedule, lists)),
            "cannot be written as PyTorch's CSV: it has transfers that are "
            "neither outputs nor gradients of stages, as for tied weights");

  lists[0].pop_back();
  lists[0].erase(lists[0].begin());
  EXPECT_NE(messageOf(writeComputeCommsCsv(schedule, lists)), "");
}

} // namespace
