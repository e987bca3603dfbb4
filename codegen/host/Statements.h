//===- Statements.h - What generated functions are made of ------*- C++ -*-===//
//
// Generated functions as data: what is called with which arguments. How it
// looks as text (breaks of lines, indentation, columns of comments) is decided
// in CppPrinter.cpp and nowhere else.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_STATEMENTS_H
#define PIPEWRIGHT_CODEGEN_HOST_STATEMENTS_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pipewright::codegen {

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// A parameter or a local of a generated function, by its name there. Null
/// where there is none.
class Local {
public:
  Local() = default;
  explicit Local(llvm::StringRef name) : text(name) {}
  /// One of several buffers that hold the same for different micro-batches.
  Local(llvm::StringRef name, llvm::StringRef family)
      : text(name), group(family) {}

  const std::string &name() const { return text; }
  /// Empty where the local is the only one of its kind.
  const std::string &family() const { return group; }
  explicit operator bool() const { return !text.empty(); }
  bool operator==(const Local &) const = default;

private:
  std::string text, group;
};

/// A number that differs from one micro-batch to the next.
class Counter {
public:
  enum class Kind { MicroBatch, Event, Update };
  Counter(Kind kind, int64_t value) : kind(kind), value(value) {}
  static Counter microBatch(int64_t number) {
    return {Kind::MicroBatch, number};
  }
  static Counter event(int64_t number) { return {Kind::Event, number}; }
  static Counter update(int64_t number) { return {Kind::Update, number}; }
  bool operator==(const Counter &) const = default;

  Kind kind;
  int64_t value;
};

/// What an argument or a comment consists of; text stands for itself.
using Token = std::variant<Local, Counter, std::string>;
using Tokens = std::vector<Token>;

/// A list in braces: buffers, or the fields of a shape.
struct BracedList {
  explicit BracedList(Tokens elements) : elements(std::move(elements)) {}
  bool operator==(const BracedList &) const = default;

  Tokens elements;
};

using CallArgument = std::variant<Token, BracedList>;

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

struct Call {
  std::string callee;
  std::vector<CallArgument> arguments;
};

/// A line that is a comment.
struct Comment {
  std::string text;
};
struct BlankLine {};
/// A local buffer: a range of the arena, or of another buffer; or what a call
/// makes of a range of the arena.
struct BufferDeclaration {
  Local buffer, whole;
  int64_t offset, bytes;
  std::string call = {};
};
/// A constant array; with columns, values are rows of at most so many.
struct ValueTable {
  std::string elementType, name;
  std::vector<std::string> values;
  size_t columns = 0;
};
struct CallStatement {
  Call call;
  /// What the call is an argument of, as a function: `rank.task("F", 0, 0, [&]
  /// { ... });`.
  std::optional<Call> wrapper;
  /// Comment at the end of the line.
  Tokens trailingComment;
};

/// Calls for each row of a table, whose first column is the number of the case.
struct Dispatch {
  std::string table;
  std::vector<CallStatement> cases;
};

/// What is done where a condition holds.
struct Conditional {
  std::string condition;
  std::vector<std::variant<BufferDeclaration, CallStatement>> body;
};

using Statement =
    std::variant<Comment, BlankLine, BufferDeclaration, ValueTable,
                 CallStatement, Dispatch, Conditional>;

struct Parameter {
  /// With what separates it from the name: `Rank &`, `Buffer `.
  std::string type, name;
  /// Otherwise the name is a comment.
  bool isNamed = true;
};

struct Function {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<Statement> body;
};

/// Calls `visit` for each word of a statement, in the order of its text.
template <class AnyStatement, class Visitor>
void forEachWord(AnyStatement &statement, Visitor visit) {
  auto inCall = [&](auto &call) {
    for (auto &argument : call.arguments)
      if (auto *list = std::get_if<BracedList>(&argument))
        for (auto &word : list->elements)
          visit(word);
      else
        visit(std::get<Token>(argument));
  };
  if (statement.wrapper)
    inCall(*statement.wrapper);
  inCall(statement.call);
  for (auto &word : statement.trailingComment)
    visit(word);
}

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_STATEMENTS_H
