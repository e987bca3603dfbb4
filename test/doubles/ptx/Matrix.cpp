//===- Matrix.cpp - Products by tensor cores, and their operands ----------===//
//
// ldmatrix: of matrix i, 8 x 8 elements of 16 bits, lane 8 i + r has the
// address of row r; register i of lane 4 g + t gets columns 2 t, 2 t + 1 of row
// g, or with .trans rows 2 t, 2 t + 1 of column g.
//
// mma.sync.m16n8k16 of bf16 operands, summed in f32. Lane 4 g + t has (PTX ISA,
// "matrix fragments for mma.m16n8k16"):
//   A, 16 x 16   rows g and g + 8, columns 2 t, 2 t + 1, and those plus 8
//   B, 16 x 8    rows 2 t, 2 t + 1, and those plus 8, column g
//   C, 16 x 8    rows g and g + 8, columns 2 t, 2 t + 1
//
//===----------------------------------------------------------------------===//

#include "test/doubles/ptx/Lanes.h"
#include "test/doubles/ptx/Select.h"

#include <bit>
#include <cstring>

using namespace pipewright::ptx;

// Operand 8 says which lanes take part.
static constexpr size_t resultAt = 0, aAt = 4, bAt = 9, cAt = 11;

/// One of the two elements of a register.
static float elementOf(uint32_t pair, int which) {
  return std::bit_cast<float>(which ? pair & 0xFFFF0000 : pair << 16);
}

static void runProduct(Warp &warp, const Instruction &in, uint32_t mask) {
  float a[16][16], b[16][8], sum[16][8];
  for (int lane = 0; lane < warpSize; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 4; ++i)
      for (int e = 0; e < 2; ++e) {
        const uint32_t pair = warp.lanes<uint32_t>(in.operand[aAt + i])[lane];
        a[g + i % 2 * 8][2 * t + e + i / 2 * 8] = elementOf(pair, e);
        sum[g + i / 2 * 8][2 * t + i % 2] =
            warp.lanes<float>(in.operand[cAt + i])[lane];
      }
    for (int i = 0; i < 2; ++i)
      for (int e = 0; e < 2; ++e) {
        const uint32_t pair = warp.lanes<uint32_t>(in.operand[bAt + i])[lane];
        b[2 * t + e + i * 8][g] = elementOf(pair, e);
      }
  }
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 16; ++k)
      for (int j = 0; j < 8; ++j)
        sum[i][j] += a[i][k] * b[k][j];
  for (int i = 0; i < 4; ++i)
    for (int lane = 0; lane < warpSize; ++lane)
      if (isSet(mask, lane))
        warp.lanes<float>(in.operand[resultAt + i])[lane] =
            sum[lane / 4 + i / 2 * 8][2 * (lane % 4) + i % 2];
}

// The addresses of ldmatrix.
static constexpr size_t addressAt = 4;

template <int count, bool isTransposed>
static void runLoadMatrix(Warp &warp, const Instruction &in, uint32_t mask) {
  uint16_t elements[count][8][8];
  for (int lane = 0; lane < 8 * count; ++lane)
    std::memcpy(elements[lane / 8][lane % 8],
                readAt(warp, in, in.operand[addressAt], lane, 16), 16);
  for (int i = 0; i < count; ++i)
    for (int lane = 0; lane < warpSize; ++lane) {
      if (!isSet(mask, lane))
        continue;
      const int g = lane / 4, t = 2 * (lane % 4);
      const auto &from = elements[i];
      const uint32_t low = isTransposed ? from[t][g] : from[g][t];
      const uint32_t high = isTransposed ? from[t + 1][g] : from[g][t + 1];
      warp.lanes<uint32_t>(in.operand[i])[lane] = low | high << 16;
    }
}

template <int count>
static void chooseLoadMatrix(Selection &s, bool isTransposed) {
  const auto parts = s.parts(0);
  if (parts.size() != count)
    s.fail("expected " + std::to_string(count) + " registers");
  for (size_t i = 0; i < parts.size(); ++i)
    s.in.operand[i] = s.source(parts[i], Type::B32);
  s.in.run =
      isTransposed ? runLoadMatrix<count, true> : runLoadMatrix<count, false>;
}

static bool selectLoadMatrix(Selection &s) {
  if (!s.take("sync") || !s.take("aligned") || !s.take("m8n8"))
    return false;
  const int count = s.take("x4") ? 4 : s.take("x2") ? 2 : s.take("x1") ? 1 : 0;
  const bool isTransposed = s.take("trans");
  if (!count || !(s.take("shared") || s.take("shared::cta")) || !s.take("b16"))
    return false;
  s.in.space = Space::Shared;
  s.expectOperands(2);
  if (count == 4)
    chooseLoadMatrix<4>(s, isTransposed);
  else if (count == 2)
    chooseLoadMatrix<2>(s, isTransposed);
  else
    chooseLoadMatrix<1>(s, isTransposed);
  s.in.operand[addressAt] = s.address(1);
  s.in.operand[8] = s.builder.constant(allLanes, 4);
  s.in.kind = Instruction::Kind::Converged;
  return true;
}

bool pipewright::ptx::selectMatrix(Selection &s) {
  if (s.base == "ldmatrix")
    return selectLoadMatrix(s);
  if (s.base != "mma" || !s.take("sync") || !s.take("aligned") ||
      !s.take("m16n8k16") || !s.take("row") || !s.take("col"))
    return false;
  if (s.takeType() != Type::F32 || s.takeType() != Type::BF16 ||
      s.takeType() != Type::BF16 || s.takeType() != Type::F32)
    return false;
  s.expectOperands(4);
  auto place = [&](size_t operand, size_t count, size_t at) {
    const auto parts = s.parts(operand);
    if (parts.size() != count)
      s.fail("expected " + std::to_string(count) + " registers");
    for (size_t i = 0; i < count; ++i)
      s.in.operand[at + i] = s.source(parts[i], Type::B32);
  };
  place(0, 4, resultAt);
  place(1, 4, aAt);
  place(2, 2, bAt);
  place(3, 4, cAt);
  s.in.operand[8] = s.builder.constant(allLanes, 4);
  s.in.kind = Instruction::Kind::Converged;
  s.in.run = runProduct;
  return true;
}
