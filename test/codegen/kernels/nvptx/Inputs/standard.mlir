// Kernels of GPT-2 124M (four sequences of 1024 tokens) and ResNet-50 (32 images),
// as nn-form-kernels makes them. tools/bench/ptxas_table.py compiles them.

func.func private @bias_gelu_4096x3072(%x: tensor<4096x3072xf32>, %b: tensor<3072xf32>)
    -> (tensor<4096x3072xf32>, tensor<4096x3072xf32>) {
  %0 = nn.add %x, %b : (tensor<4096x3072xf32>, tensor<3072xf32>) -> tensor<4096x3072xf32>
  %1 = nn.gelu %0 approximate = tanh : tensor<4096x3072xf32>
  return %0, %1 : tensor<4096x3072xf32>, tensor<4096x3072xf32>
}

func.func private @gelu_backward_4096x3072(%dy: tensor<4096x3072xf32>, %x: tensor<4096x3072xf32>)
    -> (tensor<4096x3072xf32>, tensor<3072xf32>) {
  %0 = nn.gelu_backward %dy, %x approximate = tanh : tensor<4096x3072xf32>
  %1 = nn.reduce_sum %0 axes = [0] : tensor<4096x3072xf32> -> tensor<3072xf32>
  return %0, %1 : tensor<4096x3072xf32>, tensor<3072xf32>
}

func.func private @add_layer_norm_4096x768(%x: tensor<4096x768xf32>, %a: tensor<4096x768xf32>, %s: tensor<768xf32>, %b: tensor<768xf32>)
    -> (tensor<4096x768xf32>, tensor<4096x768xf32>, tensor<4096xf32>, tensor<4096xf32>) {
  %0 = nn.add %x, %a : (tensor<4096x768xf32>, tensor<4096x768xf32>) -> tensor<4096x768xf32>
  %1:3 = nn.layer_norm %0, %s, %b epsilon = 1.0E-5 : (tensor<4096x768xf32>, tensor<768xf32>, tensor<768xf32>) -> (tensor<4096x768xf32>, tensor<4096xf32>, tensor<4096xf32>)
  return %0, %1#0, %1#1, %1#2 : tensor<4096x768xf32>, tensor<4096x768xf32>, tensor<4096xf32>, tensor<4096xf32>
}

func.func private @layer_norm_backward_add_reduce_sum_4096x768(%dy: tensor<4096x768xf32>, %x: tensor<4096x768xf32>, %s: tensor<768xf32>, %m: tensor<4096xf32>, %r: tensor<4096xf32>, %d: tensor<4096x768xf32>)
    -> (tensor<4096x768xf32>, tensor<768xf32>, tensor<768xf32>, tensor<768xf32>) {
  %0:3 = nn.layer_norm_backward %dy, %x, %s, %m, %r
      : (tensor<4096x768xf32>, tensor<4096x768xf32>, tensor<768xf32>, tensor<4096xf32>, tensor<4096xf32>) -> (tensor<4096x768xf32>, tensor<768xf32>, tensor<768xf32>)
  %1 = nn.add %0#0, %d : (tensor<4096x768xf32>, tensor<4096x768xf32>) -> tensor<4096x768xf32>
  %2 = nn.reduce_sum %1 axes = [0] : tensor<4096x768xf32> -> tensor<768xf32>
  return %1, %0#1, %0#2, %2 : tensor<4096x768xf32>, tensor<768xf32>, tensor<768xf32>, tensor<768xf32>
}

func.func private @bias_slice_transpose_4x12x1024x64(%x: tensor<4x1024x2304xf32>, %b: tensor<2304xf32>)
    -> tensor<4x12x1024x64xf32> {
  %0 = nn.add %x, %b : (tensor<4x1024x2304xf32>, tensor<2304xf32>) -> tensor<4x1024x2304xf32>
  %1 = nn.slice %0 starts = [0, 0, 768] sizes = [4, 1024, 768] steps = [1, 1, 1] : tensor<4x1024x2304xf32> -> tensor<4x1024x768xf32>
  %2 = nn.reshape %1 : tensor<4x1024x768xf32> -> tensor<4x1024x12x64xf32>
  %3 = nn.transpose %2 permutation = [0, 2, 1, 3] : tensor<4x1024x12x64xf32> -> tensor<4x12x1024x64xf32>
  return %3 : tensor<4x12x1024x64xf32>
}

