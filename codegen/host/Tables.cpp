//===- Tables.cpp - Long lists of calls as tables -------------------------===//
//
// Calls of the same shape are one case. What their words differ in are columns;
// words that always have the same number share one. Buffers that a column
// chooses from are elements of an array.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Tables.h"

#include "codegen/host/Identifiers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include <map>

using llvm::StringRef;

namespace pipewright::codegen {

namespace {

/// The buffers that a function declares, of which families may become arrays.
class BufferArrays {
public:
  explicit BufferArrays(const Function &function);

  /// Whether the word is a buffer of a family; else it has no index.
  bool isInFamily(const Token &word) const { return familyOf(word) != nullptr; }
  int64_t indexOf(const Token &word) const {
    return familyOf(word)->indices.lookup(std::get<Local>(word).name());
  }
  /// Makes an array of the word's family.
  void declareFamily(const Token &word);
  /// The element of the word's array at `index`; `word` itself while its family
  /// is no array, and for all other words.
  Token elementOf(const Token &word, const std::string &index) const;
  /// What the function declares, with arrays in place of their buffers.
  std::vector<Statement> declarations() const;
  /// A name that nothing else in the function has.
  std::string unique(StringRef name) { return names.unique(name); }

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

//===----------------------------------------------------------------------===//
// BufferArrays
//===----------------------------------------------------------------------===//

BufferArrays::BufferArrays(const Function &function) {
  for (const Statement &statement : function.body) {
    auto *buffer = std::get_if<BufferDeclaration>(&statement);
    if (!buffer)
      continue;
    declared.push_back(*buffer);
    names.unique(buffer->buffer.name());
    Family &family = families[buffer->buffer.family()];
    family.indices[buffer->buffer.name()] = family.places.size();
    family.places.push_back("{" + std::to_string(buffer->offset) + ", " +
                            std::to_string(buffer->bytes) + "}");
  }
}

const BufferArrays::Family *BufferArrays::familyOf(const Token &word) const {
  auto *local = std::get_if<Local>(&word);
  if (!local || local->family().empty())
    return nullptr;
  return &families.find(local->family())->second;
}

void BufferArrays::declareFamily(const Token &word) {
  StringRef name = std::get<Local>(word).family();
  Family &family = families[name];
  if (family.array.empty())
    family.array = names.unique((name + "_of").str());
}

Token BufferArrays::elementOf(const Token &word,
                              const std::string &index) const {
  const Family *family = familyOf(word);
  if (!family || family->array.empty())
    return word;
  return family->array + "[" + index + "]";
}

std::vector<Statement> BufferArrays::declarations() const {
  std::vector<Statement> all;
  for (const BufferDeclaration &buffer : declared) {
    const Family *family = familyOf(buffer.buffer);
    if (!family || family->array.empty())
      all.push_back(buffer);
    // The first one stands for all.
    else if (indexOf(buffer.buffer) == 0)
      all.push_back(ValueTable{"Buffer", family->array, family->places});
  }
  return all;
}

//===----------------------------------------------------------------------===//
// TableWriter
//===----------------------------------------------------------------------===//

/// Text that is the same for calls that differ in counters and in which buffers
/// of families they name, at most.
static std::string shapeOf(const CallStatement &statement) {
  std::string shape = statement.call.callee;
  auto add = [&](char kind, const std::string &text) {
    shape += '\0';
    shape += kind;
    shape += text;
  };
  forEachWord(statement, [&](const Token &word) {
    if (auto *local = std::get_if<Local>(&word))
      local->family().empty() ? add('L', local->name())
                              : add('F', local->family());
    else if (auto *counter = std::get_if<Counter>(&word))
      add('C', std::to_string(static_cast<int>(counter->kind)));
    else
      add('T', std::get<std::string>(word));
  });
  return shape;
}

static std::vector<const Token *> wordsOf(const CallStatement &statement) {
  std::vector<const Token *> words;
  forEachWord(statement, [&](const Token &word) { words.push_back(&word); });
  return words;
}

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
    return counter->value;
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
    // The number of the case comes first.
    std::string number =
        column ? "row[" + std::to_string(*column + 1) + "]" : "";
    if (std::holds_alternative<Counter>(word) && column)
      word = number;
    else if (arrays.isInFamily(word))
      word = arrays.elementOf(
          word, column ? number : std::to_string(arrays.indexOf(word)));
  });
  return statement;
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
