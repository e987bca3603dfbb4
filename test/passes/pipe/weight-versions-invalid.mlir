// DEFINE: %{dream} = sed 's/micro_batches = 4/micro_batches = 4, updates = 4/' %inputs/pipe/chain.mlir | pipewright-opt --pipewright-unrolled --pipewright-scheduled="policy=pipedream ranks=4"
// RUN: %{dream} -o %t.mlir
// RUN: sed 's/backward @s1 micro_batch 3 version 1/backward @s1 micro_batch 3 version 0/' %t.mlir | not pipewright-opt --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/@s1 micro_batch 3 version 1/@s1 micro_batch 3 version 2/' %t.mlir | not pipewright-opt --pipe-plan-memory -o /dev/null 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: sed 's/micro_batches = 4/micro_batches = 8, updates = 2/' %inputs/pipe/chain.mlir | pipewright-opt --pipewright-unrolled --pipewright-scheduled="policy=pipedream-2bw ranks=4" --pipe-plan-memory | sed '/update @s0 number 1/s/ weights <[^>]*>//' | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=NEXT
// RUN: %{dream} --pipe-plan-memory | sed '/update @s1 number 0/s/ weights <[^>]*>//' | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOST
// RUN: %{dream} --pipe-plan-memory | sed '/backward @s1 micro_batch 2/s/ weights <[^>]*>/ weights <arena 0 at 128 bytes 64>/' | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=PLACE
// RUN: not pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=pipedream ranks=4" 2>&1 | FileCheck %s --check-prefix=UPDATES
// RUN: sed 's/micro_batches = 2/micro_batches = 2, updates = 2/' %inputs/pipe/tied.mlir | not pipewright-opt --pipe-unroll-microbatches 2>&1 | FileCheck %s --check-prefix=TIED
// RUN: not pipewright-opt %inputs/pipe/tied.mlir --pipe-unroll-microbatches --pipe-schedule="policy=pipedream-2bw:batches=1 ranks=2" 2>&1 | FileCheck %s --check-prefix=TIED
// RUN: sed 's/micro_batches = 4/micro_batches = 4, updates = 3/' %inputs/pipe/chain.mlir | not pipewright-opt --pipe-unroll-microbatches 2>&1 | FileCheck %s --check-prefix=EVENLY

// OTHER: error: 'pipe.task' op expects the version of the weights that its forward read, 1, but got 0
// EARLY: error: 'pipe.task' op reads version 2 of its weights, but only 1 update comes before it
// NEXT: error: 'pipe.task' op reads at offset 256 what the last update of a step overwrote, but a step leaves version 0 of 2 there
// LOST: error: 'pipe.task' op expects version 0 of its weights at offset 256, but finds none
// PLACE: error: 'pipe.task' op names #pipe.buffer<arena 0 at 128 bytes 64>, where no version of its weights is
// UPDATES: error: schedule 'pipedream' has 4 updates in a step, but the module has 'updates' = 1
// TIED: error: 'nn.weight' op is used by 2 stages, which schedules with stale weights do not allow
// EVENLY: error: expects updates that share the micro-batches evenly, but got 3 updates and 4 micro-batches
