//===- Text.cpp - Text from outside in what is parsed again ---------------===//
//
// One walk over characters serves all forms; each says only which characters
// it writes in another way. What is no UTF-8 is met byte by byte.
//
//===----------------------------------------------------------------------===//

#include "support/Text.h"

#include "support/ReservedWords.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Unicode.h"

#include <cctype>

using llvm::StringRef;

namespace {

/// A character of a text, or a byte that is part of none.
struct Character {
  StringRef bytes;
  uint32_t code = 0;
  bool isValid = true;
};

} // namespace

/// Takes the first character off a text that is not empty.
static Character takeCharacter(StringRef &text) {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.data());
  const llvm::UTF8 *at = begin;
  llvm::UTF32 code = 0;
  bool isValid =
      llvm::convertUTF8Sequence(&at, begin + text.size(), &code,
                                llvm::strictConversion) == llvm::conversionOK;
  size_t size = isValid ? at - begin : 1;
  Character character{text.take_front(size), code, isValid};
  text = text.drop_front(size);
  return character;
}

/// Whether people see the character, and see no other text because of it.
static bool isShown(const Character &character) {
  if (!character.isValid)
    return false;
  uint32_t code = character.code;
  if (code < 0x80)
    return code >= 0x20 && code < 0x7f;
  // Spaces that look like no or another space, and the soft hyphen.
  static constexpr uint32_t blanks[] = {0xa0,   0xad,   0x1680, 0x202f,
                                        0x205f, 0x3000, 0x115f, 0x1160,
                                        0x3164, 0xffa0, 0x2800};
  return llvm::sys::unicode::isPrintable(static_cast<int>(code)) &&
         !llvm::is_contained(blanks, code) && (code < 0x2000 || code > 0x200f);
}

static void appendHex(std::string &out, uint32_t number, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    out += llvm::hexdigit((number >> shift) & 15, /*LowerCase=*/true);
}

static std::string byteEscape(char c) {
  std::string out = "\\x";
  appendHex(out, static_cast<unsigned char>(c), 2);
  return out;
}

/// `\x0a` of a byte, `\u202e` or `\U000e0001` of a character beyond ASCII.
static std::string escapeOf(const Character &character) {
  if (!character.isValid || character.code < 0x80)
    return byteEscape(character.bytes.front());
  bool isLong = character.code > 0xffff;
  std::string out = isLong ? "\\U" : "\\u";
  appendHex(out, character.code, isLong ? 8 : 4);
  return out;
}

//===----------------------------------------------------------------------===//
// For people
//===----------------------------------------------------------------------===//

std::string pipewright::text::printable(StringRef text) {
  std::string out;
  while (!text.empty()) {
    Character character = takeCharacter(text);
    out += isShown(character) ? character.bytes.str() : escapeOf(character);
  }
  return out;
}

bool pipewright::text::isPrintable(StringRef text) {
  while (!text.empty())
    if (!isShown(takeCharacter(text)))
      return false;
  return true;
}

std::string pipewright::text::shortened(StringRef text, size_t most) {
  // Far more than can be left, so that long texts cost little.
  bool isLong = text.size() > 8 * most;
  std::string shown = isLong ? printable(text.take_front(2 * most)) +
                                   printable(text.take_back(2 * most))
                             : printable(text);
  if (!isLong && shown.size() <= most)
    return shown;
  auto continues = [&](size_t at) {
    return (static_cast<unsigned char>(shown[at]) & 0xc0) == 0x80;
  };
  size_t half = (most - 3) / 2;
  size_t head = half, tail = shown.size() - half;
  while (head > 0 && continues(head))
    --head;
  while (tail < shown.size() && continues(tail))
    ++tail;
  return shown.substr(0, head) + "..." + shown.substr(tail);
}

std::string pipewright::text::problemOfName(StringRef name) {
  if (name.empty())
    return "expects a name, but it is empty";
  if (isPrintable(name))
    return "";
  return "expects a name of characters that can be seen and typed, but got "
         "control characters, invisible ones or bytes that are no UTF-8, shown "
         "here after a backslash";
}

//===----------------------------------------------------------------------===//
// C++
//===----------------------------------------------------------------------===//

std::string pipewright::text::comment(StringRef text) {
  std::string out;
  for (char c : printable(text)) {
    char before = out.empty() ? 0 : out.back();
    bool ends = (before == '*' && c == '/') || (before == '/' && c == '*');
    bool isTrigraph = before == '?' && c == '?';
    out += ends || isTrigraph ? byteEscape(c) : std::string(1, c);
  }
  // Compilers also join lines where blanks follow the backslash.
  StringRef seen = StringRef(out).rtrim(' ');
  if (seen.ends_with("\\"))
    return seen.drop_back().str() + byteEscape('\\');
  return out;
}

