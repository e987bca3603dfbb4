// RUN: pipewright-opt %s --call-pack-attention | FileCheck %s
// RUN: pipewright-opt %s --call-pack-attention --call-pack-attention | FileCheck %s
// RUN: pipewright-opt %s --call-pack-attention=cached | FileCheck %s --check-prefix=CACHED

// Slices of one product, each reshaped and transposed, as GPT-2 is exported.
// CHECK-LABEL: func @sliced_then_transposed
// CHECK-SAME:    %[[X:.*]]: tensor<2x32x192xbf16>
// CHECK-NEXT:    %[[QKV:.*]] = nn.reshape %[[X]] : tensor<2x32x192xbf16> -> tensor<2x32x3x4x16xbf16>
// CHECK-NEXT:    %[[O:.*]], %{{.*}} = call.packed_attention %[[QKV]] scale = 2.500000e-01 causal dropout_rate = 1.000000e-01 dropout_id = 3 : (tensor<2x32x3x4x16xbf16>) -> (tensor<2x32x4x16xbf16>, tensor<2x4x32x2xf32>)
// CHECK-NEXT:    %[[Y:.*]] = nn.reshape %[[O]] : tensor<2x32x4x16xbf16> -> tensor<2x32x64xbf16>
// CHECK-NEXT:    return %[[Y]]
func.func @sliced_then_transposed(%x: tensor<2x32x192xbf16>) -> tensor<2x32x64xbf16> {
  %0 = nn.slice %x starts = [0, 0, 0] sizes = [2, 32, 64] steps = [1, 1, 1] : tensor<2x32x192xbf16> -> tensor<2x32x64xbf16>
  %1 = nn.slice %x starts = [0, 0, 64] sizes = [2, 32, 64] steps = [1, 1, 1] : tensor<2x32x192xbf16> -> tensor<2x32x64xbf16>
  %2 = nn.slice %x starts = [0, 0, 128] sizes = [2, 32, 64] steps = [1, 1, 1] : tensor<2x32x192xbf16> -> tensor<2x32x64xbf16>
  %3 = nn.reshape %0 : tensor<2x32x64xbf16> -> tensor<2x32x4x16xbf16>
  %4 = nn.reshape %1 : tensor<2x32x64xbf16> -> tensor<2x32x4x16xbf16>
  %5 = nn.reshape %2 : tensor<2x32x64xbf16> -> tensor<2x32x4x16xbf16>
  %q = nn.transpose %3 permutation = [0, 2, 1, 3] : tensor<2x32x4x16xbf16> -> tensor<2x4x32x16xbf16>
  %k = nn.transpose %4 permutation = [0, 2, 1, 3] : tensor<2x32x4x16xbf16> -> tensor<2x4x32x16xbf16>
  %v = nn.transpose %5 permutation = [0, 2, 1, 3] : tensor<2x32x4x16xbf16> -> tensor<2x4x32x16xbf16>
  %o, %stats = nn.attention %q, %k, %v scale = 0.25 causal dropout_rate = 0.1 dropout_id = 3 : (tensor<2x4x32x16xbf16>, tensor<2x4x32x16xbf16>, tensor<2x4x32x16xbf16>) -> (tensor<2x4x32x16xbf16>, tensor<2x4x32x2xf32>)
  %6 = nn.transpose %o permutation = [0, 2, 1, 3] : tensor<2x4x32x16xbf16> -> tensor<2x32x4x16xbf16>
  %7 = nn.reshape %6 : tensor<2x32x4x16xbf16> -> tensor<2x32x64xbf16>
  return %7 : tensor<2x32x64xbf16>
}

