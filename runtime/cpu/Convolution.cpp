//===- Convolution.cpp - 2-D convolutions by oneDNN -----------------------===//
//
// Primitives, reorders and scratch are made in the rank's setUp. Buffers are
// plain NCHW (or NHWC); oneDNN computes in blocked layouts, 1.3 to
// 8 times faster, so operands are reordered through scratch that all
// convolutions of a rank share. The algorithm is chosen by rule, never by
// timing: the same program must give the same bits on every run.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Convolution.h"
#include "runtime/core/Error.h"
#include "runtime/rank/Rank.h"

#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <unordered_map>

using namespace pipewright::runtime;
using dnnl::memory;

/// Winograd or direct, for 3x3 convolutions of stride 1.
///
/// Measured, one thread, AVX-512, milliseconds direct / Winograd:
///   channels @ size (batch)   tiles of 4x4   forward      weight gradient
///    64 @ 32 (32)                  2048     13.5 /  6.7    17.1 / 7.7
///   128 @ 16 (32)                   512     14.0 /  6.1    14.4 / 7.3
///   256 @  8 (32)                   128     13.4 /  7.0    15.1 / 6.5
///   256 @ 14 (4)                     64      5.3 /  4.2     5.5 / 3.2
///   512 @  4 (32)                    32     10.9 / 10.6    18.2 / 9.4
///   256 @  8 (8)                     32      2.6 /  2.8     3.6 / 2.5
///   128 @ 16 (2)                     32      0.7 /  0.8     0.8 / 0.7
///   512 @  2 (32), mostly empty      32      3.6 / 10.6    13.1 / 9.5
///   256 @  8 (4)                     16      1.3 /  3.2     2.0 / 1.9
///   512 @  4 (8)                      8      2.9 /  8.0     6.0 / 7.4
/// The data gradient behaves as forward does. So Winograd pays from 48 tiles
/// on if at least half of a tile is filled; weight gradients from 32 on.
static bool prefersWinograd(const ConvolutionShape &s, bool weightGradient) {
  if (s.kh != 3 || s.kw != 3 || s.strideH != 1 || s.strideW != 1 ||
      s.dilationH != 1 || s.dilationW != 1 || s.groups != 1)
    return false;
  if (s.c < 32 || s.o < 32 || s.type != ElementType::F32)
    return false;
  const int64_t perSample =
      (s.outputHeight() + 3) / 4 * ((s.outputWidth() + 3) / 4);
  const int64_t tiles = s.n * perSample;
  if (weightGradient)
    return tiles >= 32;
  const bool filled = 2 * s.outputHeight() * s.outputWidth() >= 16 * perSample;
  return filled && tiles >= 48;
}

namespace {

/// An operand: its plain form in the arena, and the form that the primitive
/// wants, in scratch, with the reorder between them.
struct Operand {
  memory plain, blocked;
  dnnl::reorder convert;
  bool same = true;
};

/// One direction of one convolution: argument numbers are oneDNN's.
struct Direction {
  dnnl::primitive primitive;
  Operand inputs[2];
  int inputArguments[2] = {0, 0};
  Operand output;
  int outputArgument = 0;
  memory bias;
  memory scratchpad;
  dnnl::reorder addTo;
  /// Which input is a packed weight that outlives a call; -1: none.
  int kept = -1;
  int64_t keptVersion = -1;
  const void *keptFrom = nullptr;
  void *keptMemory = nullptr;
  size_t outputScratch = 0, inputScratch[2] = {0, 0}, padScratch = 0;
};

class Convolutions : public LibraryState {
public:
  ~Convolutions() override {
    std::free(scratch);
    for (auto *map : {&forward, &backwardData, &backwardWeight})
      for (auto &[number, direction] : *map)
        std::free(direction.keptMemory);
  }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::unordered_map<int64_t, Direction> forward, backwardData, backwardWeight;
  char *scratch = nullptr;
  size_t scratchBytes = 0;
};

} // namespace

static void *allocate(size_t bytes) {
  void *memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!memory)
    fail("cannot allocate ", bytes, " bytes for a convolution");
  // Blocks of channels that do not exist are computed on: they must be zero.
  std::memset(memory, 0, (bytes + 63) / 64 * 64);
  return memory;
}

static memory::desc weightDesc(const ConvolutionShape &s,
                               memory::data_type type,
                               memory::format_tag grouped,
                               memory::format_tag plain) {
  if (s.groups == 1)
    return {{s.o, s.c, s.kh, s.kw}, type, plain};
  return {
      {s.groups, s.o / s.groups, s.c / s.groups, s.kh, s.kw}, type, grouped};
}