func.func private @transpose_concat_reduce_sum_4x1024x2304(%q: tensor<4x12x1024x64xf32>, %k: tensor<4x12x1024x64xf32>, %v: tensor<4x12x1024x64xf32>)
    -> (tensor<4x1024x2304xf32>, tensor<2304xf32>) {
  %qt = nn.transpose %q permutation = [0, 2, 1, 3] : tensor<4x12x1024x64xf32> -> tensor<4x1024x12x64xf32>
  %qr = nn.reshape %qt : tensor<4x1024x12x64xf32> -> tensor<4x1024x768xf32>
  %kt = nn.transpose %k permutation = [0, 2, 1, 3] : tensor<4x12x1024x64xf32> -> tensor<4x1024x12x64xf32>
  %kr = nn.reshape %kt : tensor<4x1024x12x64xf32> -> tensor<4x1024x768xf32>
  %vt = nn.transpose %v permutation = [0, 2, 1, 3] : tensor<4x12x1024x64xf32> -> tensor<4x1024x12x64xf32>
  %vr = nn.reshape %vt : tensor<4x1024x12x64xf32> -> tensor<4x1024x768xf32>
  %c = nn.concat %qr, %kr, %vr axis = 2 : (tensor<4x1024x768xf32>, tensor<4x1024x768xf32>, tensor<4x1024x768xf32>) -> tensor<4x1024x2304xf32>
  %b = nn.reduce_sum %c axes = [0, 1] : tensor<4x1024x2304xf32> -> tensor<2304xf32>
  return %c, %b : tensor<4x1024x2304xf32>, tensor<2304xf32>
}

func.func private @transpose_4x1024x12x64(%x: tensor<4x12x1024x64xf32>)
    -> tensor<4x1024x12x64xf32> {
  %0 = nn.transpose %x permutation = [0, 2, 1, 3] : tensor<4x12x1024x64xf32> -> tensor<4x1024x12x64xf32>
  return %0 : tensor<4x1024x12x64xf32>
}

func.func private @transpose_4x64x12x1024(%x: tensor<4x12x1024x64xf32>)
    -> tensor<4x12x64x1024xf32> {
  %0 = nn.transpose %x permutation = [0, 1, 3, 2] : tensor<4x12x1024x64xf32> -> tensor<4x12x64x1024xf32>
  return %0 : tensor<4x12x64x1024xf32>
}

func.func private @cross_entropy_and_gradient_4096x50257(%x: tensor<4096x50257xf32>, %l: tensor<4096xi64>, %d: tensor<f32>)
    -> (tensor<f32>, tensor<4096xf32>, tensor<4096x50257xf32>) {
  %0:3 = nn.softmax_cross_entropy %x, %l ignore_index = -100 : (tensor<4096x50257xf32>, tensor<4096xi64>) -> (tensor<f32>, tensor<4096xf32>, tensor<4096xf32>)
  %1 = nn.softmax_cross_entropy_backward %d, %x, %l, %0#1, %0#2 ignore_index = -100 : (tensor<f32>, tensor<4096x50257xf32>, tensor<4096xi64>, tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096x50257xf32>
  return %0#0, %0#1, %1 : tensor<f32>, tensor<4096xf32>, tensor<4096x50257xf32>
}

func.func private @masked_softmax_4x12x1024x1024(%x: tensor<4x12x1024x1024xf32>)
    -> tensor<4x12x1024x1024xf32> {
  %m = nn.causal_mask : tensor<1x1x1024x1024xi1>
  %low = nn.constant dense<-3.4028235E+38> : tensor<f32>
  %0 = nn.where %m, %x, %low : (tensor<1x1x1024x1024xi1>, tensor<4x12x1024x1024xf32>, tensor<f32>) -> tensor<4x12x1024x1024xf32>
  %1 = nn.softmax %0 : tensor<4x12x1024x1024xf32>
  return %1 : tensor<4x12x1024x1024xf32>
}

func.func private @softmax_backward_4x12x1024x1024(%dy: tensor<4x12x1024x1024xf32>, %y: tensor<4x12x1024x1024xf32>)
    -> tensor<4x12x1024x1024xf32> {
  %0 = nn.softmax_backward %dy, %y : tensor<4x12x1024x1024xf32>
  return %0 : tensor<4x12x1024x1024xf32>
}

