//===- TextTests.cpp - Figures and names as people read them --------------===//

#include "runtime/core/Text.h"

#include <gtest/gtest.h>

using namespace pipewright::runtime;

TEST(RuntimeText, WhatTerminalsObeyIsShown) {
  EXPECT_EQ(printable("rank 1: 'w\x1b[31m\r\x7f'"),
            "rank 1: 'w\\x1b[31m\\x0d\\x7f'");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  // C1 control characters, turned text, what nobody sees.
  EXPECT_EQ(printable("\xc2\x9b\xe2\x80\xae\xef\xbb\xbf\xf3\xa0\x81\x81"),
            "\\u009b\\u202e\\ufeff\\U000e0041");
}

TEST(RuntimeText, BytesThatAreNoTextAreShown) {
  EXPECT_EQ(printable("\xff\xc0\x80\xed\xa0\x80\xf5"),
            "\\xff\\xc0\\x80\\xed\\xa0\\x80\\xf5");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");
}

TEST(RuntimeText, OtherTextStays) {
  for (const char *text : {"", "layer.0/w",
                           "na\xc3\xafve \xe2\x82\xac \xe5\xb1\xa4 "
                           "\xf0\x9f\x99\x82"})
    EXPECT_EQ(printable(text), text);
}

TEST(RuntimeText, OnlyIndentedLinesBegin) {
  EXPECT_EQ(printable("the log:\n  line 1\n  line 2"),
            "the log:\n  line 1\n  line 2");
  EXPECT_EQ(printable("a\nerror: b\n c"), "a\\x0aerror: b\\x0a c");
}
