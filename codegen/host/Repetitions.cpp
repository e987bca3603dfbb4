//===- Repetitions.cpp - Calls that are alike -----------------------------===//
//
// A family is an array as soon as one call has to name it by an index; then all
// calls do.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Repetitions.h"

using llvm::StringRef;

namespace pipewright::codegen {

std::string shapeOf(const CallStatement &statement) {
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

std::vector<const Token *> wordsOf(const CallStatement &statement) {
  std::vector<const Token *> words;
  forEachWord(statement, [&](const Token &word) { words.push_back(&word); });
  return words;
}

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

bool BufferArrays::isInFamily(const Token &word) const {
  return familyOf(word) != nullptr;
}

int64_t BufferArrays::indexOf(const Token &word) const {
  return familyOf(word)->indices.lookup(std::get<Local>(word).name());
}

void BufferArrays::declareFamily(const Token &word) {
  StringRef name = std::get<Local>(word).family();
  Family &family = families[name];
  if (family.array.empty())
    family.array = names.unique((name + "_of").str());
}

const std::string *BufferArrays::arrayOf(const Token &word) const {
  const Family *family = familyOf(word);
  return family && !family->array.empty() ? &family->array : nullptr;
}

CallStatement BufferArrays::withElements(CallStatement statement) const {
  forEachWord(statement, [&](Token &word) {
    if (const std::string *array = arrayOf(word))
      word = Element(*array, "", {indexOf(word)});
  });
  return statement;
}

std::vector<Statement> BufferArrays::declarations() const {
  std::vector<Statement> all;
  for (const BufferDeclaration &buffer : declared) {
    const std::string *array = arrayOf(buffer.buffer);
    if (!array)
      all.push_back(buffer);
    // The first one stands for all.
    else if (indexOf(buffer.buffer) == 0)
      all.push_back(
          ValueTable{"Buffer", *array, familyOf(buffer.buffer)->places});
  }
  return all;
}

} // namespace pipewright::codegen
