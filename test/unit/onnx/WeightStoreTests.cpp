//===- WeightStoreTests.cpp - The bytes behind nn.weight ------------------===//
//
// Ownership and splats of the weight store.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/WeightStore.h"

#include "gtest/gtest.h"

using pipewright::nn::WeightStore;

TEST(WeightStore, OwnedBytesAreFound) {
  WeightStore store;
  store.addOwned("w", {1, 2, 3});
  EXPECT_TRUE(store.contains("w"));
  EXPECT_EQ(store.lookup("w"), llvm::ArrayRef<char>({1, 2, 3}));
  EXPECT_FALSE(store.contains("v"));
  EXPECT_TRUE(store.lookup("v").empty());
}

TEST(WeightStore, BorrowedBytesKeepTheirOwner) {
  auto owner = std::make_shared<std::vector<char>>(4, 7);
  std::weak_ptr<std::vector<char>> watch = owner;
  {
    WeightStore store;
    store.addBorrowed("w", *owner, owner);
    owner.reset();
    EXPECT_FALSE(watch.expired());
    EXPECT_EQ(store.lookup("w").size(), 4u);
  }
  EXPECT_TRUE(watch.expired());
}

TEST(WeightStore, SplatIsRepeated) {
  WeightStore store;
  store.addSplat("w", {1, 2}, 3);
  EXPECT_EQ(store.lookup("w"), llvm::ArrayRef<char>({1, 2, 1, 2, 1, 2}));
  // The second look gives the same bytes.
  EXPECT_EQ(store.lookup("w").data(), store.lookup("w").data());
}

TEST(WeightStore, RemovedWeightIsGone) {
  WeightStore store;
  store.addOwned("w", {1});
  store.addOwned("v", {2});
  store.remove("w");
  EXPECT_FALSE(store.contains("w"));
  EXPECT_EQ(store.lookup("v"), llvm::ArrayRef<char>({2}));
  EXPECT_EQ(store.size(), 1u);
}

TEST(WeightStore, SurvivesAMove) {
  WeightStore store;
  store.addOwned("w", {1, 2});
  WeightStore moved = std::move(store);
  EXPECT_EQ(moved.lookup("w"), llvm::ArrayRef<char>({1, 2}));
}
