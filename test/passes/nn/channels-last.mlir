// RUN: pipewright-opt %s --nn-channels-last | FileCheck %s
// RUN: pipewright-opt %s --nn-channels-last --nn-channels-last | FileCheck %s

// Filters that are weights change in memory alone, here and for all who read them.
// CHECK: nn.weight @w role = parameter channels_last : tensor<4x3x3x2xf32>
nn.weight @w role = parameter : tensor<4x2x3x3xf32>
// CHECK: nn.weight @v role = parameter channels_last : tensor<4x1x1x4xf32>
nn.weight @v role = parameter : tensor<4x4x1x1xf32>
// CHECK: nn.weight @frozen role = constant channels_last : tensor<4x3x3x1xf32>
nn.weight @frozen role = constant : tensor<4x1x3x3xf32>
// CHECK: nn.weight @scale role = parameter : tensor<4xf32>
nn.weight @scale role = parameter : tensor<4xf32>
nn.weight @mean role = state : tensor<4xf32>
nn.weight @variance role = state : tensor<4xf32>

// A whole block: transposed at its ends alone.
// CHECK-LABEL: func.func @block
// CHECK-DAG:     %[[X:.*]] = nn.transpose %arg0 permutation = [0, 2, 3, 1] : tensor<2x2x8x8xf32> -> tensor<2x8x8x2xf32>
// CHECK-DAG:     %[[W:.*]] = nn.parameter @w : tensor<4x3x3x2xf32>
// CHECK-DAG:     %[[S:.*]] = nn.parameter @scale
// CHECK:         %[[Y:.*]] = nn.conv %[[X]], %[[W]] bias %[[S]] strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 channels_last : (tensor<2x8x8x2xf32>, tensor<4x3x3x2xf32>, tensor<4xf32>) -> tensor<2x8x8x4xf32>
// CHECK-NEXT:    %[[N:.*]], %[[M:.*]], %{{.*}} = nn.batch_norm %[[Y]], %[[S]], %[[S]] {{.*}} running_variance = @variance channels_last
// CHECK-NEXT:    %[[R:.*]] = nn.relu %[[N]] : tensor<2x8x8x4xf32>
// CHECK-NEXT:    %[[P:.*]], %{{.*}} = nn.max_pool %[[R]] {{.*}} channels_last : tensor<2x8x8x4xf32> -> (tensor<2x4x4x4xf32>, tensor<2x4x4x4xi8>)
// CHECK:         %[[V:.*]] = nn.parameter @v : tensor<4x1x1x4xf32>
// CHECK-NEXT:    %[[C:.*]] = nn.conv %[[P]], %[[V]] {{.*}} channels_last
// CHECK-NEXT:    %[[A:.*]] = nn.add %[[C]], %[[P]] : (tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>)
// CHECK-NEXT:    %[[Q:.*]] = nn.average_pool %[[A]] kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] count_include_pad channels_last : tensor<2x4x4x4xf32> -> tensor<2x2x2x4xf32>
// CHECK-NEXT:    %[[T:.*]] = nn.transpose %[[Q]] permutation = [0, 3, 1, 2] : tensor<2x2x2x4xf32> -> tensor<2x4x2x2xf32>
// CHECK-NEXT:    %[[F:.*]] = nn.reshape %[[T]] : tensor<2x4x2x2xf32> -> tensor<2x16xf32>
// CHECK-NEXT:    return %[[F]], %[[M]]
func.func @block(%x: tensor<2x2x8x8xf32>) -> (tensor<2x16xf32>, tensor<4xf32>) {
  %w = nn.parameter @w : tensor<4x2x3x3xf32>
  %s = nn.parameter @scale : tensor<4xf32>
  %y = nn.conv %x, %w bias %s strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 : (tensor<2x2x8x8xf32>, tensor<4x2x3x3xf32>, tensor<4xf32>) -> tensor<2x4x8x8xf32>
  %n, %m, %var = nn.batch_norm %y, %s, %s epsilon = 1.0e-5 momentum = 0.9 running_mean = @mean running_variance = @variance : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>)
  %r = nn.relu %n : tensor<2x4x8x8xf32>
  %p, %window = nn.max_pool %r kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] dilations = [1, 1] : tensor<2x4x8x8xf32> -> (tensor<2x4x4x4xf32>, tensor<2x4x4x4xi8>)
  %v = nn.parameter @v : tensor<4x4x1x1xf32>
  %c = nn.conv %p, %v strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1 : (tensor<2x4x4x4xf32>, tensor<4x4x1x1xf32>) -> tensor<2x4x4x4xf32>
  %a = nn.add %c, %p : (tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
  %q = nn.average_pool %a kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] count_include_pad : tensor<2x4x4x4xf32> -> tensor<2x4x2x2xf32>
  %f = nn.reshape %q : tensor<2x4x2x2xf32> -> tensor<2x16xf32>
  return %f, %m : tensor<2x16xf32>, tensor<4xf32>
}

