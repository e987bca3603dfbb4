//===- ProgramTests.cpp - A whole program, from options to weights --------===//

#include "test/conformance/FreePort.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/OneRank.h"

#include "runtime/io/Npy.h"
#include "runtime/io/Safetensors.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <unistd.h>

using namespace pipewright::runtime;

namespace {

/// A folder with weights and a text, and the tiny program run in it.
class TinyProgram : public ::testing::Test {
protected:
  void SetUp() override {
    std::vector<float> values(2 * 256 * 16);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<int32_t>(philox(1, i, 0, 0, 0)[0]) * 0x1p-32f;
    SafetensorsWriter weights(folder.path("weights.safetensors"),
                              {{"table", ElementType::F32, {256, 16}},
                               {"head", ElementType::F32, {16, 256}}});
    weights.write(values.data(), values.size() * 4);
    weights.commit();
    std::string text;
    for (int i = 0; i < 60; ++i)
      text += "the quick brown fox jumps over the lazy dog. ";
    folder.write("text", text);
    folder.write("short", "2 short");
  }

  /// Exit status and what was printed, stderr included.
  std::pair<int, std::string> run(const std::string &arguments,
                                  const std::string &launcher = "") {
    const std::string command =
        "cd '" + folder.path("") + "' || exit 1; timeout 300 " + launcher +
        " '" + executableFolder() +
        "/TinyProgram' --weights weights.safetensors " +
        "--timeout 100 --flight . --save out.safetensors " + arguments +
        " 2>&1";
    std::FILE *pipe = popen(command.c_str(), "r");
    std::string output;
    std::array<char, 512> piece;
    while (std::fgets(piece.data(), piece.size(), pipe))
      output += piece.data();
    return {WEXITSTATUS(pclose(pipe)), output};
  }

  /// The same with a program that trains on while `meanwhile`, shell commands
  /// in which $program is its process, runs. It has a log by then.
  std::pair<int, std::string> runWhile(const std::string &arguments,
                                       const std::string &meanwhile,
                                       const std::string &launcher = "") {
    return run(arguments +
                   " --log log.jsonl 2>&1 & program=$!; for i in $(seq 500);"
                   " do [ -s log.jsonl ] && break; sleep 0.02; done; " +
                   meanwhile + "; wait $program; exit $?; true",
               launcher);
  }

  static std::string executableFolder() {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    const std::string text(path, std::max<ssize_t>(length, 0));
    return text.substr(0, text.rfind('/'));
  }

  Folder folder;
};

} // namespace

static double lossIn(const std::string &log, const char *field, bool last) {
  const std::string key = std::string("\"") + field + "\":";
  const size_t at = last ? log.rfind(key) : log.find(key);
  return at == std::string::npos ? -1 : std::atof(&log[at + key.size()]);
}

TEST_F(TinyProgram, LearnsAText) {
  const auto [status, output] = run(
      "--data tokens=bytes:text --eval-data tokens=bytes:text --steps 300 "
      "--lr 5 --log log.jsonl --trace trace.json --memory --guess 'the lazy'");
  ASSERT_EQ(status, 0) << output;
  const std::string log = folder.read("log.jsonl");
  EXPECT_NEAR(lossIn(log, "loss", false), std::log(256), 0.5);
  EXPECT_LT(lossIn(log, "loss", true), 2.5);
  EXPECT_LT(lossIn(log, "eval_loss", true), lossIn(log, "eval_loss", false));
  for (const char *part :
       {"tiny: 2 ranks (threads)", "tokens/s", "left", "held-out loss",
        "predicted 0.2 ms", "(as planned)", "resident", "library scratch",
        "weights and gradients", "guesses before training",
        "guesses after training", "text   the lazy",
        "saved      out.safetensors"})
    EXPECT_TRUE(contains(output, part)) << part << " in\n" << output;
  const std::string trace = folder.read("trace.json");
  for (const char *part :
       {"\"rank 1\"", "\"measured\"", "\"F1.0\"", "\"B0.1\"",
        "wait receive rank 1", "\"U0\"",
        "\"kind\":\"F\",\"stage\":1,\"micro_batch\":0,\"step\":299"})
    EXPECT_TRUE(contains(trace, part)) << part;
}