// One transposition of all, then slices, as vision transformers are written.
// Without a transposition behind it the result is transposed.
// CHECK-LABEL: func @transposed_then_sliced
// CHECK-SAME:    %[[X:.*]]: tensor<2x8x48xf32>, %[[M:.*]]: tensor<2x1x1x8xf32>
// CHECK-NEXT:    %[[QKV:.*]] = nn.reshape %[[X]] : tensor<2x8x48xf32> -> tensor<2x8x3x4x4xf32>
// CHECK-NEXT:    %[[O:.*]], %{{.*}} = call.packed_attention %[[QKV]] mask %[[M]] scale = 5.000000e-01 dropout_rate = 0.000000e+00 dropout_id = 0
// CHECK-NEXT:    %[[Y:.*]] = nn.transpose %[[O]] permutation = [0, 2, 1, 3] : tensor<2x8x4x4xf32> -> tensor<2x4x8x4xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @transposed_then_sliced(%x: tensor<2x8x48xf32>, %m: tensor<2x1x1x8xf32>) -> tensor<2x4x8x4xf32> {
  %0 = nn.reshape %x : tensor<2x8x48xf32> -> tensor<2x8x3x4x4xf32>
  %1 = nn.transpose %0 permutation = [2, 0, 3, 1, 4] : tensor<2x8x3x4x4xf32> -> tensor<3x2x4x8x4xf32>
  %2 = nn.slice %1 starts = [0, 0, 0, 0, 0] sizes = [1, 2, 4, 8, 4] steps = [1, 1, 1, 1, 1] : tensor<3x2x4x8x4xf32> -> tensor<1x2x4x8x4xf32>
  %3 = nn.slice %1 starts = [1, 0, 0, 0, 0] sizes = [1, 2, 4, 8, 4] steps = [1, 1, 1, 1, 1] : tensor<3x2x4x8x4xf32> -> tensor<1x2x4x8x4xf32>
  %4 = nn.slice %1 starts = [2, 0, 0, 0, 0] sizes = [1, 2, 4, 8, 4] steps = [1, 1, 1, 1, 1] : tensor<3x2x4x8x4xf32> -> tensor<1x2x4x8x4xf32>
  %q = nn.reshape %2 : tensor<1x2x4x8x4xf32> -> tensor<2x4x8x4xf32>
  %k = nn.reshape %3 : tensor<1x2x4x8x4xf32> -> tensor<2x4x8x4xf32>
  %v = nn.reshape %4 : tensor<1x2x4x8x4xf32> -> tensor<2x4x8x4xf32>
  %o, %stats = nn.attention %q, %k, %v mask %m scale = 0.5 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>, tensor<2x1x1x8xf32>) -> (tensor<2x4x8x4xf32>, tensor<2x4x8x2xf32>)
  return %o : tensor<2x4x8x4xf32>
}

// Three products, as BERT has them.
// CHECK-LABEL: func @products_of_their_own
// CHECK-SAME:    %[[A:.*]]: tensor<2x8x16xf32>, %[[B:.*]]: tensor<2x8x16xf32>, %[[C:.*]]: tensor<2x8x16xf32>
// CHECK-DAG:     %[[Q:.*]] = nn.reshape %[[A]] : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
// CHECK-DAG:     %[[K:.*]] = nn.reshape %[[B]] : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
// CHECK-DAG:     %[[V:.*]] = nn.reshape %[[C]] : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
// CHECK:         %[[O:.*]], %{{.*}} = call.attention %[[Q]], %[[K]], %[[V]] scale = 5.000000e-01 dropout_rate = 0.000000e+00 dropout_id = 0
// CHECK-SAME:      -> (tensor<2x8x4x4xf32>, tensor<2x4x8x2xf32>)
// CHECK-NEXT:    return %[[O]]
func.func @products_of_their_own(%a: tensor<2x8x16xf32>, %b: tensor<2x8x16xf32>, %c: tensor<2x8x16xf32>) -> tensor<2x8x4x4xf32> {
  %0 = nn.reshape %a : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %1 = nn.reshape %b : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %2 = nn.reshape %c : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %q = nn.transpose %0 permutation = [0, 2, 1, 3] : tensor<2x8x4x4xf32> -> tensor<2x4x8x4xf32>
  %k = nn.transpose %1 permutation = [0, 2, 1, 3] : tensor<2x8x4x4xf32> -> tensor<2x4x8x4xf32>
  %v = nn.transpose %2 permutation = [0, 2, 1, 3] : tensor<2x8x4x4xf32> -> tensor<2x4x8x4xf32>
  %o, %stats = nn.attention %q, %k, %v scale = 0.5 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>) -> (tensor<2x4x8x4xf32>, tensor<2x4x8x2xf32>)
  %3 = nn.transpose %o permutation = [0, 2, 1, 3] : tensor<2x4x8x4xf32> -> tensor<2x8x4x4xf32>
  return %3 : tensor<2x8x4x4xf32>
}

