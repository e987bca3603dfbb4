//===- PtxInstructionTests.cpp - One instruction at a time ----------------===//

#include "test/unit/doubles/PtxTesting.h"

#include <cmath>
#include <limits>

using namespace pipewright::ptx;

uint64_t pipewright::ptx::evaluate(const std::string &body, int resultBits,
                                   uint64_t a, uint64_t b, uint64_t c) {
  // Half of the lanes take part, so that results are blended, too.
  std::vector<uint64_t> memory(32 * 4);
  for (int lane = 0; lane < 32; ++lane) {
    memory[lane * 4] = a;
    memory[lane * 4 + 1] = b;
    memory[lane * 4 + 2] = c;
    memory[lane * 4 + 3] = 0x1234;
  }
  const std::string widen = resultBits == 16   ? "cvt.u64.u16 %rd20, %h20;\n"
                            : resultBits == 32 ? "cvt.u64.u32 %rd20, %r20;\n"
                            : resultBits == 1  ? "selp.b64 %rd20, 1, 0, %p1;\n"
                                               : "";
  const std::string text =
      "mul.wide.u32 %rd1, %r0, 32;\nadd.s64 %rd2, %rd0, %rd1;\n"
      "ld.global.v2.u64 {%rd10, %rd11}, [%rd2];\n"
      "ld.global.u64 %rd12, [%rd2+16];\n"
      "cvt.u32.u64 %r10, %rd10;\ncvt.u32.u64 %r11, %rd11;\n"
      "cvt.u32.u64 %r12, %rd12;\ncvt.u16.u64 %h10, %rd10;\n"
      "cvt.u16.u64 %h11, %rd11;\ncvt.u16.u64 %h12, %rd12;\n"
      "and.b32 %r1, %r0, 1;\nsetp.eq.s32 %p9, %r1, 1;\n@%p9 bra DONE;\n" +
      body + "\n" + widen + "st.global.u64 [%rd2+24], %rd20;\nDONE:\n";
  runBody(text, memory);
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(memory[lane * 4 + 3], lane % 2 ? 0x1234u : memory[3]) << body;
  return memory[3];
}

namespace {
struct Case {
  const char *text;
  int bits;
  uint64_t a, b, c;
  uint64_t expected;
};
} // namespace

static void check(const std::vector<Case> &cases) {
  for (const Case &one : cases)
    EXPECT_EQ(evaluate(one.text, one.bits, one.a, one.b, one.c), one.expected)
        << one.text << " of " << one.a << ", " << one.b << ", " << one.c;
}

TEST(PtxInstructions, Integers) {
  const uint64_t minusOne = 0xFFFFFFFF;
  check({
      {"add.s32 %r20, %r10, %r11;", 32, 7, minusOne, 0, 6},
      {"sub.s32 %r20, %r10, 9;", 32, 7, 0, 0, bits(-2)},
      {"mul.lo.s32 %r20, %r10, %r11;", 32, 70000, 70000, 0,
       70000ull * 70000 & 0xFFFFFFFF},
      {"mul.hi.u32 %r20, %r10, %r11;", 32, minusOne, minusOne, 0, 0xFFFFFFFE},
      {"mul.hi.s32 %r20, %r10, %r11;", 32, minusOne, 5, 0, minusOne},
      {"mul.hi.u64 %rd20, %rd10, %rd11;", 64, ~0ull, ~0ull, 0, ~0ull - 1},
      {"mul.wide.s32 %rd20, %r10, %r11;", 64, minusOne, 5, 0,
       bits(int64_t(-5))},
      {"mul.wide.u32 %rd20, %r10, %r11;", 64, minusOne, 5, 0, 5ull * minusOne},
      {"mul.wide.u16 %r20, %h10, %h11;", 32, 0xFFFF, 0xFFFF, 0, 0xFFFE0001},
      {"mad.lo.s32 %r20, %r10, %r11, %r12;", 32, 3, 4, 5, 17},
      {"mad.wide.s32 %rd20, %r10, %r11, %rd12;", 64, minusOne, 4, 5, 1},
      {"mad.lo.s64 %rd20, %rd10, %rd11, %rd12;", 64, 1ull << 40, 3, 1,
       (3ull << 40) + 1},
      {"div.s32 %r20, %r10, %r11;", 32, bits(-7), 2, 0, bits(-3)},
      {"div.u32 %r20, %r10, %r11;", 32, 7, 0, 0, minusOne},
      {"div.s32 %r20, %r10, %r11;", 32, 0x80000000, minusOne, 0, 0x80000000},
      {"rem.s32 %r20, %r10, %r11;", 32, bits(-7), 2, 0, bits(-1)},
      {"rem.u64 %rd20, %rd10, %rd11;", 64, 1ull << 40, 1000, 0, 776},
      {"min.s32 %r20, %r10, %r11;", 32, minusOne, 3, 0, minusOne},
      {"min.u32 %r20, %r10, %r11;", 32, minusOne, 3, 0, 3},
      {"max.s64 %rd20, %rd10, %rd11;", 64, ~0ull, 3, 0, 3},
      {"abs.s32 %r20, %r10;", 32, bits(-9), 0, 0, 9},
      {"neg.s16 %h20, %h10;", 16, 5, 0, 0, 0xFFFB},
      {"sad.u32 %r20, %r10, %r11, %r12;", 32, 3, 10, 100, 107},
  });
}

