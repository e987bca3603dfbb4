// RUN: pipewright-opt %s --split-input-file --kernel-fuse-rows --verify-diagnostics

func.func @pad(%x: tensor<4xf32>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{is not understood by kernel fusion}}
  %0 = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<4xf32> to tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
#all = affine_map<(d0) -> ()>
func.func @product(%x: tensor<40xf32>) -> tensor<f32> {
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%one : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  // expected-error @below {{expects a sum or a maximum over rows}}
  %0 = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction"]}
      ins(%x : tensor<40xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %total: f32):
    %p = arith.mulf %total, %a : f32
    linalg.yield %p : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @below {{expects tensors as kernel arguments, but got 'f32'}}
func.func @scalar(%x: f32) -> tensor<4xf32> {
  %0 = tensor.empty() : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// The second pass needs what the first one has overwritten.
#id = affine_map<(d0) -> (d0)>
#all = affine_map<(d0) -> ()>
// expected-error @below {{reads argument 0 again when a result has been written to it}}
func.func @overwritten(%x: tensor<40xf32>) -> (tensor<40xf32> {nn.in_place = 0 : i64}, tensor<40xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<40xf32>
  %twice = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<40xf32>) outs(%empty : tensor<40xf32>) {
  ^bb0(%a: f32, %old: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<40xf32>
  %scalar = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction"]}
      ins(%twice : tensor<40xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %total: f32):
    %p = arith.addf %total, %a : f32
    linalg.yield %p : f32
  } -> tensor<f32>
  %shifted = linalg.generic {indexing_maps = [#id, #all, #id], iterator_types = ["parallel"]}
      ins(%x, %sum : tensor<40xf32>, tensor<f32>) outs(%empty : tensor<40xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<40xf32>
  return %twice, %shifted : tensor<40xf32>, tensor<40xf32>
}
