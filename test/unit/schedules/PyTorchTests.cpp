//===- PyTorchTests.cpp - PyTorch's own schedules ---------------*- C++ -*-===//
//
// The files of test/Inputs/schedules, made by PyTorch's classes
// (tools/reference/make_pytorch_schedules.py): all are read and proven, and
// compared with our policies task for task. Then they are broken at random:
// whatever a file says, the reader answers.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/MessageOrder.h"
#include "passes/schedules/files/Csv.h"
#include "passes/schedules/files/FilePolicy.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <map>
#include <random>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

/// `CLASS_pRANKS_vLOOPS_mMICRO-BATCHES.compute.csv`
struct PyTorchFile {
  std::string path, name, text;
  int64_t ranks = 0, loops = 0, microBatches = 0;
  bool hasMessages = false;
};

std::vector<PyTorchFile> pytorchFiles() {
  std::vector<PyTorchFile> files;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator
           it(PIPEWRIGHT_TEST_INPUTS "/schedules", error),
       end;
       it != end && !error; it.increment(error)) {
    llvm::StringRef stem = llvm::sys::path::filename(it->path());
    PyTorchFile file;
    file.path = it->path();
    file.hasMessages = stem.consume_back(".comms.csv");
    if (!file.hasMessages && !stem.consume_back(".compute.csv"))
      continue;
    for (auto [letter, number] :
         {std::pair<const char *, int64_t *>{"_m", &file.microBatches},
          {"_v", &file.loops},
          {"_p", &file.ranks}}) {
      auto [before, after] = stem.rsplit(letter);
      EXPECT_FALSE(after.getAsInteger(10, *number)) << file.path;
      stem = before;
    }
    file.name = stem.str();
    auto buffer = llvm::MemoryBuffer::getFile(file.path);
    EXPECT_TRUE(bool(buffer)) << file.path;
    file.text = (*buffer)->getBuffer().str();
    files.push_back(std::move(file));
  }
  llvm::sort(files,
             [](const auto &a, const auto &b) { return a.path < b.path; });
  EXPECT_GE(files.size(), 78u);
  return files;
}

std::string tasksOf(llvm::ArrayRef<Task> order) {
  std::string text;
  for (const Task &task : order)
    if (task.kind != TaskKind::Update)
      text += task.name() + (task.overlapsNext ? "&" : " ");
  return text;
}

TEST(PyTorchSchedules, AreReadAndProven) {
  for (const PyTorchFile &file : pytorchFiles()) {
    SCOPED_TRACE(file.path);
    CsvSchedule csv = valueOf(parseCsv(file.text, file.path));
    EXPECT_EQ(csv.schedule.ranks, file.ranks);
    EXPECT_EQ(csv.schedule.stages, file.ranks * file.loops);
    EXPECT_EQ(csv.schedule.microBatches, file.microBatches);
    EXPECT_EQ(csv.hasMessages(), file.hasMessages && file.ranks > 1);
    EXPECT_EQ(messageOf(checkSchedule(csv.schedule)), "");
    if (!csv.hasMessages())
      continue;
    EXPECT_EQ(messageOf(checkDataFlow(csv.schedule, csv.lists)), "");
    // One global order of all messages: safe on any channels.
    for (const auto &[layout, name, description, pytorch] : channelLayouts)
      EXPECT_EQ(messageOf(checkInstructions(csv.lists, {layout, {}})), "");
  }
}

/// The texts of all files of a folder.
std::map<std::string, std::string> refusedFiles(llvm::StringRef folder) {
  std::map<std::string, std::string> texts;
  std::error_code error;
  std::string path = PIPEWRIGHT_TEST_INPUTS "/schedules/" + folder.str();
  for (llvm::sys::fs::directory_iterator it(path, error), end;
       it != end && !error; it.increment(error)) {
    auto buffer = llvm::MemoryBuffer::getFile(it->path());
    EXPECT_TRUE(bool(buffer)) << it->path();
    texts[llvm::sys::path::filename(it->path()).str()] =
        (*buffer)->getBuffer().str();
  }
  return texts;
}

// Receives that `defer_pp_recv` puts next to their consumers come in another
// order than they were sent, wherever activations and gradients share a link.
TEST(PyTorchSchedules, DeferredReceivesTakeTheWrongMessages) {
  std::map<std::string, std::string> files = refusedFiles("deferred");
  EXPECT_EQ(21u, files.size());
  for (const auto &[name, text] : files) {
    SCOPED_TRACE(name);
    CsvSchedule csv = valueOf(parseCsv(text, name));
    EXPECT_EQ("", messageOf(checkSchedule(csv.schedule)));
    for (ChannelLayout layout :
         {ChannelLayout::Link, ChannelLayout::Pair, ChannelLayout::Rank})
      for (Buffering buffering : {Buffering::none(), Buffering::infinite()}) {
        std::string message =
            messageOf(checkInstructions(csv.lists, {layout, buffering}));
        EXPECT_NE(std::string::npos, message.find(" is sent as "));
        EXPECT_NE(std::string::npos, message.find("which no buffering mends"));
      }
  }
}