TEST(PtxInstructions, Bits) {
  check({
      {"and.b32 %r20, %r10, 255;", 32, 0x1234, 0, 0, 0x34},
      {"or.b64 %rd20, %rd10, %rd11;", 64, 1, 1ull << 63, 0, 1ull << 63 | 1},
      {"xor.b16 %h20, %h10, %h11;", 16, 0xFF, 0xF0, 0, 0x0F},
      {"not.b32 %r20, %r10;", 32, 0, 0, 0, 0xFFFFFFFF},
      {"cnot.b32 %r20, %r10;", 32, 0, 0, 0, 1},
      {"shl.b32 %r20, %r10, %r11;", 32, 3, 31, 0, 0x80000000},
      {"shl.b32 %r20, %r10, %r11;", 32, 3, 32, 0, 0},
      {"shr.u32 %r20, %r10, %r11;", 32, 0x80000000, 40, 0, 0},
      {"shr.s32 %r20, %r10, %r11;", 32, 0x80000000, 40, 0, 0xFFFFFFFF},
      {"shr.s64 %rd20, %rd10, 4;", 64, 1ull << 63, 0, 0, 0xF8ull << 56},
      {"clz.b32 %r20, %r10;", 32, 1, 0, 0, 31},
      {"clz.b64 %r20, %rd10;", 32, 0, 0, 0, 64},
      {"popc.b64 %r20, %rd10;", 32, ~0ull, 0, 0, 64},
      {"brev.b32 %r20, %r10;", 32, 2, 0, 0, 0x40000000},
      {"bfind.u32 %r20, %r10;", 32, 0x100, 0, 0, 8},
      {"bfind.s32 %r20, %r10;", 32, 0xFFFFFFFF, 0, 0, 0xFFFFFFFF},
      {"bfe.u32 %r20, %r10, %r11, %r12;", 32, 0xABCD, 4, 8, 0xBC},
      {"bfe.s32 %r20, %r10, %r11, %r12;", 32, 0xABCD, 4, 8, 0xFFFFFFBC},
      {"bfe.u32 %r20, %r10, %r11, %r12;", 32, 0xABCD, 4, 0, 0},
      {"bfi.b32 %r20, %r10, %r11, 8, 4;", 32, 0x5, 0xFFFFFFFF, 0, 0xFFFFF5FF},
      {"prmt.b32 %r20, %r10, %r11, 0x7610;", 32, 0x33221100, 0x77665544, 0,
       0x77661100},
      {"prmt.b32 %r20, %r10, %r11, 0x8888;", 32, 0x80, 0, 0, 0xFFFFFFFF},
      // a & b | ~c
      {"lop3.b32 %r20, %r10, %r11, %r12, 0xD5;", 32, 12, 10, 0xFFFFFFFD, 0xA},
      {"shf.l.wrap.b32 %r20, %r10, %r11, 8;", 32, 0xAA000000, 0x1, 0, 0x1AA},
      {"shf.r.clamp.b32 %r20, %r10, %r11, 40;", 32, 5, 77, 0, 77},
      {"setp.eq.s32 %p2, %r10, 3;\nselp.b32 %r20, %r11, %r12, %p2;", 32, 3, 8,
       9, 8},
      {"mov.b64 {%r1, %r2}, %rd10;\nmov.b64 %rd20, {%r2, %r1};", 64,
       0x1111111122222222, 0, 0, 0x2222222211111111},
      {"mov.b32 {_, %h1}, %r10;\nmov.b32 %r20, {%h1, %h1};", 32, 0xABCD1234, 0,
       0, 0xABCDABCD},
      {"mov.b32 %r20, 0f3F800000;", 32, 0, 0, 0, 0x3F800000},
  });
}

