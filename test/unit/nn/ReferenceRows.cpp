//===- ReferenceRows.cpp - Normalizations, softmax, losses, attention -----===//
//
// Ops that need statistics of rows or channels.
//
//===----------------------------------------------------------------------===//

#include "dialects/call/CallDialect.h"
#include "test/unit/nn/Reference.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::nn;
using namespace pipewright::nn::reference;

/// The largest element of a row, and the sum of all powers against it.
static std::pair<double, double> softmaxNumbers(const double *row,
                                                int64_t size) {
  double largest = *std::max_element(row, row + size), sum = 0.0;
  for (int64_t i = 0; i < size; ++i)
    sum += std::exp(row[i] - largest);
  return {largest, sum};
}

/// Normalization over groups: `group(i)` says which mean and variance element
/// `i` of x has, `channel(i)` which scale and bias.
struct Grouping {
  int64_t groups;
  std::function<int64_t(int64_t)> group, channel;
};

static void statistics(const Tensor &x, const Grouping &by,
                       std::vector<double> &mean,
                       std::vector<double> &variance) {
  double count = static_cast<double>(x.size()) / by.groups;
  mean.assign(by.groups, 0.0);
  variance.assign(by.groups, 0.0);
  for (int64_t i = 0; i < x.size(); ++i)
    mean[by.group(i)] += x.data[i] / count;
  for (int64_t i = 0; i < x.size(); ++i)
    variance[by.group(i)] +=
        std::pow(x.data[i] - mean[by.group(i)], 2.0) / count;
}

static Tensor normalize(const Tensor &x, const Grouping &by,
                        const std::vector<double> &mean,
                        const std::vector<double> &rstd, const Tensor &scale,
                        const Tensor &bias) {
  Tensor y(x.shape);
  for (int64_t i = 0; i < x.size(); ++i)
    y.data[i] = (x.data[i] - mean[by.group(i)]) * rstd[by.group(i)] *
                    scale.data[by.channel(i)] +
                bias.data[by.channel(i)];
  return y;
}

/// dx, dscale and dbias of a normalization.
static std::array<Tensor, 3>
normalizeBackward(const Tensor &dy, const Tensor &x, const Grouping &by,
                  const std::vector<double> &mean,
                  const std::vector<double> &rstd, const Tensor &scale) {
  Tensor dx(x.shape), dscale(scale.shape), dbias(scale.shape);
  std::vector<double> sum(by.groups, 0.0), product(by.groups, 0.0);
  auto normal = [&](int64_t i) {
    return (x.data[i] - mean[by.group(i)]) * rstd[by.group(i)];
  };
  double count = static_cast<double>(x.size()) / by.groups;
  for (int64_t i = 0; i < x.size(); ++i) {
    double scaled = dy.data[i] * scale.data[by.channel(i)];
    sum[by.group(i)] += scaled / count;
    product[by.group(i)] += scaled * normal(i) / count;
    dscale.data[by.channel(i)] += dy.data[i] * normal(i);
    dbias.data[by.channel(i)] += dy.data[i];
  }
  for (int64_t i = 0; i < x.size(); ++i)
    dx.data[i] = rstd[by.group(i)] *
                 (dy.data[i] * scale.data[by.channel(i)] - sum[by.group(i)] -
                  normal(i) * product[by.group(i)]);
  return {dx, dscale, dbias};
}

static Grouping byRow(const Tensor &x) {
  int64_t columns = x.shape.back();
  return {x.size() / columns, [=](int64_t i) { return i / columns; },
          [=](int64_t i) { return i % columns; }};
}

static Grouping byChannel(const Tensor &x, bool isLast) {
  int64_t channels = isLast ? x.shape.back() : x.dim(1);
  int64_t inner = isLast ? 1 : x.size() / x.dim(0) / channels;
  auto channel = [=](int64_t i) { return i / inner % channels; };
  return {channels, channel, channel};
}

static Grouping byGroup(const Tensor &x, int64_t groups) {
  int64_t inner = x.size() / x.dim(0) / x.dim(1), channels = x.dim(1);
  int64_t perGroup = channels / groups * inner;
  return {x.dim(0) * groups, [=](int64_t i) { return i / perGroup; },
          [=](int64_t i) { return i / inner % channels; }};
}

