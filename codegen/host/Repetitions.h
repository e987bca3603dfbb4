//===- Repetitions.h - Calls that are alike ---------------------*- C++ -*-===//
//
// Loops (Loops.h) and tables (Tables.h) stand for many calls that differ in
// numbers and buffers alone: what is the same of them, and buffers as elements
// of arrays.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_REPETITIONS_H
#define PIPEWRIGHT_CODEGEN_HOST_REPETITIONS_H

#include "codegen/host/Identifiers.h"
#include "codegen/host/Statements.h"

#include "llvm/ADT/StringMap.h"

namespace pipewright::codegen {

/// Text that is the same for calls that differ in counters and in which buffers
/// of families they name, at most.
std::string shapeOf(const CallStatement &statement);

std::vector<const Token *> wordsOf(const CallStatement &statement);

/// The buffers that a function declares, of which families may become arrays.
class BufferArrays {
public:
  explicit BufferArrays(const Function &function);

  /// Whether the word is a buffer of a family; else it has no index.
  bool isInFamily(const Token &word) const;
  int64_t indexOf(const Token &word) const;
  /// Makes an array of the word's family.
  void declareFamily(const Token &word);
  /// The array of the word's family; null while it is none, and for all other
  /// words.
  const std::string *arrayOf(const Token &word) const;
  /// The statement with elements in place of buffers that are in arrays.
  CallStatement withElements(CallStatement statement) const;
  /// What the function declares, with arrays in place of their buffers.
  std::vector<Statement> declarations() const;
  /// A name that nothing else in the function has.
  std::string unique(llvm::StringRef name) { return names.unique(name); }

private:
  struct Family {
    llvm::StringMap<int64_t> indices;
    /// As initializers.
    std::vector<std::string> places;
    /// The name of the array; empty while there is none.
    std::string array;
  };
  const Family *familyOf(const Token &word) const;

  std::vector<BufferDeclaration> declared;
  llvm::StringMap<Family> families;
  NameScope names;
};

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_REPETITIONS_H