func.func private @bias_gelu_4096x3072_bf16(%x: tensor<4096x3072xbf16>, %b: tensor<3072xbf16>)
    -> (tensor<4096x3072xbf16>, tensor<4096x3072xbf16>) {
  %0 = nn.add %x, %b : (tensor<4096x3072xbf16>, tensor<3072xbf16>) -> tensor<4096x3072xbf16>
  %1 = nn.gelu %0 approximate = tanh : tensor<4096x3072xbf16>
  return %0, %1 : tensor<4096x3072xbf16>, tensor<4096x3072xbf16>
}

func.func private @gelu_backward_4096x3072_bf16(%dy: tensor<4096x3072xbf16>, %x: tensor<4096x3072xbf16>)
    -> (tensor<4096x3072xbf16>, tensor<3072xf32>) {
  %0 = nn.gelu_backward %dy, %x approximate = tanh : tensor<4096x3072xbf16>
  %1 = nn.cast %0 : tensor<4096x3072xbf16> -> tensor<4096x3072xf32>
  %2 = nn.reduce_sum %1 axes = [0] : tensor<4096x3072xf32> -> tensor<3072xf32>
  return %0, %2 : tensor<4096x3072xbf16>, tensor<3072xf32>
}

func.func private @add_layer_norm_4096x768_bf16(%x: tensor<4096x768xbf16>, %a: tensor<4096x768xbf16>, %s: tensor<768xbf16>, %b: tensor<768xbf16>)
    -> (tensor<4096x768xbf16>, tensor<4096x768xbf16>, tensor<4096xf32>, tensor<4096xf32>) {
  %0 = nn.add %x, %a : (tensor<4096x768xbf16>, tensor<4096x768xbf16>) -> tensor<4096x768xbf16>
  %1:3 = nn.layer_norm %0, %s, %b epsilon = 1.0E-5 : (tensor<4096x768xbf16>, tensor<768xbf16>, tensor<768xbf16>) -> (tensor<4096x768xbf16>, tensor<4096xf32>, tensor<4096xf32>)
  return %0, %1#0, %1#1, %1#2 : tensor<4096x768xbf16>, tensor<4096x768xbf16>, tensor<4096xf32>, tensor<4096xf32>
}

func.func private @layer_norm_backward_add_reduce_sum_4096x768_bf16(%dy: tensor<4096x768xbf16>, %x: tensor<4096x768xbf16>, %s: tensor<768xbf16>, %m: tensor<4096xf32>, %r: tensor<4096xf32>, %d: tensor<4096x768xbf16>)
    -> (tensor<4096x768xbf16>, tensor<768xf32>, tensor<768xf32>, tensor<768xf32>) {
  %0:3 = nn.layer_norm_backward %dy, %x, %s, %m, %r
      : (tensor<4096x768xbf16>, tensor<4096x768xbf16>, tensor<768xbf16>, tensor<4096xf32>, tensor<4096xf32>) -> (tensor<4096x768xbf16>, tensor<768xf32>, tensor<768xf32>)
  %1 = nn.add %0#0, %d : (tensor<4096x768xbf16>, tensor<4096x768xbf16>) -> tensor<4096x768xbf16>
  %w = nn.cast %1 : tensor<4096x768xbf16> -> tensor<4096x768xf32>
  %2 = nn.reduce_sum %w axes = [0] : tensor<4096x768xf32> -> tensor<768xf32>
  return %1, %0#1, %0#2, %2 : tensor<4096x768xbf16>, tensor<768xf32>, tensor<768xf32>, tensor<768xf32>
}

func.func private @bias_slice_transpose_4x12x1024x64_bf16(%x: tensor<4x1024x2304xbf16>, %b: tensor<2304xbf16>)
    -> tensor<4x12x1024x64xbf16> {
  %0 = nn.add %x, %b : (tensor<4x1024x2304xbf16>, tensor<2304xbf16>) -> tensor<4x1024x2304xbf16>
  %1 = nn.slice %0 starts = [0, 0, 768] sizes = [4, 1024, 768] steps = [1, 1, 1] : tensor<4x1024x2304xbf16> -> tensor<4x1024x768xbf16>
  %2 = nn.reshape %1 : tensor<4x1024x768xbf16> -> tensor<4x1024x12x64xbf16>
  %3 = nn.transpose %2 permutation = [0, 2, 1, 3] : tensor<4x1024x12x64xbf16> -> tensor<4x12x1024x64xbf16>
  return %3 : tensor<4x12x1024x64xbf16>
}

