//===- Json.cpp - JSON from outside ---------------------------------------===//

#include "support/Json.h"

#include "support/Text.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"

namespace pipewright {

static constexpr int kMostLevels = 64;

/// Whether lists are nested too deeply for the parser. Brackets in strings are
/// text. What is no JSON may look deeper or flatter: the parser ends there.
static bool isTooDeep(llvm::StringRef text) {
  int level = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++level > kMostLevels)
        return true;
    } else if (c == ']' || c == '}') {
      --level;
    }
  }
  return false;
}

llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text) {
  if (isTooDeep(text))
    return llvm::createStringError("its lists are nested more than " +
                                   llvm::Twine(kMostLevels) + " deep");
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (value)
    return value;
  return llvm::createStringError(
      "is not JSON: " + text::shortened(llvm::toString(value.takeError())));
}

std::string findRepeatedKey(llvm::StringRef text) {
  // Keys of the lists and objects that are open, without quotes.
  llvm::SmallVector<llvm::StringSet<>> open;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '{') {
      open.emplace_back();
    } else if (text[i] == ']' || text[i] == '}') {
      open.pop_back();
    } else if (text[i] == '"') {
      const size_t begin = i + 1;
      while (text[++i] != '"')
        i += text[i] == '\\';
      llvm::StringRef string = text.slice(begin, i);
      if (text.drop_front(i + 1).ltrim().starts_with(":") &&
          !open.back().insert(string).second)
        return string.str();
    }
  }
  return "";
}

} // namespace pipewright
