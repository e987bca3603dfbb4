// RUN: pipewright-opt %s --cse --canonicalize | FileCheck %s

// What has an effect stays and is not merged; what has none may go.

nn.weight @mean role = state : tensor<8xf32>
nn.weight @variance role = state : tensor<8xf32>
nn.weight @w role = parameter : tensor<8xf32>

// Unused results do not make an update of running statistics dead.
// CHECK-LABEL: func @batch_norm
func.func @batch_norm(%x: tensor<4x8xf32>, %s: tensor<8xf32>) {
  // CHECK: nn.batch_norm {{.*}} running_mean = @mean
  // CHECK: nn.batch_norm {{.*}} running_mean = @mean
  // CHECK-NOT: nn.batch_norm
  %y, %m, %v = nn.batch_norm %x, %s, %s epsilon = 0.5 momentum = 0.5 running_mean = @mean running_variance = @variance
    : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %y1, %m1, %v1 = nn.batch_norm %x, %s, %s epsilon = 0.5 momentum = 0.5 running_mean = @mean running_variance = @variance
    : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %y2, %m2, %v2 = nn.batch_norm %x, %s, %s epsilon = 0.5 momentum = 0.5
    : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// Two equal gradients count twice.
// CHECK-LABEL: func @accumulate_gradient
func.func @accumulate_gradient(%g: tensor<8xf32>) {
  // CHECK-COUNT-2: nn.accumulate_gradient @w
  nn.accumulate_gradient @w, %g : tensor<8xf32>
  nn.accumulate_gradient @w, %g : tensor<8xf32>
  return
}

// CHECK-LABEL: func @assign_state
func.func @assign_state(%v: tensor<8xf32>) {
  // CHECK: nn.assign_state @mean
  nn.assign_state @mean, %v : tensor<8xf32>
  return
}

// The counter, not the order of execution, gives the random numbers: equal
// dropouts are one, different ids are not.
// CHECK-LABEL: func @dropout
func.func @dropout(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK: %[[A:.*]] = nn.dropout {{.*}} id = 1
  // CHECK: %[[B:.*]] = nn.dropout {{.*}} id = 2
  // CHECK: return %[[A]], %[[A]], %[[B]]
  %0 = nn.dropout %x rate = 0.5 id = 1 : tensor<8xf32>
  %1 = nn.dropout %x rate = 0.5 id = 1 : tensor<8xf32>
  %2 = nn.dropout %x rate = 0.5 id = 2 : tensor<8xf32>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