func.func private @transpose_concat_reduce_sum_4x1024x2304_bf16(%q: tensor<4x12x1024x64xbf16>, %k: tensor<4x12x1024x64xbf16>, %v: tensor<4x12x1024x64xbf16>)
    -> (tensor<4x1024x2304xbf16>, tensor<2304xf32>) {
  %qt = nn.transpose %q permutation = [0, 2, 1, 3] : tensor<4x12x1024x64xbf16> -> tensor<4x1024x12x64xbf16>
  %qr = nn.reshape %qt : tensor<4x1024x12x64xbf16> -> tensor<4x1024x768xbf16>
  %kt = nn.transpose %k permutation = [0, 2, 1, 3] : tensor<4x12x1024x64xbf16> -> tensor<4x1024x12x64xbf16>
  %kr = nn.reshape %kt : tensor<4x1024x12x64xbf16> -> tensor<4x1024x768xbf16>
  %vt = nn.transpose %v permutation = [0, 2, 1, 3] : tensor<4x12x1024x64xbf16> -> tensor<4x1024x12x64xbf16>
  %vr = nn.reshape %vt : tensor<4x1024x12x64xbf16> -> tensor<4x1024x768xbf16>
  %c = nn.concat %qr, %kr, %vr axis = 2 : (tensor<4x1024x768xbf16>, tensor<4x1024x768xbf16>, tensor<4x1024x768xbf16>) -> tensor<4x1024x2304xbf16>
  %w = nn.cast %c : tensor<4x1024x2304xbf16> -> tensor<4x1024x2304xf32>
  %b = nn.reduce_sum %w axes = [0, 1] : tensor<4x1024x2304xf32> -> tensor<2304xf32>
  return %c, %b : tensor<4x1024x2304xbf16>, tensor<2304xf32>
}

func.func private @transpose_4x1024x12x64_bf16(%x: tensor<4x12x1024x64xbf16>)
    -> tensor<4x1024x12x64xbf16> {
  %0 = nn.transpose %x permutation = [0, 2, 1, 3] : tensor<4x12x1024x64xbf16> -> tensor<4x1024x12x64xbf16>
  return %0 : tensor<4x1024x12x64xbf16>
}

func.func private @transpose_4x64x12x1024_bf16(%x: tensor<4x12x1024x64xbf16>)
    -> tensor<4x12x64x1024xbf16> {
  %0 = nn.transpose %x permutation = [0, 1, 3, 2] : tensor<4x12x1024x64xbf16> -> tensor<4x12x64x1024xbf16>
  return %0 : tensor<4x12x64x1024xbf16>
}

func.func private @cross_entropy_and_gradient_4096x50304_bf16(%x: tensor<4096x50304xbf16>, %l: tensor<4096xi64>, %d: tensor<f32>)
    -> (tensor<f32>, tensor<4096xf32>, tensor<4096x50304xbf16>) {
  %0:3 = nn.softmax_cross_entropy %x, %l ignore_index = -100 : (tensor<4096x50304xbf16>, tensor<4096xi64>) -> (tensor<f32>, tensor<4096xf32>, tensor<4096xf32>)
  %1 = nn.softmax_cross_entropy_backward %d, %x, %l, %0#1, %0#2 ignore_index = -100 : (tensor<f32>, tensor<4096x50304xbf16>, tensor<4096xi64>, tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096x50304xbf16>
  return %0#0, %0#1, %1 : tensor<f32>, tensor<4096xf32>, tensor<4096x50304xbf16>
}

func.func private @masked_softmax_4x12x1024x1024_bf16(%x: tensor<4x12x1024x1024xbf16>)
    -> tensor<4x12x1024x1024xbf16> {
  %m = nn.causal_mask : tensor<1x1x1024x1024xi1>
  %low = nn.constant dense<-3.3895314E+38> : tensor<bf16>
  %0 = nn.where %m, %x, %low : (tensor<1x1x1024x1024xi1>, tensor<4x12x1024x1024xbf16>, tensor<bf16>) -> tensor<4x12x1024x1024xbf16>
  %1 = nn.softmax %0 : tensor<4x12x1024x1024xbf16>
  return %1 : tensor<4x12x1024x1024xbf16>
}

func.func private @softmax_backward_4x12x1024x1024_bf16(%dy: tensor<4x12x1024x1024xbf16>, %y: tensor<4x12x1024x1024xbf16>)
    -> tensor<4x12x1024x1024xbf16> {
  %0 = nn.softmax_backward %dy, %y : tensor<4x12x1024x1024xbf16>
  return %0 : tensor<4x12x1024x1024xbf16>
}

