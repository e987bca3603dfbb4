//===- Engine.cpp - What computes in cuDNN's double -----------------------===//
//
// Operands become dense f32 NCHW, whatever their type and strides; loops go
// over rows of pixels.
//
//===----------------------------------------------------------------------===//

#include "test/doubles/cudnn/Engine.h"
#include "test/doubles/cudnn/Elements.h"

#include <atomic>

using namespace pipewright::doubles;

std::vector<cudnnBackendNumericalNote_t>
pipewright::doubles::notesOf(int engine) {
  switch (engine) {
  case TensorCores:
    return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  case Hasty:
    return {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
  }
  return {};
}

Work pipewright::doubles::workOf(const Descriptor &graph) {
  if (isConvolution(graph))
    return {convolutionGraphOf(graph)};
  return {nodeGraphOf(graph)};
}

bool pipewright::doubles::addsBackwards(int engine) {
  static std::atomic<unsigned> runs = 0;
  return engine == Hasty && runs++ % 2;
}

static std::vector<int> convolutionEngines(const ConvolutionGraph &graph,
                                           cudnnBackendHeurMode_t mode) {
  // As cuDNN 9.19, whose heuristic proposes nothing that writes f32 gradients
  // of bf16 operands.
  if (graph.kind == ConvolutionGraph::Kind::Weight &&
      graph.w.type != graph.x.type)
    return {};
  if (mode == CUDNN_HEUR_MODE_FALLBACK)
    return {Careful};
  return {Hasty, TensorCores, Careful};
}

std::vector<int> pipewright::doubles::enginesFor(const Work &work,
                                                 cudnnBackendHeurMode_t mode) {
  if (const auto *g = std::get_if<ConvolutionGraph>(&work.graph))
    return convolutionEngines(*g, mode);
  return isKnownToEngines(std::get<NodeGraph>(work.graph))
             ? std::vector<int>{Hasty, TensorCores}
             : std::vector<int>();
}

int64_t pipewright::doubles::workspaceBytes(const Work &work, int engine) {
  if (const auto *g = std::get_if<ConvolutionGraph>(&work.graph))
    return 1000 + 8 * engine + 4 * g->w.sizes[0];
  return 256 + keptBytes(std::get<NodeGraph>(work.graph));
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {
/// A row of outputs and the inputs that one weight multiplies.
struct Row {
  int64_t x, y, count, stride;
};
} // namespace

/// Calls body(weight, rows) for each weight of each sample.
template <class Body>
static void forRows(const ConvolutionGraph &g, bool backwards,
                    const Body &body) {
  const auto &[n, channels, h, w] = g.x.sizes;
  const auto &[outputs, perGroup, kh, kw] = g.w.sizes;
  const int64_t oh = g.y.sizes[2], ow = g.y.sizes[3];
  const int64_t outputsPerGroup = outputs / (channels / perGroup);
  const int64_t weights = outputs * perGroup * kh * kw;
  std::vector<Row> rows;
  for (int64_t sample = 0; sample < n; ++sample)
    for (int64_t k = 0; k < weights; ++k) {
      const int64_t at = backwards ? weights - 1 - k : k;
      const int64_t j = at % kw, i = at / kw % kh;
      const int64_t c = at / (kw * kh) % perGroup;
      const int64_t o = at / (kw * kh * perGroup);
      const int64_t channel = o / outputsPerGroup * perGroup + c;
      // Outputs of a row whose input exists.
      const int64_t offset = j * g.dilation[1] - g.before[1];
      int64_t first = 0, last = ow - 1;
      while (first <= last && first * g.stride[1] + offset < 0)
        ++first;
      while (last >= first && last * g.stride[1] + offset >= w)
        --last;
      rows.clear();
      for (int64_t r = 0; r < oh && first <= last; ++r) {
        const int64_t in = r * g.stride[0] + i * g.dilation[0] - g.before[0];
        if (in >= 0 && in < h)
          rows.push_back({((sample * channels + channel) * h + in) * w +
                              first * g.stride[1] + offset,
                          ((sample * outputs + o) * oh + r) * ow + first,
                          last - first + 1, g.stride[1]});
      }
      body(at, rows);
    }
}

static std::vector<float> forward(const ConvolutionGraph &g, bool backwards,
                                  const std::vector<float> &x,
                                  const std::vector<float> &w) {
  std::vector<float> y(g.y.sizes[0] * g.y.sizes[1] * g.y.sizes[2] *
                       g.y.sizes[3]);
  forRows(g, backwards, [&](int64_t at, const std::vector<Row> &rows) {
    for (const Row &row : rows)
      for (int64_t i = 0; i < row.count; ++i)
        y[row.y + i] += w[at] * x[row.x + i * row.stride];
  });
  return y;
}

static std::vector<float> dataGradient(const ConvolutionGraph &g,
                                       bool backwards,
                                       const std::vector<float> &dy,
                                       const std::vector<float> &w) {
  std::vector<float> dx(g.x.sizes[0] * g.x.sizes[1] * g.x.sizes[2] *
                        g.x.sizes[3]);
  forRows(g, backwards, [&](int64_t at, const std::vector<Row> &rows) {
    for (const Row &row : rows)
      for (int64_t i = 0; i < row.count; ++i)
        dx[row.x + i * row.stride] += w[at] * dy[row.y + i];
  });
  return dx;
}

static std::vector<float> weightGradient(const ConvolutionGraph &g,
                                         bool backwards,
                                         const std::vector<float> &dy,
                                         const std::vector<float> &x) {
  std::vector<float> dw(g.w.sizes[0] * g.w.sizes[1] * g.w.sizes[2] *
                        g.w.sizes[3]);
  forRows(g, backwards, [&](int64_t at, const std::vector<Row> &rows) {
    double sum = 0;
    for (const Row &row : rows)
      for (int64_t i = 0; i < row.count; ++i)
        sum += x[row.x + i * row.stride] * dy[row.y + i];
    dw[at] += static_cast<float>(sum);
  });
  return dw;
}

void pipewright::doubles::computeConvolution(const ConvolutionGraph &g,
                                             int engine,
                                             const Operands &operands) {
  const bool backwards = addsBackwards(engine);
  const bool rounds = engine == TensorCores && g.isFloat();
  std::vector<float> result;
  switch (g.kind) {
  case ConvolutionGraph::Kind::Forward:
    result = forward(g, backwards, load(g.x, operands.x, rounds),
                     load(g.w, operands.w, rounds));
    break;
  case ConvolutionGraph::Kind::Data:
    result = dataGradient(g, backwards, load(g.y, operands.y, rounds),
                          load(g.w, operands.w, rounds));
    break;
  case ConvolutionGraph::Kind::Weight:
    result = weightGradient(g, backwards, load(g.y, operands.y, rounds),
                            load(g.x, operands.x, rounds));
    break;
  }
  for (float &value : result)
    value *= g.alpha;
  if (g.bias) {
    const std::vector<float> bias = load(*g.bias, operands.bias, false);
    const int64_t pixels = g.y.sizes[2] * g.y.sizes[3];
    for (size_t i = 0; i < result.size(); ++i)
      result[i] += bias[i / pixels % bias.size()];
  }
  store(g.result(), result, g.beta, operands.result);
}
