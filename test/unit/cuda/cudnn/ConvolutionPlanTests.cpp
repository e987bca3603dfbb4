//===- ConvolutionPlanTests.cpp - Engines for convolutions ----------------===//
//
// Whether cuDNN has engines, deterministic ones, for the convolutions of
// ResNet-50 and VGG19 in the layouts that programs have them in.
//
//===----------------------------------------------------------------------===//

#include "test/unit/cuda/cudnn/DescribedGpu.h"
#include "test/unit/runtime/WindowLayers.h"

#include "runtime/cuda/kernels/ConvolutionPlan.h"

#include <algorithm>
#include <array>

using namespace pipewright::runtime;

#if CUDNN_VERSION >= 90800

namespace {
struct Layer {
  ConvolutionShape shape;
  bool hasBias = false;
};

/// The different convolutions of a network, for micro-batches of 32.
class Layers {
public:
  void add(int64_t c, int64_t image, int64_t o, int64_t kernel, int64_t stride,
           bool hasBias) {
    const int64_t pad = kernel / 2;
    const std::array<int64_t, 5> key = {c, image, o, kernel, stride};
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      return;
    seen.push_back(key);
    all.push_back({WindowLayer{.images = {32, c, image, image},
                               .outputs = o,
                               .kernel = {kernel, kernel},
                               .strides = {stride, stride},
                               .padding = {pad, pad, pad, pad}},
                   hasBias});
  }

  std::vector<Layer> all;

private:
  std::vector<std::array<int64_t, 5>> seen;
};

/// A precision of programs, and the layout that it has by itself.
struct Mode {
  ElementType type;
  bool mayRound, channelsLast;
};
} // namespace

static std::vector<Layer> resNet50() {
  Layers layers;
  layers.add(3, 224, 64, 7, 2, false);
  int64_t c = 64, image = 56;
  for (const int64_t width : {64, 128, 256, 512})
    for (int block = 0; block < 2; ++block) {
      const int64_t stride = block == 0 && width > 64 ? 2 : 1;
      layers.add(c, image, width, 1, 1, false);
      layers.add(width, image, width, 3, stride, false);
      layers.add(width, image / stride, 4 * width, 1, 1, false);
      if (block == 0)
        layers.add(c, image, 4 * width, 1, stride, false);
      image /= stride;
      c = 4 * width;
    }
  return layers.all;
}

static std::vector<Layer> vgg19() {
  Layers layers;
  int64_t c = 3, image = 224;
  for (const int64_t width : {64, 128, 256, 512, 512}) {
    for (int i = 0; i < 2; ++i) {
      layers.add(c, image, width, 3, 1, true);
      c = width;
    }
    image /= 2;
  }
  return layers.all;
}

namespace {
class ConvolutionPlans : public DescribedGpuTest {
protected:
  /// Plans all directions of all layers.
  static void check(const Gpu &gpu, const std::vector<Layer> &layers,
                    Mode mode);
};
} // namespace

void ConvolutionPlans::check(const Gpu &gpu, const std::vector<Layer> &layers,
                             Mode mode) {
  const CudnnDescriptor device = describe(gpu);
  int64_t workspace = 0;
  for (Layer layer : layers) {
    layer.shape.type = mode.type;
    layer.shape.channelsLast = mode.channelsLast;
    for (const auto direction :
         {ConvolutionDirection::Forward, ConvolutionDirection::BackwardData,
          ConvolutionDirection::BackwardWeight}) {
      // Nobody asks for the gradient of the first images.
      if (direction == ConvolutionDirection::BackwardData && layer.shape.c == 3)
        continue;
      const ConvolutionPlan plan =
          planConvolution({nullptr, &device}, direction, layer.shape,
                          layer.hasBias, mode.mayRound);
      workspace += plan.cudnn.workspaceBytes;
      const auto &notes = plan.cudnn.notes;
      const bool onTensorCores =
          std::count(notes.begin(), notes.end(),
                     CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != 0;
      EXPECT_EQ(onTensorCores, mode.mayRound)
          << textOf(direction) << " of " << layer.shape.c << "x"
          << layer.shape.h << " by " << layer.shape.o << "x" << layer.shape.kh;
      EXPECT_FALSE(plan.biasApart);
    }
  }
  std::printf("%zu convolutions, %lld bytes of workspace in all\n",
              layers.size(), static_cast<long long>(workspace));
}

static constexpr Mode bf16 = {ElementType::BF16, true, true};
static constexpr Mode tf32 = {ElementType::F32, true, true};
static constexpr Mode full = {ElementType::F32, false, false};

TEST_F(ConvolutionPlans, ResNet50InBf16) {
  check(a100, resNet50(), bf16);
  check(h100, resNet50(), bf16);
}
TEST_F(ConvolutionPlans, Vgg19InBf16) {
  check(a100, vgg19(), bf16);
  check(h100, vgg19(), bf16);
}
TEST_F(ConvolutionPlans, ResNet50InTf32) { check(h100, resNet50(), tf32); }
TEST_F(ConvolutionPlans, ResNet50InFullF32) { check(a100, resNet50(), full); }

/// Groups, single channels, dilation, lopsided padding, odd sizes: in every
/// precision and layout, on tensor cores or not.
TEST_F(ConvolutionPlans, WhateverTheShape) {
  const ConvolutionShape plain = WindowLayer{.images = {8, 64, 28, 28},
                                             .outputs = 64,
                                             .kernel = {3, 3},
                                             .padding = {1, 1, 1, 1}};
  std::vector<ConvolutionShape> shapes(5, plain);
  shapes[0].groups = 4;
  shapes[1].groups = 64;
  shapes[2].dilationH = shapes[2].dilationW = 2;
  shapes[3].strideH = shapes[3].strideW = 2;
  shapes[3].padTop = shapes[3].padLeft = 0;
  shapes[4].c = 5;
  shapes[4].o = 7;
  const CudnnDescriptor device = describe(a100);
  for (ConvolutionShape shape : shapes)
    for (const Mode mode :
         {bf16, tf32, full, Mode{ElementType::F32, false, true},
          Mode{ElementType::BF16, true, false}})
      for (const auto direction :
           {ConvolutionDirection::Forward, ConvolutionDirection::BackwardData,
            ConvolutionDirection::BackwardWeight}) {
        shape.type = mode.type;
        shape.channelsLast = mode.channelsLast;
        EXPECT_NO_THROW(planConvolution({nullptr, &device}, direction, shape,
                                        /*hasBias=*/true, mode.mayRound));
      }
}

#endif