TEST(PyTorchSchedules, ProgramsOfIssue172668HangInSharedQueues) {
  std::map<std::string, std::string> files = refusedFiles("issue-172668");
  EXPECT_EQ(2u, files.size());
  for (const auto &[name, text] : files) {
    SCOPED_TRACE(name);
    CsvSchedule csv = valueOf(parseCsv(text, name));
    EXPECT_EQ("", messageOf(checkDataFlow(csv.schedule, csv.lists)));
    EXPECT_EQ("", messageOf(checkInstructions(csv.lists)));
    for (ChannelLayout layout : {ChannelLayout::Pair, ChannelLayout::Rank}) {
      std::string message =
          messageOf(checkInstructions(csv.lists, {layout, {}}));
      EXPECT_EQ(0u, message.find("deadlock without buffering, one queue per "))
          << message;
      EXPECT_EQ("", messageOf(checkInstructions(
                        csv.lists, {layout, Buffering::infinite()})));
    }
  }
}

TEST(PyTorchSchedules, BothFormatsHaveTheSameTasks) {
  std::map<std::string, Schedule> computeOnly;
  for (const PyTorchFile &file : pytorchFiles()) {
    std::string key = file.path.substr(0, file.path.rfind(".co"));
    Schedule schedule = valueOf(parseCsv(file.text, file.path)).schedule;
    if (file.hasMessages)
      computeOnly[key] = schedule;
    else
      EXPECT_EQ(computeOnly.at(key).order, schedule.order) << file.path;
  }
}

TEST(PyTorchSchedules, AreWrittenAsTheyWereRead) {
  for (const PyTorchFile &file : pytorchFiles()) {
    SCOPED_TRACE(file.path);
    CsvSchedule csv = valueOf(parseCsv(file.text, file.path));
    std::string text = valueOf(
        csv.hasMessages() ? writeComputeCommsCsv(csv.schedule, csv.lists)
                          : writeComputeOnlyCsv(csv.schedule));
    CsvSchedule again = valueOf(parseCsv(text, "again.csv"));
    EXPECT_EQ(again.schedule.order, csv.schedule.order);
    EXPECT_EQ(again.lists, csv.lists);
  }
}

/// Our policy of the same definition.
const std::map<std::string, std::string> &policyOfClass() {
  static const std::map<std::string, std::string> names = {
      {"gpipe", "gpipe"},
      {"1f1b", "1f1b"},
      {"looped_bfs", "breadth-first:descending"},
      {"interleaved_1f1b", "interleaved"},
      {"interleaved_zero_bubble", "interleaved-zb"},
      {"zbv_zero_bubble", "zb-v"},
      {"dual_pipe_v", "dualpipev"},
  };
  return names;
}

TEST(PyTorchSchedules, EqualOursTaskForTask) {
  for (const PyTorchFile &file : pytorchFiles()) {
    if (file.hasMessages)
      continue;
    SCOPED_TRACE(file.path);
    const std::string &policy = policyOfClass().at(file.name);
    Schedule theirs = valueOf(parseCsv(file.text, file.path)).schedule;
    Schedule ours = buildSchedule(policy, file.ranks, file.ranks * file.loops,
                                  file.microBatches);
    ASSERT_EQ(ours.ranks, theirs.ranks);
    EXPECT_EQ(ours.rankOfStage, theirs.rankOfStage);
    for (int64_t rank = 0; rank < file.ranks; ++rank)
      EXPECT_EQ(tasksOf(ours.order[rank]), tasksOf(theirs.order[rank]))
          << policy << ", rank " << rank;
  }
}

/// A file with some bytes or lines changed.
std::string mutate(std::string text, std::mt19937 &random) {
  constexpr char bytes[] = "0123456789FBIWSEND_RECV(;),\n \"\0xff";
  auto below = [&](size_t end) { return random() % std::max<size_t>(end, 1); };
  for (size_t changes = 1 + below(4); changes-- > 0 && !text.empty();) {
    size_t at = below(text.size());
    size_t length = std::min(below(12), text.size() - at);
    switch (below(5)) {
    case 0:
      text[at] = bytes[below(sizeof(bytes) - 1)];
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, 1, bytes[below(sizeof(bytes) - 1)]);
      break;
    case 3:
      text.insert(below(text.size()), text.substr(at, length));
      break;
    case 4: {
      // Two cells change places.
      size_t from = text.find(',', at), to = text.find(',', below(text.size()));
      if (from != std::string::npos && to != std::string::npos)
        std::swap(text[from], text[to ? to - 1 : 0]);
      break;
    }
    }
  }
  return text;
}

TEST(PyTorchSchedules, BrokenFilesGetAnAnswer) {
  std::mt19937 random(7);
  int64_t read = 0, refused = 0;
  for (const PyTorchFile &file : pytorchFiles())
    for (int round = 0; round < 60; ++round) {
      llvm::Expected<CsvSchedule> csv =
          parseCsv(mutate(file.text, random), "plan.csv");
      if (!csv) {
        std::string error = llvm::toString(csv.takeError());
        EXPECT_EQ(error.rfind("plan.csv", 0), 0u) << error;
        ++refused;
        continue;
      }
      ++read;
      // What was read is safe to ask about and to write.
      llvm::consumeError(checkSchedule(csv->schedule));
      if (csv->hasMessages()) {
        llvm::consumeError(checkDataFlow(csv->schedule, csv->lists));
        llvm::consumeError(checkInstructions(csv->lists));
      }
      llvm::consumeError(writeComputeOnlyCsv(csv->schedule).takeError());
    }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 1000);
}

} // namespace
