//===- Parser.cpp - Reads a PTX module ------------------------------------===//

#include "test/doubles/ptx/Select.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace pipewright::ptx;

namespace {
/// A position in the text, whose comments are blanks.
class Cursor {
public:
  explicit Cursor(std::string_view text) : text(text) {}

  uint32_t line() const { return at; }
  bool atEnd() {
    skipBlanks();
    return position >= text.size();
  }
  char peek() {
    skipBlanks();
    return position < text.size() ? text[position] : 0;
  }
  bool accept(char wanted) {
    if (peek() != wanted)
      return false;
    ++position;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted))
      fail(std::string("expected '") + wanted + "'");
  }
  /// Letters, digits, '_', '$', '%', and '.' at the front or within.
  std::string_view word() {
    skipBlanks();
    const size_t begin = position;
    while (position < text.size() && isWord(text[position]))
      ++position;
    if (begin == position)
      fail("expected a word");
    return text.substr(begin, position - begin);
  }
  /// Everything before a character outside of parentheses, which is passed.
  std::string_view until(char end) {
    skipBlanks();
    const size_t begin = position;
    while (position < text.size() && text[position] != end)
      advance();
    if (position >= text.size())
      fail(std::string("expected '") + end + "'");
    const std::string_view found = text.substr(begin, position - begin);
    ++position;
    return found;
  }
  std::string_view restOfLine() {
    const size_t begin = position;
    while (position < text.size() && text[position] != '\n')
      ++position;
    return text.substr(begin, position - begin);
  }
  /// Passes one character.
  void pass() {
    if (position >= text.size())
      fail("the text ends too early");
    advance();
  }
  /// An opcode: up to a blank or ';'.
  std::string_view opcode() {
    skipBlanks();
    const size_t begin = position;
    while (position < text.size() &&
           !isspace(static_cast<unsigned char>(text[position])) &&
           text[position] != ';')
      ++position;
    return text.substr(begin, position - begin);
  }
  /// Passes "{ ... }" with all that is within, which is returned.
  std::string_view skipBraces() {
    expect('{');
    const size_t begin = position;
    for (int depth = 1; depth > 0; advance()) {
      if (position >= text.size())
        fail("expected '}'");
      depth += text[position] == '{';
      depth -= text[position] == '}';
    }
    return text.substr(begin, position - begin);
  }
  /// "name:" but not "name::".
  bool atLabel() {
    skipBlanks();
    size_t end = position;
    while (end < text.size() && isWord(text[end]) && text[end] != '.')
      ++end;
    while (end < text.size() && (text[end] == ' ' || text[end] == '\t'))
      ++end;
    return end > position && end < text.size() && text[end] == ':' &&
           (end + 1 >= text.size() || text[end + 1] != ':');
  }
  [[noreturn]] void fail(const std::string &what) const {
    throw ParseError("line " + std::to_string(at) + ": " + what);
  }
  static bool isWord(char c) {
    return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
           c == '%' || c == '.';
  }

private:
  void advance() {
    if (text[position] == '\n')
      ++at;
    ++position;
  }
  void skipBlanks() {
    while (position < text.size() &&
           isspace(static_cast<unsigned char>(text[position])))
      advance();
  }

  std::string_view text;
  size_t position = 0;
  uint32_t at = 1;
};

/// ".align 4 .b8 name[16]" in parts.
struct Declaration {
  std::string name;
  Type type = Type::B8;
  uint64_t align = 1;
  uint64_t count = 1;
  bool isArray = false;
  uint64_t bytes() const { return bytesOf(type) * count; }
};

/// Where the text of a function is: its results and parameters, then its body.
struct FunctionText {
  Cursor begin;
};

class Parser {
public:
  Parser(std::string_view text, ModuleData &module)
      : cursor(text), module(module) {}
  void parse();

private:
  void parseDirective(std::string_view directive);
  void parseEntry();
  void inlineCall(EntryBuilder &builder, EntryInfo &info,
                  const Statement &statement);
  void bindParameters(EntryBuilder &builder, const Statement &statement,
                      std::string_view actual, bool isResult);
  void parseParameters(EntryBuilder &builder, EntryInfo &info);
  void parseHints(EntryInfo &info);
  void placeDynamicShared(EntryInfo &info);
  void parseBody(EntryBuilder &builder, EntryInfo &info);
  void parseStatement(EntryBuilder &builder, EntryInfo &info);
  void parseFrame(EntryBuilder &builder, EntryInfo &info);
  void parseBodyDirective(EntryBuilder &builder, EntryInfo &info);
  void parseRegisters(EntryBuilder &builder);
  void parseTargets(EntryBuilder &builder, std::string name);
  void parseVariable(bool isExtern);
  void parseShared(EntryBuilder *builder, uint32_t &bytes);
  bool uses(std::string_view body, const std::string &variable,
            std::set<std::string> &seen) const;
  void placeModuleShared(EntryInfo &info);
  void noteFunction();
  Declaration parseDeclaration();
  uint64_t parseInteger(std::string_view text);
  void parseInitializer(const Declaration &declaration,
                        std::vector<std::byte> &bytes);
  void place(const Declaration &declaration,
             const std::vector<std::byte> &bytes);
  uint64_t takeShared(const Declaration &declaration, uint32_t &bytes);

