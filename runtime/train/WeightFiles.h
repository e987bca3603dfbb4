//===- WeightFiles.h - Weights of all ranks in one file --------*- C++ -*-===//
//
// Rank 0 writes what other ranks send it over the transport, so it is the same
// whether ranks are threads or processes.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_WEIGHTFILES_H
#define PIPEWRIGHT_RUNTIME_TRAIN_WEIGHTFILES_H

#include "runtime/core/Program.h"
#include "runtime/io/Safetensors.h"
#include "runtime/io/WeightSource.h"

#include <string>

namespace pipewright::runtime {

class Worker;

/// Copies a tensor of a file into the arena, filters as memory has them.
void loadTensor(Worker &rank, const TensorInfo &tensor, const TensorView &from);
/// Copies the weights of the rank's program from the file into its arena.
void loadWeights(Worker &rank, const WeightRequest &request);
/// Makes the copies of weights that tasks read (Rounded, OldVersion) anew.
void copyWeights(Worker &rank);
/// Throws an Error unless what is asked for has every weight that any rank
/// wants, or may have a part of them and has one.
void checkWeights(const Program &program, const WeightRequest &request);
/// The names of weights that come from elsewhere where a part is asked for; a
/// line, or empty.
std::string missingWeights(const Program &program,
                           const WeightRequest &request);

/// What became of the weights.
struct Saved {
  /// Where they are; the same on all ranks. Empty: nowhere.
  std::string path;
  /// Why not where they were to be, on rank 0; empty: they are.
  std::string trouble;
};
/// Rank 0 writes all weights into one file, with notes. Returns what went wrong
/// on rank 0, and on the others only that something did; nothing where all went
/// well. Every rank calls it.
std::string writeWeights(Worker &rank, const std::string &path,
                         const Notes &notes = {});
/// Rank 0 writes all weights into one file; should that fail, into a new one in
/// the folder that it runs in, or else in that of temporary files. Every rank
/// calls it.
Saved saveWeights(Worker &rank, const std::string &path);
/// Describes how weights that several ranks hold, as replicas or tied, are not
/// bitwise equal, on all ranks alike; empty where they are. Every rank calls
/// it, between two steps.
std::string weightTrouble(Worker &rank);
/// Rank 0 writes the gradients that Worker::captureGradients kept. Every rank
/// calls it.
void saveGradients(Worker &rank, const std::string &path);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_WEIGHTFILES_H