static std::vector<double> rootsOf(const std::vector<double> &variance,
                                   double epsilon) {
  std::vector<double> rstd;
  for (double v : variance)
    rstd.push_back(1.0 / std::sqrt(v + epsilon));
  return rstd;
}

using Results = std::vector<Tensor>;
using Operands = std::function<const Tensor &(unsigned)>;

static Tensor like(ArrayRef<int64_t> shape, const std::vector<double> &data) {
  Tensor result(shape);
  result.data = data;
  return result;
}

static Results layerNorm(LayerNormOp op, const Operands &x) {
  Grouping by = byRow(x(0));
  std::vector<double> mean, variance;
  statistics(x(0), by, mean, variance);
  std::vector<double> rstd =
      rootsOf(variance, op.getEpsilon().convertToDouble());
  ArrayRef<int64_t> rows = ArrayRef(x(0).shape).drop_back();
  return {normalize(x(0), by, mean, rstd, x(1), x(2)), like(rows, mean),
          like(rows, rstd)};
}

static Results batchNorm(BatchNormOp op, const Operands &x) {
  Grouping by = byChannel(x(0), op.getChannelsLast());
  std::vector<double> mean, variance;
  statistics(x(0), by, mean, variance);
  std::vector<double> rstd =
      rootsOf(variance, op.getEpsilon().convertToDouble());
  return {normalize(x(0), by, mean, rstd, x(1), x(2)), like(x(1).shape, mean),
          like(x(1).shape, variance)};
}

static Results groupNorm(GroupNormOp op, const Operands &x) {
  auto groups = static_cast<int64_t>(op.getGroups());
  Grouping by = byGroup(x(0), groups);
  std::vector<double> mean, variance;
  statistics(x(0), by, mean, variance);
  std::vector<double> rstd =
      rootsOf(variance, op.getEpsilon().convertToDouble());
  const int64_t shape[] = {x(0).dim(0), groups};
  return {normalize(x(0), by, mean, rstd, x(1), x(2)), like(shape, mean),
          like(shape, variance)};
}

static Results groupNormBackward(GroupNormBackwardOp op, const Operands &x) {
  Grouping by = byGroup(x(1), x(3).dim(1));
  std::vector<double> rstd =
      rootsOf(x(4).data, op.getEpsilon().convertToDouble());
  auto grads = normalizeBackward(x(0), x(1), by, x(3).data, rstd, x(2));
  Tensor sum(x(3).shape), dot(x(3).shape);
  for (int64_t i = 0; i < x(1).size(); ++i) {
    int64_t group = by.group(i);
    double scaled = x(0).data[i] * x(2).data[by.channel(i)];
    sum.data[group] += scaled;
    dot.data[group] += scaled * (x(1).data[i] - x(3).data[group]) * rstd[group];
  }
  Results results(grads.begin(), grads.end());
  results.push_back(sum);
  results.push_back(dot);
  return results;
}

/// `fn(y, x, other)` on every row.
static Results
onRows(const Tensor &x, const Tensor &other,
       const std::function<void(MutableArrayRef<double>, ArrayRef<double>,
                                ArrayRef<double>)> &fn) {
  Tensor y(x.shape);
  int64_t columns = x.shape.back();
  for (int64_t i = 0; i < x.size(); i += columns)
    fn(MutableArrayRef(&y.data[i], columns), ArrayRef(&x.data[i], columns),
       ArrayRef(&other.data[i], columns));
  return {y};
}

static Results crossEntropy(SoftmaxCrossEntropyOp op, const Operands &x) {
  int64_t rows = x(0).dim(0), columns = x(0).dim(1), count = 0;
  Tensor loss(ArrayRef<int64_t>{}), largest({rows}), sum({rows});
  for (int64_t n = 0; n < rows; ++n) {
    auto [top, powers] =
        softmaxNumbers(&x(0).data[n * columns], op.countClasses());
    largest.data[n] = top;
    sum.data[n] = powers;
    auto label = static_cast<int64_t>(x(1).data[n]);
    if (label == static_cast<int64_t>(op.getIgnoreIndex()))
      continue;
    loss.data[0] += std::log(powers) - (x(0).data[n * columns + label] - top);
    ++count;
  }
  loss.data[0] /= op.getDivisor() ? x(2).data[0] : std::max<int64_t>(count, 1);
  return {loss, largest, sum};
}

