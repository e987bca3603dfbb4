// What a program of the target `print` calls: every call prints its name and
// the places of its buffers in the rank's arena.

#pragma once

#include "runtime/Runtime.h"

#include <cstdio>
#include <initializer_list>

namespace pipewright::runtime {

struct PrintedKernel {
  const char *name;
};

class PrintRank {
public:
  template <typename... Values>
  void print(const char *call, Values... values) {
    std::printf("%s", call);
    (printValue(values), ...);
    std::printf("\n");
  }
  void print(const char *call, const char *what,
             std::initializer_list<Buffer> buffers) {
    std::printf("%s %s", call, what);
    for (Buffer buffer : buffers)
      printValue(buffer);
    std::printf("\n");
  }

  void task(const char *kind, int64_t stage, int64_t microBatch) {
    std::printf("task %s%lld.%lld\n", kind, (long long)stage,
                (long long)microBatch);
  }
  void loadInput(int64_t input, int64_t microBatch, Buffer to) {
    print("loadInput", input, microBatch, to);
  }
  void storeOutput(int64_t output, int64_t microBatch, Buffer from) {
    print("storeOutput", output, microBatch, from);
  }
  void reportLoss(int64_t microBatch, Buffer loss) {
    print("reportLoss", microBatch, loss);
  }
  void loadHyper(Buffer to) { print("loadHyper", to); }
  void beginUpdate(int64_t number) { print("beginUpdate", number); }
  void postSend(int64_t peer, Buffer from) { print("postSend", peer, from); }
  void postReceive(int64_t peer, Buffer to) { print("postReceive", peer, to); }
  void waitSend(int64_t peer) { print("waitSend", peer); }
  void waitReceive(int64_t peer) { print("waitReceive", peer); }

private:
  static void printValue(Buffer buffer) {
    if (buffer.bytes)
      std::printf(" [%lld, %lld)", (long long)buffer.offset,
                  (long long)(buffer.offset + buffer.bytes));
  }
  static void printValue(double value) { std::printf(" %g", value); }
};

inline void launch(PrintRank &rank, const PrintedKernel &kernel,
                   std::initializer_list<Buffer> buffers) {
  rank.print("launch", kernel.name, buffers);
}
inline void setValues(PrintRank &rank, const void *, Buffer to) {
  rank.print("setValues", to);
}

// What takes buffers and numbers alone, and what takes a shape before them.
#define PRINTED(call)                                                          \
  template <typename... Values>                                                \
  void call(PrintRank &rank, Values... values) {                               \
    rank.print(#call, values...);                                              \
  }
#define PRINTED_WITH_SHAPE(call, Shape)                                        \
  template <typename... Values>                                                \
  void call(PrintRank &rank, const Shape &, Values... values) {                \
    rank.print(#call, values...);                                              \
  }

PRINTED(zero)
PRINTED(copy)
PRINTED(accumulate)
PRINTED(fill)
PRINTED_WITH_SHAPE(matmul, MatmulShape)
PRINTED_WITH_SHAPE(dropout, DropoutShape)
PRINTED_WITH_SHAPE(embedding, EmbeddingShape)
PRINTED_WITH_SHAPE(embeddingBackward, EmbeddingShape)
PRINTED_WITH_SHAPE(prepareAttention, AttentionShape)
PRINTED_WITH_SHAPE(attention, AttentionShape)
PRINTED_WITH_SHAPE(attentionBackward, AttentionShape)
PRINTED_WITH_SHAPE(maxPool, PoolingShape)
PRINTED_WITH_SHAPE(maxPoolBackward, PoolingShape)
PRINTED_WITH_SHAPE(averagePool, PoolingShape)
PRINTED_WITH_SHAPE(averagePoolBackward, PoolingShape)
PRINTED(convolutionForward)
PRINTED(convolutionBackwardData)
PRINTED(convolutionBackwardWeight)
#define PRINTED_PREPARATION(call)                                              \
  inline void call(PrintRank &rank, int64_t number, const ConvolutionShape &,  \
                   bool = false) {                                             \
    rank.print(#call, number);                                                 \
  }
PRINTED_PREPARATION(prepareConvolutionForward)
PRINTED_PREPARATION(prepareConvolutionBackwardData)
PRINTED_PREPARATION(prepareConvolutionBackwardWeight)
#undef PRINTED
#undef PRINTED_WITH_SHAPE
#undef PRINTED_PREPARATION

// `Program` holds functions of a Rank, of which this target has none.
template <void (*function)(PrintRank &)>
void printed(Rank &rank) {
  function(reinterpret_cast<PrintRank &>(rank));
}

inline int runProgram(int, char **, const Program &program) {
  int number = 0;
  for (const RankProgram &rank : program.ranks) {
    PrintRank printer;
    Rank &place = reinterpret_cast<Rank &>(printer);
    std::printf("rank %d: set-up\n", number);
    if (rank.setUp)
      rank.setUp(place);
    std::printf("rank %d: step\n", number++);
    rank.step(place);
  }
  return 0;
}

} // namespace pipewright::runtime
