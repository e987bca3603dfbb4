//===- PipeBase.td - Dialect, enums, types, attributes -----*- tablegen -*-===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_PIPEBASE_TD
#define PIPEWRIGHT_DIALECTS_PIPE_PIPEBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let summary = "Which part of a model runs where, in which order, and in which bytes";
  let cppNamespace = "::pipewright::pipe";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// On the module: a `#pipe.program`.
    static constexpr llvm::StringLiteral kProgram = "pipe.program";
    /// On a tied `nn.weight`: each of its stages gets the gradients of all, adds
    /// them and updates its own copy.
    static constexpr llvm::StringLiteral kAllReduced = "pipe.all_reduced";
    /// On the module, until it is cut: arrays of the name of a module of the
    /// model and the seconds that it was measured to take, in their order.
    static constexpr llvm::StringLiteral kLayerTimes = "pipe.layer_times";
    /// On the module, until it is cut: the seconds that each op of its function is
    /// predicted to take of a micro-batch, there and back, in their order.
    static constexpr llvm::StringLiteral kOpSeconds = "pipe.op_seconds";
    /// On ops of stage bodies: an array of `#pipe.buffer`, one per result.
    static constexpr llvm::StringLiteral kBuffers = "pipe.buffers";
  }];
}

class Pipe_Op<string mnemonic, list<Trait> traits = []>
    : Op<Pipe_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

def Pipe_TaskKind : I32Enum<"TaskKind", "what a task does", [
    I32EnumCase<"forward", 0>, I32EnumCase<"backward", 1>,
    I32EnumCase<"input_gradient", 2>, I32EnumCase<"weight_gradient", 3>,
    I32EnumCase<"recompute", 4>, I32EnumCase<"update", 5>,
    I32EnumCase<"evaluate", 6>]> {
  let cppNamespace = "::pipewright::pipe";
}
def Pipe_TaskKindAttr : EnumAttr<Pipe_Dialect, Pipe_TaskKind, "task_kind"> {
  let assemblyFormat = "$value";
}

def Pipe_StepMode : I32Enum<"StepMode", "training step or held-out evaluation", [
    I32EnumCase<"train", 0>, I32EnumCase<"evaluate", 1>]> {
  let cppNamespace = "::pipewright::pipe";
}
def Pipe_StepModeAttr : EnumAttr<Pipe_Dialect, Pipe_StepMode, "step_mode"> {
  let assemblyFormat = "$value";
}

def Pipe_BufferSpace : I32Enum<"BufferSpace", "what a buffer's offset counts from", [
    I32EnumCase<"arena", 0>, I32EnumCase<"stash", 1>,
    I32EnumCase<"input", 2>, I32EnumCase<"output", 3>,
    I32EnumCase<"weights", 4>, I32EnumCase<"host", 5>]> {
  let cppNamespace = "::pipewright::pipe";
}

def Pipe_GroupAxis : I32Enum<"GroupAxis", "in what the members of a group differ", [
    I32EnumCase<"pipe", 0>, I32EnumCase<"data", 1>]> {
  let cppNamespace = "::pipewright::pipe";
}

def Pipe_ReplicaState : I32Enum<"ReplicaState", "what a replica has of a value", [
    I32EnumCase<"whole", 0>, I32EnumCase<"partial", 1>, I32EnumCase<"split", 2>]> {
  let cppNamespace = "::pipewright::pipe";
}

def Pipe_WindowEnd : I32Enum<"WindowEnd", "which micro-batches of a window", [
    I32EnumCase<"first", 0>, I32EnumCase<"last", 1>]> {
  let cppNamespace = "::pipewright::pipe";
}

def Pipe_StreamKind : I32Enum<"StreamKind", "what a rank's stream is for", [
    I32EnumCase<"compute", 0>, I32EnumCase<"send", 1>,
    I32EnumCase<"receive", 2>, I32EnumCase<"collective", 3>,
    I32EnumCase<"to_host", 4>, I32EnumCase<"from_host", 5>]> {
  let cppNamespace = "::pipewright::pipe";
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Pipe_Type<string name, string typeMnemonic>
    : TypeDef<Pipe_Dialect, name> {
  let mnemonic = typeMnemonic;
}

class Pipe_StageType<string name, string typeMnemonic>
    : Pipe_Type<name, typeMnemonic> {
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$stage);
  let assemblyFormat = "`<` $stage `>`";
}

