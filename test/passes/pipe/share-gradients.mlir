// ZeRO-2: stages take turns in two ranges for their gradients. One that is done when
// a third one wants its range updates; one that is not has what it has summed, and
// keeps its part. Then the same programs, broken.

// DEFINE: %{zero} = sed -e 's/#pipe.program</&replicas = 2, zero = 2, /' %inputs/pipe/chain.mlir
// DEFINE: %{sums} = --pipe-synchronize-weights --pipe-share-gradients --pipe-verify-unrolled
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

// ZeRO-1: updates stand where they would, and memory is that of each stage.
// RUN: %{zero} | sed 's/zero = 2/zero = 1/' | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" %{sums} > %t.one
// RUN: sed 's/  */ /g' %t.one | grep -oE 'pipe.task (backward|update) @s[0-9]( micro_batch 0)?|pipe.collective .* over' | FileCheck %s
// RUN: pipewright-opt %t.one --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated=assign-streams | FileCheck %s --check-prefix=APART
// APART: pipe.optimizer @s1 {{.*}} gradients <arena 0 at 1280 bytes 256>
// APART: pipe.optimizer @s3 {{.*}} gradients <arena 0 at 1792 bytes 256>
// RUN: %{zero} | sed 's/zero = 2/zero = 1, clip_norm = 1.0 : f64/' | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" --pipe-synchronize-weights > %t.clipped
// RUN: pipewright-opt %t.clipped --pipe-share-gradients | diff %t.clipped -

// One range: the sum of a stage has no time.
// RUN: %{zero} | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" --pipe-synchronize-weights --pipe-share-gradients=ranges=1 --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated | FileCheck %s --check-prefix=SINGLE
// SINGLE: pipe.optimizer @s0 {{.*}} gradients [[ONLY:<arena 0 at [0-9]+ bytes [0-9]+>]]
// SINGLE: pipe.optimizer @s1 {{.*}} gradients [[ONLY]]
// SINGLE: pipe.optimizer @s2 {{.*}} gradients [[ONLY]]
// SINGLE: pipe.optimizer @s3 {{.*}} gradients [[ONLY]]

// Stages that go backward in turns keep their parts of the sums of each turn. No
// update comes before the last backward. If parts, and what others send to add to
// them, take as much as that saves, nothing is kept.
// DEFINE: %{turns} = sed -e 's/#pipe.program</&replicas = 4, zero = 2, /' %inputs/pipe/chain.mlir | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=interleaved ranks=1" --pipe-synchronize-weights
// RUN: %{turns} > %t.four
// RUN: pipewright-opt %t.four --pipe-share-gradients | not grep keep_gradients
// RUN: pipewright-opt %t.four --pipe-share-gradients=ranges=1 --pipe-verify-unrolled > %t.parts
// RUN: sed 's/  */ /g' %t.parts | grep -oE 'pipe.task (backward|update) @s[0-9]( micro_batch [0-9])?|pipe.collective .* over|pipe.keep_gradients in @s[0-9]' | FileCheck %s --check-prefix=PARTS
// PARTS: backward @s3 micro_batch 0
// PARTS-NEXT: reduce_scatter in @s3
// PARTS-NEXT: keep_gradients in @s3
// PARTS-NEXT: backward @s2 micro_batch 0
// PARTS-NEXT: reduce_scatter in @s2
// PARTS-NEXT: keep_gradients in @s2
// PARTS-NEXT: backward @s1 micro_batch 0
// PARTS: backward @s3 micro_batch 1
// PARTS-NOT: update
// PARTS: backward @s0 micro_batch 3
// PARTS-NEXT: reduce_scatter in @s0
// PARTS-NEXT: keep_gradients in @s0
// PARTS-NEXT: update @s0
// RUN: pipewright-opt %t.parts --pipe-share-gradients=ranges=1 | diff %t.parts -
// RUN: pipewright-opt %t.parts --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated=assign-streams > %t.kept
// RUN: sed 's/  */ /g' %t.kept | FileCheck %s --check-prefix=KEPT
// KEPT: pipe.optimizer @s0 {{.*}} gradients [[ONE:<arena 0 at 2048 bytes 512>]] kept <arena 0 at 2560 bytes 128>
// KEPT: pipe.optimizer @s1 {{.*}} gradients [[ONE]] kept <arena 0 at 2688 bytes 128>
// KEPT: pipe.optimizer @s2 {{.*}} gradients [[ONE]] kept
// KEPT: pipe.optimizer @s3 {{.*}} gradients [[ONE]] kept
// A sum runs beside the forward of the next micro-batch, and is over when another
// stage takes the bytes.
// KEPT: pipe.task backward @s3 micro_batch 0
// KEPT: %[[SUM:.*]] = pipe.collective reduce_scatter in @s3
// KEPT: pipe.task forward @s0 micro_batch 1
// KEPT: pipe.wait_collective %[[SUM]] : !pipe.gradient<@s3, split>
// KEPT-NEXT: pipe.wait_event
// KEPT-NEXT: %[[KEPT:.*]] = pipe.keep_gradients in @s3(%[[SUM]])
// KEPT-NEXT: pipe.task backward @s2 micro_batch 0
// KEPT: pipe.task backward @s3 micro_batch 1({{.*}}, %[[KEPT]])

