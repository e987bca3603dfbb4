//===- RolePatterns.h - What --freeze and --train match --------*- C++ -*-===//
//
// The user's say in which weights are trained: patterns for their names, in the
// order in which they were given. The last one that matches a weight decides.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_COMMON_ROLEPATTERNS_H
#define PIPEWRIGHT_FRONTENDS_COMMON_ROLEPATTERNS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/Regex.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright::frontend {

/// One --freeze or --train.
struct RoleRule {
  enum Kind { Freeze, Train } kind;
  /// A POSIX extended regular expression that is searched for in names.
  std::string pattern;

  llvm::StringRef option() const {
    return kind == Freeze ? "--freeze" : "--train";
  }
};

/// Fails, naming the option, where a pattern is none or could take very long.
llvm::Error checkPattern(llvm::StringRef option, llvm::StringRef pattern);

/// The same of the pattern of a rule.
llvm::Error checkRoleRule(const RoleRule &rule);

class RolePatterns {
public:
  /// All rules passed `checkRoleRule`.
  explicit RolePatterns(llvm::ArrayRef<RoleRule> rules);

  /// What is to be done with a weight that has these names: none if no pattern
  /// matches. Remembers which patterns matched anything.
  std::optional<RoleRule::Kind> match(llvm::ArrayRef<llvm::StringRef> names);

  bool empty() const { return patterns.empty(); }
  /// A rule that has matched nothing so far; null if there is none.
  const RoleRule *firstUnused() const;

private:
  struct Pattern {
    RoleRule rule;
    llvm::Regex regex;
    bool isUsed = false;
  };
  std::vector<Pattern> patterns;
};

/// The names most like what a pattern spells, nearest first.
std::vector<std::string> nearNames(llvm::StringRef pattern,
                                   llvm::ArrayRef<std::string> names);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_COMMON_ROLEPATTERNS_H