TEST_F(TinyProgram, SameBitsAsProcesses) {
  if (std::system("command -v mpirun >/dev/null"))
    GTEST_SKIP() << "no mpirun";
  const std::string options = "--data tokens=bytes:text --steps 20 --seed 3 "
                              "--threads-per-rank 1 --trace t.json";
  const auto threads = run(options);
  ASSERT_EQ(threads.first, 0) << threads.second;
  const std::string weights = folder.read("out.safetensors");
  const auto processes =
      run(options, "mpirun --allow-run-as-root --oversubscribe -n 2");
  ASSERT_EQ(processes.first, 0) << processes.second;
  EXPECT_TRUE(contains(processes.second, "2 ranks (processes)"));
  EXPECT_EQ(weights, folder.read("out.safetensors"));
  const auto otherSeed = run("--data tokens=bytes:text --steps 20 --seed 4");
  ASSERT_EQ(otherSeed.first, 0);
  EXPECT_NE(weights, folder.read("out.safetensors"));
}

TEST_F(TinyProgram, WrongNumberOfProcesses) {
  if (std::system("command -v mpirun >/dev/null"))
    GTEST_SKIP() << "no mpirun";
  const auto [status, output] =
      run("--data tokens=bytes:text --steps 1",
          "mpirun --allow-run-as-root --oversubscribe -n 3");
  EXPECT_NE(status, 0);
  EXPECT_TRUE(contains(output, "error: the program has 2 ranks, but "
                               "there are 3 processes: start 2"))
      << output;
}

TEST_F(TinyProgram, FailingRankTakesTheOthersDown) {
  setenv("TINY_FAIL", "1", 1);
  const auto [status, output] = run("--data tokens=bytes:text --steps 5");
  unsetenv("TINY_FAIL");
  EXPECT_EQ(status, 1);
  EXPECT_TRUE(contains(output, "error: rank ")) << output;
  EXPECT_TRUE(contains(output, "rank 0 sends 1024 bytes to rank 1, which "
                               "expects 4 bytes"))
      << output;
  EXPECT_EQ(output.find("error:"), output.rfind("error:")) << output;
  EXPECT_FALSE(folder.exists("out.safetensors"));
  // What each rank did last, in a file that the error names.
  EXPECT_TRUE(contains(output, " did last: ./flight-rank")) << output;
  // Rank 1 fails in its first wait, before any task.
  EXPECT_TRUE(contains(folder.read("flight-rank0.json"), "\"F"));
  EXPECT_TRUE(folder.exists("flight-rank1.json"));
}

TEST_F(TinyProgram, NamesOfAForeignFileAreShownNotObeyed) {
  const std::string header =
      R"({"w\u001b[31m": {"dtype": "F32", "shape": [2], )"
      R"("data_offsets": [0, 8]}})";
  const uint64_t length = header.size();
  folder.write("foreign",
               std::string(reinterpret_cast<const char *>(&length), 8) +
                   header);
  const auto [status, output] =
      run("--data tokens=bytes:text --steps 1 --weights foreign");
  EXPECT_EQ(status, 1);
  EXPECT_TRUE(contains(output, "tensor 'w\\x1b[31m' ends at byte 8")) << output;
  EXPECT_FALSE(contains(output, "\x1b")) << output;
}

TEST_F(TinyProgram, DumpsMeanGradientsOfTheFirstStep) {
  const auto [status, output] =
      run("--data tokens=bytes:text --steps 1 --lr 1 --dump-gradients "
          "g.safetensors");
  ASSERT_EQ(status, 0) << output;
  const SafetensorsReader before(folder.path("weights.safetensors"));
  const SafetensorsReader after(folder.path("out.safetensors"));
  const SafetensorsReader gradients(folder.path("g.safetensors"));
  const auto values = [](const SafetensorsReader &file) {
    return file.find("head", ElementType::F32, {16, 256}).values<float>();
  };
  auto expected = values(before);
  const auto gradient = values(gradients);
  double norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] -= gradient[i];
    norm += std::fabs(gradient[i]);
  }
  EXPECT_GT(norm, 0);
  EXPECT_TRUE(agree(values(after), expected, 1e-6));
}

