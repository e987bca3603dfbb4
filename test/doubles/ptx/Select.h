//===- Select.h - From a statement of PTX to an instruction ----*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_PTX_SELECT_H
#define PIPEWRIGHT_TEST_DOUBLES_PTX_SELECT_H

#include "test/doubles/ptx/Program.h"

#include <optional>

namespace pipewright::ptx {

enum class Type : uint8_t {
  Pred,
  B8,
  B16,
  B32,
  B64,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  F32,
  F64,
};

uint32_t bytesOf(Type type);
bool isSigned(Type type);
bool isFloat(Type type);
std::optional<Type> parseType(std::string_view text);

/// One statement: "@%p1 add.s32 %r1, %r2, 3;" and where it stands.
struct Statement {
  std::string_view opcode;
  std::vector<std::string_view> operands;
  std::string_view guard;
  uint32_t line = 0;
};

struct Register {
  Type type = Type::B32;
  uint32_t offset = 0;
};

/// A name with an address.
struct Symbol {
  Space space = Space::Global;
  uint64_t address = 0;
  uint64_t bytes = 0;
};

/// Builds one kernel.
class EntryBuilder {
public:
  explicit EntryBuilder(Entry &entry) : entry(entry) {}

  void pushScope() { scopes.emplace_back(); }
  void popScope();
  void addRegister(std::string name, Type type);
  void addSymbol(std::string name, Symbol symbol);
  void addLabel(std::string name);
  void addTargets(std::string name, std::vector<std::string> labels);
  void addInstruction(const Statement &statement);
  /// What is added between these is a function's body, in a scope of its own,
  /// which the body's last brace pops.
  void beginCall(const Statement &statement);
  void endCall();
  bool isInCall() const { return !calls.empty(); }
  /// Where the running call ends.
  void branchToReturn(Instruction &in) { branchTo("$return", in); }
  void finish();

  const Register *findRegister(std::string_view name) const;
  const Symbol *findSymbol(std::string_view name) const;
  /// Whether there is no instruction yet.
  bool isEmpty() const { return entry.code.empty(); }
  uint32_t constant(uint64_t bits, uint32_t bytes);
  uint32_t special(Special which);
  uint32_t cacheEntry() { return entry.cacheEntries++; }
  void branchTo(std::string_view label, Instruction &in);
  void branchToAny(std::string_view list, Instruction &in);

  /// Symbols of the module.
  const std::map<std::string, Symbol, std::less<>> *globals = nullptr;

private:
  struct Scope {
    std::map<std::string, Register, std::less<>> registers;
    std::map<std::string, Symbol, std::less<>> symbols;
  };
  struct Pending {
    size_t instruction = 0;
    std::string label;
    bool list = false;
    uint32_t line = 0;
  };
  uint32_t allocate(uint32_t bytes);
  /// Labels of every call are its own.
  std::string qualified(std::string_view label) const;
  uint32_t targetOf(const std::string &label, uint32_t line) const;

  Entry &entry;
  std::vector<Scope> scopes = std::vector<Scope>(1);
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> constants;
  std::map<Special, uint32_t> specials;
  std::map<std::string, uint32_t, std::less<>> labels;
  std::map<std::string, std::vector<std::string>, std::less<>> lists;
  std::vector<Pending> pending;
  std::vector<int> calls;
  int callCount = 0;
};

/// A statement on its way to an instruction: each selector takes the modifiers
/// and operands that it knows; what is left over is an error.
class Selection {
public:
  Selection(EntryBuilder &builder, const Statement &statement);

  Instruction in;
  EntryBuilder &builder;
  const Statement &statement;
  /// First word of the opcode.
  std::string_view base;

  [[noreturn]] void fail(const std::string &what) const;

  /// Takes a modifier if it is there, wherever it stands.
  bool take(std::string_view modifier);
  /// Takes any of them.
  void skip(std::initializer_list<std::string_view> modifiers);
  /// The next modifier, which must be a type.
  Type takeType();
  /// The next modifier, whatever it is.
  std::string_view takeNext();
  bool hasModifiers() const { return next < modifiers.size(); }
  /// Whether one of the modifiers is a type of floats.
  bool isOnFloats() const;

  size_t operandCount() const { return statement.operands.size(); }
  void expectOperands(size_t count) const;
  /// A register of the type's width.
  uint32_t target(size_t index, Type type);
  /// A register, constant, special register or address of a variable.
  uint32_t source(size_t index, Type type);
  uint32_t source(std::string_view text, Type type);
  /// A predicate; "!p" sets `negated`.
  uint32_t predicate(std::string_view text, bool &negated);
  /// A register of any width.
  const Register &anyRegister(std::string_view text);
  bool isRegister(std::string_view text) const;
  uint64_t integer(std::string_view text);
  /// "{a, b}" in parts; one part if it is no vector.
  std::vector<std::string_view> parts(size_t index) const;
  /// "[a+4]": sets the immediate, the space of a named variable, and whether
  /// the base is 64 bits wide; the base is the result.
  uint32_t address(size_t index);

  void finish();

private:
  std::vector<std::string_view> modifiers;
  size_t next = 0;
};

/// Selects the handler of an opcode. Each looks at the base and says no, or
/// fills in the instruction.
bool selectArithmetic(Selection &s);
bool selectFloat(Selection &s);
bool selectBits(Selection &s);
bool selectConversion(Selection &s);
bool selectMove(Selection &s);
bool selectMemory(Selection &s);
bool selectControl(Selection &s);
bool selectMatrix(Selection &s);

/// Reads a number: "12", "-0x1F", "0f3F800000". `bytes`: of a float literal,
/// 0 for an integer.
bool parseNumber(std::string_view text, uint64_t &bits, uint32_t &bytes);

} // namespace pipewright::ptx

#endif // PIPEWRIGHT_TEST_DOUBLES_PTX_SELECT_H