// k and v have fewer heads than q, and shorter rows.
// CHECK-LABEL: func @fewer_key_heads
// CHECK-NOT:     nn.transpose
// CHECK:         call.attention {{.*}} scale = 5.000000e-01 dropout_rate = 0.000000e+00 dropout_id = 0 : (tensor<2x8x4x4xf32>, tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>) -> (tensor<2x8x4x4xf32>, tensor<2x4x8x2xf32>)
// CHECK-NEXT:    return
func.func @fewer_key_heads(%a: tensor<2x8x16xf32>, %b: tensor<2x8x8xf32>) -> tensor<2x8x4x4xf32> {
  %0 = nn.reshape %a : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %1 = nn.reshape %b : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
  %q = nn.transpose %0 permutation = [0, 2, 1, 3] : tensor<2x8x4x4xf32> -> tensor<2x4x8x4xf32>
  %k = nn.transpose %1 permutation = [0, 2, 1, 3] : tensor<2x8x2x4xf32> -> tensor<2x2x8x4xf32>
  %o, %stats = nn.attention %q, %k, %k scale = 0.5 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x4x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>) -> (tensor<2x4x8x4xf32>, tensor<2x4x8x2xf32>)
  %2 = nn.transpose %o permutation = [0, 2, 1, 3] : tensor<2x4x8x4xf32> -> tensor<2x8x4x4xf32>
  return %2 : tensor<2x8x4x4xf32>
}

// Slices that are not the thirds of rows in their order: k comes first. The
// slices stay, and only the transpositions go.
// CHECK-LABEL: func @thirds_in_another_order
// CHECK-COUNT-3: nn.slice
// CHECK-NOT:     nn.transpose
// CHECK:         call.attention {{.*}}
func.func @thirds_in_another_order(%x: tensor<2x8x48xf32>) -> tensor<2x8x4x4xf32> {
  %0 = nn.slice %x starts = [0, 0, 16] sizes = [2, 8, 16] steps = [1, 1, 1] : tensor<2x8x48xf32> -> tensor<2x8x16xf32>
  %1 = nn.slice %x starts = [0, 0, 0] sizes = [2, 8, 16] steps = [1, 1, 1] : tensor<2x8x48xf32> -> tensor<2x8x16xf32>
  %2 = nn.slice %x starts = [0, 0, 32] sizes = [2, 8, 16] steps = [1, 1, 1] : tensor<2x8x48xf32> -> tensor<2x8x16xf32>
  %3 = nn.reshape %0 : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %4 = nn.reshape %1 : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %5 = nn.reshape %2 : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %q = nn.transpose %3 permutation = [0, 2, 1, 3] : tensor<2x8x4x4xf32> -> tensor<2x4x8x4xf32>
  %k = nn.transpose %4 permutation = [0, 2, 1, 3] : tensor<2x8x4x4xf32> -> tensor<2x4x8x4xf32>
  %v = nn.transpose %5 permutation = [0, 2, 1, 3] : tensor<2x8x4x4xf32> -> tensor<2x4x8x4xf32>
  %o, %stats = nn.attention %q, %k, %v scale = 0.5 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>) -> (tensor<2x4x8x4xf32>, tensor<2x4x8x2xf32>)
  %6 = nn.transpose %o permutation = [0, 2, 1, 3] : tensor<2x4x8x4xf32> -> tensor<2x8x4x4xf32>
  return %6 : tensor<2x8x4x4xf32>
}

// Heads between the parts, [B, T, H, 3, D]: no strides of ours.
// CHECK-LABEL: func @parts_within_heads
// CHECK:         nn.attention {{.*}} scale = 5.000000e-01 dropout_rate
func.func @parts_within_heads(%x: tensor<2x8x4x3x4xf32>) -> tensor<2x4x8x4xf32> {
  %0 = nn.transpose %x permutation = [3, 0, 2, 1, 4] : tensor<2x8x4x3x4xf32> -> tensor<3x2x4x8x4xf32>
  %1 = nn.slice %0 starts = [0, 0, 0, 0, 0] sizes = [1, 2, 4, 8, 4] steps = [1, 1, 1, 1, 1] : tensor<3x2x4x8x4xf32> -> tensor<1x2x4x8x4xf32>
  %2 = nn.slice %0 starts = [1, 0, 0, 0, 0] sizes = [1, 2, 4, 8, 4] steps = [1, 1, 1, 1, 1] : tensor<3x2x4x8x4xf32> -> tensor<1x2x4x8x4xf32>
  %3 = nn.slice %0 starts = [2, 0, 0, 0, 0] sizes = [1, 2, 4, 8, 4] steps = [1, 1, 1, 1, 1] : tensor<3x2x4x8x4xf32> -> tensor<1x2x4x8x4xf32>
  %q = nn.reshape %1 : tensor<1x2x4x8x4xf32> -> tensor<2x4x8x4xf32>
  %k = nn.reshape %2 : tensor<1x2x4x8x4xf32> -> tensor<2x4x8x4xf32>
  %v = nn.reshape %3 : tensor<1x2x4x8x4xf32> -> tensor<2x4x8x4xf32>
  %o, %stats = nn.attention %q, %k, %v scale = 0.5 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>) -> (tensor<2x4x8x4xf32>, tensor<2x4x8x2xf32>)
  return %o : tensor<2x4x8x4xf32>
}

