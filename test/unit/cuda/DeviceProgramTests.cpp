//===- DeviceProgramTests.cpp - A whole GPU program, without a GPU --------===//
//
// TinyDeviceProgram on the double of the CUDA driver: the very binary that
// would run on a GPU.
//
//===----------------------------------------------------------------------===//

#include "test/conformance/FreePort.h"
#include "test/unit/cuda/TinyKernels.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/OneRank.h"

#include "runtime/io/Npy.h"
#include "runtime/io/Safetensors.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>
#include <unistd.h>

using namespace pipewright::runtime;

namespace {

/// What the program should do, in plain arithmetic.
struct Reference {
  float w[2] = {0.5f, -0.75f};
  float gradients[2] = {};

  static float dot(const float *a, const float *b, float sum) {
    for (int64_t i = 0; i < tiny::elements; ++i)
      sum = std::fma(a[i], b[i], sum);
    return sum;
  }

  /// Returns the loss.
  double step(const float *samples, float rate) {
    double loss = 0;
    float g[2] = {};
    for (int64_t m = 0; m < 2; ++m, samples += tiny::elements) {
      float h[tiny::elements], z[tiny::elements], d[tiny::elements];
      for (int64_t i = 0; i < tiny::elements; ++i) {
        h[i] = samples[i] * w[0];
        z[i] = h[i] * w[1];
        d[i] = z[i] * w[1];
      }
      loss += dot(z, z, 0);
      g[1] = dot(z, h, g[1]);
      g[0] = dot(d, samples, g[0]);
    }
    for (int i = 0; i < 2; ++i) {
      gradients[i] = g[i] * 0.5f;
      w[i] -= rate * 0.5f * g[i];
    }
    return loss / 2;
  }
};

class TinyDeviceProgram : public ::testing::Test {
protected:
  void SetUp() override {
    const Reference start;
    SafetensorsWriter weights(
        folder.path("weights.safetensors"),
        {{"w0", ElementType::F32, {1}}, {"w1", ElementType::F32, {1}}});
    weights.write(start.w, 8);
    weights.commit();
    samples.resize(10 * tiny::elements);
    for (size_t i = 0; i < samples.size(); ++i)
      samples[i] = static_cast<float>(i % 7) * 0.25f - 0.5f;
    writeNpy(folder.path("x.npy"), ElementType::F32, {10, tiny::elements},
             samples.data());
  }

  /// Exit status and what was printed, stderr included.
  std::pair<int, std::string> run(const std::string &arguments,
                                  const std::string &environment = "",
                                  const char *doubles = PIPEWRIGHT_DOUBLES) {
    const std::string command =
        "cd '" + folder.path("") + "' && env LD_LIBRARY_PATH='" + doubles +
        "' " + environment + " timeout 300 '" + PIPEWRIGHT_TINY_PROGRAM +
        "' --weights weights.safetensors --no-shuffle --timeout 100 --save "
        "out.safetensors " +
        arguments + " 2>&1";
    std::FILE *pipe = popen(command.c_str(), "r");
    std::string output;
    std::array<char, 512> piece;
    while (std::fgets(piece.data(), piece.size(), pipe))
      output += piece.data();
    return {WEXITSTATUS(pclose(pipe)), output};
  }

  /// Two processes, as torchrun and srun start them.
  std::array<std::pair<int, std::string>, 2>
  runProcesses(const std::string &arguments,
               const std::string &environment = "") {
    const std::string place =
        environment +
        " PIPEWRIGHT_DOUBLE_GPUS=2 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "
        "MASTER_PORT=" +
        std::to_string(freePort()) + " RANK=";
    std::array<std::pair<int, std::string>, 2> results;
    std::thread other([&] { results[1] = run(arguments, place + "1"); });
    results[0] = run(arguments, place + "0");
    other.join();
    return results;
  }

  std::vector<float> readTwo(const char *file) {
    const SafetensorsReader reader(folder.path(file));
    std::vector<float> values(2);
    for (int i = 0; i < 2; ++i)
      reader.find(i ? "w1" : "w0", ElementType::F32, {1})
          .read(0, 4, &values[i]);
    return values;
  }

