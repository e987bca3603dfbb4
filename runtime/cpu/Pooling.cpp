//===- Pooling.cpp - Max and average pooling ------------------------------===//
//
// Pooling is bound by memory, and the window position is an i8 of plain layout,
// so the loops are our own. They go over planes: the pixels of one channel of
// one sample. Where channels lie last, a plane is gathered first and scattered
// then.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Pooling.h"
#include "runtime/core/BFloat16.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/Rank.h"
#include "runtime/cpu/VectorMath.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

using namespace pipewright::runtime;

namespace {

/// Output columns handled at once: their maxima stay in registers and L1.
constexpr int64_t columnChunk = 64;

/// Outputs [begin, end) whose input position o * stride + offset lies inside
/// [0, size).
struct Range {
  int64_t begin, end;
};

/// Room for planes of each thread that are no rows of floats in the arena:
/// loops and sums are the same then.
class PlaneScratch : public LibraryState {
public:
  float *planes(Rank &rank, int64_t elements) {
    const size_t wanted = rank.threads() * elements;
    if (wanted > memory.size()) {
      rank.countScratch((wanted - memory.size()) * sizeof(float));
      memory.resize(wanted);
    }
    return memory.data();
  }

private:
  std::vector<float> memory;
};

/// Where the pixels of a plane lie.
struct PixelRow {
  int64_t first, step;
};

PixelRow pixelsOf(const PoolingShape &s, int64_t plane, int64_t pixels) {
  if (!s.channelsLast)
    return {plane * pixels, 1};
  return {plane / s.c * pixels * s.c + plane % s.c, s.c};
}

/// The planes of two images, one that is read and one that is written.
class Planes {
public:
  Planes(Rank &rank, const PoolingShape &shape, Buffer source,
         int64_t sourceElements, Buffer target, int64_t targetElements)
      : shape(shape), isShort(shape.type == ElementType::BF16),
        source(rank.data<const char>(source)), target(rank.data<char>(target)),
        sourceElements(sourceElements), targetElements(targetElements) {
    if (isShort || shape.channelsLast)
      scratch = rank.library<PlaneScratch>().planes(rank, sourceElements +
                                                              targetElements);
  }

  const float *read(int64_t plane, int64_t thread) const {
    const PixelRow row = pixelsOf(shape, plane, sourceElements);
    const auto *floats = reinterpret_cast<const float *>(source) + row.first;
    const auto *shorts = reinterpret_cast<const BFloat16 *>(source) + row.first;
    if (!scratch)
      return floats;
    float *to = scratch + thread * (sourceElements + targetElements);
    if (!shape.channelsLast) {
      widen(shorts, sourceElements, to);
      return to;
    }
    for (int64_t i = 0; i < sourceElements; ++i) {
      if (isShort)
        widen(shorts + i * row.step, 1, to + i);
      else
        to[i] = floats[i * row.step];
    }
    return to;
  }
  /// Says where to write the plane; call `finish` when it is written.
  float *write(int64_t plane, int64_t thread) const {
    if (!scratch)
      return reinterpret_cast<float *>(target) + plane * targetElements;
    return scratch + thread * (sourceElements + targetElements) +
           sourceElements;
  }
  void finish(int64_t plane, int64_t thread) const {
    if (!scratch)
      return;
    const PixelRow row = pixelsOf(shape, plane, targetElements);
    const float *from = write(plane, thread);
    auto *floats = reinterpret_cast<float *>(target) + row.first;
    auto *shorts = reinterpret_cast<BFloat16 *>(target) + row.first;
    if (!shape.channelsLast)
      return narrow(from, targetElements, shorts);
    for (int64_t i = 0; i < targetElements; ++i) {
      if (isShort)
        narrow(from + i, 1, shorts + i * row.step);
      else
        floats[i * row.step] = from[i];
    }
  }

private:
  const PoolingShape &shape;
  bool isShort;
  const char *source;
  char *target;
  int64_t sourceElements, targetElements;
  float *scratch = nullptr;
};

} // namespace

static Range insideRange(int64_t outputs, int64_t stride, int64_t offset,
                         int64_t size) {
  const int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t end =
      offset >= size ? 0 : std::min(outputs, (size - 1 - offset) / stride + 1);
  return {std::min(begin, end), end};
}

