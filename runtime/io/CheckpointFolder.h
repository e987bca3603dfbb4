//===- CheckpointFolder.h - Checkpoints of a run on disk -------*- C++ -*-===//
//
//   DIR/step-120/rank-0.safetensors   what each rank has written
//   DIR/step-120/rank-1.safetensors
//   DIR/step-120/rank-1-replica-1.safetensors   where replicas share states
//   DIR/step-120/manifest.json        their sizes and checksums, written last
//   DIR/step-140.tmp/                 being written, or left by a killed run
//   DIR/lock                          held by the run that writes here
//
// A checkpoint is made under a temporary name and renamed when all of it is on
// the disk, so a folder `step-N` is whole whatever is killed when. One that has
// become damaged is told by its checksums.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_IO_CHECKPOINTFOLDER_H
#define PIPEWRIGHT_RUNTIME_IO_CHECKPOINTFOLDER_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// A file of a checkpoint.
struct CheckpointFile {
  std::string name;
  int64_t bytes = 0;
  /// Of all its bytes (core/Hash.h).
  uint64_t checksum = 0;
};

/// What is written beside the files.
struct CheckpointManifest {
  std::string model;
  std::string optimizer;
  /// Calls of the program's step that are done, times the updates of each.
  int64_t step = 0;
  /// Samples of the training data that these have taken.
  int64_t samples = 0;
  /// Of the steps, those that changed nothing; a file may leave it out.
  int64_t skipped = 0;
  uint64_t seed = 0;
  bool shuffled = true;
  /// Of the program's plan: the same bits follow where it is the same.
  uint64_t plan = 0;
  std::vector<CheckpointFile> files;
};

/// Whether a text can be the name of a file beside another, and nothing else.
bool isFileName(const std::string &name);

/// Throws an Error that names the file where it is no manifest.
CheckpointManifest readManifest(const std::string &folder);
/// The same, and compares sizes and checksums of all files.
CheckpointManifest readCheckpoint(const std::string &folder);

class CheckpointFolder {
public:
  explicit CheckpointFolder(std::string path) : path(std::move(path)) {}
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder &) = delete;
  CheckpointFolder &operator=(const CheckpointFolder &) = delete;

  /// Makes the folder where there is none, takes the lock and removes what a
  /// killed run has left. Throws an Error where another run writes here. One
  /// process of a run calls it.
  void open();

  /// The steps of all checkpoints, ascending; they need not be valid.
  std::vector<int64_t> steps() const;
  /// The newest valid one, at most `atMost`; what is wrong with newer ones is
  /// added to `skipped`, a line for each.
  std::optional<int64_t> newest(int64_t atMost,
                                std::vector<std::string> &skipped) const;

  std::string folderOf(int64_t step) const;
  /// Where files of a checkpoint are written to; made where it is not there.
  std::string begin(int64_t step) const;
  /// Makes a checkpoint of the files that are there. Throws an Error where a
  /// file is not as the manifest says.
  void commit(const CheckpointManifest &manifest) const;
  /// Removes checkpoints up to step `last` but for the newest `keep`. Newer
  /// ones than `last` stay: they were damaged when this run began.
  void prune(int64_t last, int64_t keep) const;
  /// Removes what `begin` made.
  void abandon(int64_t step) const;

private:
  std::string temporaryOf(int64_t step) const;
  std::string displaced() const;

  const std::string path;
  int lock = -1;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_IO_CHECKPOINTFOLDER_H