// k is transposed for somebody else, too.
// CHECK-LABEL: func @transposed_for_others
// CHECK:         nn.attention {{.*}} scale = 5.000000e-01 dropout_rate
func.func @transposed_for_others(%a: tensor<2x8x4x4xf32>) -> (tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>) {
  %q = nn.transpose %a permutation = [0, 2, 1, 3] : tensor<2x8x4x4xf32> -> tensor<2x4x8x4xf32>
  %o, %stats = nn.attention %q, %q, %q scale = 0.5 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>) -> (tensor<2x4x8x4xf32>, tensor<2x4x8x2xf32>)
  return %o, %q : tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>
}

// Nothing is moved, and a reshape that no strides undo.
// CHECK-LABEL: func @nothing_is_transposed
// CHECK:         nn.attention {{.*}} scale = 5.000000e-01 dropout_rate
func.func @nothing_is_transposed(%a: tensor<8x32xf32>, %b: tensor<4x8x2x4xf32>) -> tensor<2x4x8x4xf32> {
  %q = nn.reshape %a : tensor<8x32xf32> -> tensor<2x4x8x4xf32>
  %0 = nn.transpose %b permutation = [1, 2, 0, 3] : tensor<4x8x2x4xf32> -> tensor<8x2x4x4xf32>
  %1 = nn.reshape %0 : tensor<8x2x4x4xf32> -> tensor<2x4x8x4xf32>
  %o, %stats = nn.attention %q, %q, %1 scale = 0.5 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>) -> (tensor<2x4x8x4xf32>, tensor<2x4x8x2xf32>)
  return %o : tensor<2x4x8x4xf32>
}

// The same tensor three times; one sample.
// CHECK-LABEL: func @one_tensor_for_all
// CHECK-SAME:    %[[A:.*]]: tensor<8x16xf32>
// CHECK-NEXT:    %[[X:.*]] = nn.reshape %[[A]] : tensor<8x16xf32> -> tensor<1x8x4x4xf32>
// CHECK:         call.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 5.000000e-01
func.func @one_tensor_for_all(%a: tensor<8x16xf32>) -> tensor<1x8x4x4xf32> {
  %0 = nn.reshape %a : tensor<8x16xf32> -> tensor<8x4x4xf32>
  %1 = nn.transpose %0 permutation = [1, 0, 2] : tensor<8x4x4xf32> -> tensor<4x8x4xf32>
  %q = nn.reshape %1 : tensor<4x8x4xf32> -> tensor<1x4x8x4xf32>
  %o, %stats = nn.attention %q, %q, %q scale = 0.5 dropout_rate = 0.0 dropout_id = 0 : (tensor<1x4x8x4xf32>, tensor<1x4x8x4xf32>, tensor<1x4x8x4xf32>) -> (tensor<1x4x8x4xf32>, tensor<1x4x8x2xf32>)
  %3 = nn.transpose %o permutation = [0, 2, 1, 3] : tensor<1x4x8x4xf32> -> tensor<1x8x4x4xf32>
  return %3 : tensor<1x8x4x4xf32>
}

