//===- FlightFile.h - A flight recorder's ring as a file -------*- C++ -*-===//
//
// A mapped file of a rank's last operations: what is stored to it is on the
// file's pages at once, so that it survives the process, though not the loss of
// the machine. The process that records holds a lock on it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRACE_FLIGHTFILE_H
#define PIPEWRIGHT_RUNTIME_TRACE_FLIGHTFILE_H

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace pipewright::runtime {

/// The file, byte for byte.
struct FlightRing {
  static constexpr uint64_t capacity = 4096;
  static constexpr uint64_t expectedMagic = 0x3167'6e69'7266'7770;

  /// Whose operations these are.
  struct Owner {
    /// In the mesh of the program.
    int64_t position = 0, replica = 0;
    /// Of the program's plan (Program::planJson).
    uint64_t plan = 0;
  };
  /// Kind, place and micro-batch in one word, step, start, end. Relaxed atomic
  /// words: as cheap as plain ones, and torn by no reader.
  struct Slot {
    std::array<std::atomic<int64_t>, 4> words = {};
  };

  uint64_t magic = expectedMagic;
  Owner owner;
  int64_t process = 0;
  /// Nanoseconds to add to the steady clock's for those since 1970.
  int64_t clockOffset = 0;
  /// How many were ever begun.
  std::atomic<uint64_t> count{0};
  /// -1 before the first.
  std::atomic<int64_t> step{-1};
  std::array<Slot, capacity> slots = {};
};

class FlightFile {
public:
  FlightFile() = default;
  ~FlightFile();
  FlightFile(const FlightFile &) = delete;
  FlightFile &operator=(const FlightFile &) = delete;

  /// Maps a new file; null where it cannot be made, or belongs to a process
  /// that runs. The ring is there as long as this object.
  FlightRing *create(const std::string &path, const FlightRing::Owner &owner);
  /// The file's name goes; the ring stays.
  void remove();

  /// A ring that another process has left, or still writes.
  struct Found {
    std::shared_ptr<const FlightRing> ring;
    bool isAlive = false;
  };
  /// Throws an Error where the file is none.
  static Found read(const std::string &path);

private:
  std::string path;
  int descriptor = -1;
  void *mapped = nullptr;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRACE_FLIGHTFILE_H
