//===- Ptx.h - Runs PTX on the CPU -----------------------------*- C++ -*-===//
//
// An interpreter of the PTX that LLVM's NVPTX backend writes: for tests of
// compiled kernels, and under the double of the CUDA driver. What it does not
// know is an error when the text is read, never later.
//
//   Module module = Module::parse(text);
//   HostMemory memory;                     // any address of this process
//   Arguments arguments;
//   arguments.add(data).add(1024);
//   module.launch("scale", {grid, block}, arguments.bytes(), memory);
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_PTX_PTX_H
#define PIPEWRIGHT_TEST_DOUBLES_PTX_PTX_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::ptx {

/// The text cannot be read: "line 12: unknown instruction 'foo.b32'".
class ParseError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A kernel did what a GPU refuses.
class Fault : public std::runtime_error {
public:
  enum class Kind {
    IllegalAddress,
    Misaligned,
    Trap,
    Race,
    Divergence,
    Launch
  };
  Fault(Kind kind, const std::string &message)
      : std::runtime_error(message), kind(kind) {}
  Kind kind;
};

/// Where global addresses lead. `find` is called once in a while for each
/// instruction, which then keeps the answer for accesses within it.
class Memory {
public:
  struct Region {
    /// Addresses [begin, end), as kernels say them.
    uint64_t begin = 0;
    uint64_t end = 0;
    /// Added to an address it gives a pointer.
    int64_t toHost = 0;
  };
  virtual ~Memory() = default;
  /// The allocation that contains the address; an empty region if none does.
  virtual Region find(uint64_t address) = 0;
  /// Says in words where a bad address lies.
  virtual std::string describe(uint64_t address) { return {}; }
  /// Told of every access if `tracks` says so; addresses as in kernels.
  virtual bool tracks() const { return false; }
  virtual void access(uint64_t address, uint64_t bytes, bool write) {}
};

/// The memory of this process, all of it.
class HostMemory : public Memory {
public:
  Region find(uint64_t) override { return {0, ~uint64_t(0), 0}; }
};

/// Some ranges of this process's memory, all else is an error.
class RangeMemory : public Memory {
public:
  void add(const void *data, size_t bytes) {
    uint64_t begin = reinterpret_cast<uint64_t>(data);
    regions.push_back({begin, begin + bytes, 0});
  }
  Region find(uint64_t address) override {
    for (const Region &region : regions)
      if (address >= region.begin && address < region.end)
        return region;
    return {};
  }

private:
  std::vector<Region> regions;
};

struct Dim {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t(x) * y * z; }
};

struct LaunchShape {
  Dim grid;
  Dim block;
  uint32_t dynamicSharedBytes = 0;
};

/// Kernel parameters, each at its natural alignment.
class Arguments {
public:
  template <class T>
  Arguments &add(T value) {
    data.resize((data.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    data.resize(data.size() + sizeof(T));
    std::memcpy(data.data() + data.size() - sizeof(T), &value, sizeof(T));
    return *this;
  }
  const std::vector<std::byte> &bytes() const { return data; }

private:
  std::vector<std::byte> data;
};

/// What is known of a kernel before it runs.
struct EntryInfo {
  std::string name;
  /// Offset and size of each parameter, in order.
  struct Parameter {
    uint32_t offset = 0;
    uint32_t bytes = 0;
  };
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  uint32_t sharedBytes = 0;
  uint32_t localBytes = 0;
  /// 0 where the text does not say.
  uint32_t maxThreads = 0;
  Dim requiredBlock = {0, 0, 0};
};

struct ModuleData;

/// A parsed module. Its global variables live in it, once for all copies.
class Module {
public:
  static Module parse(std::string_view text);

  /// "sm_90" is 90.
  int target() const;
  /// ".version 8.0" is 80.
  int version() const;
  std::vector<std::string> entries() const;
  /// Null if there is no such entry.
  const EntryInfo *find(std::string_view entry) const;

  /// Runs all blocks and returns. Parameters are one packed buffer, as
  /// Arguments makes it. Throws a Fault. May be called by several threads.
  void launch(std::string_view entry, const LaunchShape &shape,
              const std::vector<std::byte> &parameters, Memory &memory) const;

  /// Storage of a .global variable: address as kernels see it, and size.
  struct Variable {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  Variable global(std::string_view name) const;

private:
  std::shared_ptr<ModuleData> data;
};

/// How many instructions this process has run, each counted once per lane.
uint64_t executedLaneInstructions();

} // namespace pipewright::ptx

#endif // PIPEWRIGHT_TEST_DOUBLES_PTX_PTX_H