  Folder folder;
  std::vector<float> samples;
};

const std::string fiveSteps = "--data x=x.npy --steps 5 --lr 0.01 ";
const std::string overNccl = fiveSteps + "--transport nccl ";

} // namespace

TEST_F(TinyDeviceProgram, ComputesWhatItShould) {
  const auto [status, output] =
      run(fiveSteps + "--log log.jsonl --trace trace.json --memory "
                      "--dump-gradients gradients.safetensors");
  ASSERT_EQ(status, 0) << output;
  Reference reference;
  std::string losses;
  std::vector<float> first;
  for (int step = 0; step < 5; ++step) {
    const double loss =
        reference.step(&samples[2 * step * tiny::elements], 0.01f);
    if (step == 0)
      first = {reference.gradients[0], reference.gradients[1]};
    char text[64];
    std::snprintf(text, sizeof text, "\"loss\":%.9g", loss);
    EXPECT_TRUE(contains(folder.read("log.jsonl"), text))
        << text << "\n"
        << folder.read("log.jsonl");
  }
  EXPECT_EQ(readTwo("out.safetensors"),
            std::vector<float>(reference.w, reference.w + 2));
  EXPECT_EQ(readTwo("gradients.safetensors"), first);
  for (const char *part :
       {"tiny: 2 ranks (threads), GPU 0 (", "over cuda-local",
        "rank 0: measured 544 bytes, planned 544 (as planned)",
        "rank 1: measured 644 bytes, planned 644", "libraries 4.1 kB",
        "; 5 CUDA graphs", "weights and gradients"})
    EXPECT_TRUE(contains(output, part)) << part << "\n" << output;
  for (const char *part :
       {"\"name\":\"F0.0\"", "\"name\":\"B1.1\"", "\"name\":\"U1\"",
        "\"name\":\"wait receive rank 0\"", "rank 0 to rank 1",
        "\"cat\":\"transfer\""})
    EXPECT_TRUE(contains(folder.read("trace.json"), part)) << part;
}

TEST_F(TinyDeviceProgram, SameBitsWhateverTheStreamsDo) {
  ASSERT_EQ(run(fiveSteps).first, 0);
  const std::string expected = folder.read("out.safetensors");
  for (const char *options :
       {"--transport nccl --no-graphs", "--transport nccl --chaos 1",
        "--transport nccl --chaos 2 --no-graphs", "--gpus 1", "",
        "--chaos 3"}) {
    const auto [status, output] =
        run(fiveSteps + options, "PIPEWRIGHT_DOUBLE_GPUS=2 "
                                 "PIPEWRIGHT_DOUBLE_RACES=1");
    ASSERT_EQ(status, 0) << options << "\n" << output;
    EXPECT_EQ(folder.read("out.safetensors"), expected) << options;
  }
}

TEST_F(TinyDeviceProgram, EvaluatesAndPredicts) {
  const auto [status, output] = run("--predict x=x.npy --output z=z.npy");
  ASSERT_EQ(status, 0) << output;
  const std::string file = folder.read("z.npy");
  std::vector<float> z(samples.size());
  ASSERT_GE(file.size(), z.size() * 4);
  std::memcpy(z.data(), file.data() + file.size() - z.size() * 4, z.size() * 4);
  for (size_t i = 0; i < z.size(); ++i)
    EXPECT_EQ(z[i], samples[i] * 0.5f * -0.75f);
  EXPECT_FALSE(contains(output, "note:")) << output;
  const auto evaluated = run("--eval-data x=x.npy");
  EXPECT_EQ(evaluated.first, 0) << evaluated.second;
  EXPECT_TRUE(contains(evaluated.second, "held-out loss"));
}

