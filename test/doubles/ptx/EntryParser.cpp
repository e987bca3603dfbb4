//===- EntryParser.cpp - Entries and the functions that they call ---------===//

#include "test/doubles/ptx/Parser.h"

#include <algorithm>

using namespace pipewright::ptx;

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
// Calls and bodies
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
