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

class PrintRank : public CollectiveCalls {
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
  bool wantsOutputs(int64_t) const { return true; }
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
  void waitCollective() { print("waitCollective"); }

private:
  void postCollective(const GroupRequest &request) override {
    const CollectiveFacts &facts = factsOf(request.kind);
    if (facts.rooted)
      print(facts.call, request.group, request.range, request.root);
    else
      print(facts.call, request.group, request.range);
  }
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

// The library calls of runtime/calls, for this class of ranks.
template <>
inline void zero(PrintRank &rank, Buffer buffer) {
  rank.print("zero", buffer);
}
template <>
inline void copy(PrintRank &rank, Buffer source, Buffer destination) {
  rank.print("copy", source, destination);
}
template <>
inline void setValues(PrintRank &rank, const void *, Buffer destination) {
  rank.print("setValues", destination);
}
template <>
inline void accumulate(PrintRank &rank, Buffer source, Buffer destination) {
  rank.print("accumulate", source, destination);
}
template <>
inline void fill(PrintRank &rank, float value, Buffer buffer) {
  rank.print("fill", value, buffer);
}
template <>
inline void prepareMatmul(PrintRank &rank, const MatmulShape &) {
  rank.print("prepareMatmul");
}
template <>
inline void matmul(PrintRank &rank, const MatmulShape &, Buffer a, Buffer b,
                   Buffer y) {
  rank.print("matmul", a, b, y);
}
template <>
inline void prepareConvolutionForward(PrintRank &rank, int64_t number,
                                      const ConvolutionShape &, bool) {
  rank.print("prepareConvolutionForward", number);
}
template <>
inline void prepareConvolutionBackwardData(PrintRank &rank, int64_t number,
                                           const ConvolutionShape &) {
  rank.print("prepareConvolutionBackwardData", number);
}
template <>
inline void prepareConvolutionBackwardWeight(PrintRank &rank, int64_t number,
                                             const ConvolutionShape &) {
  rank.print("prepareConvolutionBackwardWeight", number);
}
template <>
inline void convolutionForward(PrintRank &rank, int64_t number, Buffer x,
                               Buffer w, Buffer bias, Buffer y) {
  rank.print("convolutionForward", number, x, w, bias, y);
}
template <>
inline void convolutionBackwardData(PrintRank &rank, int64_t number, Buffer dy,
                                    Buffer w, Buffer dx) {
  rank.print("convolutionBackwardData", number, dy, w, dx);
}
template <>
inline void convolutionBackwardWeight(PrintRank &rank, int64_t number,
                                      Buffer dy, Buffer x, Buffer dw,
                                      bool accumulate) {
  rank.print("convolutionBackwardWeight", number, dy, x, dw, accumulate);
}
template <>
inline void maxPool(PrintRank &rank, const PoolingShape &, Buffer x, Buffer y,
                    Buffer window) {
  rank.print("maxPool", x, y, window);
}
template <>
inline void maxPoolBackward(PrintRank &rank, const PoolingShape &, Buffer dy,
                            Buffer window, Buffer dx) {
  rank.print("maxPoolBackward", dy, window, dx);
}
template <>
inline void averagePool(PrintRank &rank, const PoolingShape &, Buffer x,
                        Buffer y) {
  rank.print("averagePool", x, y);
}
template <>
inline void averagePoolBackward(PrintRank &rank, const PoolingShape &,
                                Buffer dy, Buffer dx) {
  rank.print("averagePoolBackward", dy, dx);
}
template <>
inline void embedding(PrintRank &rank, const EmbeddingShape &, Buffer table,
                      Buffer indices, Buffer y) {
  rank.print("embedding", table, indices, y);
}
template <>
inline void embeddingBackward(PrintRank &rank, const EmbeddingShape &,
                              Buffer dy, Buffer indices, Buffer dtable,
                              bool accumulate) {
  rank.print("embeddingBackward", dy, indices, dtable, accumulate);
}
template <>
inline void checkLabels(PrintRank &rank, const LabelShape &, Buffer labels) {
  rank.print("checkLabels", labels);
}
template <>
inline void dropout(PrintRank &rank, const DropoutShape &, int64_t microBatch,
                    Buffer x, Buffer y) {
  rank.print("dropout", microBatch, x, y);
}
template <>
inline void prepareAttention(PrintRank &rank, const AttentionShape &) {
  rank.print("prepareAttention");
}
template <>
inline void attention(PrintRank &rank, const AttentionShape &,
                      int64_t microBatch, Buffer q, Buffer k, Buffer v,
                      Buffer mask, Buffer o, Buffer stats) {
  rank.print("attention", microBatch, q, k, v, mask, o, stats);
}
template <>
inline void attentionBackward(PrintRank &rank, const AttentionShape &,
                              int64_t microBatch, Buffer dO, Buffer q, Buffer k,
                              Buffer v, Buffer o, Buffer stats, Buffer mask,
                              Buffer dq, Buffer dk, Buffer dv, Buffer dMask) {
  rank.print("attentionBackward", microBatch, dO, q, k, v, o, stats, mask, dq,
             dk, dv, dMask);
}

inline int runProgram(int, char **, const Program &program) {
  int number = 0;
  for (const RankProgram &rank : program.ranks) {
    PrintRank printer;
    std::printf("rank %d: set-up\n", number);
    if (rank.setUp)
      rank.setUp(printer);
    std::printf("rank %d: step\n", number++);
    rank.step(printer);
  }
  return 0;
}

} // namespace pipewright::runtime
