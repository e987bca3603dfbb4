//===- RolePatterns.cpp - What --freeze and --train match -----------------===//
//
// LLVM's regular expressions are matched without recursion, but counted
// repetitions are written out when one is compiled, and back references are
// tried in all ways; both are bounded here.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/RolePatterns.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using llvm::StringRef;

namespace pipewright::frontend {

/// An upper bound of how often counted repetitions write out a part.
static uint64_t repetitions(StringRef pattern) {
  uint64_t product = 1;
  for (auto [head, rest] = pattern.split('{'); !rest.empty();
       std::tie(head, rest) = rest.split('{')) {
    uint64_t most = 0;
    for (StringRef number : llvm::split(rest.split('}').first, ',')) {
      uint64_t count = 0;
      if (!number.getAsInteger(10, count))
        most = std::max(most, count);
    }
    product *= std::clamp<uint64_t>(most, 1, 1000);
    if (product > 1'000'000)
      break;
  }
  return product;
}

llvm::Error checkPattern(StringRef option, StringRef pattern) {
  constexpr size_t maxCharacters = 1000;
  constexpr uint64_t maxRepetitions = 10'000;
  auto fail = [&](const llvm::Twine &what) {
    return llvm::createStringError(option + " expects a regular expression " +
                                   what);
  };
  if (pattern.empty() || pattern.size() > maxCharacters)
    return fail("of 1 to " + llvm::Twine(maxCharacters) +
                " characters, but got " + llvm::Twine(pattern.size()));
  // It is repeated in plan.json.
  if (!llvm::json::isUTF8(pattern))
    return fail("in UTF-8");
  for (size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '\\')
      continue;
    if (llvm::isDigit(pattern[++i]))
      return fail("without back references, but got '" + pattern + "'");
  }
  if (repetitions(pattern) > maxRepetitions)
    return fail("with fewer repetitions, but got '" + pattern + "'");
  std::string problem;
  if (!llvm::Regex(pattern).isValid(problem))
    return fail("but got '" + pattern + "': " + problem);
  return llvm::Error::success();
}

llvm::Error checkRoleRule(const RoleRule &rule) {
  return checkPattern(rule.option(), rule.pattern);
}

RolePatterns::RolePatterns(llvm::ArrayRef<RoleRule> rules) {
  for (const RoleRule &rule : rules)
    patterns.push_back({rule, llvm::Regex(rule.pattern)});
}

std::optional<RoleRule::Kind>
RolePatterns::match(llvm::ArrayRef<StringRef> names) {
  std::optional<RoleRule::Kind> decision;
  for (Pattern &pattern : patterns) {
    if (llvm::none_of(
            names, [&](StringRef name) { return pattern.regex.match(name); }))
      continue;
    pattern.isUsed = true;
    decision = pattern.rule.kind;
  }
  return decision;
}

const RoleRule *RolePatterns::firstUnused() const {
  for (const Pattern &pattern : patterns)
    if (!pattern.isUsed)
      return &pattern.rule;
  return nullptr;
}

std::vector<std::string> nearNames(StringRef pattern,
                                   llvm::ArrayRef<std::string> names) {
  std::string literal;
  for (char c : pattern)
    if (llvm::isAlnum(c) || c == '_' || c == '-')
      literal += c;
  constexpr unsigned maxLetters = 100;
  auto distance = [&](StringRef name) {
    unsigned least = StringRef(literal).edit_distance(
        name, /*AllowReplacements=*/true, maxLetters);
    for (StringRef part : llvm::split(name, '.'))
      least =
          std::min(least, StringRef(literal).edit_distance(
                              part, /*AllowReplacements=*/true, maxLetters));
    return least;
  };
  std::vector<std::pair<unsigned, std::string>> all;
  for (const std::string &name : names)
    all.emplace_back(distance(name), name);
  llvm::sort(all);
  constexpr size_t maxShown = 3;
  std::vector<std::string> nearest;
  for (auto &[unused, name] : llvm::ArrayRef(all).take_front(maxShown))
    nearest.push_back(name);
  return nearest;
}

} // namespace pipewright::frontend
