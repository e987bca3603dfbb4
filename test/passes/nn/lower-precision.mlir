// RUN: pipewright-opt %s --split-input-file --nn-lower-precision | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --nn-lower-precision --nn-lower-precision | FileCheck %s
// RUN: not pipewright-opt %s --split-input-file --nn-lower-precision=type=f16 2>&1 | FileCheck %s --check-prefix=TYPE

// TYPE: error: nn-lower-precision: expects type bf16, but got 'f16'

// Inputs are rounded once, parameters are read as working copies, what is
// computed from them is bf16, and the loss behind the last product is f32.
nn.weight @w role = parameter : tensor<8x4xf32>
nn.weight @b role = parameter : tensor<4xf32>
// CHECK-LABEL: func.func @mean_squared_error
// CHECK-SAME:    %[[X:arg[0-9]]]: tensor<2x8xf32>
// CHECK-SAME:    %[[T:arg[0-9]]]: tensor<4x4xf32>
// CHECK-NEXT:  %[[X16:.*]] = nn.cast %[[X]] : tensor<2x8xf32> -> tensor<2x8xbf16>
// CHECK-NEXT:  %[[W:.*]] = nn.parameter @w : tensor<8x4xbf16>
// CHECK-NEXT:  %[[B:.*]] = nn.parameter @b : tensor<4xbf16>
// CHECK-NEXT:  nn.matmul %[[X16]], %[[W]] : {{.*}} -> tensor<2x4xbf16>
// CHECK-NEXT:  nn.add %{{.*}}, %[[B]] : {{.*}} -> tensor<2x4xbf16>
// CHECK-NEXT:  %[[G:.*]] = nn.gelu %{{.*}} : tensor<2x4xbf16>
// CHECK-NEXT:  nn.matmul %[[X16]], %[[W]]
// CHECK-NEXT:  %[[Y:.*]] = nn.matmul %[[G]], %{{.*}} transpose_a : {{.*}} -> tensor<4x4xbf16>
// CHECK-NEXT:  %[[Y32:.*]] = nn.cast %[[Y]] : tensor<4x4xbf16> -> tensor<4x4xf32>
// CHECK-NEXT:  %[[D:.*]] = nn.sub %[[Y32]], %[[T]] : {{.*}} -> tensor<4x4xf32>
// CHECK-NEXT:  nn.mul %[[D]], %[[D]] : {{.*}} -> tensor<4x4xf32>
// CHECK-NEXT:  %[[L:.*]] = nn.reduce_mean %{{.*}} : tensor<4x4xf32> -> tensor<f32>
// CHECK-NEXT:  %[[OUT:.*]] = nn.cast %[[Y]] : tensor<4x4xbf16> -> tensor<4x4xf32>
// CHECK-NEXT:  return %[[L]], %[[OUT]] : tensor<f32>, tensor<4x4xf32>
func.func @mean_squared_error(%x: tensor<2x8xf32>, %t: tensor<4x4xf32>) -> (tensor<f32>, tensor<4x4xf32>) {
  %w = nn.parameter @w : tensor<8x4xf32>
  %b = nn.parameter @b : tensor<4xf32>
  %0 = nn.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %1 = nn.add %0, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %2 = nn.gelu %1 approximate = none : tensor<2x4xf32>
  %3 = nn.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %4 = nn.matmul %2, %3 transpose_a : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %5 = nn.sub %4, %t : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = nn.mul %5, %5 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %7 = nn.reduce_mean %6 axes = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  return %7, %4 : tensor<f32>, tensor<4x4xf32>
}

// -----

