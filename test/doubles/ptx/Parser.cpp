//===- Parser.cpp - What stands outside of entries ------------------------===//

#include "test/doubles/ptx/Parser.h"

#include <algorithm>
#include <cstring>

using namespace pipewright::ptx;

uint64_t Parser::parseInteger(std::string_view text) {
  uint64_t bits = 0;
  uint32_t bytes = 0;
  if (!parseNumber(trim(text), bits, bytes) || bytes)
    cursor.fail("expected an integer, found '" + std::string(text) + "'");
  return bits;
}

void Parser::parse() {
  bool isExtern = false;
  while (!cursor.atEnd()) {
    const std::string_view directive = cursor.word();
    if (directive == ".extern") {
      isExtern = true;
      continue;
    }
    if (directive == ".visible" || directive == ".weak" ||
        directive == ".common")
      continue;
    if (directive == ".global" || directive == ".const")
      parseVariable(isExtern);
    else
      parseDirective(directive);
    isExtern = false;
  }
  if (!module.version)
    cursor.fail("no .version");
  // Only now are all variables and functions known.
  for (const Cursor &entry : entries) {
    cursor = entry;
    parseEntry();
  }
}

void Parser::parseDirective(std::string_view directive) {
  if (directive == ".version") {
    const std::string_view version = trim(cursor.restOfLine());
    const size_t dot = version.find('.');
    if (dot == version.npos)
      cursor.fail("expected a version such as 8.0");
    module.version =
        static_cast<int>(parseInteger(version.substr(0, dot)) * 10 +
                         parseInteger(version.substr(dot + 1)));
  } else if (directive == ".target") {
    std::string_view target = trim(cursor.restOfLine());
    target = trim(target.substr(0, target.find(',')));
    if (!target.starts_with("sm_"))
      cursor.fail("expected a target such as sm_90");
    target.remove_prefix(3);
    while (!target.empty() &&
           !isdigit(static_cast<unsigned char>(target.back())))
      target.remove_suffix(1);
    module.target = static_cast<int>(parseInteger(target));
  } else if (directive == ".address_size") {
    if (trim(cursor.restOfLine()) != "64")
      cursor.fail("only addresses of 64 bits are supported");
  } else if (directive == ".entry") {
    entries.push_back(cursor);
    while (cursor.peek() != '{')
      cursor.pass();
    cursor.skipBraces();
  } else if (directive == ".func") {
    noteFunction();
  } else if (directive == ".shared") {
    uint32_t bytes = 0;
    parseShared(nullptr, bytes);
  } else if (directive == ".file") {
    cursor.restOfLine();
  } else if (directive == ".section") {
    cursor.word();
    cursor.skipBraces();
  } else {
    cursor.fail("unknown directive '" + std::string(directive) + "'");
  }
}

/// "(.param .b32 result) name (.param .b64 a) { ... }" or only the head.
void Parser::noteFunction() {
  const Cursor begin = cursor;
  if (cursor.accept('('))
    cursor.until(')');
  const std::string name(cursor.word());
  while (cursor.peek() != '{' && cursor.peek() != ';')
    cursor.pass();
  if (cursor.accept(';'))
    return;
  functions.insert_or_assign(name, FunctionText{begin});
  cursor.skipBraces();
}

Declaration Parser::parseDeclaration() {
  Declaration declaration;
  while (cursor.peek() == '.') {
    const std::string_view word = cursor.word();
    if (word == ".align") {
      declaration.align = parseInteger(cursor.word());
    } else if (word == ".ptr" || word == ".global" || word == ".const" ||
               word == ".shared" || word == ".local") {
      continue;
    } else if (word == ".attribute") {
      cursor.until(')');
    } else if (std::optional<Type> type = parseType(word.substr(1))) {
      declaration.type = *type;
    } else {
      cursor.fail("unknown type '" + std::string(word) + "'");
    }
  }
  declaration.align =
      std::max<uint64_t>(declaration.align, bytesOf(declaration.type));
  declaration.name = cursor.word();
  while (cursor.accept('[')) {
    const std::string_view size = trim(cursor.until(']'));
    declaration.isArray = true;
    declaration.count *= size.empty() ? 0 : parseInteger(size);
  }
  return declaration;
}