func.func private @batch_norm_relu_32x64x112x112(%x: tensor<32x64x112x112xf32>, %s: tensor<64xf32>, %b: tensor<64xf32>)
    -> (tensor<32x64x112x112xf32>, tensor<32x64x112x112xf32>, tensor<64xf32>, tensor<64xf32>) {
  %0:3 = nn.batch_norm %x, %s, %b epsilon = 1.0E-5 momentum = 0.9
      : (tensor<32x64x112x112xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<32x64x112x112xf32>, tensor<64xf32>, tensor<64xf32>)
  %1 = nn.relu %0#0 : tensor<32x64x112x112xf32>
  return %0#0, %1, %0#1, %0#2 : tensor<32x64x112x112xf32>, tensor<32x64x112x112xf32>, tensor<64xf32>, tensor<64xf32>
}

func.func private @batch_norm_backward_32x64x112x112(%dy: tensor<32x64x112x112xf32>, %x: tensor<32x64x112x112xf32>, %s: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>)
    -> (tensor<32x64x112x112xf32>, tensor<64xf32>, tensor<64xf32>) {
  %0:3 = nn.batch_norm_backward %dy, %x, %s, %m, %v epsilon = 1.0E-5
      : (tensor<32x64x112x112xf32>, tensor<32x64x112x112xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<32x64x112x112xf32>, tensor<64xf32>, tensor<64xf32>)
  return %0#0, %0#1, %0#2 : tensor<32x64x112x112xf32>, tensor<64xf32>, tensor<64xf32>
}

func.func private @batch_norm_relu_32x112x112x64(%x: tensor<32x112x112x64xf32>, %s: tensor<64xf32>, %b: tensor<64xf32>)
    -> (tensor<32x112x112x64xf32>, tensor<32x112x112x64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %0:3 = nn.batch_norm %x, %s, %b epsilon = 1.0E-5 momentum = 0.9 channels_last
      : (tensor<32x112x112x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<32x112x112x64xf32>, tensor<64xf32>, tensor<64xf32>)
  %1 = nn.relu %0#0 : tensor<32x112x112x64xf32>
  return %0#0, %1, %0#1, %0#2 : tensor<32x112x112x64xf32>, tensor<32x112x112x64xf32>, tensor<64xf32>, tensor<64xf32>
}

func.func private @batch_norm_backward_32x112x112x64(%dy: tensor<32x112x112x64xf32>, %x: tensor<32x112x112x64xf32>, %s: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>)
    -> (tensor<32x112x112x64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %0:3 = nn.batch_norm_backward %dy, %x, %s, %m, %v epsilon = 1.0E-5 channels_last
      : (tensor<32x112x112x64xf32>, tensor<32x112x112x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<32x112x112x64xf32>, tensor<64xf32>, tensor<64xf32>)
  return %0#0, %0#1, %0#2 : tensor<32x112x112x64xf32>, tensor<64xf32>, tensor<64xf32>
}

func.func private @batch_norm_relu_32x256x56x56(%x: tensor<32x256x56x56xf32>, %s: tensor<256xf32>, %b: tensor<256xf32>)
    -> (tensor<32x256x56x56xf32>, tensor<32x256x56x56xf32>, tensor<256xf32>, tensor<256xf32>) {
  %0:3 = nn.batch_norm %x, %s, %b epsilon = 1.0E-5 momentum = 0.9
      : (tensor<32x256x56x56xf32>, tensor<256xf32>, tensor<256xf32>) -> (tensor<32x256x56x56xf32>, tensor<256xf32>, tensor<256xf32>)
  %1 = nn.relu %0#0 : tensor<32x256x56x56xf32>
  return %0#0, %1, %0#1, %0#2 : tensor<32x256x56x56xf32>, tensor<32x256x56x56xf32>, tensor<256xf32>, tensor<256xf32>
}

func.func private @batch_norm_backward_32x256x56x56(%dy: tensor<32x256x56x56xf32>, %x: tensor<32x256x56x56xf32>, %s: tensor<256xf32>, %m: tensor<256xf32>, %v: tensor<256xf32>)
    -> (tensor<32x256x56x56xf32>, tensor<256xf32>, tensor<256xf32>) {
  %0:3 = nn.batch_norm_backward %dy, %x, %s, %m, %v epsilon = 1.0E-5
      : (tensor<32x256x56x56xf32>, tensor<32x256x56x56xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) -> (tensor<32x256x56x56xf32>, tensor<256xf32>, tensor<256xf32>)
  return %0#0, %0#1, %0#2 : tensor<32x256x56x56xf32>, tensor<256xf32>, tensor<256xf32>
}