  Cursor cursor;
  ModuleData &module;
  std::map<std::string, Symbol, std::less<>> globals;
  /// Shared memory that is declared outside of entries: each has, from its
  /// first byte on, what it uses of it.
  std::vector<Declaration> moduleShared;
  std::map<std::string, FunctionText, std::less<>> functions;
  std::vector<Cursor> entries;
  /// Calls within calls that are being read.
  int callDepth = 0;
  /// Names of "extern .shared x[]": where a kernel's own memory ends.
  std::vector<std::string> dynamicShared;
};
} // namespace

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Comments become blanks, so that lines keep their numbers.
static std::string withoutComments(std::string_view text) {
  std::string result(text);
  for (size_t i = 0; i + 1 < result.size(); ++i) {
    if (result[i] != '/')
      continue;
    if (result[i + 1] == '/') {
      while (i < result.size() && result[i] != '\n')
        result[i++] = ' ';
    } else if (result[i + 1] == '*') {
      const size_t found = result.find("*/", i + 2);
      const size_t end = found == result.npos ? result.size() : found + 2;
      for (; i < end; ++i)
        if (result[i] != '\n')
          result[i] = ' ';
    }
  }
  return result;
}

static std::string_view trim(std::string_view text) {
  while (!text.empty() && isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

/// At commas that are in no bracket.
static std::vector<std::string_view> splitOperands(std::string_view text) {
  std::vector<std::string_view> all;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    depth += c == '{' || c == '[' || c == '(';
    depth -= c == '}' || c == ']' || c == ')';
    if (c != ',' || (depth > 0 && i < text.size()))
      continue;
    const std::string_view part = trim(text.substr(begin, i - begin));
    if (!part.empty())
      all.push_back(part);
    begin = i + 1;
  }
  return all;
}

uint64_t Parser::parseInteger(std::string_view text) {
  uint64_t bits = 0;
  uint32_t bytes = 0;
  if (!parseNumber(trim(text), bits, bytes) || bytes)
    cursor.fail("expected an integer, found '" + std::string(text) + "'");
  return bits;
}

//===----------------------------------------------------------------------===//
// Module
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

void Parser::parseParameters(EntryBuilder &builder, EntryInfo &info) {
  if (!cursor.accept('('))
    return;
  while (!cursor.accept(')')) {
    if (cursor.word() != ".param")
      cursor.fail("expected '.param'");
    const Declaration declaration = parseDeclaration();
    // The alignment of a pointer's target is no matter of the parameter.
    const uint64_t align =
        declaration.isArray ? declaration.align : bytesOf(declaration.type);
    const uint64_t offset = (info.parameterBytes + align - 1) / align * align;
    const auto bytes = static_cast<uint32_t>(declaration.bytes());
    info.parameters.push_back({static_cast<uint32_t>(offset), bytes});
    info.parameterBytes = static_cast<uint32_t>(offset + bytes);
    builder.addSymbol(declaration.name, {Space::Parameter, offset, bytes});
    cursor.accept(',');
  }
}

void Parser::parseHints(EntryInfo &info) {
  while (cursor.peek() == '.') {
    const std::string_view hint = cursor.word();
    if (hint == ".noreturn" || hint == ".explicitcluster" ||
        hint == ".blocksareclusters")
      continue;
    Dim dim;
    uint32_t *parts[] = {&dim.x, &dim.y, &dim.z};
    size_t count = 0;
    do
      if (count < 3)
        *parts[count++] = static_cast<uint32_t>(parseInteger(cursor.word()));
    while (cursor.accept(','));
    if (hint == ".maxntid")
      info.maxThreads = static_cast<uint32_t>(dim.count());
    else if (hint == ".reqntid")
      info.requiredBlock = dim;
    else if (hint != ".minnctapersm" && hint != ".maxnreg" &&
             hint != ".maxclusterrank")
      cursor.fail("unknown directive '" + std::string(hint) + "'");
  }
}

/// Memory whose size the launch says lies behind all other.
void Parser::placeDynamicShared(EntryInfo &info) {
  if (dynamicShared.empty())
    return;
  info.sharedBytes = (info.sharedBytes + 15) / 16 * 16;
  for (const std::string &name : dynamicShared)
    globals[name] = {Space::Shared, info.sharedBytes, 0};
}

void Parser::parseEntry() {
  const std::string name(cursor.word());
  Entry &entry = module.entries[name];
  entry.info.name = name;
  EntryBuilder builder(entry);
  builder.globals = &globals;
  parseParameters(builder, entry.info);
  parseHints(entry.info);
  placeModuleShared(entry.info);
  cursor.expect('{');
  parseBody(builder, entry.info);
  builder.finish();
  entry.hasBarrier = std::any_of(entry.code.begin(), entry.code.end(),
                                 [](const Instruction &in) {
                                   return in.kind == Instruction::Kind::Barrier;
                                 });
}

void Parser::parseBody(EntryBuilder &builder, EntryInfo &info) {
  for (int depth = 1; depth > 0;) {
    if (cursor.accept('{')) {
      ++depth;
      builder.pushScope();
    } else if (cursor.accept('}')) {
      --depth;
      builder.popScope();
    } else if (cursor.accept(';')) {
      continue;
    } else if (cursor.peek() == '.') {
      parseBodyDirective(builder, info);
    } else if (cursor.atLabel()) {
      std::string label(cursor.word());
      cursor.expect(':');
      if (cursor.peek() == '.')
        parseTargets(builder, std::move(label));
      else
        builder.addLabel(std::move(label));
    } else {
      if (builder.isEmpty())
        placeDynamicShared(info);
      parseStatement(builder, info);
    }
  }
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static std::string_view withoutParentheses(std::string_view text) {
  if (text.starts_with('(') && text.ends_with(')'))
    return text.substr(1, text.size() - 2);
  return text;
}

/// Gives the formal parameters, at the cursor, the memory of the actual ones.
void Parser::bindParameters(EntryBuilder &builder, const Statement &statement,
                            std::string_view actual, bool isResult) {
  const std::vector<std::string_view> names =
      splitOperands(withoutParentheses(actual));
  size_t next = 0;
  if (cursor.accept('('))
    while (!cursor.accept(')')) {
      if (cursor.word() != ".param")
        cursor.fail("expected '.param'");
      const Declaration formal = parseDeclaration();
      const Symbol *symbol =
          next < names.size() ? builder.findSymbol(names[next++]) : nullptr;
      if (!symbol || symbol->space != Space::Local)
        throw ParseError("line " + std::to_string(statement.line) +
                         ": a call expects a .param for '" + formal.name + "'");
      builder.addSymbol(formal.name, *symbol);
      cursor.accept(',');
    }
  if (next != names.size())
    throw ParseError("line " + std::to_string(statement.line) + ": too many " +
                     (isResult ? "results" : "arguments") + " of a call");
}

/// Functions have no frames of their own: their text is read again at every
/// call, with registers, labels and local memory of its own.
void Parser::inlineCall(EntryBuilder &builder, EntryInfo &info,
                        const Statement &statement) {
  std::vector<std::string_view> operands = statement.operands;
  std::string_view results;
  if (!operands.empty() && operands.front().starts_with('(')) {
    results = operands.front();
    operands.erase(operands.begin());
  }
  const std::string name(operands.empty() ? std::string_view()
                                          : operands.front());
  auto found = functions.find(name);
  if (found == functions.end())
    throw ParseError("line " + std::to_string(statement.line) +
                     ": unresolved function '" + name + "'");
  if (++callDepth > 16)
    throw ParseError("line " + std::to_string(statement.line) +
                     ": calls within calls of '" + name + "' do not end");
  const Cursor after = cursor;
  cursor = found->second.begin;
  builder.beginCall(statement);
  bindParameters(builder, statement, results, true);
  cursor.word();
  bindParameters(builder, statement,
                 operands.size() > 1 ? operands[1] : std::string_view(), false);
  while (cursor.peek() != '{')
    cursor.pass();
  cursor.expect('{');
  parseBody(builder, info);
  builder.endCall();
  cursor = after;
  --callDepth;
}

/// "L: .branchtargets A, B;" names a table; ".pragma" or ".loc" may follow a
/// plain label.
void Parser::parseTargets(EntryBuilder &builder, std::string name) {
  Cursor before = cursor;
  if (cursor.word() != ".branchtargets") {
    cursor = before;
    builder.addLabel(std::move(name));
    return;
  }
  std::vector<std::string> labels;
  for (std::string_view label : splitOperands(cursor.until(';')))
    labels.emplace_back(label);
  builder.addTargets(std::move(name), std::move(labels));
}

void Parser::parseBodyDirective(EntryBuilder &builder, EntryInfo &info) {
  const std::string_view directive = cursor.word();
  if (directive == ".reg")
    return parseRegisters(builder);
  if (directive == ".shared") {
    if (!builder.isEmpty())
      cursor.fail("shared memory that is declared behind instructions is not "
                  "supported");
    return parseShared(&builder, info.sharedBytes);
  }
  if (directive == ".loc" || directive == ".file") {
    cursor.restOfLine();
    return;
  }
  if (directive == ".pragma") {
    cursor.until(';');
    return;
  }
  if (directive != ".local" && directive != ".param")
    cursor.fail("unknown directive '" + std::string(directive) + "'");
  parseFrame(builder, info);
}

/// Local memory; what is passed to functions lies there too.
void Parser::parseFrame(EntryBuilder &builder, EntryInfo &info) {
  const Declaration declaration = parseDeclaration();
  cursor.expect(';');
  const uint64_t offset = (info.localBytes + declaration.align - 1) /
                          declaration.align * declaration.align;
  builder.addSymbol(declaration.name,
                    {Space::Local, offset, declaration.bytes()});
  // Lanes lie behind each other: keep every one of them aligned.
  info.localBytes =
      static_cast<uint32_t>((offset + declaration.bytes() + 15) / 16 * 16);
}

/// ".reg .b32 %r<103>;" or ".reg .b32 a, b;".
void Parser::parseRegisters(EntryBuilder &builder) {
  const std::string_view word = cursor.word();
  const std::optional<Type> type = parseType(word.substr(1));
  if (!type)
    cursor.fail("unknown type '" + std::string(word) + "'");
  for (std::string_view item : splitOperands(cursor.until(';'))) {
    const size_t angle = item.find('<');
    if (angle == item.npos) {
      builder.addRegister(std::string(item), *type);
      continue;
    }
    const std::string prefix(item.substr(0, angle));
    const uint64_t count =
        parseInteger(item.substr(angle + 1, item.find('>') - angle - 1));
    for (uint64_t i = 0; i < count; ++i)
      builder.addRegister(prefix + std::to_string(i), *type);
  }
}

void Parser::parseStatement(EntryBuilder &builder, EntryInfo &info) {
  Statement statement;
  statement.line = cursor.line();
  if (cursor.accept('@')) {
    const bool negated = cursor.accept('!');
    const std::string_view name = cursor.word();
    statement.guard =
        negated ? std::string_view(name.data() - 1, name.size() + 1) : name;
  }
  statement.line = cursor.line();
  statement.opcode = cursor.opcode();
  statement.operands = splitOperands(cursor.until(';'));
  if (statement.opcode == "call" || statement.opcode == "call.uni")
    return inlineCall(builder, info, statement);
  builder.addInstruction(statement);
}

//===----------------------------------------------------------------------===//
// Module's own functions
//===----------------------------------------------------------------------===//

static std::vector<std::string> splitLines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.emplace_back(trim(text.substr(0, end)));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

Module Module::parse(std::string_view text) {
  Module module;
  module.data = std::make_shared<ModuleData>();
  module.data->lines = splitLines(text);
  const std::string plain = withoutComments(text);
  Parser(plain, *module.data).parse();
  return module;
}

int Module::target() const { return data->target; }
int Module::version() const { return data->version; }

std::vector<std::string> Module::entries() const {
  std::vector<std::string> names;
  for (const auto &[name, entry] : data->entries)
    names.push_back(name);
  return names;
}

const EntryInfo *Module::find(std::string_view entry) const {
  auto found = data->entries.find(entry);
  return found == data->entries.end() ? nullptr : &found->second.info;
}

void Module::launch(std::string_view name, const LaunchShape &shape,
                    const std::vector<std::byte> &parameters,
                    Memory &memory) const {
  auto found = data->entries.find(name);
  if (found == data->entries.end())
    throw Fault(Fault::Kind::Launch, "no kernel '" + std::string(name) + "'");
  runGrid(*data, found->second, shape, parameters, memory);
}

Module::Variable Module::global(std::string_view name) const {
  auto found = data->variables.find(name);
  return found == data->variables.end() ? Variable() : found->second;
}