// Cross entropy takes bf16 logits; masks and statistics stay f32.
nn.weight @table role = parameter : tensor<16x8xf32>
nn.weight @scale role = parameter : tensor<8xf32>
nn.weight @frozen role = constant : tensor<8x8xf32>
// CHECK-LABEL: func.func @language_model
// CHECK:       nn.embedding %{{.*}} : (tensor<16x8xbf16>, tensor<4xi64>) -> tensor<4x8xbf16>
// CHECK:       nn.layer_norm {{.*}} : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<4xf32>, tensor<4xf32>)
// CHECK:       %[[FROZEN:.*]] = nn.parameter @frozen : tensor<8x8xf32>
// CHECK-NEXT:  %[[ROUNDED:.*]] = nn.cast %[[FROZEN]]
// CHECK:       nn.matmul %{{.*}}, %[[ROUNDED]]
// CHECK:       nn.attention {{.*}} mask %{{.*}} scale{{.*}} tensor<1x1x4x4xf32>) -> (tensor<1x2x4x4xbf16>, tensor<1x2x4x2xf32>)
// CHECK:       nn.softmax_cross_entropy {{.*}} : (tensor<4x16xbf16>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
func.func @language_model(%tokens: tensor<4xi64>, %labels: tensor<4xi64>, %mask: tensor<1x1x4x4xf32>) -> tensor<f32> {
  %table = nn.parameter @table : tensor<16x8xf32>
  %scale = nn.parameter @scale : tensor<8xf32>
  %0 = nn.embedding %table, %tokens : (tensor<16x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %1, %mean, %rstd = nn.layer_norm %0, %scale, %scale epsilon = 1.0e-5 : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  %frozen = nn.parameter @frozen : tensor<8x8xf32>
  %2 = nn.matmul %1, %frozen : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %3 = nn.reshape %2 : tensor<4x8xf32> -> tensor<1x2x4x4xf32>
  %4, %stats = nn.attention %3, %3, %3 mask %mask scale = 1.0 dropout_rate = 0.0 dropout_id = 0 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x2xf32>)
  %5 = nn.reshape %4 : tensor<1x2x4x4xf32> -> tensor<4x8xf32>
  %6 = nn.matmul %5, %table transpose_b : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %loss, %largest, %sum = nn.softmax_cross_entropy %6, %labels ignore_index = -100 : (tensor<4x16xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  return %loss : tensor<f32>
}

// -----

// A norm that no composite is made of: its statistics are f32 until they meet
// the elements. Constants are rounded here, and finite ones stay finite.
nn.weight @w role = parameter : tensor<8x8xf32>
// CHECK-LABEL: func.func @composed_norm
// CHECK-DAG:   nn.constant dense<2.000000e+00> : tensor<bf16>
// CHECK-DAG:   nn.constant dense<-3.389530e+38> : tensor<bf16>
// CHECK:       %[[WIDE:.*]] = nn.cast %{{.*}} : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK-NEXT:  %[[MEAN:.*]] = nn.reduce_mean %[[WIDE]] axes = [1] keep_dims : tensor<4x8xf32> -> tensor<4x1xf32>
// CHECK-NEXT:  %[[RSTD:.*]] = nn.rsqrt %[[MEAN]] : tensor<4x1xf32>
// CHECK-NEXT:  %[[SHORT:.*]] = nn.cast %[[RSTD]] : tensor<4x1xf32> -> tensor<4x1xbf16>
// CHECK-NEXT:  nn.mul %{{.*}}, %[[SHORT]] : {{.*}} -> tensor<4x8xbf16>
// CHECK:       nn.where %{{.*}} -> tensor<4x8xbf16>
func.func @composed_norm(%x: tensor<4x8xf32>, %keep: tensor<4x8xi1>) -> tensor<f32> {
  %w = nn.parameter @w : tensor<8x8xf32>
  %two = nn.constant dense<2.0> : tensor<f32>
  %least = nn.constant dense<-3.40282347E+38> : tensor<f32>
  %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = nn.mul %0, %two : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %2 = nn.reduce_mean %1 axes = [1] keep_dims : tensor<4x8xf32> -> tensor<4x1xf32>
  %3 = nn.rsqrt %2 : tensor<4x1xf32>
  %4 = nn.mul %0, %3 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %5 = nn.where %keep, %4, %least : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %6 = nn.matmul %5, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %7 = nn.reduce_mean %6 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %7 : tensor<f32>
}

// -----

// Running statistics and window positions are what they were.
nn.weight @k role = parameter : tensor<4x3x3x3xf32>
nn.weight @s role = parameter : tensor<4xf32>
nn.weight @mean role = state : tensor<4xf32>
nn.weight @variance role = state : tensor<4xf32>
// CHECK-LABEL: func.func @images
// CHECK:       nn.conv {{.*}} : (tensor<2x3x8x8xbf16>, tensor<4x3x3x3xbf16>, tensor<4xbf16>) -> tensor<2x4x8x8xbf16>
// CHECK-NEXT:  nn.batch_norm {{.*}} -> (tensor<2x4x8x8xbf16>, tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:  nn.relu %{{.*}} : tensor<2x4x8x8xbf16>
// CHECK-NEXT:  nn.max_pool {{.*}} -> (tensor<2x4x4x4xbf16>, tensor<2x4x4x4xi8>)
// CHECK-NEXT:  nn.dropout {{.*}} : tensor<2x4x4x4xbf16>
func.func @images(%x: tensor<2x3x8x8xf32>) -> tensor<f32> {
  %k = nn.parameter @k : tensor<4x3x3x3xf32>
  %s = nn.parameter @s : tensor<4xf32>
  %0 = nn.conv %x, %k bias %s strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<2x4x8x8xf32>
  %y, %m, %v = nn.batch_norm %0, %s, %s epsilon = 1.0e-5 momentum = 0.9 running_mean = @mean running_variance = @variance : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>)
  %1 = nn.relu %y : tensor<2x4x8x8xf32>
  %2, %window = nn.max_pool %1 kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] dilations = [1, 1] : tensor<2x4x8x8xf32> -> (tensor<2x4x4x4xf32>, tensor<2x4x4x4xi8>)
  %3 = nn.dropout %2 rate = 1.000000e-01 id = 3 : tensor<2x4x4x4xf32>
  %4 = nn.reduce_mean %3 axes = [0, 1, 2, 3] : tensor<2x4x4x4xf32> -> tensor<f32>
  return %4 : tensor<f32>
}

// -----

// A transposed convolution in a model is a convolution like others.
nn.weight @w role = parameter : tensor<4x2x3x3xf32>
// CHECK-LABEL: func.func @transposed
// CHECK-NEXT:  %[[X:.*]] = nn.cast %{{.*}} -> tensor<1x4x8x8xbf16>
// CHECK-NEXT:  %[[W:.*]] = nn.parameter @w : tensor<4x2x3x3xbf16>
// CHECK-NEXT:  nn.conv_backward_data %[[X]], %[[W]] {{.*}} -> tensor<1x2x10x10xbf16>
func.func @transposed(%x: tensor<1x4x8x8xf32>) -> tensor<1x2x10x10xf32> {
  %w = nn.parameter @w : tensor<4x2x3x3xf32>
  %y = nn.conv_backward_data %x, %w strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1 : (tensor<1x4x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x2x10x10xf32>
  return %y : tensor<1x2x10x10xf32>
}
