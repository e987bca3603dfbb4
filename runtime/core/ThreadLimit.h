//===- ThreadLimit.h - Whether a process may have more threads --*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_THREADLIMIT_H
#define PIPEWRIGHT_RUNTIME_CORE_THREADLIMIT_H

#include <cstdint>
#include <string>
#include <system_error>

namespace pipewright::runtime {

/// Why so many threads cannot be made, and the way out.
std::string threadTrouble(int64_t threads, const std::error_code &reason);

/// Throws an Error unless so many threads can run beside this one. Kernel
/// libraries end the process when they cannot make theirs.
void checkThreads(int64_t threads);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_THREADLIMIT_H