static Results crossEntropyBackward(SoftmaxCrossEntropyBackwardOp op,
                                    const Operands &x) {
  int64_t columns = x(1).dim(1);
  auto ignored = static_cast<double>(static_cast<int64_t>(op.getIgnoreIndex()));
  double count = op.getDivisor()
                     ? x(5).data[0]
                     : x(2).size() - llvm::count(x(2).data, ignored);
  Tensor result(x(1).shape);
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t row = i / columns;
    if (x(2).data[row] != ignored && i % columns < op.countClasses())
      result.data[i] =
          x(0).data[0] / count *
          (std::exp(x(1).data[i] - x(3).data[row]) / x(4).data[row] -
           (x(2).data[row] == i % columns));
  }
  return {result};
}

/// An element of a mask, or of its gradient; it may be of fewer samples, which
/// repeat.
template <class T>
static decltype(auto) maskAt(T &mask, int64_t b, int64_t h, int64_t row,
                             int64_t column) {
  const bool hasSamples = mask.rank() == 4;
  return mask.at({hasSamples ? b % mask.dim(0) : b, h, row, column});
}

/// The scores of one row of attention, `-inf` where it may not look.
template <typename OpTy>
static std::vector<double> scores(OpTy op, const Tensor &q, const Tensor &k,
                                  const Tensor *mask, int64_t b, int64_t h,
                                  int64_t row) {
  std::vector<double> result;
  const int64_t keyHead = h / (q.dim(1) / k.dim(1));
  for (int64_t column = 0; column < q.dim(2); ++column) {
    double sum = 0.0;
    for (int64_t d = 0; d < q.dim(3); ++d)
      sum += q.at({b, h, row, d}) * k.at({b, keyHead, column, d});
    sum *= op.getScale().convertToDouble();
    if (double cap = op.getSoftcap().convertToDouble(); cap > 0)
      sum = cap * std::tanh(sum / cap);
    if (mask)
      sum += maskAt(*mask, b, h, row, column);
    result.push_back(op.getCausal() && column > row ? -INFINITY : sum);
  }
  return result;
}

template <class AttentionOp>
static Results attention(AttentionOp op, const Operands &x) {
  const Tensor &q = x(0), &k = x(1), &v = x(2);
  const Tensor *mask = op.getMask() ? &x(3) : nullptr;
  Tensor o(q.shape), stats({q.dim(0), q.dim(1), q.dim(2), 2});
  forEach(ArrayRef(q.shape).drop_back(), [&](ArrayRef<int64_t> at) {
    auto [b, h, row] = std::tuple(at[0], at[1], at[2]);
    const int64_t keyHead = h / (q.dim(1) / k.dim(1));
    std::vector<double> s = scores(op, q, k, mask, b, h, row);
    auto [top, powers] = softmaxNumbers(s.data(), s.size());
    // A row that sees nothing.
    if (top == -INFINITY)
      return;
    stats.at({b, h, row, 0}) = top;
    stats.at({b, h, row, 1}) = 1 / powers;
    for (int64_t column = 0; column < q.dim(2); ++column)
      for (int64_t d = 0; d < q.dim(3); ++d)
        o.at({b, h, row, d}) +=
            std::exp(s[column] - top) / powers * v.at({b, keyHead, column, d});
  });
  return {o, stats};
}

