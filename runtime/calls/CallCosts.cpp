//===- CallCosts.cpp - What library calls must do -------------------------===//

#include "runtime/calls/CallCosts.h"

#include <initializer_list>

using namespace pipewright::runtime;

static double product(std::initializer_list<int64_t> sizes) {
  double result = 1;
  for (int64_t size : sizes)
    result *= static_cast<double>(size);
  return result;
}

static double widthOf(ElementType type) {
  return static_cast<double>(byteWidth(type));
}

static std::string sizesText(std::initializer_list<int64_t> sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

static const char *epilogueText(MatmulEpilogue epilogue) {
  switch (epilogue) {
  case MatmulEpilogue::None:
    break;
  case MatmulEpilogue::Bias:
    return ", bias";
  case MatmulEpilogue::BiasGelu:
    return ", bias, gelu";
  case MatmulEpilogue::GeluGradient:
    return ", gelu gradient";
  case MatmulEpilogue::GeluBiasGradient:
    return ", gelu and bias gradients";
  case MatmulEpilogue::BiasGradient:
    return ", bias gradient";
  }
  return "";
}

CallCost pipewright::runtime::costOf(const MatmulShape &s,
                                     MatmulEpilogue epilogue) {
  CallCost cost;
  cost.name = std::string("matmul ") +
              (s.batch > 1 ? sizesText({s.batch}) + " of " : "") +
              sizesText({s.m, s.n, s.k}) + " " + typeText(s.type) +
              (s.transposeA ? ", a^T" : "") + (s.transposeB ? ", b^T" : "") +
              (s.beta != 0 ? ", added" : "") + epilogueText(epilogue);
  cost.operations = 2 * product({s.batch, s.m, s.n, s.k});
  const bool hasAux = epilogue == MatmulEpilogue::BiasGelu ||
                      epilogue == MatmulEpilogue::GeluGradient ||
                      epilogue == MatmulEpilogue::GeluBiasGradient;
  cost.bytes =
      widthOf(s.type) * (product({s.batch, s.m, s.k}) +
                         product({s.broadcastB ? 1 : s.batch, s.k, s.n})) +
      widthOf(s.result) * product({s.batch, s.m, s.n}) *
          (1 + (s.beta != 0) + hasAux);
  return cost;
}

CallCost pipewright::runtime::costOf(const ConvolutionShape &s,
                                     ConvolutionDirection direction) {
  const int64_t h = s.outputHeight(), w = s.outputWidth();
  CallCost cost;
  cost.name = std::string("convolution ") + textOf(direction) + ", " +
              sizesText({s.n, s.c, s.h, s.w}) + " " + typeText(s.type) + ", " +
              std::to_string(s.o) + " of " + sizesText({s.kh, s.kw}) +
              (s.strideH > 1 || s.strideW > 1
                   ? " by " + sizesText({s.strideH, s.strideW})
                   : "") +
              (s.groups > 1 ? ", " + std::to_string(s.groups) + " groups" : "");
  cost.operations = 2 * product({s.n, s.o, h, w, s.c / s.groups, s.kh, s.kw});
  // Gradients of weights are f32 in the end.
  const double weights = product({s.o, s.c / s.groups, s.kh, s.kw});
  const bool isWeight = direction == ConvolutionDirection::BackwardWeight;
  cost.bytes = widthOf(s.type) *
                   (product({s.n, s.c, s.h, s.w}) + product({s.n, s.o, h, w})) +
               weights * (isWeight ? 4 : widthOf(s.type));
  return cost;
}

CallCost pipewright::runtime::costOf(const AttentionShape &s, bool backward) {
  const int64_t columns = s.columns ? s.columns : s.rows;
  CallCost cost;
  cost.name =
      std::string(backward ? "attention backward " : "attention ") +
      sizesText({s.batch, s.heads, s.rows, s.depth}) +
      (columns == s.rows ? "" : " on " + std::to_string(columns)) + " " +
      typeText(s.type) + (s.causal ? ", causal" : "") +
      (s.keyHeads ? ", " + std::to_string(s.keyHeads) + " key heads" : "") +
      (s.softcap > 0 ? ", softcap" : "") +
      (backward && s.maskGradient ? ", mask gradient" : "");
  cost.operations = static_cast<double>(s.operations(backward));
  // q, o and k, v; backward reads them and dO, and writes dq, dk, dv.
  const double rows = product({s.batch, s.heads, s.rows, s.depth});
  const double keys = product({s.batch, s.heads / s.group(), columns, s.depth});
  cost.bytes =
      widthOf(s.type) * (backward ? 4 * rows + 4 * keys : 2 * rows + 2 * keys);
  return cost;
}
