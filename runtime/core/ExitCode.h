//===- ExitCode.h - How a run ends that has not failed ---------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_EXITCODE_H
#define PIPEWRIGHT_RUNTIME_CORE_EXITCODE_H

namespace pipewright::runtime {

/// The exit code of a generated program; 1 where it fails.
enum ExitCode {
  Done = 0,
  /// A step gave other numbers when it was run again, or ranks that hold the
  /// same weights have others (EX_SOFTWARE).
  Disagree = 70,
  /// All was trained, but the last checkpoint could not be written (EX_IOERR).
  NotKept = 74,
  /// It was told to stop, and `--resume` goes on (EX_TEMPFAIL).
  ResumeMe = 75,
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_EXITCODE_H
