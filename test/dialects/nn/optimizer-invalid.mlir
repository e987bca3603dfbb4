// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// Every constraint of the updates, one violation each.

func.func @adam_c1_buffer_type(%w: tensor<8xf32>, %m: tensor<4xf32>, %h: tensor<4xf32>) {
  // expected-error @below {{expects buffers of the weights' type 'tensor<8xf32>', but got 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1, %2 = nn.adam %w, %w, %m, %m, %h beta1 = 0.5 beta2 = 0.5 eps = 1.0e-08 weight_decay = 0.0
    : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @sgd_c2_step_values(%w: tensor<8xf32>, %h: tensor<3xf32>) {
  // expected-error @below {{expects 'tensor<4xf32>' for the step's values, but got 'tensor<3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.sgd %w, %w, %h momentum = 0.0 weight_decay = 0.0 : (tensor<8xf32>, tensor<8xf32>, tensor<3xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @sgd_c3_result_of_the_buffer_is_missing(%w: tensor<8xf32>, %h: tensor<4xf32>) {
  // expected-error @below {{are incompatible with return type(s) of operation}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.sgd %w, %w momentum_buffer %w, %h momentum = 0.5 weight_decay = 0.0
    : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @sgd_c4_momentum_without_buffer(%w: tensor<8xf32>, %h: tensor<4xf32>) {
  // expected-error @below {{expects a momentum buffer for momentum 5.000000e-01, but got none}}
  %0 = nn.sgd %w, %w, %h momentum = 0.5 weight_decay = 0.0 : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @sgd_c4_nesterov_without_buffer(%w: tensor<8xf32>, %h: tensor<4xf32>) {
  // expected-error @below {{expects a momentum buffer for nesterov, but got none}}
  %0 = nn.sgd %w, %w, %h momentum = 0.0 weight_decay = 0.0 nesterov : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @rmsprop_c4_momentum_without_buffer(%w: tensor<8xf32>, %h: tensor<4xf32>) {
  // expected-error @below {{expects a momentum buffer for momentum 5.000000e-01, but got none}}
  %0, %1 = nn.rmsprop %w, %w, %w, %h alpha = 0.5 eps = 1.0e-08 momentum = 0.5 weight_decay = 0.0
    : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @sgd_c1_gradient_type(%w: tensor<8xf32>, %g: tensor<4xf32>, %h: tensor<4xf32>) {
  // expected-error @below {{expects buffers of the weights' type 'tensor<8xf32>', but got 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.sgd %w, %g, %h momentum = 0.0 weight_decay = 0.0 : (tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @rmsprop_c1_buffer_type(%w: tensor<8xf32>, %v: tensor<4xf32>, %h: tensor<4xf32>) {
  // expected-error @below {{expects buffers of the weights' type 'tensor<8xf32>', but got 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1 = nn.rmsprop %w, %w, %v, %h alpha = 0.5 eps = 1.0e-08 momentum = 0.0 weight_decay = 0.0
    : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @rmsprop_c2_step_values(%w: tensor<8xf32>, %v: tensor<8xf32>, %h: tensor<3xf32>) {
  // expected-error @below {{expects 'tensor<4xf32>' for the step's values, but got 'tensor<3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1 = nn.rmsprop %w, %w, %v, %h alpha = 0.5 eps = 1.0e-08 momentum = 0.0 weight_decay = 0.0
    : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<3xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @rmsprop_c3_result_of_the_buffer_is_missing(%w: tensor<8xf32>, %v: tensor<8xf32>, %h: tensor<4xf32>) {
  // expected-error @below {{are incompatible with return type(s) of operation}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1 = nn.rmsprop %w, %w, %v momentum_buffer %w, %h alpha = 0.5 eps = 1.0e-08 momentum = 0.5 weight_decay = 0.0
    : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}
