#include "executor/bench/train_layout.h"

#include <gtest/gtest.h>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

ModelSpec model() {
  ModelSpec spec;
  spec.layers = 8;
  spec.query_heads = 6;
  return spec;
}

TEST(TrainLayout, IsFsdpOverAllRanksWhenNothingIsSaid) {
  const ParallelLayout layout = train_layout("", model(), 4);
  EXPECT_EQ(layout.dp_shard, 4);
  EXPECT_EQ(layout.zero, 3);
  EXPECT_EQ(layout.ranks(), 4);
  EXPECT_EQ(train_layout("", model(), 1).zero, 0);
}

TEST(TrainLayout, ReadsEveryDegree) {
  const ParallelLayout layout = train_layout("tp=2,pp=2,vpp=2,dp=2,zero=1,sp", model(), 8);
  EXPECT_EQ(layout.tp, 2);
  EXPECT_EQ(layout.pp, 2);
  EXPECT_EQ(layout.vpp, 2);
  EXPECT_EQ(layout.dp_replicate(), 2);
  EXPECT_EQ(layout.dp_shard, 1);
  EXPECT_EQ(layout.zero, 1);
  EXPECT_TRUE(layout.sequence_parallel);
  EXPECT_EQ(layout.stages.size(), 4u);
  const ParallelLayout hybrid = train_layout("zero=3,replicate=2", model(), 4);
  EXPECT_EQ(hybrid.dp_replicate(), 2);
  EXPECT_EQ(hybrid.dp_shard, 2);
  const ParallelLayout ring = train_layout("cp=2,tp=2", model(), 8);
  EXPECT_EQ(ring.cp, 2);
  EXPECT_EQ(ring.dp, 2);
  EXPECT_FALSE(ring.ulysses);
  EXPECT_TRUE(train_layout("cp=2,ulysses", model(), 4).ulysses);
}

TEST(TrainLayout, RefusesWordsAndDegreesThatDoNotFit) {
  for (const char* text :
       {"tp=3", "tp", "sp=1", "tq=2", "tp=2,tp=2", "dp=2", "zero=4", "tp=0", "tp=2x", "cp=0",
        "cp=4,ulysses", "replicate=3", "zero=1,replicate=2", "pp=4,vpp=4", "tp=-4"}) {
    EXPECT_THROW(train_layout(text, model(), 4), Error) << text;
  }
}

}  // namespace
}  // namespace tessera
