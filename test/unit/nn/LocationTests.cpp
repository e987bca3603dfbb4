//===- LocationTests.cpp - Names of nodes and modules ---------------------===//

#include "dialects/nn/NNLocation.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace pipewright::nn;

TEST(Locations, NameTheLastOfWhatIsFused) {
  MLIRContext context;
  Location first = NameLoc::get(StringAttr::get(&context, "/h.0/MatMul"));
  Location second = NameLoc::get(StringAttr::get(&context, "/h.0/act/Gelu"));
  Location fused = FusedLoc::get(&context, {first, second});
  EXPECT_EQ(nameOfLocation(fused), "/h.0/act/Gelu");
  EXPECT_EQ(layerOfLocation(fused), "h.0.act");
  EXPECT_EQ(nameOfLocation(UnknownLoc::get(&context)), "");
  // A module that is noted beside the name is what it says.
  Location module = NameLoc::get(StringAttr::get(&context, "h.0.qkv"));
  Location noted =
      NameLoc::get(StringAttr::get(&context, "node_linear"), module);
  EXPECT_EQ(nameOfLocation(noted), "node_linear");
  EXPECT_EQ(layerOfLocation(noted), "h.0.qkv");
  EXPECT_EQ(layerOfLocation(FusedLoc::get(&context, {second, noted})),
            "h.0.qkv");
  // The file is not a layer.
  EXPECT_EQ(
      nameOfLocation(NameLoc::get(StringAttr::get(&context, "dir/model.onnx"))),
      "");
}