template <class AttentionOp>
static Results attentionBackward(AttentionOp op, const Operands &x) {
  const Tensor &grad = x(0), &q = x(1), &k = x(2), &v = x(3), &o = x(4),
               &stats = x(5);
  const Tensor *mask = op.getMask() ? &x(6) : nullptr;
  Tensor dq(q.shape), dk(k.shape), dv(v.shape);
  Tensor dmask(mask ? mask->shape : std::vector<int64_t>());
  double scale = op.getScale().convertToDouble();
  double cap = op.getSoftcap().convertToDouble();
  forEach(ArrayRef(q.shape).drop_back(), [&](ArrayRef<int64_t> at) {
    auto [b, h, row] = std::tuple(at[0], at[1], at[2]);
    const int64_t keyHead = h / (q.dim(1) / k.dim(1));
    std::vector<double> s = scores(op, q, k, mask, b, h, row);
    double delta = 0.0;
    for (int64_t d = 0; d < q.dim(3); ++d)
      delta += grad.at({b, h, row, d}) * o.at({b, h, row, d});
    for (int64_t column = 0; column < q.dim(2); ++column) {
      double p = std::exp(s[column] - stats.at({b, h, row, 0})) *
                 stats.at({b, h, row, 1});
      double dp = 0.0;
      for (int64_t d = 0; d < q.dim(3); ++d) {
        dp += grad.at({b, h, row, d}) * v.at({b, keyHead, column, d});
        dv.at({b, keyHead, column, d}) += p * grad.at({b, h, row, d});
      }
      double ds = p * (dp - delta);
      if (op.getMaskGradient())
        maskAt(dmask, b, h, row, column) += ds;
      double bounded =
          s[column] - (mask ? maskAt(*mask, b, h, row, column) : 0.0);
      double slope =
          cap > 0 && p > 0 ? 1 - bounded / cap * (bounded / cap) : 1.0;
      ds *= slope * scale;
      for (int64_t d = 0; d < q.dim(3); ++d) {
        dq.at({b, h, row, d}) += ds * k.at({b, keyHead, column, d});
        dk.at({b, keyHead, column, d}) += ds * q.at({b, h, row, d});
      }
    }
  });
  Results results = {dq, dk, dv};
  if (op.getMaskGradient())
    results.push_back(dmask);
  return results;
}

/// `[B, T, H, D]`, or a part of `[B, T, 3, H, D]`, as `[B, H, T, D]`.
static Tensor headsFirst(const Tensor &x, int64_t part = 0) {
  const bool packed = x.rank() == 5;
  const int64_t heads = x.dim(packed ? 3 : 2);
  Tensor y({x.dim(0), heads, x.dim(1), x.shape.back()});
  forEach(y.shape, [&](ArrayRef<int64_t> i) {
    y.at(i) = packed ? x.at({i[0], i[2], part, i[1], i[3]})
                     : x.at({i[0], i[2], i[1], i[3]});
  });
  return y;
}

/// The other way round: `[B, H, T, D]` as `[B, T, parts, H, D]`, or without the
/// third dimension for a single one.
static Tensor rowsFirst(ArrayRef<Tensor> parts) {
  const Tensor &x = parts.front();
  std::vector<int64_t> shape = {x.dim(0), x.dim(2), x.dim(1), x.dim(3)};
  if (parts.size() > 1)
    shape.insert(shape.begin() + 2, parts.size());
  Tensor y(shape);
  forEach(shape, [&](ArrayRef<int64_t> i) {
    ArrayRef<int64_t> inner = i.take_back(2);
    const Tensor &from = parts[parts.size() > 1 ? i[2] : 0];
    y.at(i) = from.at({i[0], inner[0], i[1], inner[1]});
  });
  return y;
}

/// Computes as if heads were first, on operands and results that have rows
/// first. A mask is as it is, and so is stats.
template <class Compute>
static Results withRowsFirst(AttentionOpInterface op, const Operands &x,
                             const Compute &compute) {
  // stats has no more than two elements, fewer than vectors of tests.
  auto isVectors = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    auto q = cast<RankedTensorType>(op->getResult(0).getType());
    return value != op.getMask() && type.getRank() == 4 &&
           type.getShape().take_front(2) == q.getShape().take_front(2) &&
           type.getDimSize(3) == q.getDimSize(3);
  };
  std::vector<Tensor> operands;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    const Tensor &operand = x(i);
    operands.push_back(isVectors(op->getOperand(i)) ? headsFirst(operand)
                                                    : operand);
  }
  Results results = compute(
      [&](unsigned index) -> const Tensor & { return operands[index]; });
  for (auto [tensor, result] : llvm::zip_equal(results, op->getResults()))
    if (isVectors(result))
      tensor = rowsFirst(tensor);
  return results;
}

static Results packedAttention(call::PackedAttentionOp op, const Operands &x) {
  const Tensor parts[] = {headsFirst(x(0), 0), headsFirst(x(0), 1),
                          headsFirst(x(0), 2)};
  Results results = attention(op, [&](unsigned index) -> const Tensor & {
    return index < 3 ? parts[index] : x(index - 2);
  });
  return {rowsFirst(results[0]), results[1]};
}

