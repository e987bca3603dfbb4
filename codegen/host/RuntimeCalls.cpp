//===- RuntimeCalls.cpp - Calls of the runtime ----------------------------===//
//
// The names of runtime/ functions as generated code spells them.
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

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static const char rankName[] = "rank", microBatchName[] = "microBatch",
                  bufferType[] = "Buffer ";

/// `rank`, `microBatch` where asked for, and buffers.
static Function functionOf(const HostStyle &style, StringRef name,
                           bool hasMicroBatch, ArrayRef<std::string> buffers) {
  Function function = {
      name.str(), {{(style.rankClass + " &").str(), rankName}}, {}};
  if (hasMicroBatch)
    function.parameters.push_back({"int64_t ", microBatchName});
  for (const std::string &buffer : buffers)
    function.parameters.push_back({bufferType, buffer});
  return function;
}

FunctionWriter::FunctionWriter(const HostStyle &style, StringRef name,
                               bool hasMicroBatch,
                               ArrayRef<std::string> parameters)
    : style(style) {
  std::vector<std::string> buffers;
  for (const std::string &parameter : parameters)
    buffers.push_back(names.unique(parameter));
  function = functionOf(style, name, hasMicroBatch, buffers);
}

Function FunctionWriter::finish() {
  // A compiler warns of names that nobody reads; tasks that say themselves
  // that they begin read them.
  for (Parameter &parameter : function.parameters)
    parameter.isNamed = !style.givesTasks || used.contains(parameter.name);
  return std::move(function);
}

Local FunctionWriter::parameter(size_t index) const {
  auto buffers = llvm::make_filter_range(
      function.parameters,
      [](const Parameter &parameter) { return parameter.type == bufferType; });
  return Local(std::next(buffers.begin(), index)->name);
}

template <class AnyStatement>
void FunctionWriter::put(AnyStatement statement) {
  if (conditional)
    std::get<Conditional>(function.body[*conditional])
        .body.push_back(std::move(statement));
  else
    function.body.push_back(std::move(statement));
}

Local FunctionWriter::buffer(StringRef name, int64_t offset, int64_t bytes,
                             StringRef family) {
  Local buffer(names.unique(name), family);
  put(BufferDeclaration{buffer, {}, offset, bytes});
  return buffer;
}

Local FunctionWriter::part(StringRef name, const Local &whole, int64_t offset,
                           int64_t bytes) {
  Local buffer(names.unique(name));
  used.insert(whole.name());
  put(BufferDeclaration{buffer, whole, offset, bytes});
  return buffer;
}

Local FunctionWriter::shard(StringRef name, int64_t offset, int64_t bytes) {
  Local buffer(names.unique(name));
  used.insert(rankName);
  put(BufferDeclaration{buffer, {}, offset, bytes, "rank.shardOf"});
  return buffer;
}

void FunctionWriter::beginConditional(std::string condition) {
  used.insert(rankName);
  auto *before = function.body.empty()
                     ? nullptr
                     : std::get_if<Conditional>(&function.body.back());
  if (!before || before->condition != condition)
    function.body.push_back(Conditional{std::move(condition), {}});
  conditional = function.body.size() - 1;
}

void FunctionWriter::onReplica(int64_t replica) {
  beginConditional("rank.replica() == " + std::to_string(replica));
}

void FunctionWriter::whereOutputsAreWanted() {
  used.insert(microBatchName);
  beginConditional("rank.wantsOutputs(" + std::string(microBatchName) + ")");
}

void FunctionWriter::comment(StringRef text) {
  function.body.push_back(Comment{text.str()});
}

void FunctionWriter::commentBehind(Tokens comment) {
  std::get<CallStatement>(function.body.back()).trailingComment =
      std::move(comment);
}

void FunctionWriter::blankLine() { function.body.push_back(BlankLine()); }

void FunctionWriter::add(CallStatement statement) {
  used.insert(rankName);
  forEachWord(statement, [&](const Token &word) {
    if (auto *local = std::get_if<Local>(&word))
      used.insert(local->name());
  });
  put(std::move(statement));
}

/// The arguments of a function of the runtime: the rank comes first.
static std::vector<CallArgument> onRank(ArrayRef<CallArgument> arguments) {
  std::vector<CallArgument> all = {Local(rankName)};
  llvm::append_range(all, arguments);
  return all;
}

void FunctionWriter::call(StringRef callee, ArrayRef<CallArgument> arguments) {
  add({{callee.str(), onRank(arguments)}, std::nullopt, {}});
}

void FunctionWriter::callMember(StringRef member,
                                ArrayRef<CallArgument> arguments) {
  add({{(rankName + Twine(".") + member).str(), arguments.vec()},
       std::nullopt,
       {}});
}

//===----------------------------------------------------------------------===//
// Rank's members
//===----------------------------------------------------------------------===//

CallArgument FunctionWriter::microBatch() const {
  return Local(microBatchName);
}