TEST_F(TinyDeviceProgram, EvaluationLeavesTheNextStepItsInputs) {
  ASSERT_EQ(run(fiveSteps).first, 0);
  const std::string expected = folder.read("out.safetensors");
  const auto [status, output] =
      run(fiveSteps + "--eval-data x=zeros --eval-every 1 --eval-batches 1 "
                      "--chaos 4");
  ASSERT_EQ(status, 0) << output;
  EXPECT_TRUE(contains(output, "step 3/5   held-out loss 0.0000")) << output;
  EXPECT_EQ(folder.read("out.safetensors"), expected);
}

TEST_F(TinyDeviceProgram, DryRunNeedsNoDriver) {
  const auto [status, output] = run("--dry-run", "", "/nowhere");
  EXPECT_EQ(status, 0);
  for (const char *part :
       {"tiny: 2 GPU ranks; a step is 2 micro-batches of 1; sgd",
        "3 compiled kernels, PTX for sm_80 and newer",
        "2 GPUs, or fewer that ranks share", "libcuda.so.1, libnccl.so.2",
        "rank 1     arena of 644 bytes", "loads x 1x8",
        "streams: compute, to rank 1, from rank 1; 6 events in a step, 4"})
    EXPECT_TRUE(contains(output, part)) << part << "\n" << output;
}

/// One line, no success, and no waiting.
#define EXPECT_REFUSED(result, part)                                           \
  do {                                                                         \
    const std::pair<int, std::string> refused = result;                        \
    EXPECT_EQ(refused.first, 1) << refused.second;                             \
    EXPECT_TRUE(contains(refused.second, part)) << refused.second;             \
    EXPECT_EQ(refused.second.find("error: "), refused.second.rfind("error: ")) \
        << refused.second;                                                     \
  } while (false)

TEST_F(TinyDeviceProgram, SaysWhatIsMissing) {
  EXPECT_REFUSED(run(fiveSteps, "", "/nowhere"),
                 "error: no CUDA driver: libcuda.so.1 cannot be opened");
  EXPECT_REFUSED(run(fiveSteps, "PIPEWRIGHT_DOUBLE_GPUS=0"), "error: no GPU");
  EXPECT_REFUSED(run(fiveSteps, "PIPEWRIGHT_DOUBLE_DRIVER=11080"),
                 "error: the CUDA driver is too old: it is for CUDA 11.8, but "
                 "a driver for CUDA 12.0 or newer is needed; install a newer "
                 "driver of NVIDIA's, or compile");
  EXPECT_REFUSED(run(fiveSteps, "PIPEWRIGHT_DOUBLE_ARCHITECTURE=75"),
                 "is an sm_75, but the program needs an sm_80 or newer");
  EXPECT_REFUSED(run(overNccl),
                 "error: too few GPUs: --transport nccl needs one for each of "
                 "the 2 ranks on this host, but there is 1 GPU; --transport "
                 "cuda-local lets ranks share a GPU");
  EXPECT_REFUSED(run(fiveSteps + "--gpus 3"),
                 "--gpus names GPU 3, but the CUDA driver shows 1 GPU");
  EXPECT_REFUSED(run(fiveSteps, "TINY_HUNGRY=1"),
                 "error: too little memory on GPU 0");
  EXPECT_REFUSED(run(fiveSteps, "PIPEWRIGHT_DOUBLE_MEMORY=60000000"),
                 "the plan needs 1,188 bytes there (rank 0, 1), and libraries "
                 "about 67,108,864 beside, but 60,000,000 of 60,000,000 bytes "
                 "are free; compile for more ranks");
  // Beside the workspace four channels of NCCL that receive.
  EXPECT_REFUSED(run(overNccl, "PIPEWRIGHT_DOUBLE_GPUS=2 "
                               "PIPEWRIGHT_DOUBLE_MEMORY=60000000"),
                 "the plan needs 544 bytes there (rank 0), and libraries about "
                 "72,089,600 beside, but 60,000,000 of");
  EXPECT_REFUSED(run(fiveSteps, "TINY_HUNGRY_KERNEL=1"),
                 "error: rank 1: GPU 0 (Pipewright test double of a GPU) has "
                 "not the 1,125,899,906,842,624 bytes for the workspace: ");
  EXPECT_REFUSED(run(fiveSteps, "TINY_MISSING_KERNEL=1"),
                 "error: rank 1: the PTX has no kernel 'missing_entry'");
}

