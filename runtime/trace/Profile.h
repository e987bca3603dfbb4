//===- Profile.h - Where the time of steps goes ----------------*- C++ -*-===//
//
// Adds up what calls of kernels and libraries took, by name, and writes a
// table of them. Who measures them is another matter (cuda/DeviceProfile.h).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRACE_PROFILE_H
#define PIPEWRIGHT_RUNTIME_TRACE_PROFILE_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// What a call does, as far as it is known: bytes that it must read and write
/// at least once, floating-point operations of products.
struct CallCost {
  std::string name;
  double bytes = 0;
  double operations = 0;
};

class Profile {
public:
  void add(const CallCost &call, double seconds);
  /// One more step has been measured, or several that run together, which took
  /// so long in all.
  void endSteps(int64_t count, double seconds);

  /// For another rank: `merge` adds what `toText` of that rank's said.
  std::string toText() const;
  void merge(const std::string &text);

  /// Markdown, the longest first, with figures of one step. The times of steps
  /// are this rank's own, those of calls all ranks'. `ranks` is how many.
  std::string table(int64_t ranks) const;

private:
  struct Row {
    int64_t calls = 0;
    double seconds = 0, bytes = 0, operations = 0;
  };

  std::map<std::string, Row> rows;
  int64_t steps = 0;
  double stepSeconds = 0;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRACE_PROFILE_H