TEST(PtxInstructions, Comparisons) {
  const uint64_t nan = bits(std::numeric_limits<float>::quiet_NaN());
  check({
      {"setp.lt.s32 %p1, %r10, %r11;", 1, 0xFFFFFFFF, 1, 0, 1},
      {"setp.lt.u32 %p1, %r10, %r11;", 1, 0xFFFFFFFF, 1, 0, 0},
      {"setp.ge.s64 %p1, %rd10, 0;", 1, ~0ull, 0, 0, 0},
      {"setp.hi.u16 %p1, %h10, %h11;", 1, 0xFFFF, 1, 0, 1},
      {"setp.lt.f32 %p1, %r10, %r11;", 1, bits(-1.0f), bits(1.0f), 0, 1},
      {"setp.lt.f32 %p1, %r10, %r11;", 1, nan, bits(1.0f), 0, 0},
      {"setp.ltu.f32 %p1, %r10, %r11;", 1, nan, bits(1.0f), 0, 1},
      {"setp.neu.f32 %p1, %r10, %r11;", 1, nan, nan, 0, 1},
      {"setp.ne.f32 %p1, %r10, %r11;", 1, nan, nan, 0, 0},
      {"setp.nan.f32 %p1, %r10, %r11;", 1, nan, 0, 0, 1},
      {"setp.num.f32 %p1, %r10, %r11;", 1, 0, 0, 0, 1},
      {"setp.gt.ftz.f32 %p1, %r10, 0f00000000;", 1, 1, 0, 0, 0},
      {"setp.gt.f32 %p1, %r10, 0f00000000;", 1, 1, 0, 0, 1},
      {"setp.gt.bf16 %p1, %h10, %h11;", 1, 0x4000, 0x3F80, 0, 1},
      {"setp.eq.s32 %p2, %r10, %r11;\n"
       "setp.lt.and.s32 %p1, %r10, %r12, !%p2;",
       1, 1, 2, 3, 1},
      {"setp.eq.s32 %p3|%p1, %r10, %r11;", 1, 1, 2, 0, 1},
      {"setp.eq.s32 %p2, 1, 1;\nnot.pred %p1, %p2;", 1, 0, 0, 0, 0},
      {"setp.eq.s32 %p2, 1, 1;\nsetp.eq.s32 %p3, 1, 2;\nxor.pred %p1, %p2, "
       "%p3;",
       1, 0, 0, 0, 1},
      {"testp.finite.f32 %p1, %r10;", 1, nan, 0, 0, 0},
      {"testp.infinite.f32 %p1, %r10;", 1, 0x7F800000, 0, 0, 1},
  });
}

