//===- OtherWords.h - Options as other programs call them -----*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_OTHERWORDS_H
#define PIPEWRIGHT_RUNTIME_TRAIN_OTHERWORDS_H

#include <string>

namespace pipewright::runtime {

/// An option of other programs: ours that it stands for, or, where that is
/// empty, what to do instead.
struct OtherWord {
  const char *word;
  const char *ours;
  const char *advice = "";
};

/// Null where nobody has such an option. `name` is spelt as below.
const OtherWord *findOther(const std::string &name);

/// As options are spelt here: `--Num_Steps` is `--num-steps`.
std::string spelled(std::string name);

/// Whether one word may be the other, mistyped: letters are left out, put in,
/// mistaken, or swapped with the next one in at most a third of it.
bool isNear(const std::string &typed, const std::string &word);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_OTHERWORDS_H