static Results packedAttentionBackward(call::PackedAttentionBackwardOp op,
                                       const Operands &x) {
  const Tensor operands[] = {headsFirst(x(0)),    headsFirst(x(1), 0),
                             headsFirst(x(1), 1), headsFirst(x(1), 2),
                             headsFirst(x(2)),    x(3)};
  Results results =
      attentionBackward(op, [&](unsigned index) -> const Tensor & {
        return index < 6 ? operands[index] : x(index - 2);
      });
  Results gradients = {rowsFirst(ArrayRef<Tensor>(results).take_front(3))};
  gradients.insert(gradients.end(), results.begin() + 3, results.end());
  return gradients;
}

bool reference::evaluateRows(Operation *op, Values &values) {
  Operands x = [&](unsigned index) -> const Tensor & {
    return values[op->getOperand(index)];
  };
  Results results =
      llvm::TypeSwitch<Operation *, Results>(op)
          .Case<LayerNormOp>([&](auto op) { return layerNorm(op, x); })
          .Case<LayerNormBackwardOp>([&](auto) {
            auto grads = normalizeBackward(x(0), x(1), byRow(x(1)), x(3).data,
                                           x(4).data, x(2));
            return Results(grads.begin(), grads.end());
          })
          .Case<BatchNormOp>([&](auto op) { return batchNorm(op, x); })
          .Case<BatchNormBackwardOp>([&](BatchNormBackwardOp op) {
            auto grads = normalizeBackward(
                x(0), x(1), byChannel(x(1), op.getChannelsLast()), x(3).data,
                rootsOf(x(4).data, op.getEpsilon().convertToDouble()), x(2));
            return Results(grads.begin(), grads.end());
          })
          .Case<GroupNormOp>([&](auto op) { return groupNorm(op, x); })
          .Case<GroupNormBackwardOp>(
              [&](auto op) { return groupNormBackward(op, x); })
          .Case<SoftmaxOp>([&](SoftmaxOp op) {
            return onRows(x(0), x(0), [&](auto y, auto x, auto) {
              auto [largest, sum] = softmaxNumbers(x.data(), x.size());
              if (!op.getSafe() || largest != -INFINITY)
                for (size_t i = 0; i < x.size(); ++i)
                  y[i] = std::exp(x[i] - largest) / sum;
            });
          })
          .Case<LogSoftmaxOp>([&](auto) {
            return onRows(x(0), x(0), [](auto y, auto x, auto) {
              auto [largest, sum] = softmaxNumbers(x.data(), x.size());
              for (size_t i = 0; i < x.size(); ++i)
                y[i] = x[i] - largest - std::log(sum);
            });
          })
          .Case<SoftmaxBackwardOp>([&](auto) {
            return onRows(x(0), x(1), [](auto dx, auto dy, auto y) {
              double sum = 0.0;
              for (size_t i = 0; i < y.size(); ++i)
                sum += dy[i] * y[i];
              for (size_t i = 0; i < y.size(); ++i)
                dx[i] = y[i] * (dy[i] - sum);
            });
          })
          .Case<LogSoftmaxBackwardOp>([&](auto) {
            return onRows(x(0), x(1), [](auto dx, auto dy, auto y) {
              double sum = 0.0;
              for (double element : dy)
                sum += element;
              for (size_t i = 0; i < y.size(); ++i)
                dx[i] = dy[i] - std::exp(y[i]) * sum;
            });
          })
          .Case<SoftmaxCrossEntropyOp>(
              [&](auto op) { return crossEntropy(op, x); })
          .Case<SoftmaxCrossEntropyBackwardOp>(
              [&](auto op) { return crossEntropyBackward(op, x); })
          .Case<AttentionOp>([&](auto op) { return attention(op, x); })
          .Case<AttentionBackwardOp>(
              [&](auto op) { return attentionBackward(op, x); })
          .Case<call::AttentionOp>([&](auto op) {
            return withRowsFirst(
                op, x, [&](const Operands &y) { return attention(op, y); });
          })
          .Case<call::AttentionBackwardOp>([&](auto op) {
            return withRowsFirst(op, x, [&](const Operands &y) {
              return attentionBackward(op, y);
            });
          })
          .Case<call::PackedAttentionOp>(
              [&](auto op) { return packedAttention(op, x); })
          .Case<call::PackedAttentionBackwardOp>(
              [&](auto op) { return packedAttentionBackward(op, x); })
          .Default([](Operation *) { return Results(); });
  for (auto [value, result] : llvm::zip(op->getResults(), results))
    values[value] = result;
  return !results.empty();
}
