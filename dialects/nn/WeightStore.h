//===- WeightStore.h - The bytes behind nn.weight --------------*- C++ -*-===//
//
// Weights are symbols in the IR; their bytes lie here, keyed by symbol name,
// little endian and row-major. The store owns them or keeps their owner (a
// parsed model, a mapped file) alive, so nothing is copied on import.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_WEIGHTSTORE_H
#define PIPEWRIGHT_DIALECTS_NN_WEIGHTSTORE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringRef.h"

#include <cassert>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace pipewright::nn {

class WeightStore {
public:
  /// Adds bytes that `owner` keeps alive as long as the store lives.
  void addBorrowed(llvm::StringRef name, llvm::ArrayRef<char> bytes,
                   std::shared_ptr<const void> owner) {
    Entry &entry = insert(name);
    entry.bytes = bytes;
    entry.owner = std::move(owner);
  }

  void addOwned(llvm::StringRef name, std::vector<char> bytes) {
    auto owner = std::make_shared<const std::vector<char>>(std::move(bytes));
    addBorrowed(name, *owner, owner);
  }

  /// Adds `count` repetitions of `pattern`; the bytes are made when asked for.
  void addSplat(llvm::StringRef name, llvm::ArrayRef<char> pattern,
                size_t count) {
    Entry &entry = insert(name);
    entry.pattern.assign(pattern.begin(), pattern.end());
    entry.count = count;
  }

  bool contains(llvm::StringRef name) const {
    return entries.contains(name.str());
  }

  /// The bytes of a weight; empty if there is none of that name. Not for use
  /// from several threads at once: splats are made here.
  llvm::ArrayRef<char> lookup(llvm::StringRef name) const {
    auto it = entries.find(name.str());
    if (it == entries.end())
      return {};
    const Entry &entry = it->second;
    if (entry.pattern.empty() || !entry.bytes.empty())
      return entry.bytes;
    auto owner = std::make_shared<std::vector<char>>();
    owner->reserve(entry.pattern.size() * entry.count);
    for (size_t i = 0; i < entry.count; ++i)
      owner->insert(owner->end(), entry.pattern.begin(), entry.pattern.end());
    entry.bytes = *owner;
    entry.owner = std::move(owner);
    return entry.bytes;
  }

  void remove(llvm::StringRef name) { entries.erase(name.str()); }

  size_t size() const { return entries.size(); }

private:
  struct Entry {
    mutable llvm::ArrayRef<char> bytes;
    mutable std::shared_ptr<const void> owner;
    std::vector<char> pattern;
    size_t count = 0;
  };

  Entry &insert(llvm::StringRef name) {
    assert(!contains(name) && "a weight is added once");
    return entries[name.str()];
  }

  llvm::MapVector<std::string, Entry, std::map<std::string, unsigned>> entries;
};

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_WEIGHTSTORE_H
