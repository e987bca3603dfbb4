//===- LoopTests.cpp - Lists of calls as loops and tables -----------------===//

#include "codegen/host/CppPrinter.h"
#include "codegen/host/Loops.h"
#include "codegen/host/Tables.h"

#include "gtest/gtest.h"

using namespace pipewright::codegen;

namespace {

/// A list with buffers x_0, x_1 and x_2, written call by call.
class LoopTest : public testing::Test {
protected:
  LoopTest() : list{"f", {{"Rank &", "rank"}}, {}} {
    for (int64_t number = 0; number < 3; ++number)
      list.body.push_back(
          BufferDeclaration{buffer(number), {}, 64 * number, 64});
    list.body.push_back(BlankLine());
  }

  static Local buffer(int64_t number) {
    return Local("x_" + std::to_string(number), "x");
  }
  void load(int64_t microBatch, int64_t number) {
    list.body.push_back(CallStatement{
        {"load", {Counter::microBatch(microBatch), buffer(number)}}, {}, {}});
  }
  void wait(int64_t event, Tokens comment = {}) {
    list.body.push_back(
        CallStatement{{"wait", {Counter::event(event)}}, {}, comment});
  }
  /// What is behind the declarations.
  std::string calls() const {
    std::string text;
    llvm::raw_string_ostream os(text);
    printFunction(os, "", list);
    return text.substr(text.rfind("\n\n") + 2);
  }
  std::string text() const {
    std::string text;
    llvm::raw_string_ostream os(text);
    printFunction(os, "Text.", list);
    return text;
  }

  Function list;
};

} // namespace

TEST_F(LoopTest, GoesOverMicroBatches) {
  for (int64_t m = 1; m < 13; ++m) {
    load(m, m % 3);
    wait(2 * m - 1, {buffer(m % 3), " of ", Counter::microBatch(m + 1)});
  }
  ASSERT_TRUE(foldLoops(list));
  EXPECT_EQ(text(), R"(
// Text.
void f(Rank &rank) {
  static const Buffer x_of[] = {
      {0, 64}, {64, 64}, {128, 64}};

  for (int64_t microBatch = 1; microBatch < 13; ++microBatch) {
    load(microBatch, x_of[microBatch % 3]);
    wait(2 * microBatch - 1);                           // x_of[microBatch % 3] of (microBatch + 1)
  }
}
)");
}

TEST_F(LoopTest, CountsWhatIsNoMultipleOfMicroBatches) {
  for (int64_t k = 0; k < 8; ++k) {
    load(2 * k + 4, 0);
    wait(3 * k + 7);
    wait(k);
  }
  ASSERT_TRUE(foldLoops(list));
  EXPECT_EQ(
      calls(),
      R"(  for (int64_t microBatch = 4; microBatch < 20; microBatch += 2) {
    load(microBatch, x_0);
    wait((microBatch - 4) / 2 * 3 + 7);
    wait((microBatch - 4) / 2);
  }
}
)");
}

TEST_F(LoopTest, CountsDown) {
  for (int64_t m = 11; m >= 0; --m)
    load(m, 1);
  ASSERT_TRUE(foldLoops(list));
  EXPECT_EQ(calls(), R"(  for (int64_t i = 0; i < 12; ++i) {
    load(11 - i, x_1);
  }
}
)");
}

TEST_F(LoopTest, HasOrdersOfBuffers) {
  const int64_t order[] = {0, 2, 1, 1};
  for (int64_t m = 0; m < 12; ++m)
    load(m, order[m % 4]);
  wait(0);
  // The same order, from elsewhere on.
  for (int64_t m = 0; m < 12; ++m)
    load(m, order[(m + 3) % 4]);
  ASSERT_TRUE(foldLoops(list));
  EXPECT_NE(text().find("order[] = {\n      0, 2, 1, 1};\n\n"),
            std::string::npos);
  EXPECT_EQ(calls(),
            R"(  for (int64_t microBatch = 0; microBatch < 12; ++microBatch) {
    load(microBatch, x_of[order[microBatch % 4]]);
  }
  wait(0);
  for (int64_t microBatch = 0; microBatch < 12; ++microBatch) {
    load(microBatch, x_of[order[(microBatch + 3) % 4]]);
  }
}
)");
}

TEST_F(LoopTest, LeavesOutIterationsThatAreNotInThePattern) {
  for (int64_t m = 0; m < 12; ++m) {
    load(m, m == 0 ? 2 : m % 2);
    wait(m);
  }
  ASSERT_TRUE(foldLoops(list));
  EXPECT_EQ(calls(), R"(  load(0, x_of[2]);
  wait(0);
  for (int64_t microBatch = 1; microBatch < 12; ++microBatch) {
    load(microBatch, x_of[microBatch % 2]);
    wait(microBatch);
  }
}
)");
}

TEST_F(LoopTest, LeavesWhatDoesNotRepeatItself) {
  for (int64_t k = 0; k < 30; ++k)
    wait(k * k);
  std::string before = text();
  EXPECT_FALSE(foldLoops(list));
  EXPECT_EQ(text(), before);
}

TEST_F(LoopTest, MakesATable) {
  for (int64_t k = 0; k < 3; ++k) {
    load(k * k, k % 2);
    wait(7, {"always the same"});
  }
  makeTable(list);
  EXPECT_EQ(text(), R"(
// Text.
void f(Rank &rank) {
  static const Buffer x_of[] = {
      {0, 64}, {64, 64}, {128, 64}};
  // Each row is a call: its case, then its numbers.
  static const int32_t calls[][3] = {
      {0, 0, 0}, {1}, {0, 1, 1}, {1}, {0, 4, 0}, {1}};

  for (const auto &row : calls)
    switch (row[0]) {
    case 0:
      load(row[1], x_of[row[2]]);
      break;
    case 1:
      wait(7);
      break;
    }
}
)");
}
