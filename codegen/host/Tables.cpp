//===- Tables.cpp - Lists without a pattern as tables ---------------------===//
//
// Calls of the same shape are one case. What their words differ in are columns;
// words that always have the same number share one.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Tables.h"

#include "codegen/host/Repetitions.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

using llvm::ArrayRef;

namespace pipewright::codegen {

namespace {

/// The calls of one shape, by their numbers.
struct Case {
  std::vector<size_t> calls;
  /// A number for each call.
  std::vector<std::vector<int64_t>> columns;
  /// The column of each word; none where the word is always the same.
  std::vector<std::optional<size_t>> columnOf;
};

class TableWriter {
public:
  explicit TableWriter(const Function &function);

  std::vector<Statement> write();

private:
  int64_t numberOf(const Token &word) const;
  void findColumns(Case &shape);
  CallStatement statementOf(const Case &shape) const;

  BufferArrays arrays;
  /// Without comments: which work an event stands for has no pattern either.
  std::vector<CallStatement> calls;
  std::vector<Case> cases;
  std::string table;
};

} // namespace

TableWriter::TableWriter(const Function &function)
    : arrays(function), table(arrays.unique("calls")) {
  std::map<std::string, size_t> known;
  for (const Statement &statement : function.body) {
    auto *call = std::get_if<CallStatement>(&statement);
    if (!call)
      continue;
    calls.push_back(*call);
    calls.back().trailingComment.clear();
    size_t number =
        known.emplace(shapeOf(calls.back()), cases.size()).first->second;
    cases.resize(std::max(cases.size(), number + 1));
    cases[number].calls.push_back(calls.size() - 1);
  }
}

/// What calls of one shape may differ in.
int64_t TableWriter::numberOf(const Token &word) const {
  if (auto *counter = std::get_if<Counter>(&word))
    return counter->value.first;
  return arrays.isInFamily(word) ? arrays.indexOf(word) : 0;
}

void TableWriter::findColumns(Case &shape) {
  std::vector<const Token *> first = wordsOf(calls[shape.calls.front()]);
  std::vector<std::vector<int64_t>> numbers(first.size());
  for (size_t call : shape.calls)
    for (auto [word, all] : llvm::zip_equal(wordsOf(calls[call]), numbers))
      all.push_back(numberOf(*word));
  for (auto [word, all] : llvm::zip_equal(first, numbers)) {
    shape.columnOf.push_back(std::nullopt);
    if (llvm::all_equal(all))
      continue;
    if (arrays.isInFamily(*word))
      arrays.declareFamily(*word);
    auto known = llvm::find(shape.columns, all);
    shape.columnOf.back() = known - shape.columns.begin();
    if (known == shape.columns.end())
      shape.columns.push_back(std::move(all));
  }
}

/// The call of a case, by the columns of its row.
CallStatement TableWriter::statementOf(const Case &shape) const {
  CallStatement statement = calls[shape.calls.front()];
  size_t position = 0;
  forEachWord(statement, [&](Token &word) {
    std::optional<size_t> column = shape.columnOf[position++];
    const std::string *array = arrays.arrayOf(word);
    if (!column)
      return;
    // The number of the case comes first.
    std::string number = "row[" + std::to_string(*column + 1) + "]";
    word = array ? *array + "[" + number + "]" : number;
  });
  return arrays.withElements(std::move(statement));
}

std::vector<Statement> TableWriter::write() {
  std::vector<std::string> rows(calls.size());
  size_t width = 1;
  for (auto [number, shape] : llvm::enumerate(cases)) {
    findColumns(shape);
    width = std::max(width, shape.columns.size() + 1);
    for (auto [index, call] : llvm::enumerate(shape.calls)) {
      rows[call] = "{" + std::to_string(number);
      for (const std::vector<int64_t> &column : shape.columns)
        rows[call] += ", " + std::to_string(column[index]);
      rows[call] += "}";
    }
  }
  // All arrays are known now.
  Dispatch dispatch = {table, {}};
  for (const Case &shape : cases)
    dispatch.cases.push_back(statementOf(shape));

  std::vector<Statement> body = arrays.declarations();
  body.push_back(Comment{"Each row is a call: its case, then its numbers."});
  body.push_back(ValueTable{"int32_t", table, std::move(rows), width});
  body.push_back(BlankLine());
  body.push_back(std::move(dispatch));
  return body;
}

void makeTable(Function &function) {
  function.body = TableWriter(function).write();
}

} // namespace pipewright::codegen
