//===- NearWords.h - What a mistyped word may have meant --------*- C++ -*-===//

#ifndef PIPEWRIGHT_SUPPORT_NEARWORDS_H
#define PIPEWRIGHT_SUPPORT_NEARWORDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace pipewright::text {

/// Those of `words` that may have been meant, the nearest first: letters are
/// left out, put in, mistaken or swapped with the next one in at most a third
/// of the word, or one of the two contains the other. Case does not count.
std::vector<std::string> wordsNear(llvm::StringRef typed,
                                   llvm::ArrayRef<llvm::StringRef> words);

/// `; did you mean '--ranks' or '--remat'?`, with `before` in front of each of
/// at most three words; empty where nothing is near.
std::string didYouMean(llvm::StringRef typed,
                       llvm::ArrayRef<llvm::StringRef> words,
                       llvm::StringRef before = "");

} // namespace pipewright::text

#endif // PIPEWRIGHT_SUPPORT_NEARWORDS_H
