//===- Parser.h - Reads a PTX module ----------------------------*- C++ -*-===//
//
// What stands outside of entries is read first; entries then, once all that
// they may name is known.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_PTX_PARSER_H
#define PIPEWRIGHT_TEST_DOUBLES_PTX_PARSER_H

#include "test/doubles/ptx/Text.h"

#include <set>

namespace pipewright::ptx {

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

} // namespace pipewright::ptx

#endif // PIPEWRIGHT_TEST_DOUBLES_PTX_PARSER_H
