// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// Every constraint of the normalizations, one violation each.

func.func @layer_norm_c1_scalar(%x: tensor<f32>, %s: tensor<1xf32>) {
  // expected-error @below {{'nn.layer_norm' op expects rank 1 or more, but got rank 0}}
  // expected-error @below {{failed to infer returned types}}
  %y, %m, %r = nn.layer_norm %x, %s, %s epsilon = 1.0e-05
    : (tensor<f32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @layer_norm_c2_bias_size(%x: tensor<4x8xf32>, %s: tensor<8xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{expects a bias of 8 elements, but got 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %y, %m, %r = nn.layer_norm %x, %s, %b epsilon = 1.0e-05
    : (tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @layer_norm_backward_c1_gradient_type(%dy: tensor<4x4xf32>, %x: tensor<4x8xf32>, %s: tensor<8xf32>, %m: tensor<4xf32>) {
  // expected-error @below {{expects a gradient of the type of x and rank 1 or more, but got 'tensor<4x4xf32>' and 'tensor<4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1, %2 = nn.layer_norm_backward %dy, %x, %s, %m, %m
    : (tensor<4x4xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @layer_norm_backward_c2_scale_size(%x: tensor<4x8xf32>, %s: tensor<4xf32>, %m: tensor<4xf32>) {
  // expected-error @below {{expects a scale of 8 elements, but got 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1, %2 = nn.layer_norm_backward %x, %x, %s, %m, %m
    : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @layer_norm_backward_c3_mean_shape(%x: tensor<4x8xf32>, %s: tensor<8xf32>, %m: tensor<4xf32>) {
  // expected-error @below {{expects mean and rstd of type 'tensor<4xf32>', but got 'tensor<8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1, %2 = nn.layer_norm_backward %x, %x, %s, %m, %s
    : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_norm_c1_vector(%x: tensor<8xf32>) {
  // expected-error @below {{'nn.batch_norm' op expects rank 2 or more, but got 'tensor<8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %y, %m, %v = nn.batch_norm %x, %x, %x epsilon = 1.0e-05 momentum = 0.5
    : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_norm_c2_scale_size(%x: tensor<4x8x2x2xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{expects a scale of 8 elements, but got 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %y, %m, %v = nn.batch_norm %x, %s, %s epsilon = 1.0e-05 momentum = 0.5
    : (tensor<4x8x2x2xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8x2x2xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

nn.weight @mean role = state : tensor<8xf32>
func.func @batch_norm_c3_mean_only(%x: tensor<4x8xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{expects both running statistics or none, but got running_mean only}}
  %y, %m, %v = nn.batch_norm %x, %s, %s epsilon = 1.0e-05 momentum = 0.5 running_mean = @mean
    : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

nn.weight @variance role = state : tensor<8xf32>
func.func @batch_norm_c3_variance_only(%x: tensor<4x8xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{expects both running statistics or none, but got running_variance only}}
  %y, %m, %v = nn.batch_norm %x, %s, %s epsilon = 1.0e-05 momentum = 0.5 running_variance = @variance
    : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

nn.weight @mean role = state : tensor<8xf32>
// expected-note @below {{the weight is here}}
nn.weight @variance role = parameter : tensor<8xf32>
func.func @batch_norm_c4_role(%x: tensor<4x8xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{expects weight 'variance' to have role state, but got parameter}}
  %y, %m, %v = nn.batch_norm %x, %s, %s epsilon = 1.0e-05 momentum = 0.5 running_mean = @mean running_variance = @variance
    : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_norm_c5_no_statistics(%x: tensor<4x8xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{expects sample_variance beside running statistics}}
  %y, %m, %v = nn.batch_norm %x, %s, %s epsilon = 1.0e-05 momentum = 0.5 sample_variance
    : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

nn.weight @mean role = state : tensor<8xf32>
nn.weight @variance role = state : tensor<8xf32>
func.func @batch_norm_c5_one_value(%x: tensor<1x8xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{expects more than one value per channel for a sample variance, but got 'tensor<1x8xf32>'}}
  %y, %m, %v = nn.batch_norm %x, %s, %s epsilon = 1.0e-05 momentum = 0.5 running_mean = @mean running_variance = @variance sample_variance
    : (tensor<1x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<1x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @group_norm_c1_matrix(%x: tensor<4x8xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{'nn.group_norm' op expects rank 3 or more, but got 'tensor<4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %y, %m, %v = nn.group_norm %x, %s, %s groups = 2 epsilon = 1.0e-05
    : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x2xf32>, tensor<4x2xf32>)
  return
}

// -----

func.func @group_norm_c2_groups(%x: tensor<4x8x3xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{expects groups that divide 8 channels, but got 3}}
  // expected-error @below {{failed to infer returned types}}
  %y, %m, %v = nn.group_norm %x, %s, %s groups = 3 epsilon = 1.0e-05
    : (tensor<4x8x3xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
  return
}

// -----

func.func @group_norm_c2_no_groups(%x: tensor<4x8x3xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{expects groups that divide 8 channels, but got 0}}
  // expected-error @below {{failed to infer returned types}}
  %y, %m, %v = nn.group_norm %x, %s, %s groups = 0 epsilon = 1.0e-05
    : (tensor<4x8x3xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8x3xf32>, tensor<4x0xf32>, tensor<4x0xf32>)
  return
}

// -----

func.func @group_norm_c3_scale_size(%x: tensor<4x8x3xf32>, %s: tensor<2xf32>) {
  // expected-error @below {{expects a scale of 8 elements, but got 'tensor<2xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %y, %m, %v = nn.group_norm %x, %s, %s groups = 2 epsilon = 1.0e-05
    : (tensor<4x8x3xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4x8x3xf32>, tensor<4x2xf32>, tensor<4x2xf32>)
  return
}

// -----

func.func @group_norm_backward_c1_gradient_type(%dy: tensor<4x8x2xf32>, %x: tensor<4x8x3xf32>, %s: tensor<8xf32>, %m: tensor<4x2xf32>) {
  // expected-error @below {{expects a gradient of the type of x and rank 3 or more}}
  // expected-error @below {{failed to infer returned types}}
  %0:5 = nn.group_norm_backward %dy, %x, %s, %m, %m epsilon = 1.0e-05
    : (tensor<4x8x2xf32>, tensor<4x8x3xf32>, tensor<8xf32>, tensor<4x2xf32>, tensor<4x2xf32>)
      -> (tensor<4x8x3xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x2xf32>, tensor<4x2xf32>)
  return
}

// -----

func.func @group_norm_backward_c2_scale_size(%x: tensor<4x8x3xf32>, %s: tensor<4xf32>, %m: tensor<4x2xf32>) {
  // expected-error @below {{expects a scale of 8 elements, but got 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:5 = nn.group_norm_backward %x, %x, %s, %m, %m epsilon = 1.0e-05
    : (tensor<4x8x3xf32>, tensor<4x8x3xf32>, tensor<4xf32>, tensor<4x2xf32>, tensor<4x2xf32>)
      -> (tensor<4x8x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x2xf32>, tensor<4x2xf32>)
  return
}

// -----

func.func @group_norm_backward_c3_groups(%x: tensor<4x8x3xf32>, %s: tensor<8xf32>, %m: tensor<4x3xf32>) {
  // expected-error @below {{expects mean and variance of 4 samples and of groups that divide 8 channels, but got 'tensor<4x3xf32>' and 'tensor<4x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:5 = nn.group_norm_backward %x, %x, %s, %m, %m epsilon = 1.0e-05
    : (tensor<4x8x3xf32>, tensor<4x8x3xf32>, tensor<8xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
      -> (tensor<4x8x3xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
  return
}

// -----

func.func @batch_norm_backward_c1_gradient_type(%dy: tensor<4x4xf32>, %x: tensor<4x8xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{expects a gradient of the type of x and rank 2 or more}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1, %2 = nn.batch_norm_backward %dy, %x, %s, %s, %s epsilon = 1.0e-05
    : (tensor<4x4xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_norm_backward_c2_mean_size(%x: tensor<4x8xf32>, %s: tensor<8xf32>, %m: tensor<4xf32>) {
  // expected-error @below {{expects a mean of 8 elements, but got 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1, %2 = nn.batch_norm_backward %x, %x, %s, %m, %s epsilon = 1.0e-05
    : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @softmax_c1_scalar(%x: tensor<f32>) {
  // expected-error @below {{'nn.softmax' op expects rank 1 or more, but got rank 0}}
  %0 = nn.softmax %x : tensor<f32>
  return
}

// -----

func.func @log_softmax_backward_c1_scalar(%x: tensor<f32>) {
  // expected-error @below {{'nn.log_softmax_backward' op expects rank 1 or more, but got rank 0}}
  %0 = nn.log_softmax_backward %x, %x : tensor<f32>
  return
}

// -----

func.func @log_softmax_c1_scalar(%x: tensor<f32>) {
  // expected-error @below {{'nn.log_softmax' op expects rank 1 or more, but got rank 0}}
  %0 = nn.log_softmax %x : tensor<f32>
  return
}

// -----

func.func @softmax_backward_c1_scalar(%x: tensor<f32>) {
  // expected-error @below {{'nn.softmax_backward' op expects rank 1 or more, but got rank 0}}
  %0 = nn.softmax_backward %x, %x : tensor<f32>
  return
}
