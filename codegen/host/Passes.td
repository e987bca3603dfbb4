//===- Passes.td - Passes of host code generation ----------*- tablegen -*-===//
//
// One entry per pass. The flag convert-pipe-to-emitc is implemented in
// ConvertPipeToEmitC.cpp and tested in
// test/codegen/host/convert-pipe-to-emitc.mlir.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_PASSES_TD
#define PIPEWRIGHT_CODEGEN_HOST_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertPipeToEmitC
    : Pass<"convert-pipe-to-emitc", "::mlir::ModuleOp"> {
  let summary = "Turn an allocated module into the files of a C++ program";
  let description = [{
    Replaces the module's contents by one `emitc.file` for each file of the
    program: `stages.cpp` with one function per stage and direction,
    `ranks.cpp` with one straight program per rank, `main.cpp` with the tables,
    and a header for each of the first two.

    Input contract: `pipe-verify-allocated` accepts the module, and no compiled
    nn op is left outside of `@kernels`; for targets with
    streams (`cuda`), `pipe-verify-streams` accepts it too. Not idempotent: the input level is
    gone afterwards.

    ```mlir
    pipe.rank 0 train {
      %t = pipe.input "x" micro_batch 0 for @s0
          buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<2x8xf32>
    }
    // becomes, in emitc.file "ranks.cpp"
    emitc.func @rank0_step(%rank: !emitc.opaque<"Rank &">) {
      %x = "emitc.constant"() {value = #emitc.opaque<"{0, 64}">} : ...
      emitc.call_opaque "rank.loadInput"(%x) {args = [...]} : ...
    }
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
           "What the program runs on, as the driver's --target">,
    Option<"modelName", "model-name", "std::string", "\"model\"",
           "What the program calls its model">
  ];
  let dependentDialects = ["::mlir::emitc::EmitCDialect"];
}

def PrintHost : Pass<"print-host", "::mlir::ModuleOp"> {
  let summary = "Print the C++ of every emitc.file to the standard output";
  let description = [{
    For tests and for people; the module stays as it is. Each file is headed by
    a line with its name.
  }];
}

#endif // PIPEWRIGHT_CODEGEN_HOST_PASSES_TD
