// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

func.func @dropout_c1_rate_of_one(%x: tensor<4xf32>) {
  // expected-error @below {{expects a rate in [0, 1), but got 1.000000}}
  %0 = nn.dropout %x rate = 1.0 id = 0 : tensor<4xf32>
  return
}

// -----

func.func @dropout_c1_negative_rate(%x: tensor<4xf32>) {
  // expected-error @below {{expects a rate in [0, 1), but got -0.500000}}
  %0 = nn.dropout %x rate = -0.5 id = 0 : tensor<4xf32>
  return
}
