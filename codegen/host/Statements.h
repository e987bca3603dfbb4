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

/// A parameter or a local of a generated function, by its name there. Null
/// where there is none.
class Local {
public:
  Local() = default;
  explicit Local(llvm::StringRef name) : text(name) {}

  const std::string &name() const { return text; }
  explicit operator bool() const { return !text.empty(); }
  bool operator==(const Local &) const = default;

private:
  std::string text;
};

/// A list in braces: buffers, or the fields of a shape.
struct BracedList {
  explicit BracedList(std::vector<std::string> elements)
      : elements(std::move(elements)) {}
  bool operator==(const BracedList &) const = default;

  std::vector<std::string> elements;
};

/// An argument of a generated call; text stands for itself.
using CallArgument = std::variant<Local, BracedList, std::string>;

struct Call {
  std::string callee;
  std::vector<CallArgument> arguments;
};

/// A line that is a comment.
struct Comment {
  std::string text;
};
struct BlankLine {};
/// A local buffer: a range of the arena, or of another buffer.
struct BufferDeclaration {
  Local buffer, whole;
  int64_t offset, bytes;
};
/// A constant array.
struct ValueTable {
  std::string elementType, name;
  std::vector<std::string> values;
};
struct CallStatement {
  Call call;
  /// What the call is an argument of, as a function: `rank.task("F", 0, 0, [&]
  /// { ... });`.
  std::optional<Call> around;
  /// Comment at the end of the line.
  std::string behind;
};

using Statement =
    std::variant<Comment, BlankLine, BufferDeclaration, ValueTable, CallStatement>;

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

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_STATEMENTS_H