TEST_F(TinyProgram, PredictsWithoutTraining) {
  std::vector<int64_t> tokens(5 * 8, 't');
  writeNpy(folder.path("x.npy"), ElementType::I64, {5, 8}, tokens.data());
  const auto [status, output] =
      run("--predict tokens=x.npy --output logits=y.npy");
  ASSERT_EQ(status, 0) << output;
  const NpyArray logits = readNpy(folder.path("y.npy"));
  EXPECT_EQ(logits.shape, (std::vector<int64_t>{5, 8, 256}));
  const std::vector<float> values = logits.values<float>();
  EXPECT_EQ(values[7], values[4 * 8 * 256 + 7]);
  EXPECT_FALSE(folder.exists("out.safetensors"));
}

TEST_F(TinyProgram, LooksWithoutData) {
  const auto guessed = run("--guess 'the fox'");
  EXPECT_EQ(guessed.first, 0) << guessed.second;
  EXPECT_TRUE(contains(guessed.second, "guesses\n  text   the fox\n"))
      << guessed.second;
  const auto evaluated = run("--eval-data tokens=bytes:text");
  EXPECT_EQ(evaluated.first, 0) << evaluated.second;
  EXPECT_TRUE(contains(evaluated.second, "held-out loss 5."))
      << evaluated.second;
  EXPECT_FALSE(folder.exists("out.safetensors"));
}

TEST_F(TinyProgram, EachMistakeIsOneLine) {
  const std::pair<const char *, const char *> mistakes[] = {
      {"", "input 'tokens' (i64, 2x8) has no data: give --data tokens=FILE"},
      {"--data tokens=bytes:short", "'short' has 7 tokens, but input 'tokens' "
                                    "expects at least"},
      {"--data tokens=bytes:nowhere",
       "cannot read 'nowhere': No such file or directory"},
      {"--data image=x.npy", "--data: the model has no input 'image'; its "
                             "inputs are 'tokens', 'targets'"},
      {"--steps", "--steps expects N, but nothing follows"},
      {"--steps=-1", "--steps expects a whole number of at least 0"},
      {"--sptes 3", "unknown option '--sptes'"},
      {"--data tokens=bytes:text --save /nowhere/x",
       "cannot write '/nowhere/x': No such file or directory"},
      {"--data tokens=bytes:text --log /nowhere/x",
       "cannot write '/nowhere/x': No such file or directory"},
      {"--data tokens=bytes:text --weights text",
       "'text' is no safetensors file"},
      {"--data tokens=random --data targets=random:2",
       "the data has 2 samples, but one step takes 4"},
      {"--output logits=y.npy", "--output expects --predict"},
      {"--predict tokens=random:1 --output loss=y.npy",
       "the program has no output 'loss'; its outputs are 'logits'"},
      {"--data tokens=bytes:text --threads-per-rank 100000",
       "--threads-per-rank expects a whole number from 1 to 1024, but got "
       "'100000'"},
      {"--data tokens=random:99999999999999999999 --data targets=random",
       "'random:99999999999999999999' expects a number of samples from 1"},
      {"--data tokens=bytes:text --save .", "cannot write '.': it is a folder"},
      {"--data tokens=bytes:text --lr-schedule linear",
       "--lr-schedule expects constant or cosine, but got 'linear'"},
      {"--data tokens=bytes:text --steps 200 --lr 1e30",
       ": try a smaller --lr than 1e+30, or look for values in the data"}};
  for (const auto &[options, message] : mistakes) {
    const auto [status, output] = run(options);
    EXPECT_EQ(status, 1) << options;
    EXPECT_TRUE(contains(output, message)) << options << "\n" << output;
    EXPECT_TRUE(contains(output, "error: ")) << output;
    EXPECT_EQ(output.find("error: "), output.rfind("error: ")) << output;
    EXPECT_FALSE(folder.exists("out.safetensors")) << options;
  }
}

