//===- PipeInterfaces.td - What ops say about themselves ---*- tablegen -*-===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_PIPEINTERFACES_TD
#define PIPEWRIGHT_DIALECTS_PIPE_PIPEINTERFACES_TD

include "dialects/pipe/PipeBase.td"

def Pipe_GradientBodyInterface : OpInterface<"GradientBodyInterface"> {
  let cppNamespace = "::pipewright::pipe";
  let description = [{
    `pipe.backward`, its two halves, and `pipe.recompute`. Block arguments, in
    this order: the forward arguments `getInputs`, the forward results
    `getOutputs`, the values `getStashFields` of the forward's stash, the
    gradients of the forward results `getGradientsOf`, the values
    `getRecomputedFields` of what `pipe.recompute` hands over, and, in
    `pipe.weight_gradient`, all that `pipe.input_gradient` hands over.
  }];
  let methods = [
    InterfaceMethod<"Which forward arguments it reads.",
      "::llvm::ArrayRef<int64_t>", "getInputs">,
    InterfaceMethod<"Which forward results it reads.",
      "::llvm::ArrayRef<int64_t>", "getOutputs">,
    InterfaceMethod<"Which values of the forward's stash it reads.",
      "::llvm::SmallVector<int64_t>", "getStashFields">,
    InterfaceMethod<"Of which forward results it reads the gradients.",
      "::llvm::ArrayRef<int64_t>", "getGradientsOf">,
    InterfaceMethod<"Of which forward arguments it returns the gradients.",
      "::llvm::ArrayRef<int64_t>", "getInputGradients">,
    InterfaceMethod<"Which values that `pipe.recompute` hands over it reads.",
      "::llvm::SmallVector<int64_t>", "getRecomputedFields">,
    InterfaceMethod<"Whether it reads what `pipe.input_gradient` hands over.",
      "bool", "takesHandover">
  ];
}

def Pipe_StepOpInterface : OpInterface<"StepOpInterface"> {
  let cppNamespace = "::pipewright::pipe";
  let description = [{
    Every op that may stand in `pipe.step` or `pipe.rank`. No method has a
    default: an op that does not say what it does is not compiled. Planning,
    the assignment of streams and code generation ask; what proves their work
    reads the ops anew.

    What passes decide about such an op stands in its attributes `buffers`, for
    results that have a planned place, and `event`, where it records one.
  }];
  let methods = [
    InterfaceMethod<"The stage that it belongs to; null for transfers.",
      "::mlir::FlatSymbolRefAttr", "getStageName">,
    InterfaceMethod<"The stream on which it runs, where a target has streams.",
      "StreamAttr", "getWorkStream">,
    InterfaceMethod<[{
        Whether the program goes on before the op is over: then it has an event
        of its own, and a later op waits for it.
      }],
      "bool", "isAsynchronous">,
    InterfaceMethod<"The number of the event that it records.",
      "::std::optional<uint64_t>", "getRecordedEvent">,
    InterfaceMethod<"What messages call it: `task F0.1`, `send to rank 1`.",
      "::std::string", "getLabel", (ins "const StepContext &":$context)>,
    InterfaceMethod<"Where the bytes of a result are.",
      "ResultBytes", "getResultBytes", (ins "::mlir::OpResult":$result)>,
    InterfaceMethod<[{
        The bytes that it uses until it is over, as far as it runs on a stream.
      }],
      "ByteUses", "getByteUses">,
    InterfaceMethod<[{
        What a result stands for; none where it has no meaning of its own: it
        was received, or is a gradient that no stage wants.
      }],
      "::std::optional<Content>", "getContent",
      (ins "::mlir::OpResult":$result, "const StepContext &":$context)>,
    InterfaceMethod<[{
        What it takes an operand for; none where it takes anything: it sends or
        waits.
      }],
      "::std::optional<Content>", "getWantedContent",
      (ins "::mlir::OpOperand &":$operand, "const StepContext &":$context)>
  ];
  let extraSharedClassDeclaration = [{
    /// The planned places of its results, one for each that has one.
    ::mlir::ArrayAttr getPlannedBuffers() {
      return $_op->template getAttrOfType<::mlir::ArrayAttr>("buffers");
    }
    void setPlannedBuffers(::mlir::ArrayAttr buffers) {
      $_op->setAttr("buffers", buffers);
    }
    void setRecordedEvent(int64_t event) {
      auto type = ::mlir::IntegerType::get($_op->getContext(), 64);
      $_op->setAttr("event", ::mlir::IntegerAttr::get(type, event));
    }
    void removeRecordedEvent() { $_op->removeAttr("event"); }
  }];
}

def Pipe_GroupOpInterface : OpInterface<"GroupOpInterface"> {
  let cppNamespace = "::pipewright::pipe";
  let description = [{
    One member's part in what a group does together. An op that is asynchronous
    is over at its `pipe.wait_collective`; in others the rank stands still until
    all members have come, and no work of its groups is under way.
  }];
  let methods = [
    InterfaceMethod<"Who takes part.", "GroupAttr", "getOver">
  ];
}

/// What the two classes below say of their ops.
defvar Pipe_onlyOrders = [{
    ::mlir::FlatSymbolRefAttr $cppClass::getStageName() { return {}; }
    bool $cppClass::isAsynchronous() { return false; }
    ByteUses $cppClass::getByteUses() { return {}; }
    ::std::optional<Content> $cppClass::getContent(
        ::mlir::OpResult, const StepContext &) { return ::std::nullopt; }
    ::std::optional<Content> $cppClass::getWantedContent(
        ::mlir::OpOperand &, const StepContext &) { return ::std::nullopt; }
}];

/// An op of a rank's program that only says what comes after what: it belongs to
/// no stage, and uses, makes and takes nothing.
class Pipe_OrderingOp<string mnemonic>
    : Pipe_Op<mnemonic, [HasParent<"RankOp">,
        DeclareOpInterfaceMethods<Pipe_StepOpInterface>]> {
  let hasVerifier = 1;
  let extraClassDefinition = Pipe_onlyOrders;
}

/// Such an op that waits for what runs elsewhere.
class Pipe_WaitOp<string mnemonic, list<Trait> traits = []>
    : Pipe_Op<mnemonic, [HasParent<"RankOp">,
        DeclareOpInterfaceMethods<Pipe_StepOpInterface>] # traits> {
  let hasVerifier = 1;
  let extraClassDefinition = Pipe_onlyOrders # [{
    StreamAttr $cppClass::getWorkStream() {
      return StreamAttr::compute(getContext());
    }
    ::std::optional<uint64_t> $cppClass::getRecordedEvent() {
      return ::std::nullopt;
    }
  }];
}

#endif // PIPEWRIGHT_DIALECTS_PIPE_PIPEINTERFACES_TD