def Pipe_StashType : Pipe_Type<"Stash", "stash"> {
  let summary = "What one forward task of a stage keeps for its backward tasks";
  let description = [{
    One contiguous piece of the arena; its fields are the stash operands of the
    stage's forward `pipe.return`, in order. Of a stage that `splits_stash`, `to
    weight_gradient` has the fields that `pipe.weight_gradient` reads, and the
    other one the rest.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$stage,
    DefaultValuedParameter<"::pipewright::pipe::TaskKind",
        "::pipewright::pipe::TaskKind::backward">:$reader);
  let assemblyFormat = "`<` $stage (`,` `to` $reader^)? `>`";
  let builders = [TypeBuilder<(ins "::mlir::FlatSymbolRefAttr":$stage), [{
    return $_get($_ctxt, stage, TaskKind::backward);
  }]>];
}

def Pipe_HandoverType : Pipe_Type<"Handover", "handover"> {
  let summary = "What one task of a stage keeps for the next on its micro-batch";
  let description = [{
    What an input-gradient task keeps for its weight-gradient task, or, from
    `recompute`, a recompute task for the backward, or its first half. One
    contiguous piece of the arena; its fields are the stash operands of the
    `pipe.return` of the stage's `pipe.input_gradient`, or `pipe.recompute`, in
    order. What is recomputed is split as a stash is.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$stage,
    DefaultValuedParameter<"::pipewright::pipe::TaskKind",
        "::pipewright::pipe::TaskKind::input_gradient">:$giver,
    DefaultValuedParameter<"::pipewright::pipe::TaskKind",
        "::pipewright::pipe::TaskKind::backward">:$reader);
  let assemblyFormat = [{
    `<` $stage (`,` `from` $giver^)? (`,` `to` $reader^)? `>`
  }];
  let builders = [TypeBuilder<(ins "::mlir::FlatSymbolRefAttr":$stage), [{
    return $_get($_ctxt, stage, TaskKind::input_gradient, TaskKind::backward);
  }]>];
}

/// `!pipe.gradient<@s0>`, `!pipe.gradient<@s0, partial>`.
class Pipe_ReplicatedType<string name, string typeMnemonic>
    : Pipe_StageType<name, typeMnemonic> {
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$stage,
    DefaultValuedParameter<"::pipewright::pipe::ReplicaState",
        "::pipewright::pipe::ReplicaState::whole">:$replica_state);
  let assemblyFormat = "`<` $stage (`,` $replica_state^)? `>`";
  let builders = [TypeBuilder<(ins "::mlir::FlatSymbolRefAttr":$stage), [{
    return $_get($_ctxt, stage, ReplicaState::whole);
  }]>];
}

def Pipe_GradientType : Pipe_ReplicatedType<"Gradient", "gradient"> {
  let summary = "The weight gradients of a stage, summed so far";
  let description = [{
    Threads the backward and weight-gradient tasks of a stage: the order in
    which micro-batches are added, and so the rounding, is a use-def chain.

    What a replica has of the sum: if it is `partial`, an addend, that of the
    replica's own micro-batches; if it is `split`, its own part of the flat
    range; otherwise all of it, as all others have.
  }];
}

def Pipe_UpdatedType : Pipe_ReplicatedType<"Updated", "updated"> {
  let summary = "The state of a stage after its optimizer update";
  let description = [{
    If it is `split`, a replica has new weights in its own part of the flat
    range, and old ones in those of others. It is never `partial`.
  }];
  let genVerifyDecl = 1;
}

def Pipe_PendingType : Pipe_Type<"Pending", "pending"> {
  let summary = "A transfer that was posted and not yet waited for";
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Pipe_Attr<string name, string attrMnemonic>
    : AttrDef<Pipe_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Pipe_GroupAttr : Pipe_Attr<"Group", "group"> {
  let summary = "Who does something together";
  let description = [{
    `[0, 3]`: these ranks of a replica, in the order in which they add;
    `replicas`: the copies of a rank in all replicas, in theirs. Equal
    attributes are one group.
  }];
  let parameters = (ins "::pipewright::pipe::GroupAxis":$axis,
                        ArrayRefParameter<"int64_t">:$ranks);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    static GroupAttr ofRanks(::mlir::MLIRContext *context,
                             ::llvm::ArrayRef<int64_t> ranks) {
      return get(context, GroupAxis::pipe, ranks);
    }
    static GroupAttr ofReplicas(::mlir::MLIRContext *context) {
      return get(context, GroupAxis::data, {});
    }
    bool isOfReplicas() const { return getAxis() == GroupAxis::data; }
    /// The number of members, where the module says how many replicas it has.
    int64_t size(::mlir::ModuleOp module) const;
    /// `ranks 0, 3`, `all replicas`
    ::std::string describe() const;
  }];
}

def Pipe_ProgramAttr : Pipe_Attr<"Program", "program"> {
  let summary = "What was decided for the whole program, for every level to read";
  let description = [{
    The module's attribute `pipe.program`. Parts that nobody has decided yet are
    left out.

    - `ranks`; `replicas`: copies of all ranks, each with micro-batches of its
      own, that train on a batch together; 1 if left out
    - `process_map`: the order in which processes are numbered, and fill hosts:
      `replicas` of a rank beside each other, or ranks of `pipelines`, or the
      same with rank r beside rank P-1-r, `pairs`; `replicas` if left out
    - `micro_batches` of a step, for each replica; `micro_batch_size` in samples
    - `updates` of the weights in a step, which share the micro-batches evenly;
      1 if left out
    - `schedule`: a policy with its options
    - `sums_in_schedule_order`: gradients are added in the order of the
      schedule, not of the micro-batches, so that they round differently
    - `machine` that is planned for: its name, or the figures of one that was
      measured; a core of a CPU if left out
    - `optimizer`
    - `zero`: the level of ZeRO (Rajbhandari et al., 2020): what replicas keep a
      part each of, 0 for nothing, 1 for the states of the optimizer; with 2
      stages of a rank may have the same bytes for their gradients, too, with 3
      also for their weights; 0 if left out
    - `bucket_size`: replicas sum gradients, and gather weights, in buckets of
      about so many bytes, those whose gradients are whole first in front; all
      that a stage updates at once if it is left out
    - `clip_norm`: gradients are scaled so that their norm is at most this, an
      f64 above 0; they are taken as they are if it is left out
    - `task_times` that were measured: for each stage an array of seconds, one
      for each kind of task (F, B, I, W, R, U), negative if unknown
  }];
  let parameters = (ins
    OptionalParameter<"::std::optional<int64_t>">:$ranks,
    DefaultValuedParameter<"int64_t", "1">:$replicas,
    DefaultValuedParameter<"::pipewright::runtime::ProcessMap",
        "::pipewright::runtime::ProcessMap::Replicas">:$process_map,
    OptionalParameter<"::std::optional<int64_t>">:$micro_batches,
    OptionalParameter<"::std::optional<int64_t>">:$micro_batch_size,
    DefaultValuedParameter<"int64_t", "1">:$updates,
    OptionalParameter<"::mlir::StringAttr">:$schedule,
    OptionalParameter<"bool">:$sums_in_schedule_order,
    OptionalParameter<"::mlir::Attribute">:$machine,
    OptionalParameter<"::pipewright::nn::OptimizerAttr">:$optimizer,
    DefaultValuedParameter<"int64_t", "0">:$zero,
    OptionalParameter<"::std::optional<int64_t>">:$bucket_size,
    OptionalParameter<"::mlir::FloatAttr">:$clip_norm,
    OptionalParameter<"::mlir::ArrayAttr">:$task_times);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Pipe_WindowAttr : Pipe_Attr<"Window", "window"> {
  let summary = "Which micro-batches of a stage keep their stash";
  let description = [{
    `<first 2 of 4>`: of micro-batches 0 to 3 the first two, and so on for each
    four that follow. Without `of` the size of a window is not decided yet.
  }];
  let parameters = (ins "::pipewright::pipe::WindowEnd":$end, "int64_t":$count,
                        DefaultValuedParameter<"int64_t", "0">:$of);
  let assemblyFormat = "`<` $end $count (`of` $of^)? `>`";
  let builders = [AttrBuilder<(ins "::pipewright::pipe::WindowEnd":$end,
                                   "int64_t":$count), [{
    return $_get($_ctxt, end, count, 0);
  }]>];
  let genVerifyDecl = 1;
}

def Pipe_InputAttr : Pipe_Attr<"Input", "input"> {
  let summary = "A stage argument that is a model input, by name";
  let parameters = (ins "::mlir::StringAttr":$name);
  let assemblyFormat = "`<` $name `>`";
}

def Pipe_OutputAttr : Pipe_Attr<"Output", "output"> {
  let summary = "A stage argument that is a result of another stage's forward";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$stage, "int64_t":$index);
  let assemblyFormat = "`<` $stage `,` $index `>`";
}

def Pipe_BufferAttr : Pipe_Attr<"Buffer", "buffer"> {
  let summary = "A range of bytes: space, index within the space, offset, size";
  let description = [{
    `index` is the number of the task's operand or result for the spaces
    `input` and `output`; in space `stash` it is one of `StashNumbers.h`; in the
    spaces `arena`, `weights` and `host`, which is memory of the rank's host, it
    is 0. Offsets and sizes are in bytes; those in space `weights` count from the
    start of the version of the stage's weights that the task reads.
  }];
  let parameters = (ins
    EnumParameter<Pipe_BufferSpace>:$space,
    "int64_t":$index, "int64_t":$offset, "int64_t":$bytes);
  let assemblyFormat =
      "`<` $space $index `at` $offset `bytes` $bytes `>`";
  let genVerifyDecl = 1;
  let builders = [
    AttrBuilderWithInferredContext<(ins "::mlir::MLIRContext *":$context,
        "BufferSpace":$space, "int64_t":$offset, "int64_t":$bytes), [{
      return $_get(context, space, 0, offset, bytes);
    }]>
  ];
}

def Pipe_CollectiveKindAttr : Pipe_Attr<"CollectiveKind", "collective_kind"> {
  let summary = "What a group of ranks does together";
  let description = [{
    One of `runtime/calls/CollectiveKinds.h`, spelt with underscores:
    `all_reduce`.
  }];
  let parameters = (ins "::pipewright::runtime::CollectiveKind":$value);
  let returnType = "::pipewright::runtime::CollectiveKind";
  let convertFromStorage = "$_self.getValue()";
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    const ::pipewright::runtime::CollectiveFacts &getFacts() const {
      return ::pipewright::runtime::factsOf(getValue());
    }
    /// `all_reduce`
    std::string spelling() const;
  }];
}

def Pipe_StreamAttr : Pipe_Attr<"Stream", "stream"> {
  let summary = "A queue of work of one rank: compute, send to 1, receive from 0";
  let description = [{
    Work of one stream runs in program order; work of different streams runs at
    the same time unless events order it. Each directed link has a stream, and
    so have the rank's collectives, of all groups, and its copies to the host's
    memory (`to_host`) and back (`from_host`); everything else runs on `compute`. Streams that are of no link have the `peer` -1.
  }];
  let parameters = (ins EnumParameter<Pipe_StreamKind>:$kind, "int64_t":$peer);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static StreamAttr compute(::mlir::MLIRContext *context) {
      return get(context, StreamKind::compute, -1);
    }
    static StreamAttr collective(::mlir::MLIRContext *context) {
      return get(context, StreamKind::collective, -1);
    }
    static StreamAttr toHost(::mlir::MLIRContext *context) {
      return get(context, StreamKind::to_host, -1);
    }
    static StreamAttr fromHost(::mlir::MLIRContext *context) {
      return get(context, StreamKind::from_host, -1);
    }
    static StreamAttr sendTo(::mlir::MLIRContext *context, int64_t peer) {
      return get(context, StreamKind::send, peer);
    }
    static StreamAttr receiveFrom(::mlir::MLIRContext *context, int64_t peer) {
      return get(context, StreamKind::receive, peer);
    }
    /// Whether it is a link's, and so has a peer.
    bool isOfLink() const {
      return getKind() == StreamKind::send || getKind() == StreamKind::receive;
    }
    /// As it is printed: `send to 1`.
    std::string describe() const;
  }];
}

def Pipe_BufferArrayAttr : TypedArrayAttrBase<Pipe_BufferAttr, "buffers">;
def Pipe_OptionalBuffers : OptionalAttr<Pipe_BufferArrayAttr>;
def Pipe_KernelArrayAttr : TypedArrayAttrBase<SymbolRefAttr, "kernels">;

#endif // PIPEWRIGHT_DIALECTS_PIPE_PIPEBASE_TD
