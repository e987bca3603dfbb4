//===- CppPrinter.cpp - Generated functions as text -----------------------===//
//
// A statement is a sequence of pieces, one for each argument. Where they do
// not fit into one line, lines are broken between pieces, and inside of a piece
// only where a list is too long for a line of its own.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/CppPrinter.h"

#include "support/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using llvm::SmallVector;
using llvm::StringRef;

namespace pipewright::codegen {

/// Longer ones are not optimized (runtime/rank/Worker.h).
static constexpr size_t longFunction = 1000;

static constexpr size_t lineWidth = 80;
/// Where comments behind statements begin.
static constexpr size_t commentColumn = 56;

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

namespace {

/// Text that is kept on one line if possible: an argument, with the comma and
/// the space behind it. A list has several elements.
using Piece = std::vector<std::string>;
using Pieces = std::vector<Piece>;

} // namespace

static std::string textOf(const Token &word) {
  if (auto *local = std::get_if<Local>(&word))
    return local->name();
  if (auto *counter = std::get_if<Counter>(&word))
    return std::to_string(counter->value);
  return std::get<std::string>(word);
}

static Piece pieceOf(const CallArgument &argument) {
  if (auto *word = std::get_if<Token>(&argument))
    return {textOf(*word)};
  Piece piece;
  for (const Token &element : std::get<BracedList>(argument).elements)
    piece.push_back(textOf(element) + ", ");
  if (piece.empty())
    return {"{}"};
  piece.front().insert(0, "{");
  piece.back().replace(piece.back().size() - 2, 2, "}");
  return piece;
}

/// Puts commas between pieces, and text around all of them.
static Pieces join(StringRef before, Pieces pieces, StringRef behind) {
  if (pieces.empty())
    return {{(before + behind).str()}};
  for (Piece &piece : llvm::MutableArrayRef(pieces).drop_back())
    piece.back() += ", ";
  pieces.front().front().insert(0, before.str());
  pieces.back().back() += behind.str();
  return pieces;
}

static Pieces piecesOf(const Call &call, StringRef behind) {
  Pieces pieces;
  for (const CallArgument &argument : call.arguments)
    pieces.push_back(pieceOf(argument));
  return join(call.callee + "(", std::move(pieces), behind);
}

static std::string textOf(const Pieces &pieces) {
  std::string text;
  for (const Piece &piece : pieces)
    text += llvm::join(piece, "");
  return text;
}

/// Puts pieces on as many lines as they need; continued lines are indented by
/// four more.
static std::string wrap(const Pieces &pieces, size_t indent) {
  std::string current(indent, ' '), lines;
  if (indent + textOf(pieces).size() <= lineWidth)
    return current + textOf(pieces);
  indent += 4;
  auto add = [&](StringRef text) {
    if (current.size() + text.rtrim().size() > lineWidth &&
        !StringRef(current).trim().empty()) {
      lines += StringRef(current).rtrim().str() + "\n";
      current.assign(indent, ' ');
    }
    current += text;
  };
  for (const Piece &piece : pieces) {
    std::string whole = llvm::join(piece, "");
    if (indent + StringRef(whole).rtrim().size() <= lineWidth)
      add(whole);
    else
      llvm::for_each(piece, add);
  }
  return lines + current;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

static std::string textOf(const Comment &comment, size_t indent) {
  return std::string(indent, ' ') + "// " + text::comment(comment.text);
}

static std::string textOf(const BlankLine &, size_t) { return ""; }

static std::string textOf(const BufferDeclaration &declared, size_t indent) {
  std::string offset = std::to_string(declared.offset),
              bytes = std::to_string(declared.bytes);
  std::string before = "const Buffer " + declared.buffer.name() + " = ";
  if (!declared.call.empty())
    return wrap(join(before + declared.call + "({", {{offset}, {bytes}}, "});"),
                indent);
  if (!declared.whole)
    return wrap({{before + "{" + offset + ", " + bytes + "};"}}, indent);
  return wrap(
      join(before + declared.whole.name() + ".at(", {{offset}, {bytes}}, ");"),
      indent);
}

static std::string textOf(const ValueTable &table, size_t indent) {
  constexpr size_t width = 72;
  std::string margin(indent, ' '), current;
  std::string lines =
      margin + "static const " + table.elementType + " " + table.name + "[]" +
      (table.columns ? "[" + std::to_string(table.columns) + "]" : "") +
      " = {\n";
  margin += "    ";
  for (const std::string &value : table.values) {
    if (!current.empty() && current.size() + value.size() > width) {
      lines += margin + StringRef(current).rtrim().str() + "\n";
      current.clear();
    }
    current += value + ", ";
  }
  return lines + margin + StringRef(current).rtrim(", ").str() + "};";
}

static std::string commentOf(const Tokens &words) {
  std::string text;
  for (const Token &word : words)
    text += textOf(word);
  return text::comment(text);
}

static std::string textOf(const CallStatement &statement, size_t indent) {
  Pieces call = piecesOf(statement.call, ");");
  std::string margin(indent, ' '), lines;
  if (!statement.wrapper) {
    lines = wrap(call, indent);
  } else {
    Call around = *statement.wrapper;
    around.arguments.push_back(std::string("[&] {"));
    std::string opening = margin + textOf(piecesOf(around, ""));
    lines = opening + " " + textOf(call) + " });";
    if (lines.size() > lineWidth)
      lines = opening + "\n" + wrap(call, indent + 2) + "\n" + margin + "});";
  }
  if (statement.trailingComment.empty())
    return lines;
  size_t length = lines.size() - (lines.rfind('\n') + 1);
  lines.append(length < commentColumn ? commentColumn - length : 2, ' ');
  return lines + "// " + commentOf(statement.trailingComment);
}

static std::string textOf(const Dispatch &dispatch, size_t indent) {
  std::string margin(indent, ' ');
  std::string text = margin + "for (const auto &row : " + dispatch.table +
                     ")\n" + margin + "  switch (row[0]) {\n";
  for (auto [number, statement] : llvm::enumerate(dispatch.cases))
    text += margin + "  case " + std::to_string(number) + ":\n" +
            textOf(statement, indent + 4) + "\n" + margin + "    break;\n";
  return text + margin + "  }";
}

static std::string textOf(const Conditional &conditional, size_t indent) {
  std::string margin(indent, ' ');
  std::string text = margin + "if (" + conditional.condition + ") {\n";
  for (const auto &statement : conditional.body)
    text +=
        std::visit([&](const auto &kind) { return textOf(kind, indent + 2); },
                   statement) +
        "\n";
  return text + margin + "}";
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static std::string headOf(const Function &function, StringRef behind) {
  Pieces parameters;
  for (const Parameter &parameter : function.parameters)
    parameters.push_back(
        {parameter.type +
         (parameter.isNamed ? parameter.name : "/*" + parameter.name + "*/")});
  return wrap(
      join("void " + function.name + "(", std::move(parameters), behind), 0);
}

void printComment(llvm::raw_ostream &os, StringRef text) {
  os << textOf(Comment{text.str()}, 0) << "\n";
}

void printFunction(llvm::raw_ostream &os, StringRef comment,
                   const Function &function) {
  os << "\n";
  printComment(os, comment);
  if (function.body.size() > longFunction)
    os << "PIPEWRIGHT_LONG_FUNCTION\n";
  os << headOf(function, ") {") << "\n";
  for (const Statement &statement : function.body)
    os << std::visit([](auto &kind) { return textOf(kind, 2); }, statement)
       << "\n";
  os << "}\n";
}

void printDeclaration(llvm::raw_ostream &os, const Function &function) {
  os << headOf(function, ");") << "\n";
}

} // namespace pipewright::codegen