// The mean over space has no layout: nothing is transposed behind it. Nor is an
// image of one pixel.
// CHECK-LABEL: func.func @means
// CHECK:         %[[Y:.*]] = nn.conv
// CHECK-NOT:     nn.transpose
// CHECK:         nn.reduce_mean %[[Y]] axes = [1, 2] : tensor<2x8x8x4xf32> -> tensor<2x4xf32>
// CHECK-NEXT:    %[[K:.*]] = nn.reduce_max %[[Y]] axes = [1, 2] keep_dims : tensor<2x8x8x4xf32> -> tensor<2x1x1x4xf32>
// CHECK-NEXT:    %[[F:.*]] = nn.reshape %[[K]] : tensor<2x1x1x4xf32> -> tensor<2x4x1x1xf32>
// CHECK-NEXT:    nn.reshape %[[F]] : tensor<2x4x1x1xf32> -> tensor<2x4xf32>
func.func @means(%x: tensor<2x2x8x8xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %w = nn.parameter @w : tensor<4x2x3x3xf32>
  %y = nn.conv %x, %w strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 : (tensor<2x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<2x4x8x8xf32>
  %m = nn.reduce_mean %y axes = [2, 3] : tensor<2x4x8x8xf32> -> tensor<2x4xf32>
  %k = nn.reduce_max %y axes = [2, 3] keep_dims : tensor<2x4x8x8xf32> -> tensor<2x4x1x1xf32>
  %f = nn.reshape %k : tensor<2x4x1x1xf32> -> tensor<2x4xf32>
  return %m, %f : tensor<2x4xf32>, tensor<2x4xf32>
}

// What would leave dimensions in another order is done as the model has it.
// CHECK-LABEL: func.func @sum_of_channels
// CHECK:         nn.reduce_sum %{{.*}} axes = [3] : tensor<2x4x8x8xf32> -> tensor<2x4x8xf32>
func.func @sum_of_channels(%x: tensor<2x2x8x8xf32>) -> tensor<2x4x8xf32> {
  %w = nn.parameter @w : tensor<4x2x3x3xf32>
  %y = nn.conv %x, %w strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 : (tensor<2x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<2x4x8x8xf32>
  %m = nn.reduce_sum %y axes = [3] : tensor<2x4x8x8xf32> -> tensor<2x4x8xf32>
  return %m : tensor<2x4x8xf32>
}

// What broadcasts to images follows them: numbers for channels, for columns, one
// for all. In bf16 as well: the working copy of the filter is read.
// CHECK-LABEL: func.func @broadcasts
// CHECK-DAG:     %[[C:.*]] = nn.reshape {{.*}} -> tensor<1x1x1x4xbf16>
// CHECK-DAG:     %[[R:.*]] = nn.reshape {{.*}} -> tensor<1x1x8x1xbf16>
// CHECK:         nn.parameter @w : tensor<4x3x3x2xbf16>
// CHECK:         %[[Y:.*]] = nn.conv
// CHECK-NEXT:    %[[A:.*]] = nn.add %[[Y]], %[[C]] : (tensor<2x8x8x4xbf16>, tensor<1x1x1x4xbf16>) -> tensor<2x8x8x4xbf16>
// CHECK-NEXT:    %[[B:.*]] = nn.mul %[[R]], %[[A]] : (tensor<1x1x8x1xbf16>, tensor<2x8x8x4xbf16>) -> tensor<2x8x8x4xbf16>
// CHECK-NEXT:    %[[D:.*]] = nn.mul %[[B]], %arg3 : (tensor<2x8x8x4xbf16>, tensor<1x1xbf16>) -> tensor<2x8x8x4xbf16>
// CHECK-NEXT:    %[[E:.*]] = nn.cast %[[D]] : tensor<2x8x8x4xbf16> -> tensor<2x8x8x4xf32>
// CHECK-NEXT:    nn.transpose %[[E]] permutation = [0, 3, 1, 2]
func.func @broadcasts(%x: tensor<2x2x8x8xbf16>, %c: tensor<4x1x1xbf16>, %r: tensor<8xbf16>, %one: tensor<1x1xbf16>) -> tensor<2x4x8x8xf32> {
  %w = nn.parameter @w : tensor<4x2x3x3xbf16>
  %y = nn.conv %x, %w strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 : (tensor<2x2x8x8xbf16>, tensor<4x2x3x3xbf16>) -> tensor<2x4x8x8xbf16>
  %a = nn.add %y, %c : (tensor<2x4x8x8xbf16>, tensor<4x1x1xbf16>) -> tensor<2x4x8x8xbf16>
  %b = nn.mul %r, %a : (tensor<8xbf16>, tensor<2x4x8x8xbf16>) -> tensor<2x4x8x8xbf16>
  %d = nn.mul %b, %one : (tensor<2x4x8x8xbf16>, tensor<1x1xbf16>) -> tensor<2x4x8x8xbf16>
  %e = nn.cast %d : tensor<2x4x8x8xbf16> -> tensor<2x4x8x8xf32>
  return %e : tensor<2x4x8x8xf32>
}

// Ops with numbers for each dimension.
// CHECK-LABEL: func.func @pieces
// CHECK:         %[[Y:.*]] = nn.conv
// CHECK-NEXT:    %[[S:.*]] = nn.slice %[[Y]] starts = [0, 0, 2, 1] sizes = [2, 8, 6, 3] steps = [1, 1, 1, 1] : tensor<2x8x8x4xf32> -> tensor<2x8x6x3xf32>
// CHECK-NEXT:    %[[P:.*]] = nn.pad %[[S]] low = [0, 0, 2, 1] high = [0, 0, 0, 0] : tensor<2x8x6x3xf32> -> tensor<2x8x8x4xf32>
// CHECK-NEXT:    %[[C:.*]] = nn.concat %[[Y]], %[[P]] axis = 3 : (tensor<2x8x8x4xf32>, tensor<2x8x8x4xf32>) -> tensor<2x8x8x8xf32>
// A transposition of the model becomes one with ours.
// CHECK-NEXT:    %[[T:.*]] = nn.transpose %[[C]] permutation = [0, 2, 1, 3] : tensor<2x8x8x8xf32> -> tensor<2x8x8x8xf32>
// CHECK-NEXT:    return %[[T]], %[[C]]
func.func @pieces(%x: tensor<2x8x8x2xf32>) -> (tensor<2x8x8x8xf32>, tensor<2x8x8x8xf32>) {
  %first = nn.transpose %x permutation = [0, 3, 1, 2] : tensor<2x8x8x2xf32> -> tensor<2x2x8x8xf32>
  %w = nn.parameter @w : tensor<4x2x3x3xf32>
  %y = nn.conv %first, %w strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 : (tensor<2x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<2x4x8x8xf32>
  %s = nn.slice %y starts = [0, 1, 0, 2] sizes = [2, 3, 8, 6] steps = [1, 1, 1, 1] : tensor<2x4x8x8xf32> -> tensor<2x3x8x6xf32>
  %p = nn.pad %s low = [0, 1, 0, 2] high = [0, 0, 0, 0] : tensor<2x3x8x6xf32> -> tensor<2x4x8x8xf32>
  %c = nn.concat %y, %p axis = 1 : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x8x8x8xf32>
  %t = nn.transpose %c permutation = [0, 3, 2, 1] : tensor<2x8x8x8xf32> -> tensor<2x8x8x8xf32>
  %last = nn.transpose %c permutation = [0, 2, 3, 1] : tensor<2x8x8x8xf32> -> tensor<2x8x8x8xf32>
  return %t, %last : tensor<2x8x8x8xf32>, tensor<2x8x8x8xf32>
}

// What is rounded for a convolution alone is transposed before: one kernel does both.
// CHECK-LABEL: func.func @rounded
// CHECK:         %[[T:.*]] = nn.transpose %arg0 permutation = [0, 2, 3, 1] : tensor<2x2x8x8xf32> -> tensor<2x8x8x2xf32>
// CHECK-NEXT:    %[[C:.*]] = nn.cast %[[T]] : tensor<2x8x8x2xf32> -> tensor<2x8x8x2xbf16>
// CHECK-NOT:     nn.cast
// CHECK:         nn.conv %[[C]]
func.func @rounded(%x: tensor<2x2x8x8xf32>) -> tensor<2x4x8x8xbf16> {
  %c = nn.cast %x : tensor<2x2x8x8xf32> -> tensor<2x2x8x8xbf16>
  %w = nn.parameter @w : tensor<4x2x3x3xbf16>
  %y = nn.conv %c, %w strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 : (tensor<2x2x8x8xbf16>, tensor<4x2x3x3xbf16>) -> tensor<2x4x8x8xbf16>
  return %y : tensor<2x4x8x8xbf16>
}

// Dropout's numbers go by the place of an element.
// CHECK-LABEL: func.func @dropout
// CHECK:         %[[Y:.*]] = nn.conv
// CHECK-NEXT:    %[[F:.*]] = nn.transpose %[[Y]] permutation = [0, 3, 1, 2]
// CHECK-NEXT:    %[[D:.*]] = nn.dropout %[[F]]
// CHECK-NEXT:    %[[L:.*]] = nn.transpose %[[D]] permutation = [0, 2, 3, 1]
// CHECK:         nn.conv %[[L]]
func.func @dropout(%x: tensor<2x2x8x8xf32>) -> tensor<2x4x8x8xf32> {
  %w = nn.parameter @w : tensor<4x2x3x3xf32>
  %y = nn.conv %x, %w strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 : (tensor<2x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<2x4x8x8xf32>
  %d = nn.dropout %y rate = 0.5 id = 0 : tensor<2x4x8x8xf32>
  %v = nn.parameter @v : tensor<4x4x1x1xf32>
  %c = nn.conv %d, %v strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1 : (tensor<2x4x8x8xf32>, tensor<4x4x1x1xf32>) -> tensor<2x4x8x8xf32>
  return %c : tensor<2x4x8x8xf32>
}

// A filter that others use too: they find the model's. What is computed of a filter
// by elements follows it; a filter that is no weight is transposed.
// CHECK-LABEL: func.func @filters
// CHECK:         %[[K:.*]] = nn.transpose %arg1 permutation = [0, 2, 3, 1] : tensor<4x4x3x3xf32> -> tensor<4x3x3x4xf32>
// CHECK:         %[[W:.*]] = nn.parameter @w : tensor<4x3x3x2xf32>
// CHECK-NEXT:    %[[O:.*]] = nn.transpose %[[W]] permutation = [0, 3, 1, 2] : tensor<4x3x3x2xf32> -> tensor<4x2x3x3xf32>
// CHECK-DAG:     %[[F:.*]] = nn.reshape %[[O]] : tensor<4x2x3x3xf32> -> tensor<72xf32>
// CHECK-DAG:     %[[E:.*]] = nn.exp %[[W]] : tensor<4x3x3x2xf32>
// CHECK-DAG:     %[[D:.*]] = nn.parameter @frozen : tensor<4x3x3x1xf32>
// CHECK:         nn.conv %{{.*}}, %[[E]] {{.*}} groups = 2 channels_last
// CHECK:         nn.conv %{{.*}}, %[[D]] {{.*}} groups = 4 channels_last
// CHECK:         nn.conv %{{.*}}, %[[K]] {{.*}} groups = 1 channels_last
// CHECK:         nn.conv %{{.*}}, %[[W]] {{.*}} groups = 2 channels_last
func.func @filters(%x: tensor<2x4x8x8xf32>, %k: tensor<4x4x3x3xf32>) -> (tensor<2x4x8x8xf32>, tensor<72xf32>) {
  %w = nn.parameter @w : tensor<4x2x3x3xf32>
  %f = nn.reshape %w : tensor<4x2x3x3xf32> -> tensor<72xf32>
  %e = nn.exp %w : tensor<4x2x3x3xf32>
  %d = nn.parameter @frozen : tensor<4x1x3x3xf32>
  %1 = nn.conv %x, %e strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 2 : (tensor<2x4x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<2x4x8x8xf32>
  %2 = nn.conv %1, %d strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 4 : (tensor<2x4x8x8xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x8x8xf32>
  %3 = nn.conv %2, %k strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 : (tensor<2x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<2x4x8x8xf32>
  %4 = nn.conv %3, %w strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 2 : (tensor<2x4x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<2x4x8x8xf32>
  return %4, %f : tensor<2x4x8x8xf32>, tensor<72xf32>
}

// Without convolutions images stay.
// CHECK-LABEL: func.func @pooling_alone
// CHECK-NOT:     channels_last
func.func @pooling_alone(%x: tensor<2x2x8x8xf32>) -> tensor<2x2x4x4xf32> {
  %q = nn.average_pool %x kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] : tensor<2x2x8x8xf32> -> tensor<2x2x4x4xf32>
  return %q : tensor<2x2x4x4xf32>
}

// A transposed convolution works on images and filters with the channels last,
// too.
// CHECK-LABEL: func.func @transposed
// CHECK:         %[[X:.*]] = nn.transpose %{{.*}} permutation = [0, 2, 3, 1]
// CHECK:         %[[W:.*]] = nn.parameter @w : tensor<4x3x3x2xf32>
// CHECK:         %[[Y:.*]] = nn.conv_backward_data %[[X]], %[[W]] strides = [2, 2] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 channels_last : (tensor<2x8x8x4xf32>, tensor<4x3x3x2xf32>) -> tensor<2x16x16x2xf32>
// CHECK:         nn.relu %[[Y]]
func.func @transposed(%x: tensor<2x4x8x8xf32>) -> tensor<2x2x16x16xf32> {
  %w = nn.parameter @w : tensor<4x2x3x3xf32>
  %y = nn.conv_backward_data %x, %w strides = [2, 2] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 : (tensor<2x4x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<2x2x16x16xf32>
  %r = nn.relu %y : tensor<2x2x16x16xf32>
  return %r : tensor<2x2x16x16xf32>
}
