//===- NNLibraryCall.h - What an op asks of the runtime ---------*- C++ -*-===//
//
// The record that a library op gives of its call. Who writes code, plans memory
// or predicts times reads it; nobody else knows which op calls what.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNLIBRARYCALL_H
#define PIPEWRIGHT_DIALECTS_NN_NNLIBRARYCALL_H

#include "mlir/IR/Value.h"
#include "runtime/calls/Fields.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <string_view>

namespace pipewright::nn {

/// A field of a shape in runtime/calls and its value.
struct ShapeField {
  llvm::StringRef name;
  runtime::FieldValue value;

  bool operator==(const ShapeField &) const = default;
};

/// The fields of such a shape that differ from their default, in the order of
/// their declaration.
template <class Shape>
llvm::SmallVector<ShapeField> fieldsOf(const Shape &shape) {
  llvm::SmallVector<ShapeField> standard, fields;
  Shape().visitFields([&](std::string_view name, auto value) {
    standard.push_back({name, value});
  });
  size_t index = 0;
  shape.visitFields([&](std::string_view name, auto value) {
    ShapeField field{name, value};
    if (field != standard[index++])
      fields.push_back(field);
  });
  return fields;
}

/// The name of a function that runtime/calls declares, by the same name on all
/// targets. Only PIPEWRIGHT_CALL makes one, so a name that is misspelt does not
/// compile.
class CallName {
public:
  /// No function.
  constexpr CallName() = default;
  static constexpr CallName declared(llvm::StringRef name) {
    CallName declared;
    declared.name = name;
    return declared;
  }

  bool empty() const { return name.empty(); }
  operator llvm::StringRef() const { return name; }
  bool operator==(const CallName &) const = default;

private:
  llvm::StringRef name;
};

#define PIPEWRIGHT_CALL(function)                                              \
  ([] {                                                                        \
    using ::pipewright::runtime::function;                                     \
    return ::pipewright::nn::CallName::declared(#function);                    \
  }())

/// What bounds the time of a call, beside the memory that it reads and writes.
/// Programs prepare calls in this order.
enum class CallWork { Matmul, Convolution, Attention, Random, Memory };

/// What a program does once, before its first step, for all calls of a shape.
struct CallPreparation {
  /// Empty where nothing has to be done.
  CallName function = {};
  /// The argument behind the shape, if there is one.
  llvm::StringRef option = {};
  /// Whether every target needs it, and not only those that prepare all calls.
  bool everywhere = true;

  bool operator==(const CallPreparation &) const = default;
};

/// A call of the runtime. Behind the rank, its arguments are the shape (or the
/// number of what was prepared for it), the option, the micro-batch, the
/// buffers, and whether the result is added; each where there is one.
struct LibraryCall {
  CallName function;
  llvm::SmallVector<ShapeField> shape = {};
  llvm::StringRef option = {};
  bool takesMicroBatch = false;
  /// Operands and results; null where an optional one is absent.
  llvm::SmallVector<mlir::Value> buffers = {};
  CallWork work = CallWork::Memory;
  /// The result that may be added to what is in its buffer instead of being
  /// stored there; null where none may.
  mlir::Value added = {};
  /// Whether the last argument says so; else the shape does.
  bool saysAdded = false;
  CallPreparation preparation = {};
  /// Calls with one shape and one weight share a number, and under it what was
  /// prepared, such as a packed weight. It stands in place of the shape.
  bool isNumbered = false;
  /// Of a numbered call: the weight that it reads, or whose gradient it makes;
  /// empty where that is no weight of the model.
  llvm::StringRef weight = {};
};

/// The element type of a floating-point tensor, as the runtime names it.
runtime::ElementType elementTypeOf(mlir::Value value);

/// The weight that a value is, perhaps in another shape; empty where it is
/// none.
llvm::StringRef weightBehind(mlir::Value value);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNLIBRARYCALL_H
