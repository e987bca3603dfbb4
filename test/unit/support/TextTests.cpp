//===- TextTests.cpp - Text from outside in what is parsed again ----------===//

#include "support/Text.h"

#include "support/ReservedWords.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "gtest/gtest.h"

using namespace pipewright;

/// What models may be called by people who mean harm.
static const std::string hostile[] = {"a\nb",
                                      "layer\\",
                                      "layer\\  ",
                                      "*/ int x; /*",
                                      "\?\?/",
                                      "\?\?\?\?/",
                                      "%s%n",
                                      "\"; system(\"x\"); //",
                                      "</script><script>alert(1)</script>",
                                      "R\"text()text\"",
                                      ")text\"",
                                      std::string("a\0b", 3),
                                      "\xff\xfe",
                                      "\xc3",
                                      "\xed\xa0\x80",
                                      "\xe2\x80\xae"
                                      "gpj.exe",
                                      "zero\xe2\x80\x8bwidth",
                                      "\xe2\x80\xa8line",
                                      "\t\r\v",
                                      "\x1b[31mred",
                                      "\x7f",
                                      std::string(1000, 'q'),
                                      "'\"`$(x)@"};

TEST(Text, PrintableIsOneLineOfValidCharacters) {
  EXPECT_EQ(text::printable("/h.0/ln_1/Add"), "/h.0/ln_1/Add");
  EXPECT_EQ(text::printable("h\n\x1b"), "h\\x0a\\x1b");
  EXPECT_EQ(text::printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(text::printable("\xe2\x80\xae"), "\\u202e");
  EXPECT_EQ(text::printable("\xf3\xa0\x80\x81"), "\\U000e0001");
  // Letters, marks and pictures of all scripts stay.
  for (const char *shown : {"\xd1\x81\xd0\xbb\xd0\xbe\xd0\xb9", "\xe5\xb1\xa4",
                            "e\xcc\x81", "\xf0\x9f\x9a\x80"})
    EXPECT_EQ(text::printable(shown), shown);
  for (const std::string &name : hostile) {
    std::string once = text::printable(name);
    EXPECT_TRUE(text::isPrintable(once)) << once;
    EXPECT_EQ(text::printable(once), once);
    EXPECT_TRUE(llvm::json::isUTF8(once));
  }
}

TEST(Text, ShortenedLeavesOutTheMiddle) {
  EXPECT_EQ(text::shortened("short"), "short");
  std::string long_ = text::shortened(std::string(100000, 'a') + "end", 40);
  EXPECT_LE(long_.size(), 40u);
  EXPECT_TRUE(llvm::StringRef(long_).ends_with("end"));
  EXPECT_TRUE(llvm::StringRef(long_).contains("..."));
  // No character is cut in two.
  std::string letters;
  for (int i = 0; i < 1000; ++i)
    letters += "\xd1\x81";
  for (size_t most = 10; most < 20; ++most)
    EXPECT_TRUE(text::isPrintable(text::shortened(letters, most))) << most;
}

TEST(Text, CommentsEndWhereTheirLineEnds) {
  EXPECT_EQ(text::comment("h.0 .. h.5"), "h.0 .. h.5");
  EXPECT_EQ(text::comment("layer\\"), "layer\\x5c");
  EXPECT_EQ(text::comment("layer\\ \t "), "layer\\ \\x09 ");
  EXPECT_EQ(text::comment("layer\\  "), "layer\\x5c");
  EXPECT_EQ(text::comment("*/"), "*\\x2f");
  EXPECT_EQ(text::comment("\?\?/"), "?\\x3f/");
  for (const std::string &name : hostile) {
    llvm::StringRef made;
    std::string comment = text::comment(name);
    made = comment;
    EXPECT_TRUE(text::isPrintable(made));
    EXPECT_FALSE(made.contains("*/")) << comment;
    EXPECT_FALSE(made.contains("\?\?")) << comment;
    EXPECT_FALSE(made.rtrim().ends_with("\\")) << comment;
  }
}

/// The bytes that a compiler makes of our literals.
static std::string readLiteral(llvm::StringRef literal) {
  std::string bytes;
  EXPECT_TRUE(literal.consume_front("\"") && literal.consume_back("\""));
  while (!literal.empty()) {
    char c = literal.front();
    literal = literal.drop_front();
    EXPECT_NE(c, '"');
    if (c == '\\') {
      c = literal.front();
      if (c >= '0' && c <= '7') {
        int value = 0;
        EXPECT_FALSE(literal.take_front(3).getAsInteger(8, value));
        c = static_cast<char>(value);
        literal = literal.drop_front(2);
      }
      literal = literal.drop_front();
    }
    bytes += c;
  }
  return bytes;
}

TEST(Text, StringLiteralsHoldTheirBytes) {
  EXPECT_EQ(text::stringLiteral("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(text::stringLiteral("1\n2"), "\"1\\0122\"");
  EXPECT_EQ(text::stringLiteral("\?\?/"), "\"?\\?/\"");
  for (const std::string &name : hostile) {
    std::string literal = text::stringLiteral(name);
    EXPECT_TRUE(text::isPrintable(literal)) << literal;
    EXPECT_EQ(readLiteral(literal), name) << literal;
  }
}

TEST(Text, RawLiteralsEndWhereTheyShould) {
  EXPECT_EQ(text::rawLiteral("a\nb"), "R\"text(a\nb)text\"");
  EXPECT_EQ(text::rawLiteral("{\"x)text\"}"), "R\"text1({\"x)text\"})text1\"");
  EXPECT_EQ(text::rawLiteral("a\rb"), "\"a\\015b\"");
}

TEST(Text, IdentifiersAreNames) {
  EXPECT_EQ(text::identifier("fc1.weight"), "fc1_weight");
  EXPECT_EQ(text::identifier("__x__y__"), "x_y");
  EXPECT_EQ(text::identifier(""), "x");
  EXPECT_EQ(text::identifier("\xd1\x81"), "x");
  EXPECT_EQ(text::identifier("12"), "x_12");
  EXPECT_EQ(text::identifier("NULL"), "null");
  EXPECT_EQ(text::identifier("co_await"), "x_co_await");
  for (llvm::StringRef word : text::reservedWords) {
    EXPECT_EQ(text::identifier(word), ("x_" + word).str());
    EXPECT_FALSE(text::isIdentifier(word));
  }
  for (const std::string &name : hostile)
    EXPECT_TRUE(text::isIdentifier(text::identifier(name))) << name;
  for (const char *none : {"", "_x", "1x", "a b", "x__y", "int", "a\n"})
    EXPECT_FALSE(text::isIdentifier(none)) << none;
  EXPECT_TRUE(text::isIdentifier("bias_gelu_4096x1024"));
}

TEST(Text, ReservedWordsAreInTheFormOfIdentifiers) {
  llvm::StringSet<> seen;
  for (llvm::StringRef word : text::reservedWords) {
    EXPECT_EQ(word.lower(), word);
    EXPECT_TRUE(seen.insert(word).second) << word.str() << " is there twice";
  }
}

TEST(Text, JsonStringsReadBackAndEndNoScript) {
  EXPECT_EQ(text::json("a\"b"), "\"a\\\"b\"");
  EXPECT_EQ(text::json("</script>"), "\"\\u003c/script\\u003e\"");
  EXPECT_EQ(text::json("\xf3\xa0\x80\x81"), "\"\\udb40\\udc01\"");
  for (const std::string &name : hostile) {
    std::string written = text::json(name);
    EXPECT_FALSE(llvm::StringRef(written).contains('<'));
    EXPECT_TRUE(text::isPrintable(written));
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(written);
    ASSERT_TRUE(static_cast<bool>(value)) << written;
    if (llvm::json::isUTF8(name))
      EXPECT_EQ(value->getAsString(), llvm::StringRef(name)) << written;
  }
}

TEST(Text, LatexHasNoCommandsOfOthers) {
  EXPECT_EQ(text::latex("zb_v:50%$#&{}"), "zb\\_v:50\\%\\$\\#\\&\\{\\}");
  EXPECT_EQ(text::latex("\\input~^"),
            "\\textbackslash{}input\\textasciitilde{}\\textasciicircum{}");
  for (const std::string &name : hostile)
    EXPECT_TRUE(text::isPrintable(text::latex(name)));
}

TEST(Text, CsvCellsEndWhereTheyShould) {
  EXPECT_EQ(text::csv("interleaved:group=8"), "interleaved:group=8");
  EXPECT_EQ(text::csv("a,b"), "\"a,b\"");
  EXPECT_EQ(text::csv("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(text::csv("a\nb"), "a\\x0ab");
}

TEST(Text, ListsReadAsInASentence) {
  EXPECT_EQ(text::listOf({}), "");
  EXPECT_EQ(text::listOf({"a"}), "a");
  EXPECT_EQ(text::listOf({"a", "b"}), "a or b");
  EXPECT_EQ(text::listOf({"a", "b", "c"}), "a, b or c");
}

TEST(Text, XmlHasNoMarkupOfOthers) {
  EXPECT_EQ(text::xml("a<b>&\"'\n"), "a&lt;b&gt;&amp;&quot;&#39;\\x0a");
  for (const std::string &name : hostile) {
    std::string written = text::xml(name);
    EXPECT_EQ(written.find_first_of("<>\"'"), std::string::npos) << written;
    EXPECT_TRUE(text::isPrintable(written));
  }
}
