//===- PipeTransfer.td - Ranks and transfers ---------------*- tablegen -*-===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_PIPETRANSFER_TD
#define PIPEWRIGHT_DIALECTS_PIPE_PIPETRANSFER_TD

include "dialects/pipe/PipeBase.td"
include "dialects/pipe/PipeInterfaces.td"

def Pipe_RankOp : Pipe_Op<"rank", [
    HasParent<"::mlir::ModuleOp">, SingleBlock, NoTerminator,
    NoRegionArguments, IsolatedFromAbove]> {
  let summary = "One rank's straight program for a step";
  let description = [{
    Runs from top to bottom. What it needs from other ranks comes through
    `pipe.wait_receive` and `pipe.collective`; isolation makes any other way
    impossible.

    Constraints:
    - (C1) holds only ops that say what they do there (`StepOpInterface`).

    Example:
    ```mlir
    pipe.rank 0 train {
      %p = pipe.post_receive from 1 : !pipe.pending<tensor<4xf32>>
      %x = pipe.wait_receive %p from 1 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$rank,
                       Pipe_StepModeAttr:$mode);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = "$rank $mode attr-dict-with-keyword $bodyRegion";
  let hasRegionVerifier = 1;
}

/// A post: it belongs to no stage, and is over at its event.
class Pipe_PostOp<string mnemonic, list<Trait> traits = []>
    : Pipe_Op<mnemonic, [HasParent<"RankOp">,
        DeclareOpInterfaceMethods<Pipe_StepOpInterface>,
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]
        # traits> {
  let hasVerifier = 1;
  let extraClassDefinition = [{
    ::mlir::FlatSymbolRefAttr $cppClass::getStageName() { return {}; }
    bool $cppClass::isAsynchronous() { return true; }
    ::std::optional<uint64_t> $cppClass::getRecordedEvent() {
      return getEvent();
    }
    ::std::optional<Content> $cppClass::getContent(
        ::mlir::OpResult, const StepContext &) { return ::std::nullopt; }
    ::std::optional<Content> $cppClass::getWantedContent(
        ::mlir::OpOperand &, const StepContext &) { return ::std::nullopt; }
  }];
}

def Pipe_PostSendOp : Pipe_PostOp<"post_send", [
    TypesMatchWith<"the pending type carries the tensor type", "value",
      "result",
      "PendingType::get($_self.getContext(), "
      "::llvm::cast<::mlir::RankedTensorType>($_self))">]> {
  let summary = "Begin to send a tensor to another rank; never blocks";
  let description = [{
    Reads its buffer until the matching `pipe.wait_send`; where streams are
    assigned, until `event`, which is recorded when the transfer is over.

    Constraints:
    - (C1) the peer is another rank.

    Example:
    ```mlir
    %p = pipe.post_send %y to 1 : tensor<4xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$value,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$peer,
    OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$event);
  let results = (outs Pipe_PendingType:$result);
  let assemblyFormat = [{
    $value `to` $peer (`event` $event^)? attr-dict `:` type($value)
  }];
}

def Pipe_WaitSendOp : Pipe_WaitOp<"wait_send"> {
  let summary = "Wait until the oldest outstanding send of a link is complete";
  let description = [{
    Constraints:
    - (C1) the peer is that of the matching post.

    Example:
    ```mlir
    pipe.wait_send %p to 1 : !pipe.pending<tensor<4xf32>>
    ```
  }];
  let arguments = (ins Pipe_PendingType:$pending,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$peer);
  let assemblyFormat = "$pending `to` $peer attr-dict `:` type($pending)";
}

def Pipe_PostReceiveOp : Pipe_PostOp<"post_receive"> {
  let summary = "Name the bytes for the next tensor of a link; never blocks";
  let description = [{
    Where streams are assigned, `event` is recorded when the tensor is there.

    Constraints:
    - (C1) the peer is another rank.

    Example:
    ```mlir
    %p = pipe.post_receive from 0 : !pipe.pending<tensor<4xf32>>
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$peer,
                       Pipe_OptionalBuffers:$buffers,
    OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$event);
  let results = (outs Pipe_PendingType:$result);
  let assemblyFormat = [{
    `from` $peer (`buffers` $buffers^)? (`event` $event^)? attr-dict
    `:` type($result)
  }];
}

def Pipe_WaitReceiveOp : Pipe_WaitOp<"wait_receive", [
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
    TypesMatchWith<"the pending type carries the tensor type", "result",
      "pending",
      "PendingType::get($_self.getContext(), "
      "::llvm::cast<::mlir::RankedTensorType>($_self))">]> {
  let summary = "Wait for the oldest outstanding receive of a link";
  let description = [{
    Constraints:
    - (C1) the peer is that of the matching post.

    Example:
    ```mlir
    %x = pipe.wait_receive %p from 0 : tensor<4xf32>
    ```
  }];
  let arguments = (ins Pipe_PendingType:$pending,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$peer);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$pending `from` $peer attr-dict `:` type($result)";
}

#endif // PIPEWRIGHT_DIALECTS_PIPE_PIPETRANSFER_TD
