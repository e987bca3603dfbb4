//===- FieldWords.h - What others call what we have -------------*- C++ -*-===//
//
// People come from PyTorch, Megatron, DeepSpeed and their launchers, and type
// what is right there. A word that means exactly what an option of ours does is
// taken for it; one that means something near, or something that is elsewhere,
// is answered with the way there.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_FIELDWORDS_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_FIELDWORDS_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace pipewright::tool {

struct FieldWord {
  /// In our spelling: `num-stages`.
  llvm::StringRef word;
  /// The option of ours that it is; empty where there is only advice.
  llvm::StringRef ours = {};
  /// What to do instead: behind `there is no --epochs: `.
  llvm::StringRef advice = {};
};

/// What others mean by an option that we have not; null where nobody does.
const FieldWord *findFieldWord(llvm::StringRef option);

/// What others call a command of ours; empty where nobody does.
llvm::StringRef commandMeantBy(llvm::StringRef word);

/// A word as this project spells words: in small letters, with dashes.
std::string spelled(llvm::StringRef word);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_FIELDWORDS_H