TEST_F(TinyDeviceProgram, SaysWhichLibraryIsMissing) {
  const std::string two = "PIPEWRIGHT_DOUBLE_GPUS=2 ";
  const struct {
    const char *library, *environment, *message, *cure;
  } cases[] = {
      {"libnccl.so.2", "", "no NCCL: libnccl.so.2 cannot be opened (",
       "; install NCCL 2.26.0 or newer, or let all ranks be threads of one "
       "process: --transport cuda-local"},
      {"libcublasLt.so.13", "TINY_MULTIPLIES=1",
       "no cuBLASLt: libcublasLt.so.13 cannot be opened (",
       "; install cuBLAS of CUDA 13 or 12, or let LD_LIBRARY_PATH name"},
      {"libcublasLt.so.12", "TINY_MULTIPLIES=1 PIPEWRIGHT_DOUBLE_DRIVER=12080",
       "no cuBLASLt: libcublasLt.so.12 cannot be opened (",
       "; the CUDA driver is for CUDA 12.8: install cuBLAS of CUDA 12, or"},
      {"libcudnn.so.9", "TINY_CONVOLVES=1",
       "no cuDNN: libcudnn.so.9 cannot be opened (",
       "; install cuDNN 9 (9.16 or newer computes attention too), or"}};
  for (const auto &[library, environment, message, cure] : cases) {
    // One that is broken hides all others of its name.
    const Folder libraries;
    for (const auto &entry :
         std::filesystem::directory_iterator(PIPEWRIGHT_DOUBLES))
      if (entry.path().filename() != library &&
          entry.path().string().find(".so") != std::string::npos)
        std::filesystem::create_symlink(
            entry.path(), libraries.path(entry.path().filename()));
    libraries.write(library, "broken");
    const auto result =
        run(overNccl, two + environment, libraries.path("").c_str());
    EXPECT_REFUSED(result, message);
    EXPECT_TRUE(contains(result.second, cure)) << result.second;
  }
}

TEST_F(TinyDeviceProgram, SaysWhichLibraryIsTooOld) {
  const std::string two = "PIPEWRIGHT_DOUBLE_GPUS=2 ";
  EXPECT_REFUSED(run(overNccl, two + "PIPEWRIGHT_DOUBLE_NCCL_VERSION=21805"),
                 "NCCL is too old: libnccl.so.2 is version 2.18.5, but NCCL "
                 "2.26.0 or newer is needed; install NCCL 2.26.0 or newer, or "
                 "let all ranks be threads of one process: --transport "
                 "cuda-local");
  // A library that has none of what is called.
  const Folder libraries;
  for (const char *library : {"libcuda.so.1", "libnccl.so.2"})
    std::filesystem::create_symlink(
        std::string(PIPEWRIGHT_DOUBLES "/") + library, libraries.path(library));
  std::filesystem::create_symlink(PIPEWRIGHT_DOUBLES "/libnccl.so.2",
                                  libraries.path("libcudnn.so.9"));
  EXPECT_REFUSED(
      run(overNccl, two + "TINY_CONVOLVES=1", libraries.path("").c_str()),
      "cuDNN is too old: libcudnn.so.9 has no function cudnn");
}

