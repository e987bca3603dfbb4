//===- InterpolationTests.cpp - Weights of interpolations -----------------===//
//
// Compared with those of ONNX's reference evaluator, which are PyTorch's where
// it has the mode (tools/reference/make_interpolation.py).
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/InterpolationMatrix.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace pipewright::frontend;
namespace json = llvm::json;

namespace {

InterpolationOptions optionsOf(const json::Object &entry) {
  InterpolationOptions options;
  options.mode = llvm::StringSwitch<Interpolation>(*entry.getString("mode"))
                     .Case("nearest", Interpolation::Nearest)
                     .Case("linear", Interpolation::Linear)
                     .Case("cubic", Interpolation::Cubic);
  options.coordinates =
      llvm::StringSwitch<Coordinates>(*entry.getString("coordinates"))
          .Case("half_pixel", Coordinates::HalfPixel)
          .Case("half_pixel_symmetric", Coordinates::HalfPixelSymmetric)
          .Case("pytorch_half_pixel", Coordinates::PyTorchHalfPixel)
          .Case("align_corners", Coordinates::AlignCorners)
          .Case("asymmetric", Coordinates::Asymmetric);
  options.rounding =
      llvm::StringSwitch<Rounding>(entry.getString("rounding").value_or(""))
          .Case("round_prefer_ceil", Rounding::PreferCeil)
          .Case("floor", Rounding::Floor)
          .Case("ceil", Rounding::Ceil)
          .Default(Rounding::PreferFloor);
  options.cubicCoefficient = entry.getNumber("cubic").value_or(0);
  options.excludesOutside = *entry.getInteger("exclude");
  options.antialias = *entry.getInteger("antialias");
  return options;
}

Stretch stretchOf(const json::Object &entry) {
  Stretch stretch = {*entry.getInteger("from"), *entry.getInteger("to"), 0};
  stretch.scale = double(stretch.to) / double(stretch.from);
  if (auto scale = entry.getNumber("scale"))
    stretch.scale = float(*scale);
  return stretch;
}

void compare(const json::Object &entry) {
  const InterpolationOptions options = optionsOf(entry);
  const Stretch stretch = stretchOf(entry);
  const json::Array *columns = entry.getArray("columns");
  const json::Array *weights = entry.getArray("weights");
  ASSERT_TRUE(columns || weights);
  std::vector<double> row(stretch.from);
  for (int64_t i = 0; i < stretch.to; ++i) {
    interpolationRow(options, stretch, i, row);
    for (int64_t k = 0; k < stretch.from; ++k) {
      double expected = columns
                            ? (*columns)[i].getAsInteger() == k
                            : *(*weights)[i * stretch.from + k].getAsNumber();
      EXPECT_NEAR(row[k], expected, 2e-6) << "row " << i << ", column " << k;
    }
  }
}

TEST(Interpolation, HasTheWeightsOfTheReference) {
  auto buffer = llvm::MemoryBuffer::getFile(PIPEWRIGHT_TEST_INPUTS
                                            "/reference/interpolation.json");
  ASSERT_TRUE(bool(buffer));
  auto cases = json::parse((*buffer)->getBuffer());
  ASSERT_TRUE(bool(cases));
  ASSERT_GT(cases->getAsArray()->size(), 400u);
  for (const json::Value &entry : *cases->getAsArray()) {
    std::string text;
    llvm::raw_string_ostream(text) << entry;
    SCOPED_TRACE(text);
    compare(*entry.getAsObject());
  }
}

} // namespace