std::string pipewright::text::stringLiteral(StringRef text) {
  std::string out = "\"";
  bool wasQuestion = false;
  while (!text.empty()) {
    Character character = takeCharacter(text);
    bool isQuestion = character.code == '?';
    if (!isShown(character)) {
      // Octal digits end after three, hexadecimal ones never.
      for (char byte : character.bytes) {
        auto number = static_cast<unsigned char>(byte);
        out += '\\';
        for (int shift : {6, 3, 0})
          out += static_cast<char>('0' + ((number >> shift) & 7));
      }
    } else {
      if (character.code == '"' || character.code == '\\' ||
          (isQuestion && wasQuestion))
        out += '\\';
      out += character.bytes;
    }
    wasQuestion = isQuestion;
  }
  return out + "\"";
}

std::string pipewright::text::rawLiteral(StringRef text) {
  for (StringRef lines = text; !lines.empty();) {
    Character character = takeCharacter(lines);
    if (!isShown(character) && character.code != '\n')
      return stringLiteral(text);
  }
  std::string delimiter = "text";
  for (int number = 1; text.contains(")" + delimiter + "\""); ++number)
    delimiter = "text" + std::to_string(number);
  return "R\"" + delimiter + "(" + text.str() + ")" + delimiter + "\"";
}

static bool isReserved(StringRef name) {
  return llvm::is_contained(pipewright::text::reservedWords, name);
}

std::string pipewright::text::identifier(StringRef text) {
  std::string out;
  for (char c : text) {
    if (llvm::isAlnum(c))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!out.empty() && out.back() != '_')
      // Two of them, and one in front, are the compiler's own.
      out += '_';
  }
  while (!out.empty() && out.back() == '_')
    out.pop_back();
  if (out.empty())
    return "x";
  bool isName = !llvm::isDigit(out.front()) && !isReserved(out);
  return isName ? out : "x_" + out;
}

bool pipewright::text::isIdentifier(StringRef text) {
  return !text.empty() && !llvm::isDigit(text.front()) && text.front() != '_' &&
         !text.contains("__") &&
         llvm::all_of(text,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; }) &&
         !isReserved(text);
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

static void appendJsonUnit(std::string &out, uint32_t unit) {
  out += "\\u";
  appendHex(out, unit, 4);
}

std::string pipewright::text::json(StringRef text) {
  std::string out = "\"";
  while (!text.empty()) {
    Character character = takeCharacter(text);
    uint32_t code = character.isValid ? character.code : 0xfffd;
    if (code == '"' || code == '\\') {
      out += '\\';
      out += static_cast<char>(code);
    } else if (isShown(character) && code != '<' && code != '>' &&
               code != '&') {
      out += character.bytes;
    } else if (code <= 0xffff) {
      appendJsonUnit(out, code);
    } else {
      appendJsonUnit(out, 0xd800 + ((code - 0x10000) >> 10));
      appendJsonUnit(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
    }
  }
  return out + "\"";
}

std::string pipewright::text::xml(StringRef text) {
  std::string out;
  for (char c : printable(text))
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      out += c;
    }
  return out;
}

std::string pipewright::text::latex(StringRef text) {
  std::string out;
  for (char c : printable(text))
    switch (c) {
    case '\\':
      out += "\\textbackslash{}";
      break;
    case '~':
      out += "\\textasciitilde{}";
      break;
    case '^':
      out += "\\textasciicircum{}";
      break;
    case '&':
    case '%':
    case '$':
    case '#':
    case '_':
    case '{':
    case '}':
      out += '\\';
      [[fallthrough]];
    default:
      out += c;
    }
  return out;
}

std::string pipewright::text::csv(StringRef text) {
  std::string shown = printable(text);
  if (StringRef(shown).find_first_of(",\"") == StringRef::npos)
    return shown;
  std::string out = "\"";
  for (char c : shown) {
    out += c;
    if (c == '"')
      out += c;
  }
  return out + "\"";
}

std::string pipewright::text::listOf(llvm::ArrayRef<llvm::StringRef> words) {
  std::string list;
  for (auto [index, word] : llvm::enumerate(words)) {
    if (index > 0)
      list += index + 1 == words.size() ? " or " : ", ";
    list += word;
  }
  return list;
}