// 65 vectors of four lines, 576 elements apart, are in all 64 sets of a first-level cache, and fit.
// CHECK-LABEL:  func @vectors_in_the_cache
// CHECK:          call.packed_attention
// CACHED-LABEL: func @vectors_in_the_cache
// CACHED:         call.packed_attention
func.func @vectors_in_the_cache(%x: tensor<2x65x3x3x64xf32>) -> tensor<2x3x65x64xf32> {
  %0 = nn.transpose %x permutation = [2, 0, 3, 1, 4] : tensor<2x65x3x3x64xf32> -> tensor<3x2x3x65x64xf32>
  %1 = nn.slice %0 starts = [0, 0, 0, 0, 0] sizes = [1, 2, 3, 65, 64] steps = [1, 1, 1, 1, 1] : tensor<3x2x3x65x64xf32> -> tensor<1x2x3x65x64xf32>
  %2 = nn.slice %0 starts = [1, 0, 0, 0, 0] sizes = [1, 2, 3, 65, 64] steps = [1, 1, 1, 1, 1] : tensor<3x2x3x65x64xf32> -> tensor<1x2x3x65x64xf32>
  %3 = nn.slice %0 starts = [2, 0, 0, 0, 0] sizes = [1, 2, 3, 65, 64] steps = [1, 1, 1, 1, 1] : tensor<3x2x3x65x64xf32> -> tensor<1x2x3x65x64xf32>
  %q = nn.reshape %1 : tensor<1x2x3x65x64xf32> -> tensor<2x3x65x64xf32>
  %k = nn.reshape %2 : tensor<1x2x3x65x64xf32> -> tensor<2x3x65x64xf32>
  %v = nn.reshape %3 : tensor<1x2x3x65x64xf32> -> tensor<2x3x65x64xf32>
  %o, %stats = nn.attention %q, %k, %v scale = 0.125 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x3x65x64xf32>, tensor<2x3x65x64xf32>, tensor<2x3x65x64xf32>) -> (tensor<2x3x65x64xf32>, tensor<2x3x65x2xf32>)
  return %o : tensor<2x3x65x64xf32>
}

// 130 need more than eight lines of each set.
// CHECK-LABEL:  func @too_many_vectors
// CHECK:          call.packed_attention
// CACHED-LABEL: func @too_many_vectors
// CACHED:         nn.attention
func.func @too_many_vectors(%x: tensor<2x130x3x3x64xf32>) -> tensor<2x3x130x64xf32> {
  %0 = nn.transpose %x permutation = [2, 0, 3, 1, 4] : tensor<2x130x3x3x64xf32> -> tensor<3x2x3x130x64xf32>
  %1 = nn.slice %0 starts = [0, 0, 0, 0, 0] sizes = [1, 2, 3, 130, 64] steps = [1, 1, 1, 1, 1] : tensor<3x2x3x130x64xf32> -> tensor<1x2x3x130x64xf32>
  %2 = nn.slice %0 starts = [1, 0, 0, 0, 0] sizes = [1, 2, 3, 130, 64] steps = [1, 1, 1, 1, 1] : tensor<3x2x3x130x64xf32> -> tensor<1x2x3x130x64xf32>
  %3 = nn.slice %0 starts = [2, 0, 0, 0, 0] sizes = [1, 2, 3, 130, 64] steps = [1, 1, 1, 1, 1] : tensor<3x2x3x130x64xf32> -> tensor<1x2x3x130x64xf32>
  %q = nn.reshape %1 : tensor<1x2x3x130x64xf32> -> tensor<2x3x130x64xf32>
  %k = nn.reshape %2 : tensor<1x2x3x130x64xf32> -> tensor<2x3x130x64xf32>
  %v = nn.reshape %3 : tensor<1x2x3x130x64xf32> -> tensor<2x3x130x64xf32>
  %o, %stats = nn.attention %q, %k, %v scale = 0.125 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x3x130x64xf32>, tensor<2x3x130x64xf32>, tensor<2x3x130x64xf32>) -> (tensor<2x3x130x64xf32>, tensor<2x3x130x2xf32>)
  return %o : tensor<2x3x130x64xf32>
}

// 65 that are 1024 elements apart share four sets.
// CHECK-LABEL:  func @vectors_in_the_same_sets
// CHECK:          call.attention
// CACHED-LABEL: func @vectors_in_the_same_sets
// CACHED:         nn.attention
func.func @vectors_in_the_same_sets(%a: tensor<2x65x16x64xf32>, %b: tensor<2x65x16x64xf32>, %c: tensor<2x65x16x64xf32>) -> tensor<2x16x65x64xf32> {
  %q = nn.transpose %a permutation = [0, 2, 1, 3] : tensor<2x65x16x64xf32> -> tensor<2x16x65x64xf32>
  %k = nn.transpose %b permutation = [0, 2, 1, 3] : tensor<2x65x16x64xf32> -> tensor<2x16x65x64xf32>
  %v = nn.transpose %c permutation = [0, 2, 1, 3] : tensor<2x65x16x64xf32> -> tensor<2x16x65x64xf32>
  %o, %stats = nn.attention %q, %k, %v scale = 0.125 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x16x65x64xf32>, tensor<2x16x65x64xf32>, tensor<2x16x65x64xf32>) -> (tensor<2x16x65x64xf32>, tensor<2x16x65x2xf32>)
  return %o : tensor<2x16x65x64xf32>
}
