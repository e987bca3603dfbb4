//===- Select.cpp - From a statement of PTX to an instruction -------------===//

#include "test/doubles/ptx/Select.h"

#include <algorithm>
#include <bit>
#include <charconv>

using namespace pipewright::ptx;

[[noreturn]] static void failAt(uint32_t line, const std::string &what) {
  throw ParseError("line " + std::to_string(line) + ": " + what);
}

//===----------------------------------------------------------------------===//
// Types and numbers
//===----------------------------------------------------------------------===//

uint32_t pipewright::ptx::bytesOf(Type type) {
  switch (type) {
  case Type::Pred:
  case Type::B8:
  case Type::U8:
  case Type::S8:
    return 1;
  case Type::B16:
  case Type::U16:
  case Type::S16:
  case Type::F16:
  case Type::BF16:
    return 2;
  case Type::B64:
  case Type::U64:
  case Type::S64:
  case Type::F64:
    return 8;
  default:
    return 4;
  }
}

bool pipewright::ptx::isSigned(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 ||
         type == Type::S64;
}

bool pipewright::ptx::isFloat(Type type) { return type >= Type::F16; }

std::optional<Type> pipewright::ptx::parseType(std::string_view text) {
  static const std::map<std::string_view, Type> types = {
      {"pred", Type::Pred}, {"b8", Type::B8},         {"b16", Type::B16},
      {"b32", Type::B32},   {"b64", Type::B64},       {"u8", Type::U8},
      {"u16", Type::U16},   {"u32", Type::U32},       {"u64", Type::U64},
      {"s8", Type::S8},     {"s16", Type::S16},       {"s32", Type::S32},
      {"s64", Type::S64},   {"f16", Type::F16},       {"f16x2", Type::F16x2},
      {"bf16", Type::BF16}, {"bf16x2", Type::BF16x2}, {"f32", Type::F32},
      {"f64", Type::F64}};
  auto found = types.find(text);
  if (found == types.end())
    return std::nullopt;
  return found->second;
}

bool pipewright::ptx::parseNumber(std::string_view text, uint64_t &bits,
                                  uint32_t &bytes) {
  bytes = 0;
  const bool negative = text.starts_with('-');
  if (negative)
    text.remove_prefix(1);
  int base = 10;
  if (text.size() > 2 && text[0] == '0') {
    const char kind = text[1];
    if (kind == 'f' || kind == 'F')
      bytes = 4;
    if (kind == 'd' || kind == 'D')
      bytes = 8;
    if (kind == 'x' || kind == 'X' || bytes) {
      base = 16;
      text.remove_prefix(2);
    }
  }
  if (!bytes && text.ends_with('U'))
    text.remove_suffix(1);
  if (text.empty())
    return false;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), bits, base);
  if (error != std::errc() || end != text.data() + text.size())
    return false;
  if (negative)
    bits = -bits;
  return !(negative && bytes);
}

//===----------------------------------------------------------------------===//
// EntryBuilder
//===----------------------------------------------------------------------===//

uint32_t EntryBuilder::allocate(uint32_t bytes) {
  const uint32_t offset = entry.registerBytes;
  entry.registerBytes += (bytes * warpSize + 63) / 64 * 64;
  return offset;
}

void EntryBuilder::popScope() {
  if (scopes.size() > 1)
    scopes.pop_back();
}

void EntryBuilder::addRegister(std::string name, Type type) {
  const uint32_t bytes = type == Type::Pred ? 1 : std::max(bytesOf(type), 2u);
  scopes.back().registers[std::move(name)] = {type, allocate(bytes)};
}

void EntryBuilder::addSymbol(std::string name, Symbol symbol) {
  scopes.back().symbols[std::move(name)] = symbol;
}

std::string EntryBuilder::qualified(std::string_view label) const {
  const std::string text(label);
  return calls.empty() ? text : std::to_string(calls.back()) + ":" + text;
}

void EntryBuilder::addLabel(std::string name) {
  labels[qualified(name)] = static_cast<uint32_t>(entry.code.size());
}

