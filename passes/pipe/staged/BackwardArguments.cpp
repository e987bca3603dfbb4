//===- BackwardArguments.cpp - What a part of a backward takes ------------===//
//
// See BackwardArguments.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/staged/BackwardArguments.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright::pipe;

ArgumentLists pipewright::pipe::addArguments(Block &part, BackwardOp whole,
                                             ArrayRef<Operation *> readers,
                                             ValueRange alsoRead,
                                             IRMapping &map) {
  llvm::DenseSet<Value> read(alsoRead.begin(), alsoRead.end());
  for (Operation *reader : readers)
    read.insert_range(reader->getOperands());
  SmallVector<int64_t> stash = whole.getStashFields();
  SmallVector<int64_t> recomputed = whole.getRecomputedFields();
  ArrayRef<int64_t> all[] = {whole.getInputs(), whole.getOutputs(), stash,
                             whole.getGradientsOf(), recomputed};
  ArgumentLists lists;
  unsigned number = 0;
  for (auto [indices, used] : llvm::zip_equal(all, lists))
    for (int64_t index : indices) {
      BlockArgument argument = whole.getBody()->getArgument(number++);
      if (!read.contains(argument))
        continue;
      used.push_back(index);
      map.map(argument,
              part.addArgument(argument.getType(), argument.getLoc()));
    }
  return lists;
}
