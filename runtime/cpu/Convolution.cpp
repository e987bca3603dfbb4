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
#include "runtime/cpu/Rank.h"

#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

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
  /// oneDNN's number.
  int argument = 0;
  memory plain, blocked;
  dnnl::reorder convert;
  bool same = true;
  size_t scratch = 0;
  /// Of a packed weight that outlives a call: where it is kept, and what of.
  void *kept = nullptr;
  int64_t keptVersion = -1;
  const void *keptFrom = nullptr;
};

/// One direction of one convolution.
struct Plan {
  dnnl::primitive primitive;
  Operand inputs[2];
  Operand output;
  memory bias;
  memory scratchpad;
  dnnl::reorder addTo;
};

class Convolutions : public LibraryState {
public:
  ~Convolutions() override {
    std::free(scratch);
    for (auto &[key, plan] : plans)
      std::free(plan.inputs[1].kept);
  }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<std::pair<ConvolutionDirection, int64_t>, Plan> plans;
  char *scratch = nullptr;
  size_t scratchBytes = 0;
};

} // namespace

/// Scratch is aligned to lines of the cache.
static size_t wholeLines(size_t bytes) { return (bytes + 63) / 64 * 64; }

static void *allocate(size_t bytes) {
  void *memory = std::aligned_alloc(64, wholeLines(bytes));
  if (!memory)
    fail("cannot allocate ", bytes, " bytes for a convolution");
  // Blocks of channels that do not exist are computed on: they must be zero.
  std::memset(memory, 0, wholeLines(bytes));
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
static Operand makeOperand(Convolutions &state, int argument,
                           const memory::desc &plain,
                           const memory::desc &wanted, bool into = true) {
  Operand operand;
  operand.argument = argument;
  operand.plain = memory(plain, state.engine, nullptr);
  operand.same = plain == wanted;
  if (operand.same)
    return operand;
  operand.blocked = memory(wanted, state.engine, nullptr);
  operand.scratch = wholeLines(wanted.get_size());
  operand.convert = into ? dnnl::reorder(operand.plain, operand.blocked)
                         : dnnl::reorder(operand.blocked, operand.plain);
  return operand;
}

/// What is left to do once a plan's operands are known: scratch.
static void finish(Rank &rank, Convolutions &state, Plan &plan,
                   const memory::desc &scratchpad, bool keepWeight) {
  plan.scratchpad = memory(scratchpad, state.engine, nullptr);
  Operand &weight = plan.inputs[1];
  if (keepWeight && weight.scratch) {
    weight.kept = allocate(weight.scratch);
    rank.countScratch(weight.scratch);
    weight.blocked.set_data_handle(weight.kept);
    weight.scratch = 0;
  }
  const size_t total = plan.inputs[0].scratch + plan.inputs[1].scratch +
                       plan.output.scratch + wholeLines(scratchpad.get_size());
  if (total > state.scratchBytes) {
    std::free(state.scratch);
    state.scratch = static_cast<char *>(allocate(total));
    rank.countScratch(total - state.scratchBytes);
    state.scratchBytes = total;
  }
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

static void run(Rank &rank, Plan &plan, Buffer first, Buffer second,
                Buffer bias, Buffer out, bool accumulate) {
  Convolutions &state = rank.library<Convolutions>();
  char *scratch = state.scratch;
  std::unordered_map<int, memory> arguments;
  void *inputs[2] = {rank.data<char>(first), rank.data<char>(second)};
  for (int i = 0; i < 2; ++i) {
    Operand &operand = plan.inputs[i];
    operand.plain.set_data_handle(inputs[i]);
    if (operand.same) {
      arguments.insert({operand.argument, operand.plain});
      continue;
    }
    if (!operand.kept) {
      operand.blocked.set_data_handle(scratch);
      scratch += operand.scratch;
    }
    // With stale weights, tasks of one version of all weights read from
    // different places.
    if (!operand.kept || operand.keptVersion != rank.weightVersion() ||
        operand.keptFrom != inputs[i]) {
      operand.convert.execute(state.stream, operand.plain, operand.blocked);
      operand.keptVersion = rank.weightVersion();
      operand.keptFrom = inputs[i];
    }
    arguments.insert({operand.argument, operand.blocked});
  }
  if (bias) {
    plan.bias.set_data_handle(rank.data<char>(bias));
    arguments.insert({DNNL_ARG_BIAS, plan.bias});
  }
  Operand &output = plan.output;
  output.plain.set_data_handle(rank.data<char>(out));
  const bool direct = output.same && !accumulate;
  if (!direct) {
    output.blocked.set_data_handle(scratch);
    scratch += output.scratch;
  }
  arguments.insert({output.argument, direct ? output.plain : output.blocked});
  plan.scratchpad.set_data_handle(scratch);
  arguments.insert({DNNL_ARG_SCRATCHPAD, plan.scratchpad});
  plan.primitive.execute(state.stream, arguments);
  if (!direct)
    (accumulate ? plan.addTo : output.convert)
        .execute(state.stream, output.blocked, output.plain);
  state.stream.wait();
  rank.poll();
}

/// Runs one direction of a convolution on buffers of the arena.
static void execute(Rank &rank, ConvolutionDirection direction, int64_t number,
                    Buffer first, Buffer second, Buffer bias, Buffer out,
                    bool accumulate = false) {
  guarded(textOf(direction), number, [&] {
    auto &plans = rank.library<Convolutions>().plans;
    const auto found = plans.find({direction, number});
    if (found == plans.end())
      fail("the ", textOf(direction), " of convolution ", number,
           " was not set up");
    run(rank, found->second, first, second, bias, out, accumulate);
  });
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

template <>
void pipewright::runtime::prepareConvolutionForward(Rank &rank, int64_t number,
                                                    const ConvolutionShape &s,
                                                    bool hasBias) {
  guarded("forward set-up", number, [&] {
    Convolutions &state = rank.library<Convolutions>();
    Plan &plan = state.plans[{ConvolutionDirection::Forward, number}];
    const Descs plain(s, Descs::Plain);
    const auto desc = withAlgorithm(s, false, [&](dnnl::algorithm algorithm) {
      return forwardDesc(s, state.engine, hasBias, algorithm);
    });
    plan.primitive = dnnl::convolution_forward(desc);
    plan.inputs[0] = makeOperand(state, DNNL_ARG_SRC, plain.x, desc.src_desc());
    plan.inputs[1] =
        makeOperand(state, DNNL_ARG_WEIGHTS, plain.w, desc.weights_desc());
    plan.output = makeOperand(state, DNNL_ARG_DST, plain.y, desc.dst_desc(),
                              /*into=*/false);
    if (hasBias)
      plan.bias = memory(plain.bias, state.engine, nullptr);
    finish(rank, state, plan, desc.scratchpad_desc(), s.keepPackedWeight);
  });
}

template <>
void pipewright::runtime::prepareConvolutionBackwardData(
    Rank &rank, int64_t number, const ConvolutionShape &s) {
  guarded("data gradient set-up", number, [&] {
    Convolutions &state = rank.library<Convolutions>();
    Plan &plan = state.plans[{ConvolutionDirection::BackwardData, number}];
    const Descs plain(s, Descs::Plain);
    using Backward = dnnl::convolution_backward_data;
    const auto desc = backwardDesc<Backward>(s, state.engine, false);
    plan.primitive = Backward(desc);
    plan.inputs[0] =
        makeOperand(state, DNNL_ARG_DIFF_DST, plain.y, desc.diff_dst_desc());
    plan.inputs[1] =
        makeOperand(state, DNNL_ARG_WEIGHTS, plain.w, desc.weights_desc());
    plan.output = makeOperand(state, DNNL_ARG_DIFF_SRC, plain.x,
                              desc.diff_src_desc(), /*into=*/false);
    finish(rank, state, plan, desc.scratchpad_desc(), s.keepPackedWeight);
  });
}

template <>
void pipewright::runtime::prepareConvolutionBackwardWeight(
    Rank &rank, int64_t number, const ConvolutionShape &s) {
  guarded("weight gradient set-up", number, [&] {
    Convolutions &state = rank.library<Convolutions>();
    Plan &plan = state.plans[{ConvolutionDirection::BackwardWeight, number}];
    const Descs plain(s, Descs::Plain, true);
    using Backward = dnnl::convolution_backward_weights;
    const auto desc = backwardDesc<Backward>(s, state.engine, true);
    const memory::desc wanted = desc.diff_weights_desc();
    plan.primitive = Backward(desc);
    plan.inputs[0] =
        makeOperand(state, DNNL_ARG_DIFF_DST, plain.y, desc.diff_dst_desc());
    plan.inputs[1] = makeOperand(state, DNNL_ARG_SRC, plain.x, desc.src_desc());
    plan.output = makeOperand(state, DNNL_ARG_DIFF_WEIGHTS, plain.w, wanted,
                              /*into=*/false);
    // Accumulation always goes through scratch, whatever the layout.
    plan.output.blocked = memory(wanted, state.engine, nullptr);
    plan.output.scratch = wholeLines(wanted.get_size());
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    dnnl::primitive_attr attr;
    attr.set_post_ops(sum);
    plan.addTo = dnnl::reorder(plan.output.blocked, plan.output.plain, attr);
    finish(rank, state, plan, desc.scratchpad_desc(), false);
  });
}

template <>
void pipewright::runtime::convolutionForward(Rank &rank, int64_t number,
                                             Buffer x, Buffer w, Buffer bias,
                                             Buffer y) {
  execute(rank, ConvolutionDirection::Forward, number, x, w, bias, y);
}

template <>
void pipewright::runtime::convolutionBackwardData(Rank &rank, int64_t number,
                                                  Buffer dy, Buffer w,
                                                  Buffer dx) {
  execute(rank, ConvolutionDirection::BackwardData, number, dy, w, {}, dx);
}

template <>
void pipewright::runtime::convolutionBackwardWeight(Rank &rank, int64_t number,
                                                    Buffer dy, Buffer x,
                                                    Buffer dw,
                                                    bool accumulate) {
  execute(rank, ConvolutionDirection::BackwardWeight, number, dy, x, {}, dw,
          accumulate);
}
