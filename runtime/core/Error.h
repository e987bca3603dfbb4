//===- Error.h - The one exception of the runtime --------------*- C++ -*-===//
//
// Whatever goes wrong is thrown as one type and caught once, at the top of
// each rank, so that generated code has no checks in it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_ERROR_H
#define PIPEWRIGHT_RUNTIME_CORE_ERROR_H

#include <sstream>
#include <stdexcept>
#include <string>

namespace pipewright::runtime {

/// Carries one line for the user: lower case, says what was expected and
/// found, names the file, option or input.
class Error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Thrown in ranks that stop only because another one failed; its message was
/// printed already, so this one is not.
class Aborted : public Error {
public:
  using Error::Error;
};

[[noreturn]] inline void failAborted() {
  throw Aborted("stopped because another rank failed");
}

/// Throws an Error whose message is all arguments streamed one after another.
template <class... Parts>
[[noreturn]] void fail(const Parts &...parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(text.str());
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_ERROR_H