/// One output row of max pooling. Positions lie `step` bytes apart.
static void maxPoolRow(const PoolingShape &s, const float *plane, int64_t row,
                       float *y, uint8_t *window, int64_t step) {
  for (int64_t base = 0; base < s.ow; base += columnChunk) {
    const int64_t count = std::min(columnChunk, s.ow - base);
    float best[columnChunk];
    int32_t position[columnChunk];
    bool first = true;
    for (int64_t i = 0; i < count; ++i)
      best[i] = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < s.kh; ++i) {
      const int64_t inputRow = row * s.strideH - s.padTop + i * s.dilationH;
      if (inputRow < 0 || inputRow >= s.h)
        continue;
      if (first) {
        // A window of -inf only still points at an element that exists.
        for (int64_t o = 0; o < count; ++o) {
          const int64_t outside = s.padLeft - (base + o) * s.strideW;
          const int64_t j =
              outside > 0 ? (outside + s.dilationW - 1) / s.dilationW : 0;
          position[o] = static_cast<int32_t>(i * s.kw + j);
        }
        first = false;
      }
      for (int64_t j = 0; j < s.kw; ++j) {
        const int64_t offset = base * s.strideW - s.padLeft + j * s.dilationW;
        const Range inside = insideRange(count, s.strideW, offset, s.w);
        const float *input = plane + inputRow * s.w + offset;
        const int32_t here = static_cast<int32_t>(i * s.kw + j);
        auto update = [&](int64_t stride) {
          for (int64_t o = inside.begin; o < inside.end; ++o) {
            const float value = input[o * stride];
            const bool better = value > best[o];
            best[o] = better ? value : best[o];
            position[o] = better ? here : position[o];
          }
        };
        if (s.strideW == 2)
          update(2);
        else if (s.strideW == 1)
          update(1);
        else
          update(s.strideW);
      }
    }
    std::memcpy(y + base, best, count * sizeof(float));
    if (window)
      for (int64_t o = 0; o < count; ++o)
        window[(base + o) * step] = static_cast<uint8_t>(position[o]);
  }
}

/// Whether a window is two by two, apart from its neighbours and inside.
static bool isTwoByTwo(const PoolingShape &s) {
  return s.kh == 2 && s.kw == 2 && s.strideH == 2 && s.strideW == 2 &&
         s.padTop == 0 && s.padLeft == 0 && s.dilationH == 1 &&
         s.dilationW == 1 && 2 * s.oh <= s.h && 2 * s.ow <= s.w;
}

/// One output row of two by two windows: the case of most networks.
static void maxPoolRowTwoByTwo(const PoolingShape &s, const float *upper,
                               float *y, uint8_t *window) {
  typedef uint8_t Bytes __attribute__((vector_size(vectorLanes)));
  const float *lower = upper + s.w;
  int64_t o = 0;
  for (; o + vectorLanes <= s.ow; o += vectorLanes) {
    Floats best = {};
    Ints position = {};
    for (int row = 0; row < 2; ++row) {
      const float *input = (row ? lower : upper) + 2 * o;
      const Floats first = loadFloats(input);
      const Floats second = loadFloats(input + vectorLanes);
      const Floats even =
          __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14, 16,
                                  18, 20, 22, 24, 26, 28, 30);
      const Floats odd =
          __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15, 17,
                                  19, 21, 23, 25, 27, 29, 31);
      if (row == 0) {
        best = even;
      } else {
        const Ints better = even > best;
        best = better ? even : best;
        position = better ? Ints{} + 2 : position;
      }
      const Ints better = odd > best;
      best = better ? odd : best;
      position = better ? Ints{} + 2 * row + 1 : position;
    }
    storeFloats(y + o, best);
    if (window) {
      const Bytes bytes = __builtin_convertvector(position, Bytes);
      std::memcpy(window + o, &bytes, sizeof bytes);
    }
  }
  for (; o < s.ow; ++o) {
    const float values[4] = {upper[2 * o], upper[2 * o + 1], lower[2 * o],
                             lower[2 * o + 1]};
    int best = 0;
    for (int i = 1; i < 4; ++i)
      best = values[i] > values[best] ? i : best;
    y[o] = values[best];
    if (window)
      window[o] = static_cast<uint8_t>(best);
  }
}

/// Calls body(plane, source, target) for all planes (sample and channel).
template <class Body>
static void forPlanes(Rank &rank, const PoolingShape &s, const Planes &planes,
                      const Body &body) {
  const int64_t count = s.n * s.c;
  parallelFor(threadsFor(rank.threads(), count * s.h * s.w), count,
              [&](int64_t begin, int64_t end, int64_t thread) {
                for (int64_t plane = begin; plane < end; ++plane) {
                  body(plane, planes.read(plane, thread),
                       planes.write(plane, thread));
                  planes.finish(plane, thread);
                }
              });
  rank.poll();
}

/// The planes of the larger image beside those of the smaller one.
static Planes poolingPlanes(Rank &rank, const PoolingShape &s, Buffer x,
                            Buffer y) {
  return {rank, s, x, s.h * s.w, y, s.oh * s.ow};
}

/// And back.
static Planes gradientPlanes(Rank &rank, const PoolingShape &s, Buffer dy,
                             Buffer dx) {
  return {rank, s, dy, s.oh * s.ow, dx, s.h * s.w};
}

