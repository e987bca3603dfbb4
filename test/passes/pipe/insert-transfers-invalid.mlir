// DEFINE: %{tied} = pipewright-opt %inputs/pipe/tied.mlir --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2" --pipe-synchronize-weights=tied=owner
// RUN: %{tied} | sed 's/add_gradient @wte in @s0/add_gradient @wte in @wte/' | not pipewright-opt --pipe-insert-transfers -o /dev/null 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: %{tied} | sed 's/add_gradient @wte in @s0/add_gradient @wte in @s1/' | not pipewright-opt --pipe-insert-transfers -o /dev/null 2>&1 | FileCheck %s --check-prefix=TENSOR

// STAGE: error: 'pipe.add_gradient' op belongs to no stage of the module
// TENSOR: error: 'pipe.add_gradient' op takes '!pipe.gradient<@s0>' from another rank, but only tensors can be sent
