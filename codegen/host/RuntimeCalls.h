//===- RuntimeCalls.h - Calls of the runtime in EmitC -----------*- C++ -*-===//
//
// Builds the body of one generated function. Every name of the runtime that
// generated code uses is spelt in RuntimeCalls.cpp, so a change of its
// interface is a change of one file; library ops name their functions
// themselves (dialects/nn/NNLibraryCall.h).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_RUNTIMECALLS_H
#define PIPEWRIGHT_CODEGEN_HOST_RUNTIMECALLS_H

#include "codegen/host/Identifiers.h"
#include "codegen/target/Target.h"
#include "dialects/pipe/PipeDialect.h"

#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/Builders.h"

#include <string>
#include <variant>

namespace pipewright::codegen {

/// An argument of a generated call: a value, or text that stands for itself.
using CallArgument = std::variant<mlir::Value, std::string>;

/// `0.1f`: exactly this float, in C++.
std::string floatLiteral(float value);

/// Writes a line that is a comment, at the builder's insertion point.
void writeComment(mlir::OpBuilder &builder, mlir::Location loc,
                  const llvm::Twine &comment);

/// A function of generated code while it is written.
class FunctionWriter {
public:
  /// Starts a function with a body at the builder's insertion point.
  /// `parameters` are names of Buffer parameters; `rank` comes before them,
  /// and `microBatch` too where asked for. Comment lines come first.
  FunctionWriter(mlir::OpBuilder &builder, mlir::Location loc,
                 const HostStyle &style, llvm::StringRef name,
                 bool hasMicroBatch, llvm::ArrayRef<std::string> parameters,
                 bool isStatic = false);
  /// Ends the body.
  void finish();

  mlir::Value parameter(size_t index) const;
  /// A local buffer of the arena, or a part of another buffer.
  mlir::Value buffer(llvm::StringRef name, int64_t offset, int64_t bytes);
  mlir::Value part(llvm::StringRef name, mlir::Value whole, int64_t offset,
                   int64_t bytes);
  /// What stands for an operand that is not there.
  static CallArgument absent() { return std::string("Buffer()"); }

  void comment(llvm::StringRef text);
  /// Puts a comment behind the statement before.
  void commentBehind(llvm::StringRef text);
  void blankLine();

  // --- Rank's members ------------------------------------------------------
  /// Says that a task begins, unless the caller gives the rank the whole
  /// function as one.
  void task(llvm::StringRef kind, int64_t stage, bool hasMicroBatch);
  void loadInput(int64_t input, int64_t microBatch, mlir::Value destination);
  void storeOutput(int64_t output, mlir::Value source);
  void reportLoss(mlir::Value loss);
  /// `event` is there where the target has streams.
  void postSend(int64_t peer, mlir::Value buffer, std::optional<int64_t> event);
  void postReceive(int64_t peer, mlir::Value buffer,
                   std::optional<int64_t> event);
  /// `stream` as streamName spells it.
  void record(const std::string &stream, int64_t event);
  void wait(const std::string &stream, int64_t event);
  void waitSend(int64_t peer);
  void waitReceive(int64_t peer);
  void beginUpdate(int64_t number);
  void loadHyper(mlir::Value destination);

  // --- Functions of the generated program itself ---------------------------
  /// Calls a stage's function, or gives it to the rank as the task `kind` of
  /// the stage.
  void callStage(llvm::StringRef kind, int64_t stage, llvm::StringRef function,
                 std::optional<int64_t> microBatch,
                 llvm::ArrayRef<CallArgument> buffers);

  // --- Kernels -------------------------------------------------------------
  void prepareKernel(llvm::StringRef kernel);
  void launch(llvm::StringRef kernel, llvm::ArrayRef<CallArgument> buffers);
  void zero(mlir::Value buffer);
  void copy(mlir::Value source, mlir::Value destination);
  void accumulate(mlir::Value source, mlir::Value destination);
  void fill(float value, mlir::Value destination);
  /// Copies a table of values, which is declared in front of the call.
  void setValues(llvm::StringRef elementType,
                 llvm::ArrayRef<std::string> values, llvm::StringRef name,
                 mlir::Value destination);

  // --- Library calls -------------------------------------------------------
  /// A function of the runtime on the rank.
  void call(llvm::StringRef callee, llvm::ArrayRef<CallArgument> arguments);
  /// The parameter of that name.
  CallArgument microBatch();

private:
  void callMember(llvm::StringRef member,
                  llvm::ArrayRef<CallArgument> arguments);
  void setName(mlir::Value value, llvm::StringRef name);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const HostStyle &style;
  mlir::emitc::FuncOp function;
  NameScope names;
  llvm::SmallVector<std::string> parameterNames;
  bool hasMicroBatch;
  bool usesMicroBatch = false;
};

/// A stream of a rank as generated code spells it: `sendTo(1)`.
std::string streamName(pipe::StreamAttr stream);

/// Declares a function that another file defines.
void declareFunction(mlir::OpBuilder &builder, mlir::Location loc,
                     const HostStyle &style, llvm::StringRef name,
                     bool hasMicroBatch,
                     llvm::ArrayRef<std::string> parameters);

/// The lines at the top of a generated file.
void writeFileHead(mlir::OpBuilder &builder, mlir::Location loc,
                   const HostStyle &style, llvm::ArrayRef<std::string> comment,
                   llvm::ArrayRef<llvm::StringRef> includes, bool isHeader);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_RUNTIMECALLS_H