TEST_F(TinyProgram, ALogThatCannotBeWrittenLosesNoWeights) {
  if (access("/dev/full", W_OK) != 0)
    GTEST_SKIP();
  const auto [status, output] =
      run("--data tokens=bytes:text --steps 30 --log /dev/full");
  EXPECT_EQ(status, 1);
  EXPECT_TRUE(contains(output, "No space left on device; training ended after "
                               "step 2 of 30, whose weights are in "
                               "'out.safetensors.stopped'"))
      << output;
  const std::string weights = folder.read("out.safetensors.stopped");
  EXPECT_EQ(run("--data tokens=bytes:text --steps 2").first, 0);
  EXPECT_EQ(weights, folder.read("out.safetensors"));
}

static constexpr const char *forLong =
    "--data tokens=bytes:text --steps 100000000 ";

/// The number behind "after step ".
static std::string stepIn(const std::string &output) {
  const std::string before = "after step ";
  const size_t at = output.find(before);
  return at == std::string::npos
             ? ""
             : output.substr(at + before.size(),
                             output.find(' ', at + before.size()) - at -
                                 before.size());
}

TEST_F(TinyProgram, ASignalEndsTrainingAfterTheStepAndSaves) {
  const auto [status, output] = runWhile(forLong, "kill $program");
  EXPECT_EQ(status, 0) << output;
  EXPECT_TRUE(contains(output, "SIGTERM: training stops after this step"))
      << output;
  EXPECT_TRUE(contains(output, "stopped    by SIGTERM after step ")) << output;
  EXPECT_TRUE(contains(output, "saved      out.safetensors")) << output;
  const std::string weights = folder.read("out.safetensors");
  ASSERT_EQ(run("--data tokens=bytes:text --steps " + stepIn(output)).first, 0);
  EXPECT_EQ(weights, folder.read("out.safetensors"));
}

/// timeout(1), which is $program, does not pass each signal on.
static constexpr const char *writePid =
    "sh -c 'echo $$ > pid; exec \"$0\" \"$@\"'";

TEST_F(TinyProgram, ANoticeOfABatchSystemDoesTheSame) {
  for (const std::string name : {"USR1", "USR2", "XCPU"}) {
    const auto [status, output] =
        runWhile(forLong, "kill -" + name + " $(cat pid)", writePid);
    EXPECT_EQ(status, 0) << output;
    EXPECT_TRUE(contains(output, "SIG" + name +
                                     ": training stops after this step, and "
                                     "saves\n"))
        << output;
    EXPECT_TRUE(contains(output, "stopped    by SIG" + name + " after step "))
        << output;
    EXPECT_TRUE(folder.exists("out.safetensors"));
    std::filesystem::remove(folder.path("out.safetensors"));
    std::filesystem::remove(folder.path("log.jsonl"));
  }
}

/// A handler would write to where oneDNN's kernels have the stack pointer.
TEST_F(TinyProgram, NoThreadThatComputesGetsASignal) {
  const auto [status, output] = runWhile(
      forLong,
      "grep -hs -e ^SigBlk -e ^SigCgt /proc/$(cat pid)/task/*/status > masks; "
      "kill $program",
      writePid);
  EXPECT_EQ(status, 0) << output;
  std::istringstream lines(folder.read("masks"));
  int64_t threads = 0, open = 0;
  std::string name, mask;
  while (lines >> name >> mask) {
    const bool has =
        std::stoull(mask, nullptr, 16) & (uint64_t{1} << (SIGTERM - 1));
    if (name == "SigCgt:")
      EXPECT_FALSE(has) << "a handler";
    else
      open += !has;
    threads += name == "SigBlk:";
  }
  // The main thread, two ranks and the one that waits for signals.
  EXPECT_GE(threads, 4);
  EXPECT_LE(open, 1);
}

