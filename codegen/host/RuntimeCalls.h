//===- RuntimeCalls.h - Calls of the runtime --------------------*- C++ -*-===//
//
// Collects the body of one generated function. Every name of the runtime that
// generated code uses is spelt in RuntimeCalls.cpp, so a change of its
// interface is a change of one file; library ops name their functions
// themselves (dialects/nn/NNLibraryCall.h).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_RUNTIMECALLS_H
#define PIPEWRIGHT_CODEGEN_HOST_RUNTIMECALLS_H

#include "codegen/host/CppPrinter.h"
#include "codegen/host/Identifiers.h"
#include "codegen/target/Target.h"
#include "dialects/pipe/PipeDialect.h"

#include "llvm/ADT/StringSet.h"

#include <string>

namespace pipewright::codegen {

/// `0.1f`: exactly this float, in C++.
std::string floatLiteral(float value);

/// A function of generated code while it is written.
class FunctionWriter {
public:
  /// `parameters` are names of Buffer parameters; `rank` comes before them,
  /// and `microBatch` too where asked for.
  FunctionWriter(const HostStyle &style, llvm::StringRef name,
                 bool hasMicroBatch, llvm::ArrayRef<std::string> parameters);
  /// The function, when all is written.
  Function finish();

  Local parameter(size_t index) const;
  /// A local buffer of the arena, perhaps one of a family, or a part of another
  /// buffer.
  Local buffer(llvm::StringRef name, int64_t offset, int64_t bytes,
               llvm::StringRef family = {});
  Local part(llvm::StringRef name, const Local &whole, int64_t offset,
             int64_t bytes);
  /// What this replica updates of a range of the arena.
  Local shard(llvm::StringRef name, int64_t offset, int64_t bytes);
  /// What stands for an operand that is not there.
  static CallArgument absent() { return std::string("Buffer()"); }

  /// What is written from here to `always` is for one replica alone.
  void onReplica(int64_t replica);
  /// What is written from here to `always` is done only where somebody wants
  /// outputs of the micro-batch.
  void whereOutputsAreWanted();
  void always() { conditional.reset(); }

  void comment(llvm::StringRef text);
  /// Puts a comment behind the statement before.
  void commentBehind(Tokens text);
  void blankLine();

  // --- Rank's members ------------------------------------------------------
  /// Says that a task begins, unless the caller gives the rank the whole
  /// function as one.
  void task(llvm::StringRef kind, int64_t stage, bool hasMicroBatch);
  void loadInput(int64_t input, int64_t microBatch, const Local &destination);
  void storeOutput(int64_t output, const Local &source);
  void reportLoss(const Local &loss);
  /// `event` is there where the target has streams.
  void postSend(int64_t peer, const Local &buffer,
                std::optional<int64_t> event);
  void postReceive(int64_t peer, const Local &buffer,
                   std::optional<int64_t> event);
  /// A stash goes to the host's memory, or comes back.
  void copyToHost(const Local &stash, const Local &host, int64_t event);
  void copyFromHost(const Local &host, const Local &stash, int64_t event);
  /// `arguments` are the group, the type, the range and what its kind needs.
  void collective(runtime::CollectiveKind kind,
                  llvm::ArrayRef<CallArgument> arguments,
                  std::optional<int64_t> event);
  void waitCollective();
  /// `stream` as streamName spells it.
  void record(const std::string &stream, int64_t event);
  void wait(const std::string &stream, int64_t event);
  void waitSend(int64_t peer);
  void waitReceive(int64_t peer);
  void beginUpdate(int64_t number);
  void beginStatistics();
  void mergeStatistics(int64_t stage);
  void clipGradients();
  void loadHyper(const Local &destination);

  // --- Functions of the generated program itself ---------------------------
  /// Calls a stage's function, or gives it to the rank as the task `kind` of
  /// the stage.
  void callStage(llvm::StringRef kind, int64_t stage, llvm::StringRef function,
                 std::optional<int64_t> microBatch,
                 llvm::ArrayRef<CallArgument> buffers);
  /// Calls the next part of the task that was called last.
  void resumeStage(llvm::StringRef function, int64_t microBatch,
                   llvm::ArrayRef<CallArgument> buffers);

  // --- Kernels -------------------------------------------------------------
  void prepareKernel(llvm::StringRef kernel);
  void launch(llvm::StringRef kernel, llvm::ArrayRef<Local> buffers);
  void zero(const Local &buffer);
  void copy(const Local &source, const Local &destination);
  void accumulate(const Local &source, const Local &destination);
  void fill(float value, const Local &destination);
  /// Copies a table of values, which is declared in front of the call.
  void setValues(llvm::StringRef elementType, std::vector<std::string> values,
                 llvm::StringRef name, const Local &destination);

  // --- Library calls -------------------------------------------------------
  /// A function of the runtime on the rank.
  void call(llvm::StringRef callee, llvm::ArrayRef<CallArgument> arguments);
  /// The parameter of that name.
  CallArgument microBatch() const;

private:
  /// At the end of the body, or of what a condition holds for.
  template <class AnyStatement>
  void put(AnyStatement statement);
  void add(CallStatement statement);
  /// Goes on with the statement before if it is of the same condition.
  void beginConditional(std::string condition);
  void callMember(llvm::StringRef member,
                  llvm::ArrayRef<CallArgument> arguments);

  const HostStyle &style;
  Function function;
  NameScope names;
  /// Where what is written goes to, if not to the end of the body.
  std::optional<size_t> conditional;
  /// Parameters and locals that some statement reads.
  llvm::StringSet<> used;
};

/// A stream of a rank as generated code spells it: `sendTo(1)`.
std::string streamName(pipe::StreamAttr stream);

/// Declares a function that another file defines.
void declareFunction(llvm::raw_ostream &os, const HostStyle &style,
                     llvm::StringRef name, bool hasMicroBatch,
                     llvm::ArrayRef<std::string> parameters);

/// The lines at the top of a generated file.
void writeFileHead(llvm::raw_ostream &os, const HostStyle &style,
                   llvm::ArrayRef<std::string> comment,
                   llvm::ArrayRef<llvm::StringRef> includes, bool isHeader);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_RUNTIMECALLS_H