func.func private @batch_norm_relu_32x2048x7x7(%x: tensor<32x2048x7x7xf32>, %s: tensor<2048xf32>, %b: tensor<2048xf32>)
    -> (tensor<32x2048x7x7xf32>, tensor<32x2048x7x7xf32>, tensor<2048xf32>, tensor<2048xf32>) {
  %0:3 = nn.batch_norm %x, %s, %b epsilon = 1.0E-5 momentum = 0.9
      : (tensor<32x2048x7x7xf32>, tensor<2048xf32>, tensor<2048xf32>) -> (tensor<32x2048x7x7xf32>, tensor<2048xf32>, tensor<2048xf32>)
  %1 = nn.relu %0#0 : tensor<32x2048x7x7xf32>
  return %0#0, %1, %0#1, %0#2 : tensor<32x2048x7x7xf32>, tensor<32x2048x7x7xf32>, tensor<2048xf32>, tensor<2048xf32>
}

func.func private @batch_norm_backward_32x2048x7x7(%dy: tensor<32x2048x7x7xf32>, %x: tensor<32x2048x7x7xf32>, %s: tensor<2048xf32>, %m: tensor<2048xf32>, %v: tensor<2048xf32>)
    -> (tensor<32x2048x7x7xf32>, tensor<2048xf32>, tensor<2048xf32>) {
  %0:3 = nn.batch_norm_backward %dy, %x, %s, %m, %v epsilon = 1.0E-5
      : (tensor<32x2048x7x7xf32>, tensor<32x2048x7x7xf32>, tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>) -> (tensor<32x2048x7x7xf32>, tensor<2048xf32>, tensor<2048xf32>)
  return %0#0, %0#1, %0#2 : tensor<32x2048x7x7xf32>, tensor<2048xf32>, tensor<2048xf32>
}

func.func private @reduce_mean_32x2048x7x7(%x: tensor<32x2048x7x7xf32>)
    -> tensor<32x2048xf32> {
  %0 = nn.reduce_mean %x axes = [2, 3] : tensor<32x2048x7x7xf32> -> tensor<32x2048xf32>
  return %0 : tensor<32x2048xf32>
}

func.func private @cross_entropy_and_gradient_32x1000(%x: tensor<32x1000xf32>, %l: tensor<32xi64>, %d: tensor<f32>)
    -> (tensor<f32>, tensor<32xf32>, tensor<32x1000xf32>) {
  %0:3 = nn.softmax_cross_entropy %x, %l ignore_index = -100 : (tensor<32x1000xf32>, tensor<32xi64>) -> (tensor<f32>, tensor<32xf32>, tensor<32xf32>)
  %1 = nn.softmax_cross_entropy_backward %d, %x, %l, %0#1, %0#2 ignore_index = -100 : (tensor<f32>, tensor<32x1000xf32>, tensor<32xi64>, tensor<32xf32>, tensor<32xf32>) -> tensor<32x1000xf32>
  return %0#0, %0#1, %1 : tensor<f32>, tensor<32xf32>, tensor<32x1000xf32>
}

func.func private @batch_norm_relu_32x112x112x64_bf16(%x: tensor<32x112x112x64xbf16>, %s: tensor<64xf32>, %b: tensor<64xf32>)
    -> (tensor<32x112x112x64xbf16>, tensor<32x112x112x64xbf16>, tensor<64xf32>, tensor<64xf32>) {
  %0:3 = nn.batch_norm %x, %s, %b epsilon = 1.0E-5 momentum = 0.9 channels_last
      : (tensor<32x112x112x64xbf16>, tensor<64xf32>, tensor<64xf32>) -> (tensor<32x112x112x64xbf16>, tensor<64xf32>, tensor<64xf32>)
  %1 = nn.relu %0#0 : tensor<32x112x112x64xbf16>
  return %0#0, %1, %0#1, %0#2 : tensor<32x112x112x64xbf16>, tensor<32x112x112x64xbf16>, tensor<64xf32>, tensor<64xf32>
}

func.func private @batch_norm_backward_32x112x112x64_bf16(%dy: tensor<32x112x112x64xbf16>, %x: tensor<32x112x112x64xbf16>, %s: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>)
    -> (tensor<32x112x112x64xbf16>, tensor<64xf32>, tensor<64xf32>) {
  %0:3 = nn.batch_norm_backward %dy, %x, %s, %m, %v epsilon = 1.0E-5 channels_last
      : (tensor<32x112x112x64xbf16>, tensor<32x112x112x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<32x112x112x64xbf16>, tensor<64xf32>, tensor<64xf32>)
  return %0#0, %0#1, %0#2 : tensor<32x112x112x64xbf16>, tensor<64xf32>, tensor<64xf32>
}

