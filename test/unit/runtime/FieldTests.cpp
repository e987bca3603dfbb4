//===- FieldTests.cpp - Fields of shapes by their names -------------------===//

#include "runtime/calls/Attention.h"
#include "runtime/calls/Convolution.h"
#include "runtime/calls/Dropout.h"
#include "runtime/calls/Embedding.h"
#include "runtime/calls/Labels.h"
#include "runtime/calls/Matmul.h"
#include "runtime/calls/Pooling.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

using namespace pipewright::runtime;

template <class Shape>
class Fields : public testing::Test {};
using Shapes =
    testing::Types<AttentionShape, ConvolutionShape, DropoutShape,
                   EmbeddingShape, LabelShape, MatmulShape, PoolingShape>;
TYPED_TEST_SUITE(Fields, Shapes);

// C++ takes designated initializers in no other order.
TYPED_TEST(Fields, AreListedAsTheyAreDeclared) {
  const TypeParam shape;
  std::vector<const void *> places;
  shape.visitFields(
      [&](std::string_view, const auto &value) { places.push_back(&value); });
  EXPECT_EQ(places.front(), static_cast<const void *>(&shape));
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
}

TEST(FieldsOfDropout, HaveTheirNamesAndValues) {
  std::map<std::string, FieldValue> fields;
  DropoutShape{.elements = 5, .rate = 0.5f, .type = ElementType::BF16}
      .visitFields([&](std::string_view name, auto value) {
        fields.emplace(name, value);
      });
  EXPECT_EQ(fields,
            (std::map<std::string, FieldValue>{{"elements", int64_t{5}},
                                               {"rate", 0.5f},
                                               {"id", int64_t{0}},
                                               {"type", ElementType::BF16}}));
}