void FunctionWriter::task(StringRef kind, int64_t stage, bool hasMicroBatch) {
  if (style.givesTasks)
    return;
  callMember("task",
             {text::stringLiteral(kind), std::to_string(stage),
              hasMicroBatch ? microBatch() : CallArgument(std::string("0"))});
}
void FunctionWriter::loadInput(int64_t input, int64_t microBatch,
                               const Local &destination) {
  callMember("loadInput", {std::to_string(input),
                           Counter::microBatch(microBatch), destination});
}
void FunctionWriter::storeOutput(int64_t output, const Local &source) {
  callMember("storeOutput", {std::to_string(output), microBatch(), source});
}
void FunctionWriter::reportLoss(const Local &loss) {
  callMember("reportLoss", {microBatch(), loss});
}
void FunctionWriter::postSend(int64_t peer, const Local &buffer,
                              std::optional<int64_t> event) {
  SmallVector<CallArgument> arguments = {std::to_string(peer), buffer};
  if (event)
    arguments.push_back(Counter::event(*event));
  callMember("postSend", arguments);
}
void FunctionWriter::postReceive(int64_t peer, const Local &buffer,
                                 std::optional<int64_t> event) {
  SmallVector<CallArgument> arguments = {std::to_string(peer), buffer};
  if (event)
    arguments.push_back(Counter::event(*event));
  callMember("postReceive", arguments);
}
void FunctionWriter::copyToHost(const Local &stash, const Local &host,
                                int64_t event) {
  callMember("copyToHost", {stash, host, Counter::event(event)});
}
void FunctionWriter::copyFromHost(const Local &host, const Local &stash,
                                  int64_t event) {
  callMember("copyFromHost", {host, stash, Counter::event(event)});
}
void FunctionWriter::collective(runtime::CollectiveKind kind,
                                ArrayRef<CallArgument> given,
                                std::optional<int64_t> event) {
  SmallVector<CallArgument> arguments(given);
  if (event)
    arguments.push_back(Counter::event(*event));
  callMember(runtime::factsOf(kind).call, arguments);
}
void FunctionWriter::waitCollective() { callMember("waitCollective", {}); }
void FunctionWriter::record(const std::string &stream, int64_t event) {
  callMember("record", {stream, Counter::event(event)});
}
void FunctionWriter::wait(const std::string &stream, int64_t event) {
  callMember("wait", {stream, Counter::event(event)});
}
void FunctionWriter::waitSend(int64_t peer) {
  callMember("waitSend", {std::to_string(peer)});
}
void FunctionWriter::waitReceive(int64_t peer) {
  callMember("waitReceive", {std::to_string(peer)});
}
void FunctionWriter::beginUpdate(int64_t number) {
  callMember("beginUpdate", {Counter::update(number)});
}
void FunctionWriter::beginStatistics() { callMember("beginStatistics", {}); }
void FunctionWriter::mergeStatistics(int64_t stage) {
  callMember("mergeStatistics", {std::to_string(stage)});
}
void FunctionWriter::clipGradients() { callMember("clipGradients", {}); }
void FunctionWriter::loadHyper(const Local &destination) {
  callMember("loadHyper", {destination});
}

void FunctionWriter::callStage(StringRef kind, int64_t stage,
                               StringRef function,
                               std::optional<int64_t> microBatch,
                               ArrayRef<CallArgument> buffers) {
  CallStatement statement = {{function.str(), {Local(rankName)}}, {}, {}};
  CallArgument number = std::string("0");
  if (microBatch) {
    number = Counter::microBatch(*microBatch);
    statement.call.arguments.push_back(number);
  }
  if (style.givesTasks)
    statement.wrapper = {
        "rank.task",
        {text::stringLiteral(kind), std::to_string(stage), number}};
  llvm::append_range(statement.call.arguments, buffers);
  add(std::move(statement));
}

void FunctionWriter::resumeStage(StringRef function, int64_t microBatch,
                                 ArrayRef<CallArgument> buffers) {
  CallStatement statement = {
      {function.str(), {Local(rankName), Counter::microBatch(microBatch)}},
      {},
      {}};
  if (style.givesTasks)
    statement.wrapper = {"rank.resume", {}};
  llvm::append_range(statement.call.arguments, buffers);
  add(std::move(statement));
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

void FunctionWriter::prepareKernel(StringRef kernel) {
  call("prepare", {kernel.str()});
}
void FunctionWriter::launch(StringRef kernel, ArrayRef<Local> buffers) {
  // A buffer may be called like the kernel that fills it.
  std::string function = (names.contains(kernel) ? "::" : "") + kernel.str();
  SmallVector<CallArgument> arguments;
  if (style.hasKernelObjects) {
    arguments = {function, BracedList(Tokens(buffers.begin(), buffers.end()))};
  } else {
    arguments = {text::stringLiteral(kernel), function};
    llvm::append_range(arguments, buffers);
  }
  call("launch", arguments);
}
void FunctionWriter::zero(const Local &buffer) { call("zero", {buffer}); }
void FunctionWriter::copy(const Local &source, const Local &destination) {
  call("copy", {source, destination});
}
void FunctionWriter::accumulate(const Local &source, const Local &destination) {
  call("accumulate", {source, destination});
}
void FunctionWriter::fill(float value, const Local &destination) {
  call("fill", {floatLiteral(value), destination});
}

void FunctionWriter::setValues(StringRef elementType,
                               std::vector<std::string> values, StringRef name,
                               const Local &destination) {
  std::string table = names.unique((name + "_values").str());
  function.body.push_back(
      ValueTable{elementType.str(), table, std::move(values)});
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
  case pipe::StreamKind::to_host:
    return "toHost";
  case pipe::StreamKind::from_host:
    return "fromHost";
  }
  llvm_unreachable("all kinds are listed");
}

void declareFunction(llvm::raw_ostream &os, const HostStyle &style,
                     StringRef name, bool hasMicroBatch,
                     ArrayRef<std::string> parameters) {
  printDeclaration(os, functionOf(style, name, hasMicroBatch, parameters));
}

void writeFileHead(llvm::raw_ostream &os, const HostStyle &style,
                   ArrayRef<std::string> comment, ArrayRef<StringRef> includes,
                   bool isHeader) {
  for (const std::string &text : comment)
    printComment(os, text);
  os << (isHeader ? "\n#pragma once\n" : "") << "\n#include \"runtime/"
     << style.runtimeHeader << "\"\n";
  for (StringRef include : includes)
    os << "#include \"" << include << "\"\n";
  os << "\nusing namespace pipewright::runtime;\n";
}

} // namespace pipewright::codegen
