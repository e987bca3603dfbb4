//===- StageWords.cpp - Options that each stage may have its own ----------===//
//
// See StageWords.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/staged/StageWords.h"

#include "dialects/pipe/PipeDialect.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

bool pipewright::pipe::isStageWord(StringRef word, ArrayRef<StringRef> known) {
  return llvm::any_of(known, [&](StringRef one) {
    int64_t number;
    StringRef rest = word;
    return one.consume_back("N")
               ? rest.consume_front(one) && !rest.getAsInteger(10, number) &&
                     number > 0
               : word == one;
  });
}

bool pipewright::pipe::isWindowMode(StringRef mode) {
  return mode == "except-last" || mode.starts_with("window:");
}

FailureOr<SmallVector<StringRef>>
pipewright::pipe::wordsOfStages(ModuleOp module, StringRef option,
                                StringRef given, ArrayRef<StringRef> known) {
  SmallVector<StringRef> words;
  given.split(words, ',');
  for (StringRef word : words)
    if (!isStageWord(word, known))
      return module.emitError(option)
             << " to be one of " << llvm::join(known, ", ") << ", but got '"
             << word << "'";
  auto stages = static_cast<size_t>(llvm::range_size(module.getOps<StageOp>()));
  if (words.size() == 1)
    words.assign(stages, words.front());
  if (words.size() != stages)
    return module.emitError(option)
           << " to be one word, or one for each of " << stages
           << " stages, but got " << words.size() << ": " << given;
  return words;
}