/// Of NCCL's versions that hang at times: threads are told of them, processes
/// are not.
TEST_F(TinyDeviceProgram, SaysThatRanksBecomeProcessesForSomeVersions) {
  const std::string two = "PIPEWRIGHT_DOUBLE_GPUS=2 ";
  const std::string note =
      "note: NCCL 2.28.7 may hang where ranks are threads of one process";
  const std::string version = "PIPEWRIGHT_DOUBLE_NCCL_VERSION=22807";
  const auto threads = run(overNccl, two + version);
  EXPECT_EQ(threads.first, 0) << threads.second;
  EXPECT_TRUE(contains(threads.second, "over nccl 2.28.7")) << threads.second;
  EXPECT_TRUE(contains(threads.second, note)) << threads.second;
  EXPECT_EQ(threads.second.find("note:"), threads.second.rfind("note:"));
  for (const char *other : {"22703", "22809", "23004"})
    EXPECT_FALSE(contains(
        run(overNccl, two + "PIPEWRIGHT_DOUBLE_NCCL_VERSION=" + other).second,
        "note:"));
  const auto [first, second] = runProcesses(fiveSteps, version);
  EXPECT_EQ(first.first, 0) << first.second;
  EXPECT_FALSE(contains(first.second, "note:")) << first.second;
  const auto local = run(fiveSteps + "--transport cuda-local", two + version);
  EXPECT_FALSE(contains(local.second, "note:")) << local.second;
}

TEST_F(TinyDeviceProgram, TransfersThatDoNotFitEndIt) {
  EXPECT_REFUSED(run(fiveSteps, "TINY_WRONG_SIZE=1"),
                 "rank 0 sends 32 bytes to rank 1, which expects 4 bytes");
  // A transfer that nobody has met is not over, whatever its event says.
  EXPECT_REFUSED(run(fiveSteps + "--timeout 1", "TINY_SILENT=1"),
                 "receive from rank 1 stands at transfer 2 of 2 (32 bytes)");
}

TEST_F(TinyDeviceProgram, SaysWhereTheGpuStands) {
  // Both ranks share the GPU, and so its failure.
  EXPECT_REFUSED(run(fiveSteps, "TINY_BAD_ADDRESS=1"),
                 "an illegal memory access was encountered");
  EXPECT_REFUSED(run(fiveSteps + "--timeout 1", "TINY_STUCK=1"),
                 ": GPU 0 has come no further for 1 s: compute ");
}

TEST_F(TinyDeviceProgram, RunsWithoutGraphsWhereCaptureIsRefused) {
  ASSERT_EQ(run(fiveSteps).first, 0);
  const std::string expected = folder.read("out.safetensors");
  const auto [status, output] = run(fiveSteps, "TINY_UNCAPTURABLE=1");
  EXPECT_EQ(status, 0) << output;
  EXPECT_EQ(folder.read("out.safetensors"), expected);
  EXPECT_TRUE(contains(output, "note: tasks run without CUDA graphs from here "
                               "on, one of them could not be captured: "
                               "cuStreamSynchronize failed"))
      << output;
}

TEST_F(TinyDeviceProgram, MissingEventsAreFound) {
  const auto [status, output] =
      run(fiveSteps, "TINY_NO_EVENT=1 PIPEWRIGHT_DOUBLE_RACES=1");
  EXPECT_EQ(status, 1);
  EXPECT_TRUE(contains(output, "race")) << output;
  // Without a detector delays show it: the numbers are others.
  ASSERT_EQ(run(fiveSteps).first, 0);
  const std::string expected = folder.read("out.safetensors");
  bool differs = false;
  for (int seed = 1; seed <= 8 && !differs; ++seed) {
    ASSERT_EQ(
        run(fiveSteps + "--chaos " + std::to_string(seed), "TINY_NO_EVENT=1")
            .first,
        0);
    differs = folder.read("out.safetensors") != expected;
  }
  EXPECT_TRUE(differs);
}

TEST_F(TinyDeviceProgram, SameBitsAsProcesses) {
  ASSERT_EQ(run(fiveSteps).first, 0);
  const std::string expected = folder.read("out.safetensors");
  const std::string mpi = "mpirun --allow-run-as-root --oversubscribe -n 2";
  const auto [status, output] =
      run(fiveSteps, "PIPEWRIGHT_DOUBLE_GPUS=2 " + mpi);
  ASSERT_EQ(status, 0) << output;
  EXPECT_TRUE(contains(output, "2 ranks (processes), GPU 0")) << output;
  EXPECT_TRUE(contains(output, "over cuda-ipc")) << output;
  EXPECT_EQ(folder.read("out.safetensors"), expected);
  ASSERT_EQ(run(overNccl, "PIPEWRIGHT_DOUBLE_GPUS=2 " + mpi).first, 0);
  EXPECT_EQ(folder.read("out.safetensors"), expected);
  EXPECT_TRUE(
      contains(run(fiveSteps, mpi).second, "ranks 0 and 1 are both on GPU"));
}