func.func private @batch_norm_relu_32x56x56x256_bf16(%x: tensor<32x56x56x256xbf16>, %s: tensor<256xf32>, %b: tensor<256xf32>)
    -> (tensor<32x56x56x256xbf16>, tensor<32x56x56x256xbf16>, tensor<256xf32>, tensor<256xf32>) {
  %0:3 = nn.batch_norm %x, %s, %b epsilon = 1.0E-5 momentum = 0.9 channels_last
      : (tensor<32x56x56x256xbf16>, tensor<256xf32>, tensor<256xf32>) -> (tensor<32x56x56x256xbf16>, tensor<256xf32>, tensor<256xf32>)
  %1 = nn.relu %0#0 : tensor<32x56x56x256xbf16>
  return %0#0, %1, %0#1, %0#2 : tensor<32x56x56x256xbf16>, tensor<32x56x56x256xbf16>, tensor<256xf32>, tensor<256xf32>
}

func.func private @batch_norm_backward_32x56x56x256_bf16(%dy: tensor<32x56x56x256xbf16>, %x: tensor<32x56x56x256xbf16>, %s: tensor<256xf32>, %m: tensor<256xf32>, %v: tensor<256xf32>)
    -> (tensor<32x56x56x256xbf16>, tensor<256xf32>, tensor<256xf32>) {
  %0:3 = nn.batch_norm_backward %dy, %x, %s, %m, %v epsilon = 1.0E-5 channels_last
      : (tensor<32x56x56x256xbf16>, tensor<32x56x56x256xbf16>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) -> (tensor<32x56x56x256xbf16>, tensor<256xf32>, tensor<256xf32>)
  return %0#0, %0#1, %0#2 : tensor<32x56x56x256xbf16>, tensor<256xf32>, tensor<256xf32>
}

func.func private @batch_norm_relu_32x7x7x2048_bf16(%x: tensor<32x7x7x2048xbf16>, %s: tensor<2048xf32>, %b: tensor<2048xf32>)
    -> (tensor<32x7x7x2048xbf16>, tensor<32x7x7x2048xbf16>, tensor<2048xf32>, tensor<2048xf32>) {
  %0:3 = nn.batch_norm %x, %s, %b epsilon = 1.0E-5 momentum = 0.9 channels_last
      : (tensor<32x7x7x2048xbf16>, tensor<2048xf32>, tensor<2048xf32>) -> (tensor<32x7x7x2048xbf16>, tensor<2048xf32>, tensor<2048xf32>)
  %1 = nn.relu %0#0 : tensor<32x7x7x2048xbf16>
  return %0#0, %1, %0#1, %0#2 : tensor<32x7x7x2048xbf16>, tensor<32x7x7x2048xbf16>, tensor<2048xf32>, tensor<2048xf32>
}

func.func private @batch_norm_backward_32x7x7x2048_bf16(%dy: tensor<32x7x7x2048xbf16>, %x: tensor<32x7x7x2048xbf16>, %s: tensor<2048xf32>, %m: tensor<2048xf32>, %v: tensor<2048xf32>)
    -> (tensor<32x7x7x2048xbf16>, tensor<2048xf32>, tensor<2048xf32>) {
  %0:3 = nn.batch_norm_backward %dy, %x, %s, %m, %v epsilon = 1.0E-5 channels_last
      : (tensor<32x7x7x2048xbf16>, tensor<32x7x7x2048xbf16>, tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>) -> (tensor<32x7x7x2048xbf16>, tensor<2048xf32>, tensor<2048xf32>)
  return %0#0, %0#1, %0#2 : tensor<32x7x7x2048xbf16>, tensor<2048xf32>, tensor<2048xf32>
}

func.func private @reduce_mean_32x7x7x2048_bf16(%x: tensor<32x7x7x2048xbf16>)
    -> tensor<32x2048xbf16> {
  %0 = nn.reduce_mean %x axes = [1, 2] : tensor<32x7x7x2048xbf16> -> tensor<32x2048xbf16>
  return %0 : tensor<32x2048xbf16>
}

