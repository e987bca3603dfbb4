// What a policy that has a choice chooses is said, as the order alone does not
// tell it.

// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=auto:unsplit ranks=4" --pipe-verify-unrolled 2>&1 >/dev/null | FileCheck %s

// CHECK: remark: schedule 'auto:unsplit' chose: {{[a-z0-9]}}
