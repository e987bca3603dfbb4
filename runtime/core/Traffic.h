//===- Traffic.h - What is sent -------------------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_TRAFFIC_H
#define PIPEWRIGHT_RUNTIME_CORE_TRAFFIC_H

#include <cstdint>

namespace pipewright::runtime {

struct Traffic {
  int64_t messages = 0;
  int64_t bytes = 0;

  Traffic &operator+=(const Traffic &other) {
    messages += other.messages;
    bytes += other.bytes;
    return *this;
  }
  friend bool operator==(const Traffic &, const Traffic &) = default;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_TRAFFIC_H
