// What data an input may have: what each table takes that gets all of its
// values, or what some table takes of those that get parts of them. Values are
// followed through all that moves them, kernels and stages, and not through what
// makes others of them.

// RUN: pipewright-opt %s --nn-form-kernels --pipewright-unrolled \
// RUN:   --pipewright-scheduled="policy=1f1b ranks=2" --pipewright-allocated --print-host -o /dev/null \
// RUN:   | FileCheck %s

// CHECK:      {.name = "a", {{.*}} .limit = 6}
// CHECK-NEXT: {.name = "b", {{.*}} .limit = 6}
// CHECK-NEXT: {.name = "parts", {{.*}} .limit = 8}
// CHECK-NEXT: {.name = "repeated", {{.*}} .limit = 8}
// CHECK-NEXT: {.name = "changed", .type = ElementType::I64, .shape = {4}}
// CHECK-NEXT: {.name = "sent", {{.*}} .limit = 5, .ignored = -100}
// CHECK-NEXT: {.name = "both", {{.*}} .limit = 5}
// CHECK-NEXT: {.name = "slices", {{.*}} .limit = 8, .ignored = -100}
// CHECK-NEXT: {.name = "logits",
module attributes {pipe.program = #pipe.program<micro_batches = 1, optimizer = <sgd>>} {
  nn.weight @eight role = constant : tensor<8x4xf32>
  nn.weight @six role = constant : tensor<6x4xf32>

  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"a">, #pipe.input<"b">, #pipe.input<"parts">, #pipe.input<"repeated">, #pipe.input<"changed">, #pipe.input<"sent">] {
    ^bb0(%a: tensor<2x3xi64>, %b: tensor<2x3xi64>, %parts: tensor<2x4xi64>, %repeated: tensor<3x1xi64>, %changed: tensor<4xi64>, %sent: tensor<4xi64>):
      %eight = nn.parameter @eight : tensor<8x4xf32>
      %six = nn.parameter @six : tensor<6x4xf32>

      // What is joined obeys the smaller one of two tables.
      %joined = nn.concat %a, %b axis = 1 : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x6xi64>
      %turned = nn.transpose %joined permutation = [1, 0] : tensor<2x6xi64> -> tensor<6x2xi64>
      %0 = nn.embedding %eight, %turned : (tensor<8x4xf32>, tensor<6x2xi64>) -> tensor<6x2x4xf32>
      %1 = nn.embedding %six, %joined : (tensor<6x4xf32>, tensor<2x6xi64>) -> tensor<2x6x4xf32>

      // Columns of tables of their own: no value is wrong that one of them has.
      %p0 = nn.slice %parts starts = [0, 0] sizes = [2, 2] steps = [1, 1] : tensor<2x4xi64> -> tensor<2x2xi64>
      %p1 = nn.slice %parts starts = [0, 2] sizes = [2, 2] steps = [1, 1] : tensor<2x4xi64> -> tensor<2x2xi64>
      %2 = nn.embedding %six, %p0 : (tensor<6x4xf32>, tensor<2x2xi64>) -> tensor<2x2x4xf32>
      %3 = nn.embedding %eight, %p1 : (tensor<8x4xf32>, tensor<2x2xi64>) -> tensor<2x2x4xf32>

      %wide = nn.broadcast_to %repeated : tensor<3x1xi64> -> tensor<3x2xi64>
      %padded = nn.pad %wide low = [0, 0] high = [1, 0] : tensor<3x2xi64> -> tensor<4x2xi64>
      %4 = nn.embedding %eight, %padded : (tensor<8x4xf32>, tensor<4x2xi64>) -> tensor<4x2x4xf32>

      // Which of its values gets to the table depends on the values.
      %none = nn.constant dense<-1> : tensor<i64>
      %zero = nn.constant dense<0> : tensor<i64>
      %is_none = nn.compare %changed, %none predicate = eq : (tensor<4xi64>, tensor<i64>) -> tensor<4xi1>
      %chosen = nn.where %is_none, %zero, %changed : (tensor<4xi1>, tensor<i64>, tensor<4xi64>) -> tensor<4xi64>
      %5 = nn.embedding %eight, %chosen : (tensor<8x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>

      pipe.report "r0" %0 : tensor<6x2x4xf32>
      pipe.report "r1" %1 : tensor<2x6x4xf32>
      pipe.report "r2" %2 : tensor<2x2x4xf32>
      pipe.report "r3" %3 : tensor<2x2x4xf32>
      pipe.report "r4" %4 : tensor<4x2x4xf32>
      pipe.report "r5" %5 : tensor<4x4xf32>
      %order = nn.slice %sent starts = [3] sizes = [4] steps = [-1] : tensor<4xi64> -> tensor<4xi64>
      pipe.return %order : tensor<4xi64>
    }
  }
  // CHECK-LABEL: {{^}}void stage1_forward(
  // CHECK-NEXT:    Buffer slices,
  // Labels that another stage sends are looked at, and those of an input whose
  // data is not refused for all that the loss does not take; the others are not.
  // CHECK-NEXT:    rank.task
  // CHECK-NEXT:    checkLabels(rank, {.count = 4, .classes = 5, .ignored = -100}, slice_4);
  // CHECK:         launch(rank, "softmax_cross_entropy_4",
  // CHECK-NOT:     checkLabels
  // CHECK:         launch(rank, "softmax_cross_entropy_4",
  // CHECK-NOT:     launch(rank, "softmax_cross_entropy_4",
  // CHECK:         checkLabels(rank, {.count = 4, .classes = 5, .ignored = -100}, slice_4_2);
  // CHECK:         launch(rank, "softmax_cross_entropy_4",
  pipe.stage @s1 {
    pipe.forward sources [#pipe.output<@s0, 0>, #pipe.input<"both">, #pipe.input<"slices">, #pipe.input<"logits">] {
    ^bb0(%sent: tensor<4xi64>, %both: tensor<4xi64>, %slices: tensor<8xi64>, %logits: tensor<4x5xf32>):
      %six = nn.parameter @six : tensor<6x4xf32>
      %eight = nn.parameter @eight : tensor<8x4xf32>
      %loss:3 = nn.softmax_cross_entropy %logits, %sent ignore_index = -100
        : (tensor<4x5xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)

      // A label that is ignored is no row.
      %0 = nn.embedding %six, %both : (tensor<6x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
      %loss2:3 = nn.softmax_cross_entropy %logits, %both ignore_index = -100
        : (tensor<4x5xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)

      // It may stand where no row is looked up.
      %rows = nn.slice %slices starts = [0] sizes = [4] steps = [1] : tensor<8xi64> -> tensor<4xi64>
      %labels = nn.slice %slices starts = [4] sizes = [4] steps = [1] : tensor<8xi64> -> tensor<4xi64>
      %1 = nn.embedding %eight, %rows : (tensor<8x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
      %loss3:3 = nn.softmax_cross_entropy %logits, %labels ignore_index = -100
        : (tensor<4x5xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
      pipe.report "loss" %loss#0 : tensor<f32>
      pipe.report "q0" %0 : tensor<4x4xf32>
      pipe.report "q1" %1 : tensor<4x4xf32>
      pipe.report "loss2" %loss2#0 : tensor<f32>
      pipe.report "loss3" %loss3#0 : tensor<f32>
      pipe.return
    }
  }
}
