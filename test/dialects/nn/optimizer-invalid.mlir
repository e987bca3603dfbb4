// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// Every constraint of an update, one violation each.

func.func @update_c1_state_type(%w: tensor<8xf32>, %m: tensor<4xf32>, %h: tensor<4xf32>) {
  // expected-error @below {{expects buffers of the weights' type 'tensor<8xf32>', but got 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1, %2 = nn.update %w, %w states %m, %m scalars %h by <adam>
    : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @update_c1_gradient_type(%w: tensor<8xf32>, %g: tensor<4xf32>, %h: tensor<4xf32>) {
  // expected-error @below {{expects buffers of the weights' type 'tensor<8xf32>', but got 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.update %w, %g scalars %h by <sgd> : (tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @update_c2_step_values(%w: tensor<8xf32>, %h: tensor<3xf32>) {
  // expected-error @below {{expects 'tensor<4xf32>' for the step's values, but got 'tensor<3xf32>'}}
  %0 = nn.update %w, %w scalars %h by <sgd> : (tensor<8xf32>, tensor<8xf32>, tensor<3xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @update_c3_momentum_without_buffer(%w: tensor<8xf32>, %h: tensor<4xf32>) {
  // expected-error @below {{expects 1 states for sgd, but got 0}}
  %0 = nn.update %w, %w scalars %h by <sgd momentum = 0.5> : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @update_c3_buffer_without_momentum(%w: tensor<8xf32>, %h: tensor<4xf32>) {
  // expected-error @below {{expects 1 states for rmsprop, but got 2}}
  %0, %1, %2 = nn.update %w, %w states %w, %w scalars %h by <rmsprop>
    : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// An optimizer is one of the table, with the table's hyper-parameters.

// expected-error @below {{expects the optimizer to be sgd, adam, adamw, rmsprop, lamb, lion or muon, but got 'adamax'}}
module attributes {pipe.program = #nn.optimizer<adamax>} {}

// -----

// expected-error @below {{optimizer adam has no 'momentum'; it has lr, beta1, beta2, eps, weight_decay}}
module attributes {pipe.program = #nn.optimizer<adam momentum = 0.5>} {}

// -----

// expected-error @below {{expects beta2 to be a number from 0 to below 1, but got 1}}
module attributes {pipe.program = #nn.optimizer<adam beta2 = 1.0>} {}

// -----

// expected-error @below {{expects lr to be a number of at least 0, but got -1}}
module attributes {pipe.program = #nn.optimizer<sgd lr = -1.0>} {}

// -----

// expected-error @below {{expects nesterov to be true or false, but got 5}}
module attributes {pipe.program = #nn.optimizer<sgd nesterov = 0.5>} {}

// -----

// expected-error @below {{expects momentum above 0 with nesterov}}
module attributes {pipe.program = #nn.optimizer<sgd nesterov = true>} {}

// -----

// expected-error @below {{expected '<'}}
module attributes {pipe.program = #nn.optimizer "sgd"} {}
