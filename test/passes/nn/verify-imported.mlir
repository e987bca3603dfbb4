// RUN: pipewright-opt %s --split-input-file --verify-diagnostics --nn-verify-imported

// What the frontends make is accepted.
nn.weight @w role = parameter : tensor<8xf32>
func.func @model(%x: tensor<8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}, tensor<8xf32> {nn.name = "y"}) {
  %w = nn.parameter @w : tensor<8xf32>
  %0 = nn.mul %x, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = nn.reduce_mean %0 axes = [0] : tensor<8xf32> -> tensor<f32>
  return %1, %0 : tensor<f32>, tensor<8xf32>
}

// -----

// expected-error @below {{expects a function '@model', but has none}}
module {
}

// -----

module {
  // expected-error @below {{'func.func' op is not allowed in an imported module, which holds 'nn.weight' and one function '@model'}}
  func.func private @helper()
  func.func @model(%x: tensor<f32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
    return %x : tensor<f32>
  }
}

// -----

// expected-error @below {{expects the loss as its first result, but has no results}}
func.func @model() {
  return
}

// -----

// expected-error @below {{expects its first result, the loss, to be 'tensor<f32>', but got 'tensor<4xf32>'}}
func.func @model(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "loss"}) {
  return %x : tensor<4xf32>
}

// -----

// Every violation is reported.
// expected-error @below {{expects argument 0 to have an 'nn.name'}}
// expected-error @below {{has two arguments named "x"}}
// expected-error @below {{expects result 0 to have an 'nn.name'}}
func.func @model(%a: tensor<f32>, %b: tensor<f32> {nn.name = "x"}, %c: tensor<f32> {nn.name = "x"}) -> tensor<f32> {
  return %a : tensor<f32>
}

// -----

nn.weight @w role = parameter : tensor<f32>
func.func @model(%x: tensor<f32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  // expected-error @below {{'nn.accumulate_gradient' op does not occur before a model is differentiated}}
  nn.accumulate_gradient @w, %x : tensor<f32>
  // expected-error @below {{'arith.addf' op is not allowed in '@model', which holds nn and call ops that compute}}
  %0 = arith.addf %x, %x : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// A model may say what is counted: these very labels.
module attributes {nn.counted_inputs = {n = {ignored = -1 : i64, labels = "t", ranges = array<i64: 1, 3>}}} {
  func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}, %t: tensor<2x4xi64> {nn.name = "t"}, %n: tensor<f32> {nn.name = "n"}) -> (tensor<f32> {nn.name = "loss"}) {
    %0 = nn.slice %t starts = [0, 1] sizes = [2, 2] steps = [1, 1] : tensor<2x4xi64> -> tensor<2x2xi64>
    %1 = nn.reshape %0 : tensor<2x2xi64> -> tensor<4xi64>
    %a:3 = nn.softmax_cross_entropy %x, %1 divisor %n ignore_index = -1 : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    return %a#0 : tensor<f32>
  }
}

// -----

// Labels that are counted but not read, by place and by value.
module attributes {nn.counted_inputs = {m = {ignored = 0 : i64, labels = "t", ranges = array<i64: 0, 1>}, n = {ignored = -1 : i64, labels = "t", ranges = array<i64: 0, 1>}}} {
  func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}, %t: tensor<4x2xi64> {nn.name = "t"}, %n: tensor<f32> {nn.name = "n"}, %m: tensor<f32> {nn.name = "m"}, %c: tensor<4xi1> {nn.name = "c"}) -> (tensor<f32> {nn.name = "loss"}) {
    %0 = nn.slice %t starts = [0, 1] sizes = [4, 1] steps = [1, 1] : tensor<4x2xi64> -> tensor<4x1xi64>
    %1 = nn.reshape %0 : tensor<4x1xi64> -> tensor<4xi64>
    // expected-error @below {{divides by "n", but 'nn.counted_inputs' counts other labels for it than the loss reads}}
    %a:3 = nn.softmax_cross_entropy %x, %1 divisor %n ignore_index = -1 : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %2 = nn.slice %t starts = [0, 0] sizes = [4, 1] steps = [1, 1] : tensor<4x2xi64> -> tensor<4x1xi64>
    %3 = nn.reshape %2 : tensor<4x1xi64> -> tensor<4xi64>
    // expected-error @below {{divides by "m", but 'nn.counted_inputs' counts other labels for it than the loss reads}}
    %b:3 = nn.softmax_cross_entropy %x, %3 divisor %m ignore_index = -1 : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %none = nn.constant dense<-1> : tensor<i64>
    %4 = nn.where %c, %3, %none : (tensor<4xi1>, tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
    // expected-error @below {{divides by "n", but 'nn.counted_inputs' counts other labels for it than the loss reads}}
    %d:3 = nn.softmax_cross_entropy %x, %4 divisor %n ignore_index = -1 : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    return %a#0 : tensor<f32>
  }
}

