//===- JsonTests.cpp - JSON from outside ----------------------------------===//

#include "support/Json.h"

#include "gtest/gtest.h"

using namespace pipewright;

static std::string errorOf(const std::string &text) {
  llvm::Expected<llvm::json::Value> value = parseJson(text);
  return value ? "" : llvm::toString(value.takeError());
}

static std::string nested(size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(Json, ListsAreNestedAtMostSoDeep) {
  EXPECT_EQ(errorOf(nested(64)), "");
  EXPECT_EQ(errorOf(nested(65)), "its lists are nested more than 64 deep");
  EXPECT_EQ(errorOf(std::string(1 << 20, '[')),
            "its lists are nested more than 64 deep");
  std::string objects;
  for (int i = 0; i < 100000; ++i)
    objects += "{\"a\":";
  EXPECT_EQ(errorOf(objects), "its lists are nested more than 64 deep");
}

TEST(Json, BracketsOfStringsAreText) {
  std::string text = "[\"\\\"" + std::string(1000, '[') + "\\\\\"]";
  EXPECT_EQ(errorOf(text), "");
  EXPECT_EQ(errorOf("[\"" + std::string(1000, ']') + "\"," + nested(70) + "]"),
            "its lists are nested more than 64 deep");
}

TEST(Json, WhatIsNoneIsToldInOneLine) {
  for (const char *text :
       {"", "[", "]]]][[", "{\"a\" 1}", "\"\n", "[1,\x1b]"}) {
    std::string error = errorOf(text);
    EXPECT_EQ(error.find("is not JSON: "), 0u) << error;
    EXPECT_EQ(error.find_first_of("\n\x1b"), std::string::npos) << error;
  }
}

TEST(Json, KeysThatStandTwiceAreFound) {
  EXPECT_EQ(findRepeatedKey(R"({"a": 1, "b": {"a": 2}, "c": [{"a": 3}]})"), "");
  EXPECT_EQ(findRepeatedKey(R"([{"a": 1}, {"a": "a", "b": "a"}, "a"])"), "");
  EXPECT_EQ(findRepeatedKey(R"({"a": {"x\"": 1, "y": 2, "x\"" : 3}})"),
            "x\\\"");
  EXPECT_EQ(findRepeatedKey(R"({"a": {"b": "}"}, "a": 2})"), "a");
}
