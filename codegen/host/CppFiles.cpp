//===- CppFiles.cpp - EmitC files as C++ text -----------------------------===//
//
// MLIR's emitter calls every value v1, v2, ... and knows neither comments at
// the end of a line nor calls of a value's methods. Markers that
// RuntimeCalls.cpp leaves in the text say what is meant; they are worked in
// here, function by function, and removed.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/EmitHost.h"

#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Target/Cpp/CppEmitter.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace pipewright::codegen {

static bool isWord(char c) { return llvm::isAlnum(c) || c == '_'; }

/// Replaces every `v<N>` that has a name, outside of string literals.
static std::string rename(StringRef line,
                          const llvm::StringMap<std::string> &names) {
  std::string result;
  bool inString = false;
  for (size_t i = 0; i < line.size();) {
    char c = line[i];
    if (inString && c == '\\' && i + 1 < line.size()) {
      result += line.substr(i, 2);
      i += 2;
      continue;
    }
    if (c == '"')
      inString = !inString;
    if (inString || !isWord(c)) {
      result += c;
      ++i;
      continue;
    }
    size_t end = i;
    while (end < line.size() && isWord(line[end]))
      ++end;
    StringRef word = line.slice(i, end);
    auto it = names.find(word);
    result += it == names.end() ? word.str() : it->second;
    i = end;
  }
  return result;
}

/// `Rank & rank` -> `Rank &rank`.
static void joinDeclarators(std::string &line) {
  if (size_t at = line.find(" & "); at != std::string::npos)
    line.erase(at + 2, 1);
}

/// `@method_at(x, 1, 2)` -> `x.at(1, 2)`.
static void makeMethodCalls(std::string &line) {
  constexpr StringLiteral marker = "@method_";
  size_t at = line.find(marker.data());
  if (at == std::string::npos)
    return;
  size_t open = line.find('(', at);
  size_t comma = line.find(", ", open);
  std::string method =
      line.substr(at + marker.size(), open - at - marker.size());
  std::string object = line.substr(open + 1, comma - open - 1);
  line =
      line.substr(0, at) + object + "." + method + "(" + line.substr(comma + 2);
}

/// `launch(rank, k, @{, x, y, @});` -> `launch(rank, k, {x, y});`
static void makeLists(std::string &line) {
  constexpr StringLiteral open = "@{, ", close = ", @}";
  if (size_t at = line.find(open.data()); at != std::string::npos)
    line.replace(at, open.size(), "{");
  if (size_t at = line.find(close.data()); at != std::string::npos)
    line.replace(at, close.size(), "}");
}

/// Cuts after commas that are in no string and `depth` braces deep.
static SmallVector<StringRef> splitAtCommas(StringRef line, int depth) {
  SmallVector<StringRef> parts;
  bool inString = false;
  int braces = 0;
  size_t begin = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (c == '"' && (i == 0 || line[i - 1] != '\\'))
      inString = !inString;
    if (inString)
      continue;
    braces += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ',' && braces == depth) {
      parts.push_back(line.slice(begin, i + 2));
      begin = i + 2;
    }
  }
  parts.push_back(line.substr(begin));
  return parts;
}

constexpr size_t lineWidth = 80;

/// Breaks a long statement after commas, inside of braces only where a list
/// does not fit into a line; continued lines are indented by four more.
static std::string wrap(StringRef line) {
  if (line.size() <= lineWidth)
    return line.str();
  size_t indent = line.find_first_not_of(' ') + 4;
  SmallVector<StringRef> parts;
  for (StringRef part : splitAtCommas(line, 0)) {
    if (part.starts_with("{") && indent + part.rtrim().size() > lineWidth)
      llvm::append_range(parts, splitAtCommas(part, 1));
    else
      parts.push_back(part);
  }
  std::string result, current;
  for (StringRef part : parts) {
    if (current.size() + part.rtrim().size() > lineWidth &&
        !StringRef(current).trim().empty()) {
      result += StringRef(current).rtrim().str() + "\n";
      current = std::string(indent, ' ') + part.ltrim().str();
    } else {
      current += part;
    }
  }
  return result + current;
}

/// Puts a statement into a function that is an argument: `f([&] { ... });`, on
/// one line where it fits.
static std::string putInside(StringRef opening, StringRef statement) {
  std::string indent(statement.find_first_not_of(' '), ' ');
  std::string line =
      indent + opening.str() + " " + statement.trim().str() + " });";
  if (line.size() <= lineWidth)
    return line;
  return indent + opening.str() + "\n" + wrap(("  " + statement).str()) + "\n" +
         indent + "});";
}

/// Works in the markers of one function, given as its lines.
static void finishFunction(ArrayRef<StringRef> lines, std::string &out) {
  constexpr StringLiteral nameMarker = "//@name ", behindMarker = "//@behind ",
                          insideMarker = "//@inside ";
  llvm::StringMap<std::string> names;
  for (StringRef line : lines) {
    StringRef text = line.trim();
    if (!text.consume_front(nameMarker))
      continue;
    auto [value, name] = text.split(' ');
    names[value] = name.str();
  }
  SmallVector<std::string> finished;
  // What the next statement goes into.
  StringRef opening;
  for (StringRef line : lines) {
    StringRef text = line.trim();
    if (text.starts_with(nameMarker))
      continue;
    // Every function of ours that ends so returns nothing.
    if (text == "return;")
      continue;
    if (text.consume_front(behindMarker)) {
      std::string &before = finished.back();
      constexpr size_t column = 56;
      size_t length = before.size() - (before.rfind('\n') + 1);
      before.append(length < column ? column - length : 2, ' ');
      before += "// " + text.str();
      continue;
    }
    if (text.consume_front(insideMarker)) {
      opening = text;
      continue;
    }
    if (text.starts_with("//") || text.starts_with("#")) {
      finished.push_back(line.rtrim().str());
      continue;
    }
    std::string renamed = rename(line, names);
    makeMethodCalls(renamed);
    makeLists(renamed);
    if (line.ends_with(") {"))
      joinDeclarators(renamed);
    StringRef statement = StringRef(renamed).rtrim();
    finished.push_back(opening.empty() ? wrap(statement)
                                       : putInside(opening, statement));
    opening = {};
  }
  for (const std::string &line : finished)
    out += line + "\n";
}

/// A function's text begins at an unindented line that opens a brace and ends
/// at the next unindented closing one.
static std::string finishFile(StringRef text) {
  SmallVector<StringRef> lines, function;
  text.split(lines, '\n');
  std::string out;
  bool inFunction = false;
  for (StringRef line : lines) {
    if (!inFunction && line.ends_with(") {") && !line.starts_with(" ") &&
        !line.starts_with("//"))
      inFunction = true;
    if (!inFunction) {
      bool isDeclaration = line.starts_with("void ") && line.ends_with(");");
      out += (isDeclaration ? wrap(line) : line.rtrim().str()) + "\n";
      continue;
    }
    function.push_back(line);
    if (line == "}") {
      finishFunction(function, out);
      function.clear();
      inFunction = false;
    }
  }
  StringRef result(out);
  return result.trim('\n').str() + "\n";
}

FailureOr<std::map<std::string, std::string>> translateHost(ModuleOp emitted) {
  std::map<std::string, std::string> files;
  for (auto file : emitted.getOps<emitc::FileOp>()) {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (failed(emitc::translateToCpp(emitted, os,
                                     /*declareVariablesAtTop=*/false,
                                     file.getId())))
      return file.emitError("cannot be translated to C++");
    files[file.getId().str()] = finishFile(os.str());
  }
  return files;
}

} // namespace pipewright::codegen
