// RUN: pipewright-opt %s --split-input-file --nn-divide-by-batch --verify-diagnostics | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --nn-divide-by-batch --nn-divide-by-batch 2>/dev/null | FileCheck %s

// All labels count; the second loss divides by the same number.
// CHECK: module attributes {nn.counted_inputs = {t_divisor = {ignored = -100 : i64, labels = "t", ranges = array<i64: 0, 1>}}}
// CHECK-LABEL: func.func @model
// CHECK-SAME:  %[[N:[^:]*]]: tensor<f32> {nn.name = "t_divisor"}) -> (tensor<f32>
// CHECK:       nn.softmax_cross_entropy %{{.*}}, %{{.*}} divisor %[[N]] ignore_index = -100
// CHECK:       nn.softmax_cross_entropy %{{.*}}, %{{.*}} divisor %[[N]] ignore_index = -100
module {
  func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}, %t: tensor<4xi64> {nn.name = "t"}) -> (tensor<f32> {nn.name = "loss"}) {
    %a:3 = nn.softmax_cross_entropy %x, %t ignore_index = -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %y = nn.neg %x : tensor<4x8xf32>
    %b:3 = nn.softmax_cross_entropy %y, %t ignore_index = -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %loss = nn.add %a#0, %b#0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// The first label of each sample, and every second one of another loss, are no
// labels; a name that is taken is not taken again.
// CHECK: nn.counted_inputs = {labels_divisor2 = {ignored = -1 : i64, labels = "labels", ranges = array<i64: 1, 4>},
// CHECK-SAME: labels_divisor3 = {ignored = -1 : i64, labels = "labels", ranges = array<i64: 0, 1, 2, 3>}}
// CHECK-LABEL: func.func @model
// CHECK:       nn.softmax_cross_entropy {{.*}} divisor %[[A:.*]] ignore_index = -1
// CHECK:       nn.softmax_cross_entropy {{.*}} divisor %[[B:.*]] ignore_index = -1
module {
  func.func @model(%x: tensor<6x8xf32> {nn.name = "labels_divisor"}, %z: tensor<4x8xf32> {nn.name = "z"}, %t: tensor<2x4xi64> {nn.name = "labels"}) -> (tensor<f32> {nn.name = "loss"}) {
    %0 = nn.slice %t starts = [0, 1] sizes = [2, 3] steps = [1, 1] : tensor<2x4xi64> -> tensor<2x3xi64>
    %1 = nn.transpose %0 permutation = [1, 0] : tensor<2x3xi64> -> tensor<3x2xi64>
    %2 = nn.reshape %1 : tensor<3x2xi64> -> tensor<6xi64>
    %a:3 = nn.softmax_cross_entropy %x, %2 ignore_index = -1 : (tensor<6x8xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<6xf32>)
    %3 = nn.slice %t starts = [0, 0] sizes = [2, 2] steps = [1, 2] : tensor<2x4xi64> -> tensor<2x2xi64>
    %4 = nn.reshape %3 : tensor<2x2xi64> -> tensor<4xi64>
    %b:3 = nn.softmax_cross_entropy %z, %4 ignore_index = -1 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %loss = nn.add %a#0, %b#0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Flattened labels, a row of one element each; of those that do not change
// nothing needs to be counted.
// CHECK: nn.counted_inputs = {t_divisor = {ignored = -100 : i64, labels = "t", ranges = array<i64: 0, 1>}}
// CHECK-LABEL: func.func @model
// CHECK:       nn.softmax_cross_entropy {{.*}} divisor
// CHECK:       nn.softmax_cross_entropy %{{[^,]*}}, %{{[^ ]*}} ignore_index
module {
  func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}, %t: tensor<4xi64> {nn.name = "t"}) -> (tensor<f32> {nn.name = "loss"}) {
    %0 = nn.reshape %t : tensor<4xi64> -> tensor<2x2xi64>
    %1 = nn.reshape %0 : tensor<2x2xi64> -> tensor<4xi64>
    %a:3 = nn.softmax_cross_entropy %x, %1 ignore_index = -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %c = nn.constant dense<[1, 2, -100, 3]> : tensor<4xi64>
    %b:3 = nn.softmax_cross_entropy %x, %c ignore_index = -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %loss = nn.add %a#0, %b#0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Labels that are computed cannot be counted, nor those that differ from sample
// to sample.
// CHECK-NOT: nn.counted_inputs
// CHECK-LABEL: func.func @model
// CHECK-NOT:   divisor
module {
  func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}, %t: tensor<4xi64> {nn.name = "t"}, %m: tensor<4xi1> {nn.name = "m"}, %u: tensor<8xi64> {nn.name = "u"}) -> (tensor<f32> {nn.name = "loss"}) {
    %none = nn.constant dense<-100> : tensor<i64>
    %0 = nn.where %m, %t, %none : (tensor<4xi1>, tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
    // expected-warning @below {{divides by the labels of each micro-batch that are not ignored, not by those of the whole batch: its labels are computed by 'nn.where', so they cannot be counted before the step; give the labels as the loss needs them}}
    %a:3 = nn.softmax_cross_entropy %x, %0 ignore_index = -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %1 = nn.slice %u starts = [1] sizes = [4] steps = [1] : tensor<8xi64> -> tensor<4xi64>
    // expected-warning @below {{it does not read the same labels of each sample}}
    %b:3 = nn.softmax_cross_entropy %x, %1 ignore_index = -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %loss = nn.add %a#0, %b#0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