// -----

// Ranges lie in a row of the labels, which exist, in order.
// expected-error @below {{'nn.counted_inputs' of 'a' expects ranges in ascending order, without overlaps, within the 4 elements of a row of 't', but got 0 to 1000000000}}
// expected-error @below {{'nn.counted_inputs' of 'b' expects ranges in ascending order, without overlaps, within the 4 elements of a row of 't', but got -8 to 1}}
// expected-error @below {{'nn.counted_inputs' of 'c' expects ranges in ascending order, without overlaps, within the 4 elements of a row of 't', but got 1 to 3}}
// expected-error @below {{'nn.counted_inputs' of 'd' expects ranges in ascending order, without overlaps, within the 4 elements of a row of 't', but got 2 to 2}}
// expected-error @below {{'nn.counted_inputs' of 'e' expects an argument 'u' of rank 1 or more and element type i64, to count its labels}}
// expected-error @below {{'nn.counted_inputs' of 'f' expects an argument 'x' of rank 1 or more and element type i64, to count its labels}}
// expected-error @below {{'nn.counted_inputs' of 'nobody' expects an argument of this name and type 'tensor<f32>'}}
// expected-error @below {{'nn.counted_inputs' of 't' expects an argument of this name and type 'tensor<f32>'}}
module attributes {nn.counted_inputs = {
    a = {ignored = -1 : i64, labels = "t", ranges = array<i64: 0, 1000000000>},
    b = {ignored = -1 : i64, labels = "t", ranges = array<i64: -8, 1>},
    c = {ignored = -1 : i64, labels = "t", ranges = array<i64: 0, 2, 1, 3>},
    d = {ignored = -1 : i64, labels = "t", ranges = array<i64: 2, 2>},
    e = {ignored = -1 : i64, labels = "u", ranges = array<i64: 0, 1>},
    f = {ignored = -1 : i64, labels = "x", ranges = array<i64: 0, 1>},
    nobody = {ignored = -1 : i64, labels = "t", ranges = array<i64: 0, 1>},
    t = {ignored = -1 : i64, labels = "t", ranges = array<i64: 0, 1>}}} {
  func.func @model(%x: tensor<f32> {nn.name = "x"}, %t: tensor<2x4xi64> {nn.name = "t"}, %a: tensor<f32> {nn.name = "a"}, %b: tensor<f32> {nn.name = "b"}, %c: tensor<f32> {nn.name = "c"}, %d: tensor<f32> {nn.name = "d"}, %e: tensor<f32> {nn.name = "e"}, %f: tensor<f32> {nn.name = "f"}) -> (tensor<f32> {nn.name = "loss"}) {
    return %x : tensor<f32>
  }
}

// -----

// What has another form is not taken for no count.
// expected-error @below {{'nn.counted_inputs' of 'a' expects {ignored = I : i64, labels = "NAME", ranges = array<i64: BEGIN, END, ...>}, but got {ignored = -1 : i32, labels = "t", ranges = array<i64: 0, 1>}}}
// expected-error @below {{'nn.counted_inputs' of 'b' expects {ignored = I : i64, labels = "NAME", ranges = array<i64: BEGIN, END, ...>}, but got {ignored = -1 : i64, labels = "t", ranges = array<i32: 0, 1>}}}
// expected-error @below {{'nn.counted_inputs' of 'c' expects {ignored = I : i64, labels = "NAME", ranges = array<i64: BEGIN, END, ...>}, but got {ignored = -1 : i64, labels = "t", ranges = array<i64: 0>}}}
// expected-error @below {{'nn.counted_inputs' of 'd' expects {ignored = I : i64, labels = "NAME", ranges = array<i64: BEGIN, END, ...>}, but got "t"}}
module attributes {nn.counted_inputs = {
    a = {ignored = -1 : i32, labels = "t", ranges = array<i64: 0, 1>},
    b = {ignored = -1 : i64, labels = "t", ranges = array<i32: 0, 1>},
    c = {ignored = -1 : i64, labels = "t", ranges = array<i64: 0>},
    d = "t"}} {
  func.func @model(%x: tensor<f32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
    return %x : tensor<f32>
  }
}

// -----

