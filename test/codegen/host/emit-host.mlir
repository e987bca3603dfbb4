// The whole program of two stages of one layer each, on two ranks, with one
// micro-batch: names come from locations, weight gradients are added in place,
// the stash is one buffer with fields.

// RUN: pipewright-opt %s --print-host=model-name=tiny -o /dev/null \
// RUN:   | FileCheck %s --match-full-lines --strict-whitespace

module attributes {pipe.program = #pipe.program<ranks = 2, micro_batches = 1, micro_batch_size = 2, optimizer = <sgd lr = 1.000000e-01>>} {
  nn.weight @fc.weight role = parameter : tensor<8x4xf32>
  nn.weight @head.weight role = parameter : tensor<4x3xf32>

  module @kernels {
    func.func private @relu_8(tensor<2x4xf32>) -> tensor<2x4xf32>
    func.func private @loss_2x3(tensor<2x3xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>)
    func.func private @loss_backward_2x3(tensor<2x3xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2x3xf32>
    func.func private @relu_backward_8(tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    func.func private @sgd_32(tensor<32xf32>, tensor<32xf32>, tensor<4xf32>) -> tensor<32xf32>
  }

  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"image">] {
    ^bb0(%x: tensor<2x8xf32>):
      %w = nn.parameter @fc.weight : tensor<8x4xf32>
      %y = nn.matmul %x, %w {pipe.buffers = [#pipe.buffer<stash 0 at 0 bytes 32>]}
        : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32> loc("/net/fc/MatMul_output_0")
      %h = nn.launch @kernels::@relu_8 (%y) {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 32>]}
        : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("/net/relu/Relu_output_0")
      pipe.return %h : tensor<2x4xf32> stash %y : tensor<2x4xf32>
    }
    pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
    ^bb0(%x: tensor<2x8xf32>, %y: tensor<2x4xf32>, %dh: tensor<2x4xf32>):
      %dy = nn.launch @kernels::@relu_backward_8 (%dh, %y) {pipe.buffers = [#pipe.buffer<arena 0 at 640 bytes 32>]}
        : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/net/relu/Relu_output_0")
      %dw = nn.matmul %x, %dy transpose_a
        : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
      nn.accumulate_gradient @fc.weight, %dw : tensor<8x4xf32>
      pipe.return
    }
  }
  pipe.stage @s1 on rank 1 {
    pipe.forward sources [#pipe.output<@s0, 0>, #pipe.input<"targets">] {
    ^bb0(%h: tensor<2x4xf32>, %t: tensor<2xi64>):
      %w = nn.parameter @head.weight : tensor<4x3xf32>
      %y = nn.matmul %h, %w {pipe.buffers = [#pipe.buffer<stash 0 at 0 bytes 24>]}
        : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32> loc("/net/head/MatMul_output_0")
      %loss, %lse = nn.launch @kernels::@loss_2x3 (%y, %t)
        {pipe.buffers = [#pipe.buffer<arena 0 at 704 bytes 4>, #pipe.buffer<stash 0 at 64 bytes 8>]}
        : (tensor<2x3xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>) loc("/loss")
      pipe.report "loss" %loss : tensor<f32>
      pipe.return stash %y, %lse : tensor<2x3xf32>, tensor<2xf32>
    }
    pipe.backward inputs [0, 1] outputs [] gradients_of [] input_gradients [0] {
    ^bb0(%h: tensor<2x4xf32>, %t: tensor<2xi64>, %y: tensor<2x3xf32>, %lse: tensor<2xf32>):
      %dy = nn.launch @kernels::@loss_backward_2x3 (%y, %t, %lse) {pipe.buffers = [#pipe.buffer<arena 0 at 768 bytes 24>]}
        : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2x3xf32> loc(fused<"gradient">["/loss"])
      %w = nn.parameter @head.weight : tensor<4x3xf32>
      %dh = nn.matmul %dy, %w transpose_b {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 32>]}
        : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32> loc("/net/head/MatMul_output_0")
      %dw = nn.matmul %h, %dy transpose_a
        : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
      nn.accumulate_gradient @head.weight, %dw : tensor<4x3xf32>
      pipe.return %dh : tensor<2x4xf32>
    }
  }

  pipe.arena rank 0 bytes 1024 {
    pipe.place @fc.weight in @s0 weight #pipe.buffer<arena 0 at 0 bytes 128> gradient #pipe.buffer<arena 0 at 128 bytes 128> owner
    pipe.optimizer @s0 kernels [@kernels::@sgd_32] weights #pipe.buffer<arena 0 at 0 bytes 128> gradients #pipe.buffer<arena 0 at 128 bytes 128> states [] hyper #pipe.buffer<arena 0 at 256 bytes 16>
    pipe.region "weights" #pipe.buffer<arena 0 at 0 bytes 128>
  }
  pipe.arena rank 1 bytes 1024 {
    pipe.place @head.weight in @s1 weight #pipe.buffer<arena 0 at 0 bytes 48> gradient #pipe.buffer<arena 0 at 128 bytes 48> owner
  }
  pipe.rank 0 train {
    %x = pipe.input "image" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 320 bytes 64>] : tensor<2x8xf32>
    %p = pipe.post_receive from 1 buffers [#pipe.buffer<arena 0 at 576 bytes 32>] : !pipe.pending<tensor<2x4xf32>>
    %h, %st = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 384 bytes 32>, #pipe.buffer<arena 0 at 448 bytes 32>]
      : (tensor<2x8xf32>) -> (tensor<2x4xf32>, !pipe.stash<@s0>)
    %q = pipe.post_send %h to 1 : tensor<2x4xf32>
    %dh = pipe.wait_receive %p from 1 : tensor<2x4xf32>
    pipe.wait_send %q to 1 : !pipe.pending<tensor<2x4xf32>>
    %g = pipe.task backward @s0 micro_batch 0 (%x, %st, %dh)
      : (tensor<2x8xf32>, !pipe.stash<@s0>, tensor<2x4xf32>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
  pipe.rank 1 train {
    %p = pipe.post_receive from 0 buffers [#pipe.buffer<arena 0 at 320 bytes 32>] : !pipe.pending<tensor<2x4xf32>>
    %t = pipe.input "targets" micro_batch 0 for @s1 buffers [#pipe.buffer<arena 0 at 384 bytes 16>] : tensor<2xi64>
    %h = pipe.wait_receive %p from 0 : tensor<2x4xf32>
    %st = pipe.task forward @s1 micro_batch 0 (%h, %t) buffers [#pipe.buffer<arena 0 at 448 bytes 72>]
      : (tensor<2x4xf32>, tensor<2xi64>) -> !pipe.stash<@s1>
    %dh, %g = pipe.task backward @s1 micro_batch 0 (%h, %t, %st) buffers [#pipe.buffer<arena 0 at 576 bytes 32>, #pipe.buffer<arena 0 at 0 bytes 0>]
      : (tensor<2x4xf32>, tensor<2xi64>, !pipe.stash<@s1>) -> (tensor<2x4xf32>, !pipe.gradient<@s1>)
    %q = pipe.post_send %dh to 0 : tensor<2x4xf32>
    pipe.wait_send %q to 0 : !pipe.pending<tensor<2x4xf32>>
  }
}

//CHECK-LABEL:// ===== main.cpp =====
//CHECK-NEXT:// Model tiny, 2 stages on 2 ranks. Generated by Pipewright.
//CHECK-NEXT:// What the runtime is told.
//CHECK-EMPTY:
//CHECK-NEXT:#include "runtime/Runtime.h"
//CHECK-NEXT:#include "ranks.h"
//CHECK-EMPTY:
//CHECK-NEXT:using namespace pipewright::runtime;
//CHECK-EMPTY:
//CHECK-NEXT:static const Program program = {
//CHECK-NEXT:  .name = "tiny",
//CHECK-NEXT:  .microBatches = 1,
//CHECK-NEXT:  .microBatchSize = 2,
//CHECK-NEXT:  .optimizer = {
//CHECK-NEXT:    .name = "sgd",
//CHECK-NEXT:    .learningRate = 0.1f,
//CHECK-NEXT:    .scalars = {
//CHECK-NEXT:      {StepScalar::LearningRate},
//CHECK-NEXT:      {StepScalar::BiasCorrection},
//CHECK-NEXT:      {StepScalar::BiasCorrection},
//CHECK-NEXT:      {StepScalar::GradientScale},
//CHECK-NEXT:    },
//CHECK-NEXT:  },
//CHECK-NEXT:  .inputs = {
//CHECK-NEXT:    {.name = "image", .type = ElementType::F32, .shape = {2, 8}},
//CHECK-NEXT:    {.name = "targets", .type = ElementType::I64, .shape = {2}},
//CHECK-NEXT:  },
//CHECK-NEXT:  .outputs = {
//CHECK-NEXT:  },
//CHECK-NEXT:  .ranks = {
//CHECK-NEXT:    {.arenaBytes = 1024,
//CHECK-NEXT:     .tensors = {
//CHECK-NEXT:      {.name = "fc.weight", .buffer = {0, 128}, .shape = "8x4"},
//CHECK-NEXT:      {.name = "fc.weight", .buffer = {128, 128}, .shape = "8x4", .role = Role::Gradient},
//CHECK-NEXT:     },
//CHECK-NEXT:     .inputs = {0},
//CHECK-NEXT:     .step = rank0_step,
//CHECK-NEXT:     .setUp = rank0_setUp,
//CHECK-NEXT:     .memory = {
//CHECK-NEXT:      {"weights", 128},
//CHECK-NEXT:     },
//CHECK-NEXT:     .predictedStepSeconds = 0},
//CHECK-NEXT:    {.arenaBytes = 1024,
//CHECK-NEXT:     .tensors = {
//CHECK-NEXT:      {.name = "head.weight", .buffer = {0, 48}, .shape = "4x3"},
//CHECK-NEXT:      {.name = "head.weight", .buffer = {128, 48}, .shape = "4x3", .role = Role::Gradient},
//CHECK-NEXT:     },
//CHECK-NEXT:     .inputs = {1},
//CHECK-NEXT:     .step = rank1_step,
//CHECK-NEXT:     .setUp = rank1_setUp,
//CHECK-NEXT:     .memory = {
//CHECK-NEXT:     },
//CHECK-NEXT:     .predictedStepSeconds = 0},
//CHECK-NEXT:  },
//CHECK-NEXT:  .sent = {2, 64},
//CHECK-NEXT:  .timetable = R"text()text",
//CHECK-NEXT:  .planJson = R"text()text",
//CHECK-NEXT:};
//CHECK-EMPTY:
//CHECK-NEXT:int main(int argc, char **argv) {
//CHECK-NEXT:  return runProgram(argc, argv, program);
//CHECK-NEXT:}
//CHECK-LABEL:// ===== ranks.cpp =====
//CHECK-NEXT:// Model tiny, 2 stages on 2 ranks. Generated by Pipewright.
//CHECK-NEXT:// What each rank runs, in order: one line for each task and transfer.
//CHECK-EMPTY:
//CHECK-NEXT:#include "runtime/Runtime.h"
//CHECK-NEXT:#include "ranks.h"
//CHECK-NEXT:#include "stages.h"
//CHECK-EMPTY:
//CHECK-NEXT:using namespace pipewright::runtime;
//CHECK-EMPTY:
//CHECK-NEXT:// Rank 0: before the first step.
//CHECK-NEXT:void rank0_setUp(Rank &rank) {
//CHECK-NEXT:}
//CHECK-EMPTY:
//CHECK-NEXT:// Rank 0: one optimizer step.
//CHECK-NEXT:void rank0_step(Rank &rank) {
//CHECK-NEXT:  const Buffer image_0 = {320, 64};
//CHECK-NEXT:  const Buffer d_net_relu_relu_0 = {576, 32};
//CHECK-NEXT:  const Buffer net_relu_relu_0 = {384, 32};
//CHECK-NEXT:  const Buffer stash0_0 = {448, 32};
//CHECK-EMPTY:
//CHECK-NEXT:  rank.loadInput(0, 0, image_0);                        // image of micro-batch 0
//CHECK-NEXT:  rank.postReceive(1, d_net_relu_relu_0);               // from rank 1
//CHECK-NEXT:  stage0_forward(rank, 0, image_0, net_relu_relu_0, stash0_0);  // F0.0
//CHECK-NEXT:  rank.postSend(1, net_relu_relu_0);                    // to rank 1
//CHECK-NEXT:  rank.waitReceive(1);
//CHECK-NEXT:  rank.waitSend(1);
//CHECK-NEXT:  stage0_backward(rank, 0, image_0, d_net_relu_relu_0, stash0_0);  // B0.0
//CHECK-NEXT:  stage0_update(rank);                                  // U0
//CHECK-NEXT:}
//CHECK-EMPTY:
//CHECK-NEXT:// Rank 1: before the first step.
//CHECK-NEXT:void rank1_setUp(Rank &rank) {
//CHECK-NEXT:}
//CHECK-EMPTY:
//CHECK-NEXT:// Rank 1: one optimizer step.
//CHECK-NEXT:void rank1_step(Rank &rank) {
//CHECK-NEXT:  const Buffer net_relu_relu_0 = {320, 32};
//CHECK-NEXT:  const Buffer targets_0 = {384, 16};
//CHECK-NEXT:  const Buffer stash1_0 = {448, 72};
//CHECK-NEXT:  const Buffer d_net_relu_relu_0 = {576, 32};
//CHECK-EMPTY:
//CHECK-NEXT:  rank.postReceive(0, net_relu_relu_0);                 // from rank 0
//CHECK-NEXT:  rank.loadInput(1, 0, targets_0);                      // targets of micro-batch 0
//CHECK-NEXT:  rank.waitReceive(0);
//CHECK-NEXT:  stage1_forward(rank, 0, net_relu_relu_0, targets_0, stash1_0);  // F1.0
//CHECK-NEXT:  stage1_backward(rank, 0, net_relu_relu_0, targets_0, d_net_relu_relu_0,
//CHECK-NEXT:      stash1_0);                                        // B1.0
//CHECK-NEXT:  rank.postSend(0, d_net_relu_relu_0);                  // to rank 0
//CHECK-NEXT:  rank.waitSend(0);
//CHECK-NEXT:}
//CHECK-LABEL:// ===== ranks.h =====
//CHECK-NEXT:// What each rank runs; see ranks.cpp.
//CHECK-EMPTY:
//CHECK-NEXT:#pragma once
//CHECK-EMPTY:
//CHECK-NEXT:#include "runtime/Runtime.h"
//CHECK-EMPTY:
//CHECK-NEXT:using namespace pipewright::runtime;
//CHECK-EMPTY:
//CHECK-NEXT:void rank0_setUp(Rank &rank);
//CHECK-NEXT:void rank0_step(Rank &rank);
//CHECK-NEXT:void rank1_setUp(Rank &rank);
//CHECK-NEXT:void rank1_step(Rank &rank);
//CHECK-LABEL:// ===== stages.cpp =====
//CHECK-NEXT:// Model tiny, 2 stages on 2 ranks. Generated by Pipewright.
//CHECK-NEXT:// One function for each stage and kind of task; it serves all micro-batches.
//CHECK-EMPTY:
//CHECK-NEXT:#include "runtime/Runtime.h"
//CHECK-NEXT:#include "stages.h"
//CHECK-NEXT:#include "kernels.h"
//CHECK-EMPTY:
//CHECK-NEXT:using namespace pipewright::runtime;
//CHECK-EMPTY:
//CHECK-NEXT:// Stage 0, forward: net.fc .. net.relu
//CHECK-NEXT:void stage0_forward(Rank &rank, int64_t microBatch, Buffer image,
//CHECK-NEXT:    Buffer net_relu_relu, Buffer stash) {
//CHECK-NEXT:  rank.task("F", 0, microBatch);
//CHECK-NEXT:  // net.fc
//CHECK-NEXT:  const Buffer fc_weight = {0, 128};
//CHECK-NEXT:  const Buffer net_fc_matmul = stash.at(0, 32);
//CHECK-NEXT:  matmul(rank, {.m = 2, .n = 4, .k = 8}, image, fc_weight, net_fc_matmul);
//CHECK-NEXT:  // net.relu
//CHECK-NEXT:  launch(rank, "relu_8", relu_8, net_fc_matmul, net_relu_relu);
//CHECK-NEXT:}
//CHECK-EMPTY:
//CHECK-NEXT:// Stage 0, backward: net.relu
//CHECK-NEXT:void stage0_backward(Rank &rank, int64_t microBatch, Buffer image,
//CHECK-NEXT:    Buffer d_net_relu_relu, Buffer stash) {
//CHECK-NEXT:  rank.task("B", 0, microBatch);
//CHECK-NEXT:  // net.relu
//CHECK-NEXT:  const Buffer net_fc_matmul = stash.at(0, 32);
//CHECK-NEXT:  const Buffer d_net_relu_relu_2 = {640, 32};
//CHECK-NEXT:  launch(rank, "relu_backward_8", relu_backward_8, d_net_relu_relu,
//CHECK-NEXT:      net_fc_matmul, d_net_relu_relu_2);
//CHECK-NEXT:  const Buffer d_fc_weight = {128, 128};
//CHECK-NEXT:  matmul(rank, {.m = 8, .n = 4, .k = 2, .transposeA = true, .beta = 1.0f},
//CHECK-NEXT:      image, d_net_relu_relu_2, d_fc_weight);
//CHECK-NEXT:}
//CHECK-EMPTY:
//CHECK-NEXT:// Stage 0, update
//CHECK-NEXT:void stage0_update(Rank &rank) {
//CHECK-NEXT:  rank.task("U", 0, 0);
//CHECK-NEXT:  const Buffer weights = {0, 128};
//CHECK-NEXT:  const Buffer gradients = {128, 128};
//CHECK-NEXT:  const Buffer hyper = {256, 16};
//CHECK-NEXT:  rank.loadHyper(hyper);
//CHECK-NEXT:  launch(rank, "sgd_32", sgd_32, weights, gradients, hyper);
//CHECK-NEXT:}
//CHECK-EMPTY:
//CHECK-NEXT:// Stage 1, forward: net.head
//CHECK-NEXT:void stage1_forward(Rank &rank, int64_t microBatch, Buffer net_relu_relu,
//CHECK-NEXT:    Buffer targets, Buffer stash) {
//CHECK-NEXT:  rank.task("F", 1, microBatch);
//CHECK-NEXT:  // net.head
//CHECK-NEXT:  const Buffer head_weight = {0, 48};
//CHECK-NEXT:  const Buffer net_head_matmul = stash.at(0, 24);
//CHECK-NEXT:  matmul(rank, {.m = 2, .n = 3, .k = 4}, net_relu_relu, head_weight,
//CHECK-NEXT:      net_head_matmul);
//CHECK-NEXT:  const Buffer loss = {704, 4};
//CHECK-NEXT:  const Buffer loss_1 = stash.at(64, 8);
//CHECK-NEXT:  launch(rank, "loss_2x3", loss_2x3, net_head_matmul, targets, loss, loss_1);
//CHECK-NEXT:  rank.reportLoss(microBatch, loss);
//CHECK-NEXT:}
//CHECK-EMPTY:
//CHECK-NEXT:// Stage 1, backward: net.head
//CHECK-NEXT:void stage1_backward(Rank &rank, int64_t microBatch, Buffer net_relu_relu,
//CHECK-NEXT:    Buffer targets, Buffer d_net_relu_relu, Buffer stash) {
//CHECK-NEXT:  rank.task("B", 1, microBatch);
//CHECK-NEXT:  const Buffer net_head_matmul = stash.at(0, 24);
//CHECK-NEXT:  const Buffer loss_1 = stash.at(64, 8);
//CHECK-NEXT:  const Buffer d_loss = {768, 24};
//CHECK-NEXT:  launch(rank, "loss_backward_2x3", loss_backward_2x3, net_head_matmul, targets,
//CHECK-NEXT:      loss_1, d_loss);
//CHECK-NEXT:  // net.head
//CHECK-NEXT:  const Buffer head_weight = {0, 48};
//CHECK-NEXT:  matmul(rank, {.m = 2, .n = 4, .k = 3, .transposeB = true}, d_loss,
//CHECK-NEXT:      head_weight, d_net_relu_relu);
//CHECK-NEXT:  const Buffer d_head_weight = {128, 48};
//CHECK-NEXT:  matmul(rank, {.m = 4, .n = 3, .k = 2, .transposeA = true, .beta = 1.0f},
//CHECK-NEXT:      net_relu_relu, d_loss, d_head_weight);
//CHECK-NEXT:}
//CHECK-LABEL:// ===== stages.h =====
//CHECK-NEXT:// One function for each stage and kind of task; see stages.cpp.
//CHECK-EMPTY:
//CHECK-NEXT:#pragma once
//CHECK-EMPTY:
//CHECK-NEXT:#include "runtime/Runtime.h"
//CHECK-EMPTY:
//CHECK-NEXT:using namespace pipewright::runtime;
//CHECK-EMPTY:
//CHECK-NEXT:void stage0_forward(Rank &rank, int64_t microBatch, Buffer image,
//CHECK-NEXT:    Buffer net_relu_relu, Buffer stash);
//CHECK-NEXT:void stage0_backward(Rank &rank, int64_t microBatch, Buffer image,
//CHECK-NEXT:    Buffer d_net_relu_relu, Buffer stash);
//CHECK-NEXT:void stage0_update(Rank &rank);
//CHECK-NEXT:void stage1_forward(Rank &rank, int64_t microBatch, Buffer net_relu_relu,
//CHECK-NEXT:    Buffer targets, Buffer stash);
//CHECK-NEXT:void stage1_backward(Rank &rank, int64_t microBatch, Buffer net_relu_relu,
//CHECK-NEXT:    Buffer targets, Buffer d_net_relu_relu, Buffer stash);
