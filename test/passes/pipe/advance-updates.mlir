// ZeRO-2: stages that go backward one after the other share two ranges for their
// gradients; each but the last two updates when a third one wants its range. Then
// the same program, broken.

// DEFINE: %{zero} = sed -e 's/#pipe.program</&replicas = 2, zero = 2, /' %inputs/pipe/chain.mlir
// DEFINE: %{sums} = --pipe-synchronize-weights --pipe-advance-updates --pipe-verify-unrolled
// RUN: %{zero} | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" %{sums} | sed 's/  */ /g' > %t
// RUN: grep -oE 'pipe.task (backward|update) @s[0-9]( micro_batch 0)?|pipe.collective .* over' %t | FileCheck %s
// CHECK: backward @s3 micro_batch 0
// CHECK: backward @s2 micro_batch 0
// CHECK: reduce_scatter in @s3
// CHECK-NEXT: update @s3
// CHECK-NEXT: backward @s1 micro_batch 0
// CHECK: reduce_scatter in @s2
// CHECK-NEXT: update @s2
// CHECK-NEXT: backward @s0 micro_batch 0
// CHECK: update @s0
// CHECK: update @s1

// RUN: pipewright-opt %t --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated=assign-streams > %t.allocated
// RUN: FileCheck %s --check-prefix=BYTES < %t.allocated
// BYTES: pipe.optimizer @s0 {{.*}} gradients [[ONE:<arena 0 at [0-9]+ bytes [0-9]+>]]
// BYTES: pipe.optimizer @s1 {{.*}} gradients [[OTHER:<arena 0 at [0-9]+ bytes [0-9]+>]]
// BYTES: pipe.optimizer @s2 {{.*}} gradients [[ONE]]
// BYTES: pipe.optimizer @s3 {{.*}} gradients [[OTHER]]

// One range: the sum of a stage has no time.
// RUN: %{zero} | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" --pipe-synchronize-weights --pipe-advance-updates=ranges=1 --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated | FileCheck %s --check-prefix=SINGLE
// SINGLE: pipe.optimizer @s0 {{.*}} gradients [[ONLY:<arena 0 at [0-9]+ bytes [0-9]+>]]
// SINGLE: pipe.optimizer @s1 {{.*}} gradients [[ONLY]]
// SINGLE: pipe.optimizer @s2 {{.*}} gradients [[ONLY]]
// SINGLE: pipe.optimizer @s3 {{.*}} gradients [[ONLY]]

// Stages that go backward in turns have a range each, and update at the end.
// RUN: %{zero} | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=interleaved ranks=2" %{sums} --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated | sed "s/  */ /g" > %t.turns
// RUN: grep -oE 'pipe.(rank|task (backward|update) @s[0-9])' %t.turns | FileCheck %s --check-prefix=TURNS
// TURNS: pipe.task update
// TURNS-NOT: pipe.task backward
// TURNS: pipe.rank

// Without early updates, ranges in use at one time do not overlap either.
// RUN: %{zero} | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" --pipe-synchronize-weights --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated -o /dev/null

// Stages in turn may not share bytes, and nobody may without 'zero' of 2.
// RUN: sed 's/arena 0 at 1280 bytes/arena 0 at 1024 bytes/g' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: 'pipe.task' op adds to {{.*}}arena 0 at 1024 bytes 256{{.*}}, which overlaps {{.*}}arena 0 at 1024 bytes 256{{.*}} of stage '@s3', before that one's update
// WRONG: note: in use since here
// RUN: sed 's/zero = 2/zero = 1/' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=LEVEL
// LEVEL: error: 'pipe.place' op has {{.*}}, which overlaps

// RUN: sed -e 's/#pipe.program</&replicas = 2, zero = 2, clip_norm = 1.0 : f64, /' %inputs/pipe/chain.mlir | not pipewright-opt 2>&1 | FileCheck %s --check-prefix=CLIP
// CLIP: error: expects no 'clip_norm' with 'zero' of 2: the norm of all gradients is known when all are kept

// Stages that hold a weight together keep what they have to the end.
// RUN: sed -e 's/#pipe.program</&replicas = 2, zero = 2, /' %inputs/pipe/tied.mlir | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" --pipe-synchronize-weights --pipe-advance-updates=ranges=1 --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated=assign-streams | sed 's/  */ /g' > %t.tied
// RUN: grep -oE 'pipe.task (backward|update) @s[0-9]' %t.tied | tail -2 | FileCheck %s --check-prefix=TIED
// TIED: pipe.task backward @s0
// TIED-NEXT: pipe.task update @s0
