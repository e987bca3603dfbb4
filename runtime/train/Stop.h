//===- Stop.h - Told to end while training ---------------------*- C++ -*-===//
//
// SIGINT, SIGTERM and SIGHUP ask for an end: all ranks finish the step that
// they are in and save, as at the end of training. A second one ends at once.
//
// SIGUSR1, SIGUSR2 and SIGXCPU are notices of batch systems (Slurm's --signal)
// that the time is nearly over. They ask for the same, but never end at once,
// and the SIGTERM that follows counts as the first signal.
//
// A thread of its own waits for them; all others block them. oneDNN's matrix
// products up to version 3.11.1 use the stack pointer for heap memory, which a
// handler that runs on the same thread would overwrite
// (github.com/uxlfoundation/oneDNN/issues/4845).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_STOP_H
#define PIPEWRIGHT_RUNTIME_TRAIN_STOP_H

namespace pipewright::runtime {

/// Blocks the signals in this thread and those that it starts, and waits for
/// them in another. Until `watchForStop`, each ends the process as if nobody
/// waited; those that are ignored stay so (nohup). Called by main before there
/// are other threads. Throws an Error if there can be no other thread.
void receiveStopSignals();

/// From now on the signals are asked for by `stopSignal` instead of ending the
/// process. `speaks`: say on stderr that one has come. May be called by several
/// ranks of a process.
void watchForStop(bool speaks);

/// The first signal that has come to this process; 0: none.
int stopSignal();

/// "SIGTERM"
const char *signalName(int number);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_STOP_H
