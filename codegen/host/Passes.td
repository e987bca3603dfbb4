//===- Passes.td - Passes of host code generation ----------*- tablegen -*-===//
//
// The one pass of this room: it shows what emitHost makes of a module.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_PASSES_TD
#define PIPEWRIGHT_CODEGEN_HOST_PASSES_TD

include "mlir/Pass/PassBase.td"

def PrintHost : Pass<"print-host", "::mlir::ModuleOp"> {
  let summary = "Print the host code of an allocated module";
  let description = [{
    Prints the files of the program to the standard output, each behind a line
    with its name: `stages.cpp` with one function per stage and direction,
    `ranks.cpp` with one program per rank, `main.cpp` with the tables, and a
    header for each of the first two. The module stays as it is.

    Input contract: `pipe-verify-allocated` accepts the module, and no compiled
    nn op is left outside of `@kernels`; for targets with streams (`cuda`),
    `pipe-verify-streams` accepts it too.

    ```mlir
    pipe.rank 0 train {
      %t = pipe.input "x" micro_batch 0 for @s0
          buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<2x8xf32>
    }
    // becomes, in ranks.cpp
    //   void rank0_step(Rank &rank) {
    //     const Buffer x_0 = {0, 64};
    //
    //     rank.loadInput(0, 0, x_0);                      // x of micro-batch 0
    //   }
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
           "What the program runs on, as the driver's --target">,
    Option<"modelName", "model-name", "std::string", "\"model\"",
           "What the program calls its model">,
    Option<"tableAbove", "table-above", "int64_t", "1000",
           "Lists of ranks with more calls are written as tables">
  ];
}

#endif // PIPEWRIGHT_CODEGEN_HOST_PASSES_TD