void EntryBuilder::addTargets(std::string name, std::vector<std::string> all) {
  for (std::string &label : all)
    label = qualified(label);
  lists[qualified(name)] = std::move(all);
}

void EntryBuilder::beginCall(const Statement &statement) {
  Selection call(*this, statement);
  calls.push_back(callCount++);
  if (call.in.guard != none) {
    // Lanes that do not call go around the body.
    call.in.guardNegated = !call.in.guardNegated;
    call.in.kind = Instruction::Kind::Branch;
    branchToReturn(call.in);
    entry.code.push_back(call.in);
  }
  pushScope();
}

void EntryBuilder::endCall() {
  addLabel("$return");
  calls.pop_back();
}

const Register *EntryBuilder::findRegister(std::string_view name) const {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
    if (auto found = scope->registers.find(name);
        found != scope->registers.end())
      return &found->second;
  return nullptr;
}

const Symbol *EntryBuilder::findSymbol(std::string_view name) const {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
    if (auto found = scope->symbols.find(name); found != scope->symbols.end())
      return &found->second;
  if (auto found = globals->find(name); found != globals->end())
    return &found->second;
  return nullptr;
}

uint32_t EntryBuilder::constant(uint64_t bits, uint32_t bytes) {
  if (bytes < 8)
    bits &= (uint64_t(1) << bytes * 8) - 1;
  auto [found, inserted] = constants.try_emplace({bits, bytes}, 0);
  if (inserted) {
    found->second = allocate(bytes);
    entry.constants.push_back({found->second, bytes, bits});
  }
  return found->second;
}

uint32_t EntryBuilder::special(Special which) {
  auto [found, inserted] = specials.try_emplace(which, 0);
  if (inserted) {
    found->second = allocate(4);
    entry.specials.push_back({which, found->second});
  }
  return found->second;
}

void EntryBuilder::branchTo(std::string_view label, Instruction &in) {
  pending.push_back({entry.code.size(), qualified(label), false, in.line});
}

void EntryBuilder::branchToAny(std::string_view list, Instruction &in) {
  pending.push_back({entry.code.size(), qualified(list), true, in.line});
}

uint32_t EntryBuilder::targetOf(const std::string &label, uint32_t line) const {
  auto found = labels.find(label);
  if (found == labels.end())
    failAt(line, "no label '" + label + "'");
  return found->second;
}

static bool selectAny(Selection &s) {
  return selectMemory(s) || selectMove(s) || selectConversion(s) ||
         selectFloat(s) || selectArithmetic(s) || selectBits(s) ||
         selectControl(s) || selectMatrix(s);
}

void EntryBuilder::addInstruction(const Statement &statement) {
  Selection selection(*this, statement);
  if (!selectAny(selection))
    selection.fail("unknown instruction");
  selection.finish();
  entry.code.push_back(selection.in);
}