TEST_F(TinyProgram, ASignalToOneOfSeveralProcessesStopsAll) {
  const std::string port = std::to_string(freePort());
  const auto rank = [&](const char *number) {
    return "env MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
           " WORLD_SIZE=2 RANK=" + number;
  };
  // Rank 1 gets the signal, rank 0 says so and saves.
  const auto [status, output] =
      run(std::string(forLong) + "--log log.jsonl 2>&1 & zero=$!; " +
              rank("1") + " '" + executableFolder() +
              "/TinyProgram' --weights weights.safetensors --timeout 100 "
              "--save out.safetensors " +
              forLong +
              "& one=$!; for i in $(seq 500); do [ -s log.jsonl ] && break; "
              "sleep 0.02; done; kill $one; wait $one && wait $zero; "
              "exit $?; true",
          rank("0"));
  EXPECT_EQ(status, 0) << output;
  EXPECT_TRUE(contains(output, "stopped    by SIGTERM after step ")) << output;
  EXPECT_TRUE(folder.exists("out.safetensors"));
}

TEST_F(TinyProgram, ASecondSignalEndsItAtOnce) {
  // While very many held-out batches are evaluated: the end of the first step
  // is far away. timeout(1) sends each signal twice, which counts once, and
  // takes each kind of them but once itself.
  folder.write("long", std::string(50'000'000, 'x'));
  const auto [status, output] = run(
      std::string(forLong) +
      "--eval-data tokens=bytes:long --eval-batches 100000000 --log l 2>&1 "
      "& program=$!; for i in $(seq 500); do [ -e l ] && break; sleep "
      "0.02; done; sleep 0.5; kill $program; sleep 0.7; kill -HUP $program; "
      "wait $program; exit $?; true");
  EXPECT_EQ(status, 128 + SIGHUP) << output;
  EXPECT_TRUE(contains(output, "SIGTERM: training stops after this step"))
      << output;
  EXPECT_TRUE(contains(output, "ended by a second signal; nothing was saved"))
      << output;
  EXPECT_FALSE(folder.exists("out.safetensors"));
}

TEST_F(TinyProgram, ANoticeIsNotTheFirstOfTwoSignals) {
  folder.write("long", std::string(50'000'000, 'x'));
  const auto [status, output] = run(
      std::string(forLong) +
          "--eval-data tokens=bytes:long --eval-batches 100000000 --log l 2>&1 "
          "& program=$!; for i in $(seq 500); do [ -e l ] && break; sleep "
          "0.02; done; sleep 0.5; for s in USR1 USR1 TERM; do kill -$s $(cat "
          "pid); "
          "sleep 0.7; done; kill -0 $(cat pid) && echo still there; "
          "kill -HUP $(cat pid); wait $program; exit $?; true",
      writePid);
  EXPECT_TRUE(contains(output, "SIGUSR1: training stops after this step"))
      << output;
  EXPECT_TRUE(contains(output, "still there")) << output;
  EXPECT_EQ(status, 128 + SIGHUP) << output;
}

