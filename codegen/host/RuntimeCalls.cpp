//===- RuntimeCalls.cpp - Calls of the runtime in EmitC -------------------===//
//
// The names of runtime/ functions as generated code spells them, and the
// markers (`//@name`, `//@behind`, `//@inside`, `@{`) that CppFiles.cpp turns
// into value names, comments at the end of a line, functions around a statement
// and braced lists, which EmitC cannot say itself.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/RuntimeCalls.h"

#include "support/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;

namespace pipewright::codegen {

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string floatLiteral(float value) {
  // Numbers that no digits stand for; GCC and Clang need no header for these.
  if (std::isnan(value))
    return "__builtin_nanf(\"\")";
  if (std::isinf(value))
    return value > 0 ? "__builtin_inff()" : "-__builtin_inff()";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.9g", value);
  // The shortest text that reads back as the same float.
  for (int digits = 1; digits < 9; ++digits) {
    std::string shorter;
    llvm::raw_string_ostream(shorter) << llvm::format("%.*g", digits, value);
    if (std::strtof(shorter.c_str(), nullptr) == value) {
      text = shorter;
      break;
    }
  }
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return text + "f";
}

void writeComment(OpBuilder &builder, Location loc, const Twine &comment) {
  emitc::VerbatimOp::create(
      builder, loc, builder.getStringAttr("// " + text::comment(comment.str())),
      ValueRange());
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static Type rankType(MLIRContext *context, const HostStyle &style) {
  return emitc::OpaqueType::get(context, (style.rankClass + " &").str());
}
static Type bufferType(MLIRContext *context) {
  return emitc::OpaqueType::get(context, "Buffer");
}
static Type localBufferType(MLIRContext *context) {
  return emitc::OpaqueType::get(context, "const Buffer");
}

static const char microBatchName[] = "microBatch";

static FunctionType functionType(MLIRContext *context, const HostStyle &style,
                                 bool hasMicroBatch, size_t numBuffers) {
  SmallVector<Type> types = {rankType(context, style)};
  if (hasMicroBatch)
    types.push_back(IntegerType::get(context, 64));
  types.append(numBuffers, bufferType(context));
  return FunctionType::get(context, types, {});
}

FunctionWriter::FunctionWriter(OpBuilder &builder, Location loc,
                               const HostStyle &style, StringRef name,
                               bool hasMicroBatch,
                               ArrayRef<std::string> parameters, bool isStatic)
    : builder(builder), loc(loc), style(style), hasMicroBatch(hasMicroBatch) {
  MLIRContext *context = builder.getContext();
  function = emitc::FuncOp::create(
      builder, loc, name,
      functionType(context, style, hasMicroBatch, parameters.size()));
  if (isStatic)
    function.setSpecifiersAttr(builder.getStrArrayAttr({"static"}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  parameterNames.push_back("rank");
  if (hasMicroBatch)
    parameterNames.push_back(microBatchName);
  for (const std::string &parameter : parameters)
    parameterNames.push_back(names.unique(parameter));
}

void FunctionWriter::finish() {
  for (auto [argument, name] :
       llvm::zip_equal(function.getArguments(), parameterNames)) {
    bool isUsed =
        !argument.use_empty() || (usesMicroBatch && name == microBatchName);
    // A compiler warns of names that nobody reads; tasks that say themselves
    // that they begin read them.
    setName(argument, isUsed || !style.givesTasks ? name : "/*" + name + "*/");
  }
  emitc::ReturnOp::create(builder, loc, Value());
  builder.setInsertionPointAfter(function);
}

Value FunctionWriter::parameter(size_t index) const {
  return const_cast<emitc::FuncOp &>(function).getArgument(
      index + (hasMicroBatch ? 2 : 1));
}

void FunctionWriter::setName(Value value, StringRef name) {
  emitc::VerbatimOp::create(builder, loc,
                            builder.getStringAttr("//@name {} " + name),
                            ValueRange(value));
}

Value FunctionWriter::buffer(StringRef name, int64_t offset, int64_t bytes) {
  std::string text =
      "{" + std::to_string(offset) + ", " + std::to_string(bytes) + "}";
  Value value = emitc::ConstantOp::create(
      builder, loc, localBufferType(builder.getContext()),
      emitc::OpaqueAttr::get(builder.getContext(), text));
  setName(value, names.unique(name));
  return value;
}

Value FunctionWriter::part(StringRef name, Value whole, int64_t offset,
                           int64_t bytes) {
  // EmitC has no call of a method of a value; a marker makes it one.
  MLIRContext *context = builder.getContext();
  auto arguments = builder.getArrayAttr({builder.getIndexAttr(0),
                                         builder.getI64IntegerAttr(offset),
                                         builder.getI64IntegerAttr(bytes)});
  auto call = emitc::CallOpaqueOp::create(
      builder, loc, TypeRange(localBufferType(context)), "@method_at",
      ValueRange(whole), arguments);
  setName(call.getResult(0), names.unique(name));
  return call.getResult(0);
}

void FunctionWriter::comment(StringRef text) {
  writeComment(builder, loc, text);
}

void FunctionWriter::commentBehind(StringRef comment) {
  emitc::VerbatimOp::create(
      builder, loc,
      builder.getStringAttr("//@behind " + text::comment(comment)),
      ValueRange());
}

void FunctionWriter::blankLine() {
  emitc::VerbatimOp::create(builder, loc, builder.getStringAttr(""),
                            ValueRange());
}

void FunctionWriter::call(StringRef callee, ArrayRef<CallArgument> arguments) {
  SmallVector<Value> operands = {function.getArgument(0)};
  SmallVector<Attribute> order = {builder.getIndexAttr(0)};
  for (const CallArgument &argument : arguments) {
    if (const Value *value = std::get_if<Value>(&argument)) {
      order.push_back(builder.getIndexAttr(operands.size()));
      operands.push_back(*value);
      continue;
    }
    order.push_back(emitc::OpaqueAttr::get(builder.getContext(),
                                           std::get<std::string>(argument)));
  }
  emitc::CallOpaqueOp::create(builder, loc, TypeRange(), callee, operands,
                              builder.getArrayAttr(order));
}

void FunctionWriter::callMember(StringRef member,
                                ArrayRef<CallArgument> arguments) {
  SmallVector<Value> operands;
  SmallVector<Attribute> order;
  for (const CallArgument &argument : arguments) {
    if (const Value *value = std::get_if<Value>(&argument)) {
      order.push_back(builder.getIndexAttr(operands.size()));
      operands.push_back(*value);
      continue;
    }
    order.push_back(emitc::OpaqueAttr::get(builder.getContext(),
                                           std::get<std::string>(argument)));
  }
  emitc::CallOpaqueOp::create(builder, loc, TypeRange(),
                              ("rank." + member).str(), operands,
                              builder.getArrayAttr(order));
}

//===----------------------------------------------------------------------===//
// Rank's members
//===----------------------------------------------------------------------===//

CallArgument FunctionWriter::microBatch() {
  usesMicroBatch = true;
  return std::string(microBatchName);
}

void FunctionWriter::task(StringRef kind, int64_t stage, bool hasMicroBatch) {
  if (style.givesTasks)
    return;
  callMember("task",
             {text::stringLiteral(kind), std::to_string(stage),
              hasMicroBatch ? microBatch() : CallArgument(std::string("0"))});
}
void FunctionWriter::loadInput(int64_t input, int64_t microBatch,
                               Value destination) {
  callMember("loadInput",
             {std::to_string(input), std::to_string(microBatch), destination});
}
void FunctionWriter::storeOutput(int64_t output, Value source) {
  callMember("storeOutput", {std::to_string(output), microBatch(), source});
}
void FunctionWriter::reportLoss(Value loss) {
  callMember("reportLoss", {microBatch(), loss});
}
void FunctionWriter::postSend(int64_t peer, Value buffer,
                              std::optional<int64_t> event) {
  SmallVector<CallArgument> arguments = {std::to_string(peer), buffer};
  if (event)
    arguments.push_back(std::to_string(*event));
  callMember("postSend", arguments);
}
void FunctionWriter::postReceive(int64_t peer, Value buffer,
                                 std::optional<int64_t> event) {
  SmallVector<CallArgument> arguments = {std::to_string(peer), buffer};
  if (event)
    arguments.push_back(std::to_string(*event));
  callMember("postReceive", arguments);
}
void FunctionWriter::record(const std::string &stream, int64_t event) {
  callMember("record", {stream, std::to_string(event)});
}
void FunctionWriter::wait(const std::string &stream, int64_t event) {
  callMember("wait", {stream, std::to_string(event)});
}
void FunctionWriter::waitSend(int64_t peer) {
  callMember("waitSend", {std::to_string(peer)});
}
void FunctionWriter::waitReceive(int64_t peer) {
  callMember("waitReceive", {std::to_string(peer)});
}
void FunctionWriter::beginUpdate(int64_t number) {
  callMember("beginUpdate", {std::to_string(number)});
}
void FunctionWriter::loadHyper(Value destination) {
  callMember("loadHyper", {destination});
}

void FunctionWriter::callStage(StringRef kind, int64_t stage,
                               StringRef function,
                               std::optional<int64_t> microBatch,
                               ArrayRef<CallArgument> buffers) {
  if (style.givesTasks)
    emitc::VerbatimOp::create(
        builder, loc,
        builder.getStringAttr("//@inside rank.task(" +
                              text::stringLiteral(kind) + ", " + Twine(stage) +
                              ", " + Twine(microBatch.value_or(0)) + ", [&] {"),
        ValueRange());
  SmallVector<CallArgument> arguments;
  if (microBatch)
    arguments.push_back(std::to_string(*microBatch));
  llvm::append_range(arguments, buffers);
  call(function, arguments);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

void FunctionWriter::prepareKernel(StringRef kernel) {
  call("prepare", {kernel.str()});
}
void FunctionWriter::launch(StringRef kernel, ArrayRef<CallArgument> buffers) {
  // A buffer may be called like the kernel that fills it.
  std::string function = (names.contains(kernel) ? "::" : "") + kernel.str();
  SmallVector<CallArgument> arguments;
  if (style.hasKernelObjects) {
    arguments = {function, std::string("@{")};
    llvm::append_range(arguments, buffers);
    arguments.push_back(std::string("@}"));
  } else {
    arguments = {text::stringLiteral(kernel), function};
    llvm::append_range(arguments, buffers);
  }
  call("launch", arguments);
}
void FunctionWriter::zero(Value buffer) { call("zero", {buffer}); }
void FunctionWriter::copy(Value source, Value destination) {
  call("copy", {source, destination});
}
void FunctionWriter::accumulate(Value source, Value destination) {
  call("accumulate", {source, destination});
}
void FunctionWriter::fill(float value, Value destination) {
  call("fill", {floatLiteral(value), destination});
}

void FunctionWriter::setValues(StringRef elementType,
                               ArrayRef<std::string> values, StringRef name,
                               Value destination) {
  auto line = [&](const Twine &text) {
    emitc::VerbatimOp::create(builder, loc, builder.getStringAttr(text),
                              ValueRange());
  };
  std::string table = names.unique((name + "_values").str());
  line("static const " + elementType + " " + table + "[] = {");
  std::string current;
  for (const std::string &value : values) {
    constexpr size_t width = 72;
    if (!current.empty() && current.size() + value.size() > width) {
      line("    " + StringRef(current).rtrim());
      current.clear();
    }
    current += value + ", ";
  }
  line("    " + StringRef(current).rtrim(", ") + "};");
  call("setValues", {table, destination});
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

std::string streamName(pipe::StreamAttr stream) {
  switch (stream.getKind()) {
  case pipe::StreamKind::compute:
    return "compute";
  case pipe::StreamKind::send:
    return "sendTo(" + std::to_string(stream.getPeer()) + ")";
  case pipe::StreamKind::receive:
    return "receiveFrom(" + std::to_string(stream.getPeer()) + ")";
  case pipe::StreamKind::collective:
    return "collective";
  }
  llvm_unreachable("all kinds are listed");
}

void declareFunction(OpBuilder &builder, Location loc, const HostStyle &style,
                     StringRef name, bool hasMicroBatch,
                     ArrayRef<std::string> parameters) {
  // As text, for EmitC's declarations leave out what parameters are called.
  std::string text = ("void " + name + "(" + style.rankClass + " &rank").str();
  if (hasMicroBatch)
    text += (", int64_t " + Twine(microBatchName)).str();
  for (const std::string &parameter : parameters)
    text += ", Buffer " + parameter;
  emitc::VerbatimOp::create(builder, loc, builder.getStringAttr(text + ");"),
                            ValueRange());
}

void writeFileHead(OpBuilder &builder, Location loc, const HostStyle &style,
                   ArrayRef<std::string> comment, ArrayRef<StringRef> includes,
                   bool isHeader) {
  auto line = [&](const Twine &text) {
    emitc::VerbatimOp::create(builder, loc, builder.getStringAttr(text),
                              ValueRange());
  };
  for (const std::string &text : comment)
    writeComment(builder, loc, text);
  line("");
  if (isHeader) {
    line("#pragma once");
    line("");
  }
  emitc::IncludeOp::create(builder, loc,
                           ("runtime/" + style.runtimeHeader).str(),
                           /*is_standard_include=*/false);
  for (StringRef include : includes)
    emitc::IncludeOp::create(builder, loc, include,
                             /*is_standard_include=*/false);
  line("");
  line("using namespace pipewright::runtime;");
  line("");
}

} // namespace pipewright::codegen