TEST(PtxInstructions, Floats) {
  const uint64_t nan = bits(std::numeric_limits<float>::quiet_NaN());
  check({
      {"add.f32 %r20, %r10, %r11;", 32, bits(1.5f), bits(2.25f), 0,
       bits(3.75f)},
      {"sub.rn.f32 %r20, %r10, %r11;", 32, bits(1.5f), bits(2.25f), 0,
       bits(-0.75f)},
      {"mul.f64 %rd20, %rd10, 0d4000000000000000;", 64, bits(1.25), 0, 0,
       bits(2.5)},
      {"div.rn.f32 %r20, %r10, %r11;", 32, bits(1.0f), bits(3.0f), 0,
       bits(1.0f / 3.0f)},
      {"div.full.f32 %r20, %r10, %r11;", 32, bits(1.0f), bits(4.0f), 0,
       bits(0.25f)},
      // One rounding: the low bits of the product survive.
      {"fma.rn.f32 %r20, %r10, %r11, %r12;", 32, bits(1.0f + 0x1p-12f),
       bits(1.0f + 0x1p-12f), bits(-1.0f), bits(0x1p-11f + 0x1p-24f)},
      {"min.f32 %r20, %r10, %r11;", 32, nan, bits(2.0f), 0, bits(2.0f)},
      {"max.f32 %r20, %r10, %r11;", 32, bits(-0.0f), bits(0.0f), 0, bits(0.0f)},
      {"max.f32 %r20, %r10, %r11;", 32, bits(0.0f), bits(-0.0f), 0, bits(0.0f)},
      {"abs.f32 %r20, %r10;", 32, bits(-2.0f), 0, 0, bits(2.0f)},
      {"neg.f32 %r20, %r10;", 32, bits(-2.0f), 0, 0, bits(2.0f)},
      {"copysign.f32 %r20, %r10, %r11;", 32, bits(-1.0f), bits(3.0f), 0,
       bits(-3.0f)},
      {"sqrt.rn.f32 %r20, %r10;", 32, bits(2.0f), 0, 0, bits(std::sqrt(2.0f))},
      {"rcp.approx.ftz.f32 %r20, %r10;", 32, bits(4.0f), 0, 0, bits(0.25f)},
      {"rsqrt.approx.f32 %r20, %r10;", 32, bits(4.0f), 0, 0, bits(0.5f)},
      {"ex2.approx.f32 %r20, %r10;", 32, bits(-3.0f), 0, 0, bits(0.125f)},
      {"ex2.approx.f32 %r20, %r10;", 32, bits(200.0f), 0, 0, 0x7F800000},
      {"ex2.approx.f32 %r20, %r10;", 32, bits(-200.0f), 0, 0, 0},
      {"ex2.approx.f32 %r20, %r10;", 32, bits(-140.0f), 0, 0, bits(0x1p-140f)},
      {"lg2.approx.f32 %r20, %r10;", 32, bits(8.0f), 0, 0, bits(3.0f)},
      {"tanh.approx.f32 %r20, %r10;", 32, bits(0.0f), 0, 0, bits(0.0f)},
      {"sin.approx.f32 %r20, %r10;", 32, bits(0.0f), 0, 0, bits(0.0f)},
      {"cos.approx.f32 %r20, %r10;", 32, bits(0.0f), 0, 0, bits(1.0f)},
      {"add.sat.f32 %r20, %r10, %r11;", 32, bits(0.75f), bits(0.75f), 0,
       bits(1.0f)},
      {"add.ftz.f32 %r20, %r10, %r11;", 32, 1, 1, 0, 0},
      {"add.f32 %r20, %r10, %r11;", 32, 1, 1, 0, 2},
  });
  const float withNan = std::bit_cast<float>(static_cast<uint32_t>(
      evaluate("max.NaN.f32 %r20, %r10, %r11;", 32, nan, bits(2.0f))));
  EXPECT_TRUE(std::isnan(withNan));
}

TEST(PtxInstructions, ExponentialIsAccurate) {
  for (float x = -130; x < 127; x += 0.37f) {
    const float result = std::bit_cast<float>(static_cast<uint32_t>(
        evaluate("ex2.approx.f32 %r20, %r10;", 32, bits(x))));
    EXPECT_NEAR(result / std::exp2(x), 1.0f, 3e-7f) << x;
  }
}

TEST(PtxInstructions, HalfFloats) {
  check({
      {"add.rn.bf16 %h20, %h10, %h11;", 16, 0x3F80, 0x4000, 0, 0x4040},
      {"fma.rn.bf16x2 %r20, %r10, %r11, %r12;", 32, 0x40003F80, 0x40004000,
       0x3F803F80, 0x40A04040},
      {"mul.rn.bf16x2 %r20, %r10, %r11;", 32, 0x40003F80, 0x40004000, 0,
       0x40804000},
      {"max.bf16x2 %r20, %r10, %r11;", 32, 0x40003F80, 0x3F804000, 0,
       0x40004000},
      {"neg.bf16 %h20, %h10;", 16, 0x3F80, 0, 0, 0xBF80},
      {"add.f16 %h20, %h10, %h11;", 16, 0x3C00, 0x4000, 0, 0x4200},
      // The smallest subnormal of f16 twice.
      {"add.f16 %h20, %h10, %h11;", 16, 1, 1, 0, 2},
      {"add.f16 %h20, %h10, %h11;", 16, 0x7BFF, 0x7BFF, 0, 0x7C00},
  });
}

