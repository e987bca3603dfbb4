//===- Replay.cpp - Runs a fuzz target without libFuzzer ------------------===//
//
// What every compiler can link: runs the target on all files that are named or
// lie in named folders, then on mutants of them, the same ones each time. Takes
// libFuzzer's own options, so that a command means the same with either.
//
//   fuzz-NAME [-runs=N] [-seed=N] [-max_len=BYTES] [-timeout=SECONDS]
//             [-rss_limit_mb=N] FILE-OR-FOLDER...
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/// A target may have a mutator of its own.
extern "C" [[gnu::weak]] size_t LLVMFuzzerCustomMutator(uint8_t *data,
                                                        size_t size,
                                                        size_t maxSize,
                                                        unsigned seed);

using Bytes = std::vector<uint8_t>;

static std::mt19937 randomness;
static std::map<std::string, long> options = {{"runs", 0},
                                              {"seed", 1},
                                              {"max_len", 4096},
                                              {"timeout", 5},
                                              {"rss_limit_mb", 1024}};

/// Which input runs, for those who read of a crash.
static char current[512] = "";
static Bytes input;

static void fail(const char *why) {
  std::fprintf(stderr, "error: %s %s\n", current, why);
  std::_Exit(1);
}

/// Saves the input before the signal takes its way.
static void onSignal(int signal) {
  const char *const texts[] = {"error: ", current,
                               " ends the target; saved as crash-replayed\n"};
  for (const char *text : texts)
    (void)!write(STDERR_FILENO, text, std::strlen(text));
  std::ofstream("crash-replayed", std::ios::binary)
      .write(reinterpret_cast<const char *>(input.data()),
             static_cast<std::streamsize>(input.size()));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

static void run() {
  const auto start = std::chrono::steady_clock::now();
  // For those that never come back.
  alarm(static_cast<unsigned>(options["timeout"]) + 1);
  // In memory of its own size: a sanitizer sees the first byte behind it.
  const Bytes copy = input;
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
  const std::chrono::duration<double> time =
      std::chrono::steady_clock::now() - start;
  if (time.count() > static_cast<double>(options["timeout"]))
    fail("takes longer than -timeout allows");
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  if (usage.ru_maxrss / 1024 > options["rss_limit_mb"])
    fail("takes more memory than -rss_limit_mb allows");
}

/// Flips, inserts, removes, copies or cuts; what libFuzzer calls by this name
/// knows more tricks.
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize) {
  auto below = [](size_t bound) { return bound ? randomness() % bound : 0; };
  const size_t at = below(size);
  const size_t length = std::min<size_t>(1 + below(8), size - at);
  switch (below(6)) {
  case 0:
    if (size < maxSize) {
      std::memmove(data + at + 1, data + at, size - at);
      data[at] = static_cast<uint8_t>(randomness());
      return size + 1;
    }
    break;
  case 1:
    std::memmove(data + at, data + at + length, size - at - length);
    return size - length;
  case 2:
    std::memmove(data + below(size - length + 1), data + at, length);
    return size;
  case 3:
    return below(16) == 0 ? at : size;
  case 4: {
    static const uint8_t numbers[] = {0, 1, '0', '9', 0x7f, 0x80, 0xff, '-'};
    if (size)
      data[at] = numbers[below(sizeof numbers)];
    return size;
  }
  default:
    break;
  }
  if (size)
    data[at] ^= static_cast<uint8_t>(1 << below(8));
  return size;
}

static void mutate(const Bytes &seed) {
  const size_t limit =
      std::max<size_t>(seed.size(), static_cast<size_t>(options["max_len"]));
  input = seed;
  input.resize(limit);
  size_t size = seed.size();
  for (size_t count = 1 + randomness() % 4; count; --count)
    size = LLVMFuzzerCustomMutator
               ? LLVMFuzzerCustomMutator(input.data(), size, limit,
                                         static_cast<unsigned>(randomness()))
               : LLVMFuzzerMutate(input.data(), size, limit);
  input.resize(size);
}

static Bytes read(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "error: cannot read '%s'\n", path.c_str());
    std::exit(1);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

static std::vector<std::filesystem::path>
parseArguments(const std::vector<std::string> &arguments) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const std::string &word : arguments) {
    const size_t equals = word.find('=');
    if (word[0] == '-') {
      // Other options are about libFuzzer alone.
      if (equals != std::string::npos)
        options[word.substr(1, equals - 1)] =
            std::atol(word.c_str() + equals + 1);
    } else if (fs::is_directory(word)) {
      for (const auto &entry : fs::recursive_directory_iterator(word))
        if (entry.is_regular_file())
          files.push_back(entry.path());
    } else {
      files.push_back(word);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

int main(int argc, char **argv) {
  const auto files = parseArguments({argv + 1, argv + argc});
  if (files.empty()) {
    std::fprintf(stderr, "error: expects files or folders of inputs\n");
    return 1;
  }
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGALRM})
    std::signal(signal, onSignal);
  std::vector<Bytes> seeds;
  for (const auto &path : files) {
    std::snprintf(current, sizeof current, "%s", path.c_str());
    seeds.push_back(input = read(path));
    run();
  }
  randomness.seed(static_cast<unsigned>(options["seed"]));
  for (long i = 0; i < options["runs"]; ++i) {
    const size_t seed = randomness() % seeds.size();
    std::snprintf(current, sizeof current, "mutant %ld of -seed=%ld, of %s,", i,
                  options["seed"], files[seed].c_str());
    mutate(seeds[seed]);
    run();
  }
  std::printf("%zu files and %ld mutants of them passed\n", files.size(),
              options["runs"]);
  return 0;
}