TEST_F(TinyProgram, ATokenThatIsFoundLateLosesNoWeights) {
  // More than is looked at before training; what lies behind is wrong.
  {
    std::ofstream file(folder.path("tokens"), std::ios::binary);
    file.seekp(50'500'000 * 2);
    file << std::string(600'000 * 2, '\x7f');
  }
  const auto [status, output] =
      run("--data tokens=u16:tokens --data targets=same:tokens --steps 10000");
  EXPECT_EQ(status, 1);
  EXPECT_TRUE(contains(output, "error: rank ")) << output;
  EXPECT_TRUE(contains(output, "has 32639; training ended after step "))
      << output;
  EXPECT_TRUE(contains(output, "whose weights are in "
                               "'out.safetensors.stopped'"))
      << output;
  EXPECT_TRUE(folder.exists("out.safetensors.stopped"));
  EXPECT_FALSE(folder.exists("out.safetensors"));
}

TEST_F(TinyProgram, DataThatBecomesShorterIsAnErrorThatNamesIt) {
  folder.write("tokens", std::string(2'000'000, '\0'));
  const auto [status, output] = runWhile(
      "--data tokens=u16:tokens --steps 100000000", "truncate -s 1000 tokens");
  EXPECT_EQ(status, 1) << output;
  EXPECT_TRUE(contains(output, "'tokens' has become shorter while it was in "
                               "use: it had 2000000 bytes, now it has 1000"))
      << output;
}

TEST_F(TinyProgram, WeightsThatCannotBeSavedAreSavedElsewhere) {
  std::filesystem::create_directory(folder.path("gone"));
  folder.write("w.rescued", "mine");
  const auto [status, output] = runWhile(std::string(forLong) + "--save gone/w",
                                         "rmdir gone; kill $program");
  EXPECT_EQ(status, 1) << output;
  EXPECT_TRUE(contains(output, "cannot write 'gone/w': No such file or "
                               "directory; training ended after step "))
      << output;
  EXPECT_TRUE(contains(output, "w.rescued-2'")) << output;
  EXPECT_TRUE(folder.exists("w.rescued-2"));
  EXPECT_EQ(folder.read("w.rescued"), "mine");
}

TEST_F(TinyProgram, ALimitOnFileSizesIsAnError) {
  const auto [status, output] =
      run("--data tokens=bytes:text --steps 3",
          "env TMPDIR=. bash -c 'ulimit -f 4; exec \"$@\"' --");
  EXPECT_EQ(status, 1) << output;
  EXPECT_TRUE(contains(output, "cannot write 'out.safetensors': File too large"
                               "; training ended after step 3 of 3: the "
                               "weights could not be saved"))
      << output;
  EXPECT_EQ(folder.count(), 3);
}

TEST_F(TinyProgram, ThreadsThatCannotBeMadeAreOneError) {
  // Stacks of two thousand threads need more than this.
  const auto [status, output] =
      run("--data tokens=bytes:text --steps 3 --threads-per-rank 1000",
          "bash -c 'ulimit -s 8192 -v 4000000; exec \"$@\"' --");
  EXPECT_EQ(status, 1) << output;
  EXPECT_TRUE(contains(output, "error: cannot start 2000 threads: Resource "
                               "temporarily unavailable"))
      << output;
}

TEST_F(TinyProgram, PrintsHelpTimetableAndPlan) {
  EXPECT_TRUE(contains(run("--help").second, "tokens  i64 2x8"));
  EXPECT_EQ(run("--timetable").second, "F0 F1 B0 B1\n");
  EXPECT_EQ(run("--plan").second, "{}\n");
}

/// Of a range of three parts of 128 bytes: every byte of a tensor is on one
/// replica, and in the state's own memory the parts of all lie at one place.
TEST(TensorInfo, PartsOfReplicasMakeTheTensor) {
  for (int64_t offset : {0, 64, 100, 128, 200, 320})
    for (int64_t bytes : {4, 60, 64, 128, 184, 300}) {
      if (offset + bytes > 384)
        continue;
      const TensorInfo state = {.buffer = {1000 + offset, bytes},
                                .role = Role::OptimizerState,
                                .shard = {offset, 128, true}};
      const TensorInfo gradient = {.buffer = {5000, bytes},
                                   .role = Role::Gradient,
                                   .shard = {offset, 128}};
      int64_t end = 0;
      for (int64_t replica = 0; replica < 3; ++replica) {
        const auto [begin, buffer] = state.partOf(replica);
        if (!buffer)
          continue;
        if (end == 0) {
          EXPECT_EQ(replica, state.firstReplica());
        }
        EXPECT_EQ(begin, end);
        EXPECT_GE(buffer.offset, 1000);
        EXPECT_LE(buffer.offset + buffer.bytes, 1128);
        EXPECT_EQ(buffer.offset - 1000 + 128 * replica, offset + begin);
        EXPECT_EQ(gradient.partOf(replica).begin, begin);
        EXPECT_EQ(gradient.partOf(replica).buffer.offset, 5000 + begin);
        EXPECT_EQ(gradient.storedOn(replica).buffer.bytes, bytes);
        EXPECT_EQ(state.storedOn(replica).begin, begin);
        EXPECT_EQ(state.storedOn(replica).buffer.bytes, buffer.bytes);
        end += buffer.bytes;
      }
      EXPECT_EQ(end, bytes);
    }
  const TensorInfo whole = {.buffer = {64, 32}};
  EXPECT_EQ(whole.partOf(2).buffer.offset, 64);
  EXPECT_EQ(whole.partOf(2).buffer.bytes, 32);
  EXPECT_EQ(whole.firstReplica(), 0);
}
