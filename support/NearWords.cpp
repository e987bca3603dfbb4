//===- NearWords.cpp - What a mistyped word may have meant ----------------===//

#include "support/NearWords.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

using namespace pipewright;

/// How many letters were left out, put in, mistaken, or swapped with the next
/// one, whatever their case.
static unsigned typingErrors(llvm::StringRef typed, llvm::StringRef word) {
  std::string a = typed.lower(), b = word.lower();
  // Rows are what is typed so far, columns what is read of the word.
  std::vector<std::vector<unsigned>> errors(
      a.size() + 1, std::vector<unsigned>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      unsigned &least = errors[i][j];
      if (i == 0 || j == 0) {
        least = i + j;
        continue;
      }
      least = std::min({errors[i - 1][j] + 1, errors[i][j - 1] + 1,
                        errors[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        least = std::min(least, errors[i - 2][j - 2] + 1);
    }
  return errors[a.size()][b.size()];
}

std::vector<std::string>
text::wordsNear(llvm::StringRef typed, llvm::ArrayRef<llvm::StringRef> words) {
  // Longer than any word; comparing takes time by the product of lengths.
  constexpr size_t longest = 64;
  if (typed.empty() || typed.size() > longest)
    return {};
  std::multimap<unsigned, std::string> near;
  for (llvm::StringRef word : words) {
    unsigned errors = typingErrors(typed, word);
    // A single letter is in most words, and short words are in many.
    bool isPart =
        typed.size() > 1 && word.size() > 2 &&
        (word.contains_insensitive(typed) || typed.contains_insensitive(word));
    if (isPart || errors <= std::max<size_t>(1, word.size() / 3))
      near.emplace(errors, word.str());
  }
  std::vector<std::string> sorted;
  llvm::append_range(sorted, llvm::make_second_range(near));
  return sorted;
}

std::string text::didYouMean(llvm::StringRef typed,
                             llvm::ArrayRef<llvm::StringRef> words,
                             llvm::StringRef before) {
  constexpr size_t maxShown = 3;
  std::string text;
  std::vector<std::string> near = wordsNear(typed, words);
  near.resize(std::min(near.size(), maxShown));
  for (const std::string &word : near)
    text += (text.empty() ? "; did you mean '" : " or '") + before.str() +
            word + "'";
  return text.empty() ? text : text + "?";
}
