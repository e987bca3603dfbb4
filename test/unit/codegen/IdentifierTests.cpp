//===- IdentifierTests.cpp - Names from models as C identifiers -----------===//

#include "codegen/host/Identifiers.h"
#include "codegen/host/RuntimeCalls.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace pipewright::codegen;

TEST(Identifiers, KeepTheLastPartsOfAName) {
  EXPECT_EQ(makeIdentifier("/transformer/h.0/ln_1/Add_output_0"),
            "h_0_ln_1_add");
  EXPECT_EQ(makeIdentifier("transformer.wte.weight"), "transformer_wte_weight");
  EXPECT_EQ(makeIdentifier("onnx::Gemm_12"), "onnx_gemm_12");
  // The first part would be a number without what it numbers.
  EXPECT_EQ(makeIdentifier("model.layers.3.mlp.fc1.weight"),
            "layers_3_mlp_fc1_weight");
}

TEST(Identifiers, AreAlwaysValid) {
  EXPECT_EQ(makeIdentifier(""), "x");
  EXPECT_EQ(makeIdentifier("12"), "x_12");
  EXPECT_EQ(makeIdentifier("while"), "x_while");
  EXPECT_EQ(makeIdentifier("gpu 0/a-b"), "gpu_0_a_b");
  // Functions that generated code calls, and what is left of a long name.
  EXPECT_EQ(makeIdentifier("copy"), "x_copy");
  EXPECT_EQ(makeIdentifier(std::string(40, 'q') + "_int"), "x_int");
  EXPECT_LE(makeIdentifier(std::string(200, 'q')).size(), 42u);
}

TEST(Identifiers, AreUniqueInAFunction) {
  NameScope scope;
  EXPECT_EQ(scope.unique("x"), "x");
  EXPECT_EQ(scope.unique("x_2"), "x_2");
  EXPECT_EQ(scope.unique("x"), "x_3");
  EXPECT_EQ(scope.unique("rank"), "rank_2");
}

TEST(RuntimeCalls, WriteFloatsThatReadBackTheSame) {
  EXPECT_EQ(floatLiteral(0.1f), "0.1f");
  EXPECT_EQ(floatLiteral(2.0f), "2.0f");
  EXPECT_EQ(floatLiteral(1e-5f), "1e-05f");
  for (float value : {1.0f / 3, 3.4e38f, 1.17549435e-38f, -7.25f})
    EXPECT_EQ(std::strtof(floatLiteral(value).c_str(), nullptr), value);
  EXPECT_EQ(floatLiteral(-INFINITY), "-__builtin_inff()");
  EXPECT_EQ(floatLiteral(NAN), "__builtin_nanf(\"\")");
}