/// The descriptors that all three directions are made of.
namespace {
struct Descs {
  enum Layout {
    /// The layout that buffers have.
    Plain,
    /// The layout that oneDNN likes best.
    Any
  };
  /// Weight gradients are f32 whatever the operands are.
  Descs(const ConvolutionShape &s, Layout layout, bool weightGradient = false)
      : type(s.type == ElementType::BF16 ? memory::data_type::bf16
                                         : memory::data_type::f32),
        x({s.n, s.c, s.h, s.w}, type, imageTag(s, layout)),
        w(weightDesc(s, weightGradient ? memory::data_type::f32 : type,
                     tag(s, layout, memory::format_tag::goihw,
                         memory::format_tag::gohwi),
                     tag(s, layout, memory::format_tag::oihw,
                         memory::format_tag::ohwi))),
        y({s.n, s.o, s.outputHeight(), s.outputWidth()}, type,
          imageTag(s, layout)),
        bias({s.o}, type, memory::format_tag::x) {}
  memory::data_type type;
  memory::desc x, w, y, bias;

private:
  static memory::format_tag tag(const ConvolutionShape &s, Layout layout,
                                memory::format_tag channelsFirst,
                                memory::format_tag channelsLast) {
    if (layout == Any)
      return memory::format_tag::any;
    return s.channelsLast ? channelsLast : channelsFirst;
  }
  static memory::format_tag imageTag(const ConvolutionShape &s, Layout layout) {
    return tag(s, layout, memory::format_tag::nchw, memory::format_tag::nhwc);
  }
};
} // namespace

/// Calls make(algorithm): Winograd where the rule says so and oneDNN has it.
template <class Make>
static auto withAlgorithm(const ConvolutionShape &s, bool weightGradient,
                          const Make &make) {
  if (prefersWinograd(s, weightGradient)) {
    try {
      return make(dnnl::algorithm::convolution_winograd);
    } catch (const dnnl::error &) {
      // Not on this machine, or not for this shape: direct always exists.
    }
  }
  return make(dnnl::algorithm::convolution_direct);
}

static dnnl::primitive_attr userScratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

static dnnl::convolution_forward::primitive_desc
forwardDesc(const ConvolutionShape &s, const dnnl::engine &engine, bool hasBias,
            dnnl::algorithm algorithm) {
  const Descs any(s, Descs::Any);
  const memory::dims strides = {s.strideH, s.strideW};
  const memory::dims dilates = {s.dilationH - 1, s.dilationW - 1};
  const memory::dims low = {s.padTop, s.padLeft};
  const memory::dims high = {s.padBottom, s.padRight};
  using Forward = dnnl::convolution_forward;
  const auto kind = dnnl::prop_kind::forward_training;
  const auto desc = hasBias
                        ? Forward::desc(kind, algorithm, any.x, any.w, any.bias,
                                        any.y, strides, dilates, low, high)
                        : Forward::desc(kind, algorithm, any.x, any.w, any.y,
                                        strides, dilates, low, high);
  return Forward::primitive_desc(desc, userScratchpad(), engine);
}

/// Makes an operand whose data flows from the arena into the primitive
/// (`into`) or out of it.
static Operand makeOperand(Convolutions &state, const memory::desc &plain,
                           const memory::desc &wanted, bool into,
                           size_t &bytes) {
  Operand operand;
  operand.plain = memory(plain, state.engine, nullptr);
  operand.same = plain == wanted;
  bytes = 0;
  if (operand.same)
    return operand;
  operand.blocked = memory(wanted, state.engine, nullptr);
  bytes = (wanted.get_size() + 63) / 64 * 64;
  operand.convert = into ? dnnl::reorder(operand.plain, operand.blocked)
                         : dnnl::reorder(operand.blocked, operand.plain);
  return operand;
}

/// What is left to do once a direction's operands are known: scratch.
static void finish(Rank &rank, Convolutions &state, Direction &direction,
                   const memory::desc &scratchpad, bool keepWeight,
                   int weightInput) {
  direction.scratchpad = memory(scratchpad, state.engine, nullptr);
  direction.padScratch = (scratchpad.get_size() + 63) / 64 * 64;
  if (keepWeight && direction.inputScratch[weightInput]) {
    direction.kept = weightInput;
    const size_t bytes = direction.inputScratch[weightInput];
    direction.keptMemory = allocate(bytes);
    rank.countScratch(bytes);
    direction.inputs[weightInput].blocked.set_data_handle(direction.keptMemory);
    direction.inputScratch[weightInput] = 0;
  }
  const size_t total = direction.inputScratch[0] + direction.inputScratch[1] +
                       direction.outputScratch + direction.padScratch;
  if (total > state.scratchBytes) {
    std::free(state.scratch);
    state.scratch = static_cast<char *>(allocate(total));
    rank.countScratch(total - state.scratchBytes);
    state.scratchBytes = total;
  }
}

