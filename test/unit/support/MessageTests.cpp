//===- MessageTests.cpp - What the compiler tells on the terminal ---------===//

#include "support/Message.h"

#include "gtest/gtest.h"

using namespace pipewright;

TEST(Message, NoControlCharacterComesThrough) {
  EXPECT_EQ(messageText("'a\x1b[31m': no\r\n"), "'a\\x1b[31m': no\\x0d\\x0a");
  EXPECT_EQ(messageText("a\nerror: b"), "a\\x0aerror: b");
}

TEST(Message, IndentedLinesStayLines) {
  EXPECT_EQ(messageText("cannot link:\n  a\x1b\n  b"),
            "cannot link:\n  a\\x1b\n  b");
}

TEST(Message, ALongOneIsShortened) {
  EXPECT_LT(messageText(std::string(1 << 20, 'a')).size(), 9000u);
}
