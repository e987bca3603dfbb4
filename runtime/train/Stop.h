//===- Stop.h - Told to end while training ---------------------*- C++ -*-===//
//
// SIGINT, SIGTERM and SIGHUP ask for an end: all ranks finish the step that
// they are in and save, as at the end of training. A second one ends at once.
//
// SIGUSR1, SIGUSR2 and SIGXCPU are notices of batch systems (Slurm's --signal)
// that the time is nearly over. They ask for the same, but never end at once,
// and the SIGTERM that follows counts as the first signal.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_STOP_H
#define PIPEWRIGHT_RUNTIME_TRAIN_STOP_H

namespace pipewright::runtime {

/// From now on the signals are asked for by `stopSignal` instead of ending the
/// process; those that are ignored stay so (nohup). `speaks`: say on stderr
/// that one has come. May be called by several ranks of a process.
void watchForStop(bool speaks);

/// The first signal that has come to this process; 0: none.
int stopSignal();

/// "SIGTERM"
const char *signalName(int number);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_STOP_H