/// "{1, 2, 0f3F800000}" or one number; what is not given is zero.
void Parser::parseInitializer(const Declaration &declaration,
                              std::vector<std::byte> &bytes) {
  const uint32_t size = bytesOf(declaration.type);
  const bool braces = cursor.accept('{');
  size_t offset = 0;
  const std::string_view list = cursor.until(braces ? '}' : ';');
  if (braces)
    cursor.expect(';');
  for (std::string_view item : splitOperands(list)) {
    uint64_t bits = 0;
    uint32_t literalBytes = 0;
    if (!parseNumber(item, bits, literalBytes))
      cursor.fail("unknown initial value '" + std::string(item) + "'");
    if (offset + size > bytes.size())
      cursor.fail("too many initial values");
    std::memcpy(bytes.data() + offset, &bits, size);
    offset += size;
  }
}

void Parser::place(const Declaration &declaration,
                   const std::vector<std::byte> &bytes) {
  // Wider than any access, so that alignment is as on a GPU.
  constexpr size_t align = 256;
  const size_t size = std::max<size_t>((bytes.size() + align - 1) / align, 1);
  module.storage.emplace_back(
      static_cast<std::byte *>(std::aligned_alloc(align, size * align)));
  std::byte *data = module.storage.back().get();
  std::memcpy(data, bytes.data(), bytes.size());
  const auto address = reinterpret_cast<uint64_t>(data);
  module.variables[declaration.name] = {address, bytes.size()};
  globals[declaration.name] = {Space::Global, address, bytes.size()};
}

void Parser::parseVariable(bool isExtern) {
  const Declaration declaration = parseDeclaration();
  if (isExtern)
    cursor.fail("external variable '" + declaration.name +
                "': modules are not linked");
  std::vector<std::byte> bytes(declaration.bytes());
  if (cursor.accept('='))
    parseInitializer(declaration, bytes);
  else
    cursor.expect(';');
  place(declaration, bytes);
}

uint64_t Parser::takeShared(const Declaration &declaration, uint32_t &bytes) {
  const uint64_t offset =
      (bytes + declaration.align - 1) / declaration.align * declaration.align;
  bytes = static_cast<uint32_t>(offset + declaration.bytes());
  return offset;
}

void Parser::parseShared(EntryBuilder *builder, uint32_t &bytes) {
  const Declaration declaration = parseDeclaration();
  cursor.expect(';');
  if (declaration.count == 0) {
    dynamicShared.push_back(declaration.name);
    return;
  }
  if (!builder) {
    moduleShared.push_back(declaration);
    return;
  }
  const uint64_t offset = takeShared(declaration, bytes);
  builder->addSymbol(declaration.name,
                     {Space::Shared, offset, declaration.bytes()});
}

/// Whether the text, or a function that it calls, has this name in it.
bool Parser::uses(std::string_view body, const std::string &variable,
                  std::set<std::string> &seen) const {
  auto hasWord = [&](const std::string &word) {
    for (size_t at = body.find(word); at != body.npos;
         at = body.find(word, at + 1)) {
      const size_t end = at + word.size();
      if ((at == 0 || !Cursor::isWord(body[at - 1])) &&
          (end == body.size() || !Cursor::isWord(body[end])))
        return true;
    }
    return false;
  };
  if (hasWord(variable))
    return true;
  return std::any_of(functions.begin(), functions.end(), [&](auto &function) {
    if (!hasWord(function.first) || !seen.insert(function.first).second)
      return false;
    Cursor text = function.second.begin;
    while (text.peek() != '{')
      text.pass();
    return uses(text.skipBraces(), variable, seen);
  });
}

/// Places what the entry, whose body is next, uses of the module's variables.
void Parser::placeModuleShared(EntryInfo &info) {
  Cursor ahead = cursor;
  const std::string_view body = ahead.skipBraces();
  for (const Declaration &declaration : moduleShared) {
    globals.erase(declaration.name);
    std::set<std::string> seen;
    if (uses(body, declaration.name, seen))
      globals[declaration.name] = {Space::Shared,
                                   takeShared(declaration, info.sharedBytes),
                                   declaration.bytes()};
  }
}
