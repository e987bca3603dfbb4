//===- NNOps.td - All ops of the nn dialect ----------------*- tablegen -*-===//
//
// The one file that TableGen reads.
//
//===----------------------------------------------------------------------===//

include "dialects/nn/NNAttention.td"
include "dialects/nn/NNElementwise.td"
include "dialects/nn/NNKernel.td"
include "dialects/nn/NNLinear.td"
include "dialects/nn/NNLoss.td"
include "dialects/nn/NNNormalization.td"
include "dialects/nn/NNOptimizer.td"
include "dialects/nn/NNPooling.td"
include "dialects/nn/NNRandom.td"
include "dialects/nn/NNReduction.td"
include "dialects/nn/NNShape.td"
include "dialects/nn/NNStructure.td"
include "dialects/nn/NNUnary.td"
