//===- Text.h - The text of a PTX module ------------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_PTX_TEXT_H
#define PIPEWRIGHT_TEST_DOUBLES_PTX_TEXT_H

#include "test/doubles/ptx/Select.h"

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::ptx {

/// Comments become blanks, so that lines keep their numbers.
std::string withoutComments(std::string_view text);

std::string_view trim(std::string_view text);

/// At commas that are in no bracket.
std::vector<std::string_view> splitOperands(std::string_view text);

std::vector<std::string> splitLines(std::string_view text);

/// A position in the text, whose comments are blanks.
class Cursor {
public:
  explicit Cursor(std::string_view text) : text(text) {}

  uint32_t line() const { return at; }
  bool atEnd() {
    skipBlanks();
    return position >= text.size();
  }
  char peek() {
    skipBlanks();
    return position < text.size() ? text[position] : 0;
  }
  bool accept(char wanted) {
    if (peek() != wanted)
      return false;
    ++position;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted))
      fail(std::string("expected '") + wanted + "'");
  }
  /// Letters, digits, '_', '$', '%', and '.' at the front or within.
  std::string_view word() {
    skipBlanks();
    const size_t begin = position;
    while (position < text.size() && isWord(text[position]))
      ++position;
    if (begin == position)
      fail("expected a word");
    return text.substr(begin, position - begin);
  }
  /// Everything before a character outside of parentheses, which is passed.
  std::string_view until(char end) {
    skipBlanks();
    const size_t begin = position;
    while (position < text.size() && text[position] != end)
      advance();
    if (position >= text.size())
      fail(std::string("expected '") + end + "'");
    const std::string_view found = text.substr(begin, position - begin);
    ++position;
    return found;
  }
  std::string_view restOfLine() {
    const size_t begin = position;
    while (position < text.size() && text[position] != '\n')
      ++position;
    return text.substr(begin, position - begin);
  }
  /// Passes one character.
  void pass() {
    if (position >= text.size())
      fail("the text ends too early");
    advance();
  }
  /// An opcode: up to a blank or ';'.
  std::string_view opcode() {
    skipBlanks();
    const size_t begin = position;
    while (position < text.size() &&
           !isspace(static_cast<unsigned char>(text[position])) &&
           text[position] != ';')
      ++position;
    return text.substr(begin, position - begin);
  }
  /// Passes "{ ... }" with all that is within, which is returned.
  std::string_view skipBraces() {
    expect('{');
    const size_t begin = position;
    for (int depth = 1; depth > 0; advance()) {
      if (position >= text.size())
        fail("expected '}'");
      depth += text[position] == '{';
      depth -= text[position] == '}';
    }
    return text.substr(begin, position - begin);
  }
  /// "name:" but not "name::".
  bool atLabel() {
    skipBlanks();
    size_t end = position;
    while (end < text.size() && isWord(text[end]) && text[end] != '.')
      ++end;
    while (end < text.size() && (text[end] == ' ' || text[end] == '\t'))
      ++end;
    return end > position && end < text.size() && text[end] == ':' &&
           (end + 1 >= text.size() || text[end + 1] != ':');
  }
  [[noreturn]] void fail(const std::string &what) const {
    throw ParseError("line " + std::to_string(at) + ": " + what);
  }
  static bool isWord(char c) {
    return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
           c == '%' || c == '.';
  }

private:
  void advance() {
    if (text[position] == '\n')
      ++at;
    ++position;
  }
  void skipBlanks() {
    while (position < text.size() &&
           isspace(static_cast<unsigned char>(text[position])))
      advance();
  }

  std::string_view text;
  size_t position = 0;
  uint32_t at = 1;
};

} // namespace pipewright::ptx

#endif // PIPEWRIGHT_TEST_DOUBLES_PTX_TEXT_H
