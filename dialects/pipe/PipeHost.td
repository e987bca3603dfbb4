//===- PipeHost.td - Stashes in the memory of the host -----*- tablegen -*-===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_PIPEHOST_TD
#define PIPEWRIGHT_DIALECTS_PIPE_PIPEHOST_TD

include "dialects/pipe/PipeBase.td"
include "dialects/pipe/PipeInterfaces.td"

def Pipe_MoveOp : Pipe_Op<"move", [
    ParentOneOf<["StepOp", "RankOp"]>,
    DeclareOpInterfaceMethods<Pipe_StepOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Copy a stash from a GPU to its host's memory, or back";
  let description = [{
    What the forward of `stage` and `micro_batch` keeps lives as bytes in the
    host's memory between two of these: one takes the stash, the other one the
    bytes. A GPU copies in both directions beside its tasks, one copy at a time
    in each.

    In a rank's program it never blocks: it is over at its `pipe.wait_move`, and
    uses the bytes of its operand and of its result until then; where streams are
    assigned, until `event`, which is recorded when it is over. In a step, its
    place among the tasks of its rank says from where on it may begin.

    Constraints:
    - (C1) it takes a stash of its stage and returns bytes, or takes bytes and
      returns a stash of its stage.
    - (C2) bytes are what a `pipe.move` of the same stage and `micro_batch` has
      brought to the host.

    Life span: made by `pipe-schedule`, in rank programs from
    `pipe-insert-transfers` on.

    Example:
    ```mlir
    %kept = pipe.move (%st) in @s0 micro_batch 3
        : !pipe.stash<@s0> -> tensor<4096xi8>
    pipe.wait_move %kept in @s0 : tensor<4096xi8>
    %back = pipe.move (%kept) in @s0 micro_batch 3
        : tensor<4096xi8> -> !pipe.stash<@s0>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Pipe_StashType, AnyStaticShapeTensor]>:$value,
    FlatSymbolRefAttr:$stage,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$micro_batch,
    Pipe_OptionalBuffers:$buffers,
    OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$event);
  let results = (outs AnyTypeOf<[Pipe_StashType, AnyStaticShapeTensor]>:$result);
  let assemblyFormat = [{
    `(` $value `)` `in` $stage `micro_batch` $micro_batch
    (`buffers` $buffers^)? (`event` $event^)? attr-dict
    `:` type($value) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// Whether its result is in the host's memory; its operand is otherwise.
    bool isToHost() {
      return ::llvm::isa<::mlir::RankedTensorType>(getResult().getType());
    }
    Content contentOf();
    /// The first wait for it; null where there is none.
    WaitMoveOp getWait();
  }];
  let hasVerifier = 1;
}

def Pipe_WaitMoveOp : Pipe_Op<"wait_move", [
    ParentOneOf<["StepOp", "RankOp"]>,
    DeclareOpInterfaceMethods<Pipe_StepOpInterface>]> {
  let summary = "Wait until a copy between a GPU and its host is over";
  let description = [{
    In a step, its place says by when a stash is in the host's memory, and its
    bytes on the GPU are free.

    Constraints:
    - (C1) it waits for what a `pipe.move` of its stage makes.

    Example:
    ```mlir
    pipe.wait_move %kept in @s0 : tensor<4096xi8>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Pipe_StashType, AnyStaticShapeTensor]>:$value,
                       FlatSymbolRefAttr:$stage);
  let assemblyFormat = "$value `in` $stage attr-dict `:` type($value)";
  let extraClassDeclaration = [{
    /// What it waits for.
    MoveOp getMove();
  }];
  let hasVerifier = 1;
}

#endif // PIPEWRIGHT_DIALECTS_PIPE_PIPEHOST_TD
