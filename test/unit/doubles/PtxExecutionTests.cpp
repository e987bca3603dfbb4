//===- PtxExecutionTests.cpp - Control flow, warps, memory, faults --------===//

#include "test/unit/doubles/PtxTesting.h"

#include <numeric>

using namespace pipewright::ptx;

/// Stores %r20 at memory[tid].
static const char *const storeResult =
    "mul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd2, %rd0, %rd1;\n"
    "st.global.u32 [%rd2], %r20;\n";

static std::vector<uint32_t> resultsOf(const std::string &body,
                                       uint32_t threads = 32,
                                       const std::string &variables = "") {
  std::vector<uint32_t> memory(threads);
  runBody(body + storeResult, memory, {{1}, {threads}, 0}, variables);
  return memory;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

TEST(PtxExecution, LoopsWithDifferentTripCounts) {
  const auto results = resultsOf("mov.u32 %r20, 0;\nmov.u32 %r1, 0;\n"
                                 "LOOP:\nadd.u32 %r20, %r20, %r1;\n"
                                 "add.u32 %r1, %r1, 1;\n"
                                 "setp.le.u32 %p1, %r1, %r0;\n"
                                 "@%p1 bra LOOP;\n");
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(results[i], i * (i + 1) / 2);
}

TEST(PtxExecution, NestedBranchesMeetAgain) {
  // activemask shows that all lanes are together at the end.
  const auto results = resultsOf(
      "and.b32 %r1, %r0, 1;\nsetp.eq.u32 %p1, %r1, 0;\n@!%p1 bra ODD;\n"
      "and.b32 %r2, %r0, 2;\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra FOUR;\n"
      "mov.u32 %r3, 2;\nbra.uni JOIN;\n"
      "FOUR:\nmov.u32 %r3, 4;\nbra.uni JOIN;\n"
      "ODD:\nmov.u32 %r3, 1;\n"
      "JOIN:\nactivemask.b32 %r4;\nclz.b32 %r5, %r4;\npopc.b32 %r6, %r4;\n"
      "mad.lo.u32 %r20, %r6, 100, %r3;\n");
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(results[i], 3200 + (i % 2 ? 1 : i & 2 ? 2 : 4));
}

TEST(PtxExecution, LanesLeaveEarly) {
  const auto results = resultsOf("setp.lt.u32 %p1, %r0, 10;\n@%p1 ret;\n"
                                 "mov.u32 %r20, 5;\nbar.sync 0;\n");
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(results[i], i < 10 ? 0u : 5u);
}

TEST(PtxExecution, TableOfBranches) {
  const auto results = resultsOf(
      "and.b32 %r1, %r0, 3;\nTS: .branchtargets A, B, C, B;\n"
      "brx.idx %r1, TS;\n"
      "A:\nmov.u32 %r20, 10;\nbra END;\nB:\nmov.u32 %r20, 20;\nbra END;\n"
      "C:\nmov.u32 %r20, 30;\nEND:\n");
  const uint32_t expected[] = {10, 20, 30, 20};
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(results[i], expected[i % 4]);
}

TEST(PtxExecution, FunctionsAreInlined) {
  const std::string function =
      ".func (.param .b32 triple_ret) triple(.param .b32 triple_param_0)\n"
      "{\n.reg .b32 %r<4>;\n.reg .pred %p<2>;\n"
      "ld.param.b32 %r1, [triple_param_0];\n"
      "setp.gt.u32 %p1, %r1, 100;\n@%p1 bra BIG;\n"
      "mul.lo.u32 %r2, %r1, 3;\nst.param.b32 [triple_ret], %r2;\nret;\n"
      "BIG:\nst.param.b32 [triple_ret], 7;\nret;\n}\n";
  const char *const call =
      "{ .param .b32 param0;\n.param .b32 retval0;\n"
      "st.param.b32 [param0], %r1;\n"
      "call.uni (retval0), triple, (param0);\n"
      "ld.param.b32 %r20, [retval0];\n}\nmov.u32 %r1, %r20;\n";
  const auto results =
      resultsOf(std::string("mov.u32 %r1, %r0;\n") + call + call, 32, function);
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(results[i], i * 9 > 300 ? 7u : i * 9);
  EXPECT_NE(messageOf<ParseError>([] {
              resultsOf("call.uni foo;\n");
            }).find("unresolved function 'foo'"),
            std::string::npos);
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

TEST(PtxExecution, Shuffles) {
  const auto bfly = resultsOf("shfl.sync.bfly.b32 %r20, %r0, 1, 31, -1;\n");
  const auto up = resultsOf("shfl.sync.up.b32 %r20|%p1, %r0, 2, 0, -1;\n"
                            "@!%p1 mov.u32 %r20, 99;\n");
  const auto down = resultsOf("shfl.sync.down.b32 %r20, %r0, 3, 31, -1;\n");
  // Segments of eight lanes.
  const auto index = resultsOf("shfl.sync.idx.b32 %r20, %r0, 5, 6175, -1;\n");
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(bfly[i], i ^ 1);
    EXPECT_EQ(up[i], i < 2 ? 99 : i - 2);
    EXPECT_EQ(down[i], i + 3 < 32 ? i + 3 : i);
    EXPECT_EQ(index[i], i / 8 * 8 + 5);
  }
}

TEST(PtxExecution, LanesWaitForEachOtherInShuffles) {
  // Lanes below 16 jump back to a shuffle that the others reach directly.
  const auto results = resultsOf(
      "setp.lt.u32 %p1, %r0, 16;\nmov.u32 %r1, %r0;\n@%p1 bra DETOUR;\n"
      "SHUFFLE:\nshfl.sync.bfly.b32 %r20, %r1, 16, 31, -1;\nbra END;\n"
      "DETOUR:\nadd.u32 %r1, %r1, 100;\nbra SHUFFLE;\nEND:\n");
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(results[i], i < 16 ? i + 16 : i - 16 + 100);
}

TEST(PtxExecution, VotesAndReductions) {
  const std::string odd = "and.b32 %r1, %r0, 1;\nsetp.eq.u32 %p1, %r1, 1;\n";
  EXPECT_EQ(resultsOf(odd + "vote.sync.ballot.b32 %r20, %p1, -1;\n")[3],
            0xAAAAAAAAu);
  EXPECT_EQ(resultsOf(odd + "vote.sync.any.pred %p2, %p1, -1;\n"
                            "selp.b32 %r20, 1, 0, %p2;\n")[0],
            1u);
  EXPECT_EQ(resultsOf(odd + "vote.sync.all.pred %p2, !%p1, -1;\n"
                            "selp.b32 %r20, 1, 0, %p2;\n")[0],
            0u);
  EXPECT_EQ(resultsOf("redux.sync.add.u32 %r20, %r0, -1;\n")[7], 496u);
  EXPECT_EQ(resultsOf("redux.sync.max.s32 %r20, %r0, -1;\n")[7], 31u);
}

TEST(PtxExecution, SpecialRegisters) {
  std::vector<uint32_t> memory(2 * 3 * 64 * 2);
  runBody("mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ctaid.y;\n"
          "mov.u32 %r3, %ntid.x;\nmov.u32 %r4, %nctaid.x;\n"
          "mov.u32 %r5, %tid.y;\nmov.u32 %r6, %ntid.y;\n"
          "mad.lo.u32 %r7, %r2, %r4, %r1;\nmul.lo.u32 %r8, %r3, %r6;\n"
          "mad.lo.u32 %r9, %r5, %r3, %r0;\nmad.lo.u32 %r9, %r7, %r8, %r9;\n"
          "mov.u32 %r10, %warpid;\nmov.u32 %r11, %laneid;\n"
          "mad.lo.u32 %r20, %r10, 100, %r11;\n"
          "mul.wide.u32 %rd1, %r9, 4;\nadd.s64 %rd2, %rd0, %rd1;\n"
          "st.global.u32 [%rd2], %r20;\n",
          memory, {{2, 3}, {64, 2}, 0});
  for (uint32_t i = 0; i < memory.size(); ++i)
    EXPECT_EQ(memory[i], i % 128 / 32 * 100 + i % 32);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Writes tid to shared memory, and reads the mirror image.
static std::string reverse(const char *barrier, const char *symbol) {
  return std::string("mov.u32 %r2, ") + symbol +
         ";\nmad.lo.u32 %r3, %r0, 4, %r2;\nst.shared.u32 [%r3], %r0;\n" +
         barrier +
         "\nsub.u32 %r4, 127, %r0;\nmad.lo.u32 %r5, %r4, 4, %r2;\n"
         "ld.shared.u32 %r20, [%r5];\n";
}

TEST(PtxExecution, SharedMemoryAndBarriers) {
  for (const char *barrier :
       {"bar.sync 0;", "barrier.sync 0;", "barrier.cta.sync.aligned 0;"}) {
    const auto results =
        resultsOf(reverse(barrier, "shared"), 128, ".shared .b8 shared[512];");
    for (uint32_t i = 0; i < 128; ++i)
      EXPECT_EQ(results[i], 127 - i);
  }
}

TEST(PtxExecution, DynamicSharedMemory) {
  std::vector<uint32_t> memory(128);
  const std::string body = "mov.u64 %rd9, other;\n" +
                           reverse("bar.sync 0;", "dynamic") + storeResult;
  const std::string variables =
      ".extern .shared .align 16 .b8 dynamic[];\n.shared .b8 other[20];";
  runBody(body, memory, {{1}, {128}, 512}, variables);
  EXPECT_EQ(memory[0], 127u);
  const std::string message = messageOf<Fault>(
      [&] { runBody(body, memory, {{1}, {128}, 508}, variables); });
  EXPECT_NE(message.find("beyond the 540 bytes of shared memory"),
            std::string::npos)
      << message;
}

TEST(PtxExecution, LocalMemoryIsEachLanesOwn) {
  const auto results =
      resultsOf(".local .align 8 .b8 depot[16];\nmov.b64 %rd3, depot;\n"
                "cvta.local.u64 %rd4, %rd3;\nst.u32 [%rd4+8], %r0;\n"
                "ld.local.u32 %r20, [%rd3+8];\n");
  EXPECT_EQ(results[17], 17u);
}

TEST(PtxExecution, InitialisedVariables) {
  const auto results =
      resultsOf("and.b32 %r1, %r0, 3;\nmul.wide.u32 %rd3, %r1, 4;\n"
                "mov.u64 %rd4, table;\nadd.s64 %rd5, %rd4, %rd3;\n"
                "ld.const.u32 %r2, [%rd5];\nld.global.u8 %r3, [bytes+2];\n"
                "add.u32 %r20, %r2, %r3;\n",
                32,
                ".const .align 4 .u32 table[4] = {10, 0x14, 30, 40};\n"
                ".global .align 1 .b8 bytes[4] = {1, 2, 3};");
  EXPECT_EQ(results[1], 23u);
  EXPECT_EQ(results[3], 43u);
}

TEST(PtxExecution, VectorsOfValues) {
  std::vector<float> memory(256);
  std::iota(memory.begin(), memory.end(), 0.0f);
  runBody("mul.wide.u32 %rd1, %r0, 16;\nadd.s64 %rd2, %rd0, %rd1;\n"
          "ld.global.v4.f32 {%r1, %r2, %r3, %r4}, [%rd2];\n"
          "st.global.v4.b32 [%rd2+512], {%r4, %r3, %r2, %r1};\n",
          memory);
  for (int i = 0; i < 128; ++i)
    EXPECT_EQ(memory[128 + i], i / 4 * 4 + (3 - i % 4));
}

TEST(PtxExecution, NarrowLoadsExtend) {
  std::vector<int8_t> memory(64);
  std::iota(memory.begin(), memory.end(), static_cast<int8_t>(-32));
  runBody("cvt.u64.u32 %rd1, %r0;\nadd.s64 %rd2, %rd0, %rd1;\n"
          "ld.global.s8 %r1, [%rd2];\nneg.s32 %r2, %r1;\n"
          "st.global.b8 [%rd2+32], %r2;\n",
          memory);
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(memory[32 + i], 32 - i);
}

TEST(PtxExecution, Atomics) {
  std::vector<uint32_t> memory(4);
  memory[1] = 100;
  runBody("atom.global.add.u32 %r1, [%rd0], 2;\n"
          "red.relaxed.gpu.global.min.u32 [%rd0+4], %r0;\n"
          "atom.global.cas.b32 %r2, [%rd0+8], 0, %r0;\n"
          "red.global.add.f32 [%rd0+12], 0f3F800000;\n",
          memory, {{2}, {64}, 0});
  EXPECT_EQ(memory[0], 256u);
  EXPECT_EQ(memory[1], 0u);
  // Lane 0 of the first warp writes 0, lane 1 finds 0 again.
  EXPECT_EQ(memory[2], 1u);
  EXPECT_EQ(std::bit_cast<float>(memory[3]), 128.0f);
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

static std::string faultOf(const std::string &body, uint32_t threads = 32,
                           const std::string &variables = "") {
  std::vector<uint32_t> memory(threads);
  return messageOf<Fault>(
      [&] { runBody(body, memory, {{1}, {threads}, 0}, variables); });
}

TEST(PtxFaults, OutOfBounds) {
  const std::string message =
      faultOf("mul.wide.u32 %rd1, %r0, 8;\nadd.s64 %rd2, %rd0, %rd1;\n"
              "st.global.u32 [%rd2], %r0;\n");
  EXPECT_NE(message.find("thread (16, 0, 0): write of 4 bytes at"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("st.global.u32 [%rd2], %r0;"), std::string::npos);
}

TEST(PtxFaults, Misaligned) {
  const std::string message =
      faultOf("add.s64 %rd1, %rd0, 4;\nand.b64 %rd2, %rd1, -8;\n"
              "add.s64 %rd2, %rd2, 4;\n"
              "ld.global.v2.u32 {%r1, %r2}, [%rd2];\n");
  EXPECT_NE(message.find("read of 8 bytes at"), std::string::npos);
  EXPECT_NE(message.find("is not aligned to its size"), std::string::npos);
}

TEST(PtxFaults, RaceInSharedMemory) {
  const std::string message =
      faultOf(reverse("", "shared"), 128, ".shared .b8 shared[512];");
  EXPECT_NE(message.find("races with a"), std::string::npos) << message;
}

TEST(PtxFaults, BarrierThatNotAllReach) {
  const std::string message =
      faultOf("setp.lt.u32 %p1, %r0, 5;\n@%p1 bra OTHER;\nbar.sync 0;\n"
              "bra END;\nOTHER:\nbar.sync 1;\nEND:\n");
  EXPECT_NE(message.find("wait for others that never come"), std::string::npos)
      << message;
  EXPECT_NE(faultOf("setp.lt.u32 %p1, %r0, 32;\n@%p1 bra OTHER;\n"
                    "bar.sync 0;\nbra END;\nOTHER:\nbar.sync 1;\nEND:\n",
                    64)
                .find("warp 0 waits at barrier 1, warp 1 at barrier 0"),
            std::string::npos);
}

TEST(PtxFaults, Trap) {
  EXPECT_NE(faultOf("trap;\n").find("thread (0, 0, 0): trap"),
            std::string::npos);
}

TEST(PtxFaults, Launches) {
  const Module module = Module::parse(
      ".version 8.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .u64 a, .param .u32 b)\n.maxntid 64, 1, 1\n"
      "{ ret; }\n");
  EXPECT_EQ(module.target(), 90);
  EXPECT_EQ(module.find("k")->parameterBytes, 12u);
  HostMemory memory;
  const auto launch = [&](const char *name, uint32_t block, size_t bytes) {
    return messageOf<Fault>([&] {
      module.launch(name, {{1}, {block}, 0}, std::vector<std::byte>(bytes),
                    memory);
    });
  };
  EXPECT_EQ(launch("k", 64, 12), "");
  EXPECT_NE(launch("k", 96, 12).find("compiled for at most 64"),
            std::string::npos);
  EXPECT_NE(launch("k", 64, 8).find("expected 12"), std::string::npos);
  EXPECT_NE(launch("x", 64, 12).find("no kernel 'x'"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Text that is refused
//===----------------------------------------------------------------------===//

static std::string errorOf(const std::string &body,
                           const std::string &variables = "") {
  return messageOf<ParseError>(
      [&] { Module::parse(moduleOf(body, variables)); });
}

TEST(PtxText, Errors) {
  EXPECT_EQ(errorOf("frobnicate.b32 %r1, %r2;"),
            "line 12: unknown instruction in 'frobnicate.b32 %r1, %r2'");
  EXPECT_EQ(errorOf("add.wrong.s32 %r1, %r2, %r3;"),
            "line 12: unknown type or modifier '.wrong' in "
            "'add.wrong.s32 %r1, %r2, %r3'");
  EXPECT_EQ(errorOf("add.s32 %r1, %r2, %rd3;"),
            "line 12: '%rd3' is not of the width of the instruction in "
            "'add.s32 %r1, %r2, %rd3'");
  EXPECT_EQ(errorOf("add.s32 %r1, %r2, %r99;"),
            "line 12: '%r99' is not known in 'add.s32 %r1, %r2, %r99'");
  EXPECT_EQ(errorOf("add.s32 %r1, %r2;"),
            "line 12: expected 3 operands in 'add.s32 %r1, %r2'");
  EXPECT_EQ(errorOf("bra NOWHERE;"), "line 12: no label 'NOWHERE'");
  EXPECT_EQ(errorOf("add.rz.f32 %r1, %r2, %r3;"),
            "line 12: unknown type or modifier '.rz' in "
            "'add.rz.f32 %r1, %r2, %r3'");
  EXPECT_EQ(errorOf("mma.sync.aligned.m16n8k8 %r1;"),
            "line 12: unknown instruction in 'mma.sync.aligned.m16n8k8 %r1'");
  EXPECT_EQ(errorOf("ret;", ".global .u32 x[1] = {1, 2};"),
            "line 4: too many initial values");
  EXPECT_EQ(errorOf("ret;", ".extern .global .u32 x;"),
            "line 4: external variable 'x': modules are not linked");
}

TEST(PtxText, Comments) {
  std::vector<uint32_t> memory(32);
  runBody("/* two\nlines */ mov.u32 %r20, 7; // and one\n" +
              std::string(storeResult),
          memory);
  EXPECT_EQ(memory[5], 7u);
}

TEST(PtxText, SharedMemoryIsOfTheKernelsThatUseIt) {
  const std::string variable = ".shared .align 16 .b8 ";
  const std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n" + variable +
      "first[64];\n" + variable + "firsts[128];\n" + variable +
      "second[256];\n" +
      ".func inner() {\n.reg .b64 %rd<2>;\nmov.u64 %rd1, second;\nret;\n}\n" +
      ".visible .entry both() {\n.reg .b64 %rd<3>;\nmov.u64 %rd1, firsts;\n"
      "mov.u64 %rd2, first;\nret;\n}\n"
      ".visible .entry one() {\n.reg .b64 %rd<2>;\nmov.u64 %rd1, firsts;\n"
      "ret;\n}\n"
      ".visible .entry called() {\ncall.uni inner, ();\nret;\n}\n"
      ".visible .entry none() {\nret;\n}\n";
  const Module module = Module::parse(text);
  EXPECT_EQ(module.find("both")->sharedBytes, 192u);
  EXPECT_EQ(module.find("one")->sharedBytes, 128u);
  EXPECT_EQ(module.find("called")->sharedBytes, 256u);
  EXPECT_EQ(module.find("none")->sharedBytes, 0u);
}

/// A product by tensor cores, every element of it against plain loops.
TEST(PtxExecution, TensorCoreProduct) {
  auto number = [](int i) { return static_cast<float>(i * 37 % 23 - 11) / 4; };
  auto narrow = [](float value) {
    return std::bit_cast<uint32_t>(value) >> 16;
  };
  float a[16][16], b[16][8], c[16][8];
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 16; ++k)
      a[i][k] = number(16 * i + k);
  for (int k = 0; k < 16; ++k)
    for (int j = 0; j < 8; ++j) {
      b[k][j] = number(8 * k + j + 300);
      c[k][j] = number(8 * k + j + 500);
    }
  // Ten words for each lane: four of A, two of B, four of C.
  std::vector<uint32_t> memory(320);
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = 2 * (lane % 4);
    uint32_t *words = &memory[10 * lane];
    auto ofA = [&](int row, int column) {
      return narrow(a[row][column]) | narrow(a[row][column + 1]) << 16;
    };
    words[0] = ofA(g, t);
    words[1] = ofA(g + 8, t);
    words[2] = ofA(g, t + 8);
    words[3] = ofA(g + 8, t + 8);
    for (int i = 0; i < 2; ++i)
      words[4 + i] = narrow(b[t + 8 * i][g]) | narrow(b[t + 8 * i + 1][g])
                                                   << 16;
    for (int i = 0; i < 4; ++i)
      words[6 + i] = std::bit_cast<uint32_t>(c[g + i / 2 * 8][t + i % 2]);
  }
  std::string body = "mad.wide.u32 %rd1, %r0, 40, %rd0;\n";
  for (int i = 0; i < 10; ++i)
    body += "ld.global.u32 %r" + std::to_string(10 + i) + ", [%rd1+" +
            std::to_string(4 * i) + "];\n";
  body += "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%r20, %r21, %r22, %r23}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, "
          "{%r16, %r17, %r18, %r19};\n";
  for (int i = 0; i < 4; ++i)
    body += "st.global.u32 [%rd1+" + std::to_string(4 * i) + "], %r" +
            std::to_string(20 + i) + ";\n";
  runBody(body, memory);
  for (int lane = 0; lane < 32; ++lane)
    for (int e = 0; e < 4; ++e) {
      const int i = lane / 4 + e / 2 * 8, j = 2 * (lane % 4) + e % 2;
      float expected = c[i][j];
      for (int k = 0; k < 16; ++k)
        expected += a[i][k] * b[k][j];
      EXPECT_EQ(std::bit_cast<float>(memory[10 * lane + e]), expected)
          << i << ", " << j;
    }
}

/// Loads four matrices, the rows of which the lanes have put into shared
/// memory, 16 bytes each.
static std::vector<uint16_t> loadMatrices(const std::string &modifiers,
                                          std::vector<uint16_t> memory) {
  runBody("mad.wide.u32 %rd1, %r0, 16, %rd0;\n"
          "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd1];\n"
          "mov.u32 %r2, shared;\nmad.lo.u32 %r3, %r0, 16, %r2;\n"
          "st.shared.v4.u32 [%r3], {%r10, %r11, %r12, %r13};\n"
          "ldmatrix.sync.aligned.m8n8." +
              modifiers +
              ".shared.b16 {%r20, %r21, %r22, %r23}, [%r3];\n"
              "st.global.v4.u32 [%rd1], {%r20, %r21, %r22, %r23};",
          memory, {{1}, {32}, 0}, ".shared .align 16 .b8 shared[512];");
  return memory;
}

TEST(PtxExecution, LoadsMatrices) {
  std::vector<uint16_t> memory(256);
  for (size_t i = 0; i < memory.size(); ++i)
    memory[i] = i;
  const auto plain = loadMatrices("x4", memory);
  const auto transposed = loadMatrices("x4.trans", memory);
  for (int lane = 0; lane < 32; ++lane)
    for (int matrix = 0; matrix < 4; ++matrix)
      for (int e = 0; e < 2; ++e) {
        const int g = lane / 4, t = 2 * (lane % 4) + e;
        const int at = 8 * lane + 2 * matrix + e;
        EXPECT_EQ(plain[at], 64 * matrix + 8 * g + t);
        EXPECT_EQ(transposed[at], 64 * matrix + 8 * t + g);
      }
}

TEST(PtxExecution, MatricesAreAligned) {
  std::vector<uint16_t> memory(256);
  EXPECT_NE(messageOf<Fault>([&] {
              runBody("mov.u32 %r2, shared;\nadd.u32 %r3, %r2, 8;\n"
                      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r3];",
                      memory, {{1}, {32}, 0},
                      ".shared .align 16 .b8 shared[512];");
            }).find("is not aligned to its size"),
            std::string::npos);
}
