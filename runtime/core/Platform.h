//===- Platform.h - What the ranks of a program compute on -----*- C++ -*-===//
//
// A platform is an object: all that the training loop has to know of what ranks
// compute on is asked of it. It knows nothing of the loop.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_PLATFORM_H
#define PIPEWRIGHT_RUNTIME_CORE_PLATFORM_H

#include "runtime/core/Program.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::runtime {

class Transport;
class Worker;
struct RankOnHost;

/// Makes the ranks of this process, or the one of a process beside others.
class RankFactory {
public:
  virtual ~RankFactory() = default;

  /// Makes the rank that the transport is of; its own thread calls this.
  virtual std::unique_ptr<Worker> createRank(Transport &transport) = 0;
  /// Lets the calling rank compute where the rank `by` further on does, counted
  /// on its host, or, of 0, on its own cores again; where each has cores of its
  /// own.
  virtual void moveToCoresOf(Transport &transport, int64_t by) {
    (void)transport, (void)by;
  }
  /// Lets the calling thread, which a rank has started to work beside it, run
  /// on the cores of all.
  virtual void leaveCores() {}
  /// What each rank has, for users: "2 threads each".
  virtual std::string describe() const = 0;
};

/// What a platform is told of a run.
struct RunSettings {
  /// 0: not given.
  double timeout = 0;
  /// 0: the cores shared out evenly.
  int64_t threadsPerRank = 0;
  /// What will be run.
  bool trains = true, evaluates = true;
  /// The platform's own options that were given, each with its last value.
  std::map<std::string, std::string> own;
};

/// An option that only one platform understands.
struct PlatformOption {
  const char *name;
  /// Empty for a flag.
  const char *argument;
  const char *help;
  /// Throws an Error that names the option, unless the text is right.
  void (*check)(const std::string &text);
  /// Whether it may differ from rank to rank.
  bool isOwn = false;
};

/// Something that a rank runs to be measured.
struct Probe {
  /// The figure that it gives, and what it computes in, as files for
  /// `pipewright --machine` call them; an empty precision: it is no matter.
  const char *figure;
  const char *precision;
  /// The operations, bytes, numbers or calls of one run.
  double amount = 1;
  /// Whether the figure is how many there are in a second; else it is seconds
  /// for each.
  bool isRate = true;
};

/// A program whose step n runs probe n. What some machines lack comes last.
struct ProbeProgram {
  RankProgram rank;
  std::vector<Probe> probes;
};

class Platform {
public:
  virtual ~Platform() = default;

  /// As the compiler's --target has it.
  virtual const char *name() const = 0;
  /// What a rank is called: "rank" or "GPU rank".
  virtual const char *rankWord() const = 0;

  virtual std::vector<PlatformOption> options() const { return {}; }
  /// Whether ranks compute with threads whose number can be chosen.
  virtual bool hasThreads() const { return false; }
  /// What --timeout is about, and how many seconds it is unless given.
  virtual const char *timeoutHelp() const = 0;
  virtual double timeout() const = 0;
  /// Whether ranks, once one of them has failed, may hang in what they wait
  /// for, destructors too.
  virtual bool mayHang() const { return false; }
  /// Whether transfers have deadlines of their own. Otherwise ranks may take as
  /// long as they like, while they tell that they live.
  virtual bool hasDeadlines() const { return false; }
  /// What a rank has taken beside its arena, where that is not memory of the
  /// process; empty where it is.
  virtual std::string besideArena(double /*libraryBytes*/,
                                  double /*aheadBytes*/, double /*pinnedBytes*/,
                                  double /*graphs*/) const {
    return "";
  }

  /// Throws an Error where this machine lacks what kernels or the library need,
  /// whatever the options.
  virtual void check(const Program &) const {}
  /// What users should know of the machine before they wait for it, in lines.
  virtual std::string remarks(const Program &) const { return ""; }
  /// Sets what libraries read from the environment when they start. The first
  /// thing that a program does, for MPI may start them.
  virtual void prepareEnvironment(const Program &, const RunSettings &) const {}

  /// For a process that has all ranks as threads. Throws an Error when the
  /// machine has not what the program needs.
  virtual std::unique_ptr<RankFactory>
  createThreads(const Program &program, const RunSettings &settings) const = 0;
  /// For a process that is one rank; all processes call it together.
  virtual std::unique_ptr<RankFactory>
  createProcess(const Program &program, const RunSettings &settings,
                RankOnHost place, Transport &transport) const = 0;

  /// What measures a rank of this machine; no probes: nothing does.
  virtual ProbeProgram probeProgram() const { return {}; }

  // --- The text of --dry-run, as lines with their headings ------------------

  using Lines = std::vector<std::pair<std::string, std::string>>;
  virtual Lines needs(const Program &, const RunSettings &) const { return {}; }
  /// What there is to say of one rank, in one line; empty for nothing.
  virtual std::string describeRank(const Program &, int64_t) const {
    return "";
  }
  virtual Lines besideArenas() const { return {}; }
};

/// All platforms that the runtime was built with, and that of a program: listed
/// in runtime/Platforms.cpp, and nowhere else.
const std::vector<const Platform *> &allPlatforms();
const Platform &platformOf(const Program &program);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_PLATFORM_H