/// Runs one direction on buffers of the arena.
static void execute(Rank &rank, Direction &direction, Buffer first,
                    Buffer second, Buffer bias, Buffer out, bool accumulate) {
  Convolutions &state = rank.library<Convolutions>();
  char *scratch = state.scratch;
  std::unordered_map<int, memory> arguments;
  void *inputs[2] = {rank.data<char>(first), rank.data<char>(second)};
  for (int i = 0; i < 2; ++i) {
    Operand &operand = direction.inputs[i];
    operand.plain.set_data_handle(inputs[i]);
    if (operand.same) {
      arguments.insert({direction.inputArguments[i], operand.plain});
      continue;
    }
    const bool kept = direction.kept == i;
    if (!kept) {
      operand.blocked.set_data_handle(scratch);
      scratch += direction.inputScratch[i];
    }
    // With stale weights, tasks of one version of all weights read from
    // different places.
    if (!kept || direction.keptVersion != rank.weightVersion() ||
        direction.keptFrom != inputs[i]) {
      operand.convert.execute(state.stream, operand.plain, operand.blocked);
      if (kept) {
        direction.keptVersion = rank.weightVersion();
        direction.keptFrom = inputs[i];
      }
    }
    arguments.insert({direction.inputArguments[i], operand.blocked});
  }
  if (bias) {
    direction.bias.set_data_handle(rank.data<char>(bias));
    arguments.insert({DNNL_ARG_BIAS, direction.bias});
  }
  Operand &output = direction.output;
  output.plain.set_data_handle(rank.data<char>(out));
  const bool direct = output.same && !accumulate;
  if (!direct) {
    output.blocked.set_data_handle(scratch);
    scratch += direction.outputScratch;
  }
  arguments.insert(
      {direction.outputArgument, direct ? output.plain : output.blocked});
  direction.scratchpad.set_data_handle(scratch);
  arguments.insert({DNNL_ARG_SCRATCHPAD, direction.scratchpad});
  direction.primitive.execute(state.stream, arguments);
  if (!direct)
    (accumulate ? direction.addTo : output.convert)
        .execute(state.stream, output.blocked, output.plain);
  state.stream.wait();
  rank.poll();
}

/// Describes a gradient: `Backward` is convolution_backward_data or _weights.
template <class Backward>
static auto backwardDesc(const ConvolutionShape &s, const dnnl::engine &engine,
                         bool weightGradient) {
  const Descs any(s, Descs::Any, weightGradient);
  return withAlgorithm(s, weightGradient, [&](dnnl::algorithm algorithm) {
    return typename Backward::primitive_desc(
        typename Backward::desc(
            algorithm, any.x, any.w, any.y, {s.strideH, s.strideW},
            {s.dilationH - 1, s.dilationW - 1}, {s.padTop, s.padLeft},
            {s.padBottom, s.padRight}),
        userScratchpad(), engine, forwardDesc(s, engine, false, algorithm));
  });
}

/// oneDNN's exceptions, in our words.
template <class Body>
static void guarded(const char *what, int64_t number, const Body &body) {
  try {
    body();
  } catch (const dnnl::error &error) {
    fail("oneDNN failed in ", what, " of convolution ", number, ": ",
         error.what(), " (status ", static_cast<int>(error.status), ")");
  }
}

template <>
void pipewright::runtime::prepareConvolutionForward(Rank &rank, int64_t number,
                                                    const ConvolutionShape &s,
                                                    bool hasBias) {
  guarded("forward set-up", number, [&] {
    Convolutions &state = rank.library<Convolutions>();
    Direction &d = state.forward[number];
    const Descs plain(s, Descs::Plain);
    const auto desc = withAlgorithm(s, false, [&](dnnl::algorithm algorithm) {
      return forwardDesc(s, state.engine, hasBias, algorithm);
    });
    d.primitive = dnnl::convolution_forward(desc);
    d.inputArguments[0] = DNNL_ARG_SRC;
    d.inputArguments[1] = DNNL_ARG_WEIGHTS;
    d.outputArgument = DNNL_ARG_DST;
    d.inputs[0] =
        makeOperand(state, plain.x, desc.src_desc(), true, d.inputScratch[0]);
    d.inputs[1] = makeOperand(state, plain.w, desc.weights_desc(), true,
                              d.inputScratch[1]);
    d.output =
        makeOperand(state, plain.y, desc.dst_desc(), false, d.outputScratch);
    if (hasBias)
      d.bias = memory(plain.bias, state.engine, nullptr);
    finish(rank, state, d, desc.scratchpad_desc(), s.keepPackedWeight, 1);
  });
}

