//===- TableTests.cpp - Lists of calls as tables --------------------------===//

#include "codegen/host/CppPrinter.h"
#include "codegen/host/Tables.h"

#include "gtest/gtest.h"

using namespace pipewright::codegen;

namespace {

/// A list with buffers x_0, x_1 and x_2, written call by call.
class TableTest : public testing::Test {
protected:
  TableTest() : list{"f", {{"Rank &", "rank"}}, {}} {
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
  std::string text() const {
    std::string text;
    llvm::raw_string_ostream os(text);
    printFunction(os, "Text.", list);
    return text;
  }

  Function list;
};

} // namespace

TEST_F(TableTest, HasARowForEachCall) {
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

TEST_F(TableTest, BuffersOfArraysAreElementsEverywhere) {
  load(0, 0);
  load(1, 2);
  list.body.push_back(CallStatement{{"free", {buffer(1)}}, {}, {}});
  makeTable(list);
  EXPECT_NE(text().find("load(row[1], x_of[row[2]]);"), std::string::npos);
  EXPECT_NE(text().find("free(x_of[1]);"), std::string::npos);
}

TEST_F(TableTest, BuffersThatNothingChoosesFromStayVariables) {
  load(0, 1);
  load(1, 1);
  makeTable(list);
  EXPECT_NE(text().find("  const Buffer x_1 = {64, 64};\n"), std::string::npos);
  EXPECT_NE(text().find("load(row[1], x_1);"), std::string::npos);
}