template <>
void pipewright::runtime::maxPool(Rank &rank, const PoolingShape &s, Buffer x,
                                  Buffer y, Buffer window) {
  uint8_t *positions = rank.data<uint8_t>(window);
  const bool twoByTwo = isTwoByTwo(s) && !s.channelsLast;
  forPlanes(rank, s, poolingPlanes(rank, s, x, y),
            [&](int64_t plane, const float *input, float *output) {
              const PixelRow pixels = pixelsOf(s, plane, s.oh * s.ow);
              for (int64_t row = 0; row < s.oh; ++row) {
                float *to = output + row * s.ow;
                uint8_t *window = positions ? positions + pixels.first +
                                                  row * s.ow * pixels.step
                                            : nullptr;
                if (twoByTwo)
                  maxPoolRowTwoByTwo(s, input + 2 * row * s.w, to, window);
                else
                  maxPoolRow(s, input, row, to, window, pixels.step);
              }
            });
}

template <>
void pipewright::runtime::maxPoolBackward(Rank &rank, const PoolingShape &s,
                                          Buffer dy, Buffer window, Buffer dx) {
  const uint8_t *positions = rank.data<uint8_t>(window);
  // Where in the input a position of the window lies, from its corner.
  int64_t offsets[256];
  for (int64_t i = 0; i < std::min<int64_t>(s.kh * s.kw, 256); ++i)
    offsets[i] = i / s.kw * s.dilationH * s.w + i % s.kw * s.dilationW;
  forPlanes(rank, s, gradientPlanes(rank, s, dy, dx),
            [&](int64_t plane, const float *in, float *out) {
              std::memset(out, 0, s.h * s.w * sizeof(float));
              const PixelRow pixels = pixelsOf(s, plane, s.oh * s.ow);
              const uint8_t *position = positions + pixels.first;
              for (int64_t row = 0; row < s.oh; ++row) {
                const int64_t corner =
                    (row * s.strideH - s.padTop) * s.w - s.padLeft;
                for (int64_t o = 0; o < s.ow; ++o, position += pixels.step)
                  out[corner + o * s.strideW + offsets[*position]] += *in++;
              }
            });
}

/// What an output of average pooling is divided by.
static float averageDivisor(const PoolingShape &s, int64_t row,
                            int64_t column) {
  if (s.countIncludePad)
    return static_cast<float>(s.kh * s.kw);
  auto inside = [](int64_t start, int64_t kernel, int64_t dilation,
                   int64_t size) {
    int64_t count = 0;
    for (int64_t i = 0; i < kernel; ++i) {
      const int64_t at = start + i * dilation;
      count += at >= 0 && at < size;
    }
    return count;
  };
  const int64_t rows =
      inside(row * s.strideH - s.padTop, s.kh, s.dilationH, s.h);
  const int64_t columns =
      inside(column * s.strideW - s.padLeft, s.kw, s.dilationW, s.w);
  return static_cast<float>(std::max<int64_t>(1, rows * columns));
}

/// Calls body(output index, input index) for each element of each window of a
/// plane, windows in order.
template <class Body>
static void forWindows(const PoolingShape &s, const Body &body) {
  for (int64_t row = 0; row < s.oh; ++row)
    for (int64_t i = 0; i < s.kh; ++i) {
      const int64_t inputRow = row * s.strideH - s.padTop + i * s.dilationH;
      if (inputRow < 0 || inputRow >= s.h)
        continue;
      for (int64_t j = 0; j < s.kw; ++j) {
        const int64_t offset = j * s.dilationW - s.padLeft;
        const Range inside = insideRange(s.ow, s.strideW, offset, s.w);
        for (int64_t o = inside.begin; o < inside.end; ++o)
          body(row * s.ow + o, inputRow * s.w + o * s.strideW + offset);
      }
    }
}

template <>
void pipewright::runtime::averagePool(Rank &rank, const PoolingShape &s,
                                      Buffer x, Buffer y) {
  forPlanes(rank, s, poolingPlanes(rank, s, x, y),
            [&](int64_t, const float *in, float *out) {
              std::memset(out, 0, s.oh * s.ow * sizeof(float));
              forWindows(s, [&](int64_t o, int64_t i) { out[o] += in[i]; });
              for (int64_t row = 0; row < s.oh; ++row)
                for (int64_t column = 0; column < s.ow; ++column)
                  out[row * s.ow + column] /= averageDivisor(s, row, column);
            });
}

template <>
void pipewright::runtime::averagePoolBackward(Rank &rank, const PoolingShape &s,
                                              Buffer dy, Buffer dx) {
  forPlanes(rank, s, gradientPlanes(rank, s, dy, dx),
            [&](int64_t, const float *in, float *out) {
              std::memset(out, 0, s.h * s.w * sizeof(float));
              forWindows(s, [&](int64_t o, int64_t i) {
                out[i] += in[o] / averageDivisor(s, o / s.ow, o % s.ow);
              });
            });
}