template <>
void pipewright::runtime::prepareConvolutionBackwardData(
    Rank &rank, int64_t number, const ConvolutionShape &s) {
  guarded("data gradient set-up", number, [&] {
    Convolutions &state = rank.library<Convolutions>();
    Direction &d = state.backwardData[number];
    const Descs plain(s, Descs::Plain);
    using Backward = dnnl::convolution_backward_data;
    const auto desc = backwardDesc<Backward>(s, state.engine, false);
    d.primitive = Backward(desc);
    d.inputArguments[0] = DNNL_ARG_DIFF_DST;
    d.inputArguments[1] = DNNL_ARG_WEIGHTS;
    d.outputArgument = DNNL_ARG_DIFF_SRC;
    d.inputs[0] = makeOperand(state, plain.y, desc.diff_dst_desc(), true,
                              d.inputScratch[0]);
    d.inputs[1] = makeOperand(state, plain.w, desc.weights_desc(), true,
                              d.inputScratch[1]);
    d.output = makeOperand(state, plain.x, desc.diff_src_desc(), false,
                           d.outputScratch);
    finish(rank, state, d, desc.scratchpad_desc(), s.keepPackedWeight, 1);
  });
}

template <>
void pipewright::runtime::prepareConvolutionBackwardWeight(
    Rank &rank, int64_t number, const ConvolutionShape &s) {
  guarded("weight gradient set-up", number, [&] {
    Convolutions &state = rank.library<Convolutions>();
    Direction &d = state.backwardWeight[number];
    const Descs plain(s, Descs::Plain, true);
    using Backward = dnnl::convolution_backward_weights;
    const auto desc = backwardDesc<Backward>(s, state.engine, true);
    d.primitive = Backward(desc);
    d.inputArguments[0] = DNNL_ARG_DIFF_DST;
    d.inputArguments[1] = DNNL_ARG_SRC;
    d.outputArgument = DNNL_ARG_DIFF_WEIGHTS;
    d.inputs[0] = makeOperand(state, plain.y, desc.diff_dst_desc(), true,
                              d.inputScratch[0]);
    d.inputs[1] =
        makeOperand(state, plain.x, desc.src_desc(), true, d.inputScratch[1]);
    const memory::desc wanted = desc.diff_weights_desc();
    d.output = makeOperand(state, plain.w, wanted, false, d.outputScratch);
    // Accumulation always goes through scratch, whatever the layout.
    d.output.blocked = memory(wanted, state.engine, nullptr);
    d.outputScratch = (wanted.get_size() + 63) / 64 * 64;
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    dnnl::primitive_attr attr;
    attr.set_post_ops(sum);
    d.addTo = dnnl::reorder(d.output.blocked, d.output.plain, attr);
    finish(rank, state, d, desc.scratchpad_desc(), false, 1);
  });
}

static Direction &find(std::unordered_map<int64_t, Direction> &directions,
                       int64_t number, const char *what) {
  const auto found = directions.find(number);
  if (found == directions.end())
    fail("the ", what, " of convolution ", number, " was not set up");
  return found->second;
}

template <>
void pipewright::runtime::convolutionForward(Rank &rank, int64_t number,
                                             Buffer x, Buffer w, Buffer bias,
                                             Buffer y) {
  guarded("forward", number, [&] {
    Direction &d =
        find(rank.library<Convolutions>().forward, number, "forward");
    execute(rank, d, x, w, bias, y, false);
  });
}

template <>
void pipewright::runtime::convolutionBackwardData(Rank &rank, int64_t number,
                                                  Buffer dy, Buffer w,
                                                  Buffer dx) {
  guarded("data gradient", number, [&] {
    Direction &d = find(rank.library<Convolutions>().backwardData, number,
                        "data gradient");
    execute(rank, d, dy, w, Buffer(), dx, false);
  });
}

template <>
void pipewright::runtime::convolutionBackwardWeight(Rank &rank, int64_t number,
                                                    Buffer dy, Buffer x,
                                                    Buffer dw,
                                                    bool accumulate) {
  guarded("weight gradient", number, [&] {
    Direction &d = find(rank.library<Convolutions>().backwardWeight, number,
                        "weight gradient");
    execute(rank, d, dy, x, Buffer(), dw, accumulate);
  });
}