func.func private @cross_entropy_and_gradient_32x1000_bf16(%x: tensor<32x1000xbf16>, %l: tensor<32xi64>, %d: tensor<f32>)
    -> (tensor<f32>, tensor<32xf32>, tensor<32x1000xbf16>) {
  %0:3 = nn.softmax_cross_entropy %x, %l ignore_index = -100 : (tensor<32x1000xbf16>, tensor<32xi64>) -> (tensor<f32>, tensor<32xf32>, tensor<32xf32>)
  %1 = nn.softmax_cross_entropy_backward %d, %x, %l, %0#1, %0#2 ignore_index = -100 : (tensor<f32>, tensor<32x1000xbf16>, tensor<32xi64>, tensor<32xf32>, tensor<32xf32>) -> tensor<32x1000xbf16>
  return %0#0, %0#1, %1 : tensor<f32>, tensor<32xf32>, tensor<32x1000xbf16>
}

func.func private @adamw_124439808(%w: tensor<124439808xf32>, %g: tensor<124439808xf32>, %m: tensor<124439808xf32>, %v: tensor<124439808xf32>, %h: tensor<4xf32>)
    -> (tensor<124439808xf32> {nn.in_place = 0 : i64}, tensor<124439808xf32> {nn.in_place = 1 : i64}, tensor<124439808xf32> {nn.in_place = 2 : i64}, tensor<124439808xf32> {nn.in_place = 3 : i64}) {
  %0:3 = nn.update %w, %g states %m, %v scalars %h
      by <adamw beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1>
      : (tensor<124439808xf32>, tensor<124439808xf32>, tensor<124439808xf32>, tensor<124439808xf32>, tensor<4xf32>) -> (tensor<124439808xf32>, tensor<124439808xf32>, tensor<124439808xf32>)
  %z = nn.constant dense<0.0> : tensor<124439808xf32>
  return %0#0, %z, %0#1, %0#2 : tensor<124439808xf32>, tensor<124439808xf32>, tensor<124439808xf32>, tensor<124439808xf32>
}

func.func private @adamw_bf16_124439808(%w: tensor<124439808xf32>, %g: tensor<124439808xf32>, %m: tensor<124439808xf32>, %v: tensor<124439808xf32>, %h: tensor<4xf32>)
    -> (tensor<124439808xf32> {nn.in_place = 0 : i64}, tensor<124439808xf32> {nn.in_place = 1 : i64}, tensor<124439808xf32> {nn.in_place = 2 : i64}, tensor<124439808xf32> {nn.in_place = 3 : i64}, tensor<124439808xbf16>) {
  %0:3 = nn.update %w, %g states %m, %v scalars %h
      by <adamw beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1>
      : (tensor<124439808xf32>, tensor<124439808xf32>, tensor<124439808xf32>, tensor<124439808xf32>, tensor<4xf32>) -> (tensor<124439808xf32>, tensor<124439808xf32>, tensor<124439808xf32>)
  %z = nn.constant dense<0.0> : tensor<124439808xf32>
  %l = nn.cast %0#0 : tensor<124439808xf32> -> tensor<124439808xbf16>
  return %0#0, %z, %0#1, %0#2, %l : tensor<124439808xf32>, tensor<124439808xf32>, tensor<124439808xf32>, tensor<124439808xf32>, tensor<124439808xbf16>
}

func.func private @sgd_25557032(%w: tensor<25557032xf32>, %g: tensor<25557032xf32>, %p: tensor<25557032xf32>, %h: tensor<4xf32>)
    -> (tensor<25557032xf32> {nn.in_place = 0 : i64}, tensor<25557032xf32> {nn.in_place = 1 : i64}, tensor<25557032xf32> {nn.in_place = 2 : i64}) {
  %0:2 = nn.update %w, %g states %p scalars %h
      by <sgd momentum = 0.9, weight_decay = 1.0e-4>
      : (tensor<25557032xf32>, tensor<25557032xf32>, tensor<25557032xf32>, tensor<4xf32>) -> (tensor<25557032xf32>, tensor<25557032xf32>)
  %z = nn.constant dense<0.0> : tensor<25557032xf32>
  return %0#0, %z, %0#1 : tensor<25557032xf32>, tensor<25557032xf32>, tensor<25557032xf32>
}
func.func private @accumulate_25557032(%g: tensor<25557032xf32>, %x: tensor<25557032xf32>)
    -> (tensor<25557032xf32> {nn.in_place = 0 : i64}) {
  %0 = nn.add %g, %x : (tensor<25557032xf32>, tensor<25557032xf32>) -> tensor<25557032xf32>
  return %0 : tensor<25557032xf32>
}