TEST(PtxInstructions, Conversions) {
  const uint64_t nan = bits(std::numeric_limits<float>::quiet_NaN());
  check({
      {"cvt.s64.s32 %rd20, %r10;", 64, 0xFFFFFFFF, 0, 0, ~0ull},
      {"cvt.u64.u32 %rd20, %r10;", 64, 0xFFFFFFFF, 0, 0, 0xFFFFFFFF},
      {"cvt.s32.s8 %r20, %r10;", 32, 0x180, 0, 0, 0xFFFFFF80},
      {"cvt.u32.u8 %r20, %r10;", 32, 0x180, 0, 0, 0x80},
      {"cvt.u32.u16 %r20, %h10;", 32, 0xFFFF, 0, 0, 0xFFFF},
      {"cvt.s16.s8 %h20, %h10;", 16, 0xFF, 0, 0, 0xFFFF},
      {"cvt.sat.u8.s32 %r20, %r10;", 32, 300, 0, 0, 255},
      {"cvt.sat.s16.s32 %h20, %r10;", 16, bits(-70000), 0, 0, 0x8000},
      {"cvt.rn.f32.s32 %r20, %r10;", 32, bits(-3), 0, 0, bits(-3.0f)},
      {"cvt.rn.f32.u64 %r20, %rd10;", 32, ~0ull, 0, 0, bits(0x1p64f)},
      {"cvt.rn.f64.s64 %rd20, %rd10;", 64, bits(int64_t(-5)), 0, 0, bits(-5.0)},
      {"cvt.rzi.s32.f32 %r20, %r10;", 32, bits(-2.7f), 0, 0, bits(-2)},
      {"cvt.rni.s32.f32 %r20, %r10;", 32, bits(2.5f), 0, 0, 2},
      {"cvt.rmi.s32.f32 %r20, %r10;", 32, bits(-2.1f), 0, 0, bits(-3)},
      {"cvt.rpi.s32.f32 %r20, %r10;", 32, bits(2.1f), 0, 0, 3},
      {"cvt.rzi.s32.f32 %r20, %r10;", 32, bits(1e20f), 0, 0, 0x7FFFFFFF},
      {"cvt.rzi.u32.f32 %r20, %r10;", 32, bits(-1.0f), 0, 0, 0},
      {"cvt.rzi.s32.f32 %r20, %r10;", 32, nan, 0, 0, 0},
      {"cvt.rzi.s64.f64 %rd20, %rd10;", 64, bits(-1e15), 0, 0,
       bits(int64_t(-1000000000000000))},
      {"cvt.rmi.f32.f32 %r20, %r10;", 32, bits(-2.1f), 0, 0, bits(-3.0f)},
      {"cvt.rni.f32.f32 %r20, %r10;", 32, bits(3.5f), 0, 0, bits(4.0f)},
      {"cvt.f64.f32 %rd20, %r10;", 64, bits(1.5f), 0, 0, bits(1.5)},
      {"cvt.rn.f32.f64 %r20, %rd10;", 32, bits(0.1), 0, 0, bits(0.1f)},
      {"cvt.sat.f32.f32 %r20, %r10;", 32, bits(1.5f), 0, 0, bits(1.0f)},
      {"cvt.rn.bf16.f32 %h20, %r10;", 16, 0x3F808000, 0, 0, 0x3F80},
      {"cvt.rn.bf16.f32 %h20, %r10;", 16, 0x3F818000, 0, 0, 0x3F82},
      {"cvt.rn.bf16.f32 %h20, %r10;", 16, nan, 0, 0, 0x7FFF},
      {"cvt.rz.bf16.f32 %h20, %r10;", 16, 0x3F81FFFF, 0, 0, 0x3F81},
      {"cvt.f32.bf16 %r20, %h10;", 32, 0xBF80, 0, 0, bits(-1.0f)},
      {"cvt.rn.bf16x2.f32 %r20, %r10, %r11;", 32, bits(1.0f), bits(2.0f), 0,
       0x3F804000},
      {"cvt.rn.f16.f32 %h20, %r10;", 16, bits(1.0f), 0, 0, 0x3C00},
      {"cvt.f32.f16 %r20, %h10;", 32, 1, 0, 0, bits(0x1p-24f)},
      {"cvt.f32.f16 %r20, %h10;", 32, 0xFC00, 0, 0, 0xFF800000},
      {"cvt.rn.bf16.s32 %h20, %r10;", 16, 1, 0, 0, 0x3F80},
  });
}

TEST(PtxInstructions, HalfFloatsRoundTrip) {
  for (uint64_t value = 0; value < 0x7C00; value += 7)
    EXPECT_EQ(evaluate("cvt.f32.f16 %r1, %h10;\ncvt.rn.f16.f32 %h20, %r1;", 16,
                       value),
              value);
}