// expected-error @below {{expects 'nn.counted_inputs' to be a dictionary, but got ["n"]}}
module attributes {nn.counted_inputs = ["n"]} {
  func.func @model(%x: tensor<f32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
    return %x : tensor<f32>
  }
}

// -----

// Names are seen and typed by people, and found in files.
module {
  // expected-error @below {{weight 'a\x00b': expects a name of characters that can be seen and typed}}
  nn.weight @w role = parameter {nn.name = "a\00b"} : tensor<f32>
  // expected-error @below {{weight 'c\x1b': expects a name of characters}}
  nn.weight @"c\1B" role = parameter : tensor<f32>
  // expected-error @below {{weight '': expects a name, but it is empty}}
  nn.weight @v role = parameter {nn.name = ""} : tensor<f32>
  // expected-error @below {{is named '__metadata__', which files of weights keep for notes}}
  nn.weight @__metadata__ role = parameter : tensor<f32>
  nn.weight @one role = parameter {nn.name = "twice"} : tensor<f32>
  // expected-error @below {{is the second weight that files call 'twice'}}
  nn.weight @twice role = parameter : tensor<f32>
  // expected-error @below {{has the symbol 's7', which passes need; give it another, and the name as 'nn.name'}}
  nn.weight @s7 role = parameter : tensor<f32>
  // expected-error @below {{has the symbol 'kernels', which passes need; give it another, and the name as 'nn.name'}}
  nn.weight @kernels role = parameter : tensor<f32>
  // expected-error @below {{argument '': expects a name, but it is empty}}
  // expected-error @below {{argument 'x\x0a': expects a name of characters}}
  // expected-error @below {{result '\xff': expects a name of characters}}
  func.func @model(%x: tensor<f32> {nn.name = ""}, %y: tensor<f32> {nn.name = "x\0A"}) -> (tensor<f32> {nn.name = "\FF"}) {
    return %x : tensor<f32>
  }
}

// -----

// Nobody computes with nothing.
module {
  // expected-error @below {{weight 'z' has no elements ('tensor<0x4xf32>'); leave out of the model what computes with it}}
  nn.weight @z role = parameter : tensor<0x4xf32>
  // expected-error @below {{weight 'large' expects a tensor of at most 1099511627776 elements, but got one of [4294967296, 4294967296]}}
  nn.weight @large role = parameter : tensor<4294967296x4294967296xf32>
  // expected-error @below {{argument 'y' has no elements ('tensor<2x0xf32>')}}
  func.func @model(%x: tensor<4xf32> {nn.name = "x"}, %y: tensor<2x0xf32> {nn.name = "y"}) -> (tensor<f32> {nn.name = "loss"}) {
    %z = nn.parameter @z : tensor<0x4xf32>
    // expected-error @below {{result of 'nn.reduce_sum' has no elements ('tensor<0xf32>')}}
    %0 = nn.reduce_sum %z axes = [1] : tensor<0x4xf32> -> tensor<0xf32>
    %1 = nn.reduce_sum %0 axes = [0] : tensor<0xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----

// Types that no program has, and attributes that only later levels have.
module {
  // expected-error @below {{has an attribute 'pipe.all_reduced', which the import level does not have}}
  nn.weight @w role = parameter {pipe.all_reduced} : tensor<f32>
  // expected-error @below {{expects 'nn.reason' to be printable text, but got 1 : i64}}
  nn.weight @v role = constant {nn.reason = 1} : tensor<f32>
  // expected-error @below {{expects 'nn.reason' to be printable text, but got "a\FFtable"}}
  nn.weight @u role = constant {nn.reason = "a\FFtable"} : tensor<f32>
  // expected-error @below {{argument 'a' expects a tensor of known shape of f32, bf16, i64, i1 or i8, but got 'tensor<?xf32>'}}
  // expected-error @below {{argument 'b' expects a tensor of known shape of f32, bf16, i64, i1 or i8, but got 'f32'}}
  // expected-error @below {{argument 'c' expects a tensor of known shape of f32, bf16, i64, i1 or i8, but got 'tensor<2xf64>'}}
  // expected-error @below {{expects argument 3 to have no attribute but 'nn.name'}}
  func.func @model(%a: tensor<?xf32> {nn.name = "a"}, %b: f32 {nn.name = "b"}, %c: tensor<2xf64> {nn.name = "c"}, %d: tensor<f32> {nn.name = "d", nn.other}) -> (tensor<f32> {nn.name = "loss"}) {
    // expected-error @below {{has an attribute 'nn.added', which the import level does not have}}
    %0 = nn.neg %d {nn.added} : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// expected-error @below {{expects one block, but has 0}}
func.func private @model(tensor<4xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"})