// A turn's part is not forgotten, and the update takes what is kept.
// RUN: sed -E '0,/(backward @s3 micro_batch 1.*), %kept_s3\)(.*), !pipe.gradient<@s3, split>\)/s//\1)\2)/' %t.parts | not pipewright-opt --pipe-verify-unrolled -o /dev/null 2>&1 | FileCheck %s --check-prefix=FORGOTTEN
// FORGOTTEN: error: 'pipe.task' op expects the gradients summed up to micro-batch 0
// RUN: sum=$(grep -oE 'pipe.keep_gradients in @s1\(%[a-z0-9_]+' %t.parts | tail -1 | sed 's/.*%%//') && sed -E "s/update @s1\(%kept_s1_[0-9]+\)/update @s1(%$sum)/" %t.parts | not pipewright-opt --pipe-verify-unrolled -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNKEPT
// UNKEPT: error: 'pipe.task' op expects gradients that are kept, as some of its stage are

// Nobody else has a range until its sums are kept; what is kept has a place; the
// stream of tasks waits for the sum.
// RUN: sed -E '/%kept_s3 = /{h;d};/backward @s2 micro_batch 0/{G}' %t.kept | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=TAKEN
// TAKEN: error: 'pipe.task' op adds to {{.*}}arena 0 at 2048 bytes 512{{.*}}, which overlaps {{.*}} of stage '@s3', before that one's are kept or updated from
// RUN: sed -E 's/(pipe.optimizer @s2 .*) kept <arena 0 at [0-9]+ bytes 128>/\1/' %t.kept | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=PLACELESS
// PLACELESS: error: 'pipe.keep_gradients' op has no place for what it keeps; run pipe-plan-memory
// RUN: sed -E 's/(pipe.optimizer @s0 .* gradients <[^>]*>)/\1 kept <arena 0 at 2816 bytes 128>/' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNFILLED
// UNFILLED: error: 'pipe.task' op takes {{.*}}arena 0 at 2816 bytes 128{{.*}}, where not all of its gradients are kept
// RUN: sed -E '/pipe.wait_event [0-9]+ on compute/{N;/keep_gradients/s/.*\n//}' %t.kept | not pipewright-opt --pipe-verify-streams -o /dev/null 2>&1 | FileCheck %s --check-prefix=RACE
// RACE: error: data race on rank 0: kept gradients of stage '@s3' on stream 'compute' writes bytes

// Two stages on a rank have a range each, and update at the end.
// RUN: %{zero} | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=interleaved ranks=2" %{sums} --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated | sed "s/  */ /g" > %t.turns
// RUN: grep -oE 'pipe.(rank|task (backward|update) @s[0-9])' %t.turns | FileCheck %s --check-prefix=TURNS
// TURNS: pipe.task update
// TURNS-NOT: pipe.task backward
// TURNS: pipe.rank

// Without early updates, ranges in use at one time do not overlap either.
// RUN: %{zero} | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" --pipe-synchronize-weights --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated -o /dev/null

// Stages in turn may not share bytes, and nobody may without 'zero' of 2.
// RUN: sed 's/arena 0 at 1280 bytes/arena 0 at 1024 bytes/g' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: 'pipe.task' op adds to {{.*}}arena 0 at 1024 bytes 256{{.*}}, which overlaps {{.*}}arena 0 at 1024 bytes 256{{.*}} of stage '@s3', before that one's are kept or updated from
// WRONG: note: in use since here
// RUN: sed 's/zero = 2/zero = 1/' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=LEVEL
// LEVEL: error: 'pipe.place' op has {{.*}}, which overlaps

// RUN: sed -e 's/#pipe.program</&replicas = 2, zero = 2, clip_norm = 1.0 : f64, /' %inputs/pipe/chain.mlir | not pipewright-opt 2>&1 | FileCheck %s --check-prefix=CLIP
// CLIP: error: expects no 'clip_norm' with 'zero' of 2 or 3: the norm of all gradients is known when all are kept

// Stages that hold a weight together keep what they have to the end.
// RUN: sed -e 's/#pipe.program</&replicas = 2, zero = 2, /' %inputs/pipe/tied.mlir | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" --pipe-synchronize-weights --pipe-share-gradients=ranges=1 --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated=assign-streams | sed 's/  */ /g' > %t.tied
// RUN: grep -oE 'pipe.task (backward|update) @s[0-9]' %t.tied | tail -2 | FileCheck %s --check-prefix=TIED
// TIED: pipe.task backward @s0
// TIED-NEXT: pipe.task update @s0

// RUN: not pipewright-opt %t --pipe-share-gradients=ranges=0 -o /dev/null 2>&1 | FileCheck %s --check-prefix=RANGES
// RANGES: error: pipe-share-gradients expects ranges of at least 1, but got 0