void EntryBuilder::finish() {
  Instruction end;
  end.kind = Instruction::Kind::Exit;
  end.line = entry.code.empty() ? 0 : entry.code.back().line;
  entry.code.push_back(end);
  for (const Pending &branch : pending) {
    Instruction &in = entry.code[branch.instruction];
    if (!branch.list) {
      in.target = targetOf(branch.label, branch.line);
      continue;
    }
    auto list = lists.find(branch.label);
    if (list == lists.end())
      failAt(branch.line, "no .branchtargets '" + branch.label + "'");
    in.target = static_cast<uint32_t>(entry.targets.size());
    in.immediate = static_cast<int64_t>(list->second.size());
    for (const std::string &label : list->second)
      entry.targets.push_back(targetOf(label, branch.line));
  }
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

/// "a.b::c.d" at single dots.
static std::vector<std::string_view> splitOpcode(std::string_view opcode) {
  std::vector<std::string_view> words;
  while (!opcode.empty()) {
    const size_t dot = opcode.find('.');
    words.push_back(opcode.substr(0, dot));
    opcode = dot == opcode.npos ? std::string_view() : opcode.substr(dot + 1);
  }
  return words;
}

static std::string_view trim(std::string_view text) {
  while (!text.empty() && isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

Selection::Selection(EntryBuilder &builder, const Statement &statement)
    : builder(builder), statement(statement),
      modifiers(splitOpcode(statement.opcode)) {
  in.line = statement.line;
  base = modifiers.front();
  modifiers.erase(modifiers.begin());
  if (!statement.guard.empty())
    in.guard = predicate(statement.guard, in.guardNegated);
}

void Selection::fail(const std::string &what) const {
  std::string text(statement.opcode);
  for (size_t i = 0; i < statement.operands.size(); ++i)
    text += (i ? ", " : " ") + std::string(statement.operands[i]);
  failAt(statement.line, what + " in '" + text + "'");
}

bool Selection::take(std::string_view modifier) {
  auto found = std::find(modifiers.begin() + next, modifiers.end(), modifier);
  if (found == modifiers.end())
    return false;
  modifiers.erase(found);
  return true;
}

void Selection::skip(std::initializer_list<std::string_view> all) {
  for (std::string_view modifier : all)
    take(modifier);
}

bool Selection::isOnFloats() const {
  return std::any_of(modifiers.begin(), modifiers.end(),
                     [](std::string_view modifier) {
                       const std::optional<Type> type = parseType(modifier);
                       return type && isFloat(*type);
                     });
}

std::string_view Selection::takeNext() {
  if (!hasModifiers())
    fail("too few modifiers");
  return modifiers[next++];
}

Type Selection::takeType() {
  const std::string_view text = takeNext();
  const std::optional<Type> type = parseType(text);
  if (!type)
    fail("unknown type or modifier '." + std::string(text) + "'");
  return *type;
}

void Selection::expectOperands(size_t count) const {
  if (operandCount() != count)
    fail("expected " + std::to_string(count) + " operands");
}

bool Selection::isRegister(std::string_view text) const {
  return builder.findRegister(text) != nullptr;
}

const Register &Selection::anyRegister(std::string_view text) {
  const Register *found = builder.findRegister(text);
  if (!found)
    fail("'" + std::string(text) + "' is not a register");
  return *found;
}

static bool sameWidth(Type left, Type right) {
  return (left == Type::Pred) == (right == Type::Pred) &&
         bytesOf(left) == bytesOf(right);
}

uint32_t Selection::target(size_t index, Type type) {
  if (index >= operandCount())
    fail("too few operands");
  const Register &found = anyRegister(statement.operands[index]);
  if (!sameWidth(found.type, type))
    fail("'" + std::string(statement.operands[index]) +
         "' is not of the width of the instruction");
  return found.offset;
}

uint32_t Selection::source(size_t index, Type type) {
  if (index >= operandCount())
    fail("too few operands");
  return source(statement.operands[index], type);
}

static std::optional<Special> parseSpecial(std::string_view text) {
  static const std::map<std::string_view, Special> all = {
      {"%tid.x", Special::TidX},
      {"%tid.y", Special::TidY},
      {"%tid.z", Special::TidZ},
      {"%ntid.x", Special::NtidX},
      {"%ntid.y", Special::NtidY},
      {"%ntid.z", Special::NtidZ},
      {"%ctaid.x", Special::CtaidX},
      {"%ctaid.y", Special::CtaidY},
      {"%ctaid.z", Special::CtaidZ},
      {"%nctaid.x", Special::NctaidX},
      {"%nctaid.y", Special::NctaidY},
      {"%nctaid.z", Special::NctaidZ},
      {"%laneid", Special::LaneId},
      {"%warpid", Special::WarpId},
      {"%nwarpid", Special::NwarpId},
      {"%smid", Special::SmId},
      {"%nsmid", Special::NsmId},
      {"%gridid", Special::GridId},
      {"%lanemask_eq", Special::LanemaskEq},
      {"%lanemask_lt", Special::LanemaskLt},
      {"%lanemask_le", Special::LanemaskLe},
      {"%lanemask_gt", Special::LanemaskGt},
      {"%lanemask_ge", Special::LanemaskGe},
      {"%dynamic_smem_size", Special::DynamicSharedSize},
      {"%total_smem_size", Special::TotalSharedSize}};
  auto found = all.find(text);
  if (found == all.end())
    return std::nullopt;
  return found->second;
}

/// Bits of a literal where an operand of this type stands.
static uint64_t literalBits(uint64_t bits, uint32_t literalBytes, Type type) {
  if (literalBytes == 8 && type == Type::F32)
    return std::bit_cast<uint32_t>(
        static_cast<float>(std::bit_cast<double>(bits)));
  if (literalBytes == 4 && type == Type::F64)
    return std::bit_cast<uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  return bits;
}

uint32_t Selection::source(std::string_view text, Type type) {
  if (const Register *found = builder.findRegister(text)) {
    if (!sameWidth(found->type, type))
      fail("'" + std::string(text) +
           "' is not of the width of the instruction");
    return found->offset;
  }
  const uint32_t bytes = bytesOf(type);
  uint64_t bits = 0;
  uint32_t literalBytes = 0;
  if (parseNumber(text, bits, literalBytes)) {
    if (type == Type::Pred)
      return builder.constant(bits ? allLanes : 0, 4);
    return builder.constant(literalBits(bits, literalBytes, type), bytes);
  }
  if (std::optional<Special> found = parseSpecial(text)) {
    if (bytes != 4)
      fail("'" + std::string(text) + "' is 32 bits wide");
    return builder.special(*found);
  }
  size_t plus = text.find('+');
  uint64_t offset = 0;
  if (plus != text.npos)
    offset = integer(trim(text.substr(plus + 1)));
  if (const Symbol *found = builder.findSymbol(trim(text.substr(0, plus))))
    return builder.constant(found->address + offset, bytes);
  fail("'" + std::string(text) + "' is not known");
}

uint32_t Selection::predicate(std::string_view text, bool &negated) {
  negated = text.starts_with('!');
  if (negated)
    text = trim(text.substr(1));
  return source(text, Type::Pred);
}

uint64_t Selection::integer(std::string_view text) {
  uint64_t bits = 0;
  uint32_t bytes = 0;
  if (!parseNumber(text, bits, bytes) || bytes)
    fail("'" + std::string(text) + "' is not an integer");
  return bits;
}

std::vector<std::string_view> Selection::parts(size_t index) const {
  if (index >= operandCount())
    fail("too few operands");
  std::string_view text = statement.operands[index];
  if (!text.starts_with('{'))
    return {text};
  text = text.substr(1, text.size() - 2);
  std::vector<std::string_view> all;
  while (true) {
    const size_t comma = text.find(',');
    all.push_back(trim(text.substr(0, comma)));
    if (comma == text.npos)
      return all;
    text = text.substr(comma + 1);
  }
}

uint32_t Selection::address(size_t index) {
  if (index >= operandCount())
    fail("too few operands");
  std::string_view text = statement.operands[index];
  if (text.size() < 2 || text.front() != '[' || text.back() != ']')
    fail("'" + std::string(text) + "' is not an address");
  text = trim(text.substr(1, text.size() - 2));
  const size_t plus = text.find('+');
  std::string_view name = trim(text.substr(0, plus));
  if (plus != text.npos)
    in.immediate = static_cast<int64_t>(integer(trim(text.substr(plus + 1))));
  in.cache = builder.cacheEntry();
  if (const Register *found = builder.findRegister(name)) {
    const uint32_t bytes = bytesOf(found->type);
    if (bytes != 4 && bytes != 8)
      fail("an address is 32 or 64 bits wide");
    in.wideAddress = bytes == 8;
    return found->offset;
  }
  in.wideAddress = true;
  if (const Symbol *found = builder.findSymbol(name)) {
    // A name in an instruction without a space means a generic address.
    uint64_t value = found->address;
    // What is passed to functions lies in local memory.
    if (in.space == Space::Parameter)
      in.space = found->space;
    if (in.space == Space::Generic && found->space == Space::Shared)
      value |= sharedWindow;
    if (in.space == Space::Generic && found->space == Space::Local)
      value |= localWindow;
    return builder.constant(value, 8);
  }
  return builder.constant(integer(name), 8);
}

void Selection::finish() {
  if (!hasModifiers())
    return;
  fail("unknown modifier '." + std::string(modifiers[next]) + "'");
}