TEST_F(TinyDeviceProgram, ProcessesMeetByTheEnvironment) {
  ASSERT_EQ(run(fiveSteps).first, 0);
  const std::string expected = folder.read("out.safetensors");
  const auto [first, second] = runProcesses(fiveSteps);
  EXPECT_EQ(first.first, 0) << first.second;
  EXPECT_EQ(second.first, 0) << second.second;
  EXPECT_EQ(second.second, "");
  EXPECT_EQ(folder.read("out.safetensors"), expected);
}

/// The driver may wait for an idle GPU whenever something is done for the first
/// time, and a receive that waits keeps the GPU busy.
TEST_F(TinyDeviceProgram, NothingIsDoneForTheFirstTimeBesideTransfers) {
  const std::string options =
      fiveSteps + "--eval-data x=x.npy --eval-every 2 --dump-gradients "
                  "gradients.safetensors --trace trace.json ";
  ASSERT_EQ(run(options + "--transport cuda-local").first, 0);
  const std::string expected = folder.read("out.safetensors"),
                    gradients = folder.read("gradients.safetensors");
  for (const char *more : {"", " --no-graphs"}) {
    const auto [status, output] =
        run(options + "--transport nccl" + more,
            "PIPEWRIGHT_DOUBLE_GPUS=2 PIPEWRIGHT_DOUBLE_IDLE=1 "
            "TINY_ALTERNATING=1 "
            "CUDA_MODULE_LOADING=LAZY");
    ASSERT_EQ(status, 0) << output;
    EXPECT_EQ(folder.read("out.safetensors"), expected);
    EXPECT_EQ(folder.read("gradients.safetensors"), gradients);
  }
}

/// A peer hangs, and the driver holds up the host, which looks at nothing.
TEST_F(TinyDeviceProgram, AHostThatHangsInTheDriverIsFreed) {
  // The seventh transfer of rank 1 is the first of the second step.
  const auto [first, second] = runProcesses(
      overNccl + "--timeout 1",
      "PIPEWRIGHT_DOUBLE_QUEUE=3 PIPEWRIGHT_DOUBLE_NCCL_STALL=1:7");
  EXPECT_REFUSED(first, "error: rank 0: the CUDA driver has held up the host");
  EXPECT_TRUE(contains(first.second, "rank 1 stands at transfer "))
      << first.second;
}

TEST_F(TinyDeviceProgram, EndsThoughTheHostCannotBeFreed) {
  const auto [first, second] =
      runProcesses(overNccl + "--timeout 1",
                   "PIPEWRIGHT_DOUBLE_QUEUE=3 PIPEWRIGHT_DOUBLE_NCCL_STALL=1:7 "
                   "PIPEWRIGHT_DOUBLE_NCCL_STUCK=1");
  EXPECT_REFUSED(first, "error: rank 0: the CUDA driver has held up the host");
}

/// MPI may start the driver, which reads its environment once.
TEST_F(TinyDeviceProgram, TheEnvironmentIsSetBeforeMpiStarts) {
  const auto [status, output] = run(
      fiveSteps,
      "PIPEWRIGHT_DOUBLE_GPUS=2 mpirun --allow-run-as-root "
      "--oversubscribe -n 2 env LD_PRELOAD='" PIPEWRIGHT_CUDA_AWARE_MPI "'");
  ASSERT_EQ(status, 0) << output;
  EXPECT_TRUE(contains(output, "MPI starts the driver: 32 connections, EAGER, "
                               "order 1"))
      << output;
}
