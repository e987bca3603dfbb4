//===- ProgramTests.cpp - A whole program, from options to weights --------===//

#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/OneRank.h"

#include "runtime/io/Npy.h"
#include "runtime/io/Safetensors.h"

#include <array>
#include <cstdio>
#include <cstdlib>
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
        "cd '" + folder.path("") + "' && timeout 60 " + launcher + " '" +
        executableFolder() + "/TinyProgram' --weights weights.safetensors " +
        "--timeout 10 --save out.safetensors " + arguments + " 2>&1";
    std::FILE *pipe = popen(command.c_str(), "r");
    std::string output;
    std::array<char, 512> piece;
    while (std::fgets(piece.data(), piece.size(), pipe))
      output += piece.data();
    return {WEXITSTATUS(pclose(pipe)), output};
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
  const auto [status, output] =
      run("--data tokens=bytes:text --eval-data tokens=bytes:text --steps 300 "
          "--lr 5 --log log.jsonl --trace trace.json --guess 'the lazy'");
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
  for (const char *name : {"flight-rank0.json", "flight-rank1.json"})
    EXPECT_TRUE(contains(folder.read(name), "\"F")) << name;
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
      {"--data tokens=bytes:text --schedule linear",
       "--schedule expects constant or cosine, but got 'linear'"},
      {"--data tokens=bytes:text --steps 200 --lr 1e30",
       ": try a smaller --lr"}};
  for (const auto &[options, message] : mistakes) {
    const auto [status, output] = run(options);
    EXPECT_EQ(status, 1) << options;
    EXPECT_TRUE(contains(output, message)) << options << "\n" << output;
    EXPECT_TRUE(contains(output, "error: ")) << output;
    EXPECT_EQ(output.find("error: "), output.rfind("error: ")) << output;
    EXPECT_FALSE(folder.exists("out.safetensors")) << options;
  }
}

TEST_F(TinyProgram, FullDiskLeavesNothingBehind) {
  if (access("/dev/full", W_OK) != 0)
    GTEST_SKIP();
  const auto [status, output] =
      run("--data tokens=bytes:text --steps 1 --log /dev/full");
  EXPECT_EQ(status, 1);
  EXPECT_TRUE(contains(output, "No space left on device")) << output;
}

TEST_F(TinyProgram, PrintsHelpTimetableAndPlan) {
  EXPECT_TRUE(contains(run("--help").second, "tokens  i64 2x8"));
  EXPECT_EQ(run("--timetable").second, "F0 F1 B0 B1\n");
  EXPECT_EQ(run("--plan").second, "{}\n");
}
