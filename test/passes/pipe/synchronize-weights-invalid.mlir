// DEFINE: %{scheduled} = pipewright-opt %inputs/pipe/tied.mlir --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2"
// DEFINE: %{owner} = %{scheduled} --pipe-synchronize-weights=tied=owner
// DEFINE: %{verify} = not pipewright-opt --pipe-verify-unrolled -o /dev/null 2>&1

// RUN: %{owner} | grep -v pipe.set_weight | %{verify} | FileCheck %s --check-prefix=PARTS
// RUN: %{scheduled} | sed 's/@wte role = *parameter/& {pipe.all_reduced = 1}/' | %{verify} | FileCheck %s --check-prefix=UNIT
// RUN: %{owner} | sed 's/@wte role = *parameter/& {pipe.all_reduced}/' | %{verify} | FileCheck %s --check-prefix=ONE
// RUN: %{scheduled} --pipe-synchronize-weights | sed 's/%gradients_s1 = pipe.collective.*/%own = pipe.gradient_of @wte in @s1 (%gradients_s1_1) : (!pipe.gradient<@s1>) -> tensor<8x4xf32>\n%gradients_s1 = pipe.add_gradient @wte in @s1 (%gradients_s1_1, %own) : !pipe.gradient<@s1>, tensor<8x4xf32>/' | %{verify} | FileCheck %s --check-prefix=OWN
// RUN: %{scheduled} --pipe-synchronize-weights | grep -v 'update @s1' | %{verify} | FileCheck %s --check-prefix=UPDATE
// RUN: %{scheduled} --pipe-synchronize-weights | sed -e 's/%gradients_s1 = pipe.collective.*/%again = pipe.collective all_reduce of @wte in @s0 (%gradients_s0) over [0, 1] : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>/' -e 's/update @s1(%gradients_s1)/update @s1(%gradients_s1_1)/' | %{verify} | FileCheck %s --check-prefix=TWICE
// RUN: %{scheduled} --pipe-synchronize-weights | sed 's/over .0, 1./over [1, 0]/' | %{verify} | FileCheck %s --check-prefix=ORDER
// RUN: %{scheduled} --pipe-synchronize-weights | sed -e '/%gradients_s1 = pipe.collective/d' -e 's/update @s1(%gradients_s1)/update @s1(%gradients_s1_1)/' | not pipewright-opt --pipe-insert-transfers --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: %{scheduled} | not pipewright-opt --pipe-insert-transfers --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=LEFT
// RUN: %{scheduled} | not pipewright-opt --pipe-synchronize-weights=tied=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=TIED

// TIED: error: pipe-synchronize-weights expects tied=all-reduce or owner, but got 'all'
// LEFT: error: 'pipe.task' op lacks the gradient of '@wte' in stage '@s1', micro-batch 0
// LEFT: error: 'pipe.rank' op never sets the tied weight 'wte' in stage '@s1'
// PARTS: error: 'pipe.step' op never sets the tied weight 'wte' in stage '@s1'
// UNIT: error: 'nn.weight' op expects 'pipe.all_reduced' to be a unit attribute, but got 1
// ONE: error: 'pipe.add_gradient' op is for weights that an owner updates for all, but '@wte' is all-reduced
// TWICE: error: 'pipe.task' op lacks the gradient of '@wte' in stage '@s1', micro-batch 0
// ALONE: error: 'pipe.task' op lacks the gradient of '@wte' in stage '@s1', micro-batch 0
// OWN: error: 'pipe.add_gradient' op is for weights that an owner updates for all, but '@wte' is all-reduced
// UPDATE: error: 'pipe.step' op has no task 'update' of stage '@s1'
// ORDER: error: 'pipe.collective' op sums gradients of '@wte' over ranks [1, 0], but its holders are on [0, 1]
