//===- TextLimits.cpp - What MLIR's parser may be given -------------------===//
//
// Reads words and brackets alone. Where text is no MLIR the count is too large
// rather than too small, and the parser refuses the rest.
//
//===----------------------------------------------------------------------===//

#include "frontends/text/TextLimits.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <cstdint>

using llvm::StringRef;

namespace pipewright::frontend {

namespace {

class TextMeter {
public:
  explicit TextMeter(StringRef text) : rest(text) {}

  std::string run();

private:
  static constexpr size_t kMaxDepth = 256;
  /// Of locations that one location stands for.
  static constexpr uint64_t kMaxLocations = 4096;

  struct Location {
    uint64_t size = 1;
    size_t depth = 0;
  };

  StringRef takeName();
  StringRef takeWord();
  void takeString();
  bool takeComment();
  void skipBlanks();
  void open(char bracket);
  void close(char bracket);
  void readAliasName(StringRef name);
  void refuse(const llvm::Twine &message) {
    if (problem.empty())
      problem = message.str();
  }

  StringRef rest;
  std::string problem;
  /// The brackets that are open.
  std::string brackets;
  llvm::StringMap<Location> locations;
  /// The alias that is being defined, and how many brackets were open before
  /// it.
  StringRef defined;
  size_t depthOfDefinition = 0;
};

} // namespace

static bool isOfWord(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.';
}

/// What stands behind '@', '%', '^', '#' or '!'.
StringRef TextMeter::takeName() {
  StringRef name =
      rest.take_while([](char c) { return isOfWord(c) || c == '-'; });
  rest = rest.drop_front(name.size());
  return name;
}

/// A keyword or a number; a name may follow a number without a blank.
StringRef TextMeter::takeWord() {
  StringRef word = llvm::isDigit(rest.front()) ? rest.take_while(llvm::isDigit)
                                               : rest.take_while(isOfWord);
  rest = rest.drop_front(word.size());
  return word;
}

void TextMeter::takeString() {
  size_t at = 1;
  for (; at < rest.size() && rest[at] != '"'; ++at)
    at += rest[at] == '\\' ? 1 : 0;
  rest = rest.substr(at + 1);
}

bool TextMeter::takeComment() {
  if (!rest.starts_with("//"))
    return false;
  rest = rest.drop_until([](char c) { return c == '\n' || c == '\r'; });
  return true;
}

void TextMeter::skipBlanks() {
  do
    rest = rest.ltrim();
  while (takeComment());
}

void TextMeter::open(char bracket) {
  brackets += bracket;
  if (brackets.size() > kMaxDepth)
    refuse("expects brackets at most " + llvm::Twine(kMaxDepth) + " deep");
}

/// One that does not fit closes nothing: that is an error for the parser.
void TextMeter::close(char bracket) {
  constexpr StringRef all = "([{<)]}>";
  if (brackets.empty() || brackets.back() != all[all.find(bracket) - 4])
    return;
  brackets.pop_back();
  if (brackets.size() == depthOfDefinition)
    defined = "";
}

/// Of a name behind '#' or '!': a definition or a use, or an attribute of a
/// dialect, whose name has a dot.
void TextMeter::readAliasName(StringRef name) {
  // `%a#N`: the parser makes room for so many results.
  constexpr size_t maxDigits = 4;
  if (name.size() > maxDigits && llvm::all_of(name, llvm::isDigit))
    return refuse("expects numbers of results of at most " +
                  llvm::Twine(maxDigits) + " digits, but got '#" +
                  name.take_front(32) + "'");
  skipBlanks();
  if (!rest.consume_front("=")) {
    auto used = locations.find(name);
    if (defined.empty() || used == locations.end())
      return;
    Location &location = locations[defined];
    location.size += used->second.size;
    location.depth =
        std::max(location.depth, brackets.size() + used->second.depth);
    if (location.size > kMaxLocations || location.depth > kMaxDepth)
      refuse("expects an alias to stand for at most " +
             llvm::Twine(kMaxLocations) + " locations, at most " +
             llvm::Twine(kMaxDepth) + " deep, but '#" + defined +
             "' stands for more");
    return;
  }
  skipBlanks();
  bool isLocation = rest.consume_front("loc");
  skipBlanks();
  if (!isLocation || !rest.starts_with("("))
    return refuse("expects no alias but those of locations, but got '" + name +
                  "'; write what it stands for where it is used");
  defined = name;
  depthOfDefinition = brackets.size();
  locations[name] = {};
}

std::string TextMeter::run() {
  while (!rest.empty() && problem.empty()) {
    char c = rest.front();
    if (c == '"') {
      takeString();
    } else if (takeComment()) {
      continue;
    } else if (rest.starts_with("->")) {
      rest = rest.drop_front(2);
    } else if (StringRef("@%^").contains(c)) {
      rest = rest.drop_front();
      takeName();
    } else if (c == '#' || c == '!') {
      rest = rest.drop_front();
      if (StringRef name = takeName(); !name.empty())
        readAliasName(name);
    } else if (llvm::isAlnum(c) || c == '_') {
      if (StringRef word = takeWord();
          word.ends_with("affine_map") || word.ends_with("affine_set"))
        refuse("expects nn and call ops, which have no '" + word + "'");
    } else {
      if (StringRef("([{<").contains(c))
        open(c);
      else if (StringRef(")]}>").contains(c))
        close(c);
      rest = rest.drop_front();
    }
  }
  return std::move(problem);
}

std::string problemOfText(StringRef text) {
  if (text.starts_with("ML\xefR"))
    return "expects text, but got MLIR bytecode; print it as text with "
           "pipewright-opt";
  if (text.contains('\0'))
    return "expects text, but it has a zero byte";
  return TextMeter(text).run();
}

} // namespace pipewright::frontend
