#include "cost_models/pipeline/interleave.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace tessera {
namespace {

using Done = std::map<std::tuple<bool, int, int, int>, int>;  // forward, chunk, micro-batch, stage

TEST(Interleave, RunsEveryPieceOnceAndNothingBeforeWhatItNeeds) {
  for (const int stages : {1, 2, 3, 4}) {
    for (const int chunks : {1, 2, 3}) {
      for (const int count : {1, 2, 3, 4, 7, 8}) {
        SCOPED_TRACE(std::to_string(stages) + " stages, " + std::to_string(chunks) + " chunks, " +
                     std::to_string(count) + " micro-batches");
        const PipelineTicks ticks = interleaved_ticks(stages, chunks, count, true);
        Done done;
        for (int t = 0; t < static_cast<int>(ticks.size()); ++t) {
          for (int s = 0; s < stages; ++s) {
            const auto& op = ticks[static_cast<std::size_t>(t)][static_cast<std::size_t>(s)];
            if (!op) continue;
            const bool fresh =
                done.emplace(std::tuple{op->forward, op->chunk, op->micro_batch, s}, t).second;
            EXPECT_TRUE(fresh);
          }
        }
        ASSERT_EQ(done.size(), static_cast<std::size_t>(2 * stages * chunks * count));
        for (const auto& [piece, tick] : done) {
          const auto& [forward, chunk, m, stage] = piece;
          if (const auto next = consumer(stages, chunks, stage, {forward, chunk, m})) {
            EXPECT_LT(tick, done.at({next->op.forward, next->op.chunk, m, next->stage}));
          }
          if (forward) {
            EXPECT_LT(tick, done.at({false, chunk, m, stage}));
          }
        }
      }
    }
  }
}

TEST(Interleave, VirtualStagesShortenTheBubble) {
  // A chunk's forward or backward is one tick here: idle ticks of the first rank, as a share, must
  // fall with the number of chunks (Narayanan et al. 2021: bubble divided by chunks).
  const auto idle_share = [](int chunks) {
    const PipelineTicks ticks = interleaved_ticks(4, chunks, 8, true);
    const auto idle =
        std::count_if(ticks.begin(), ticks.end(), [](const auto& tick) { return !tick[0]; });
    return static_cast<double>(idle) / static_cast<double>(ticks.size());
  };
  EXPECT_LT(idle_share(2), idle_share(1));
  EXPECT_LT(idle_share(4), idle_share(2));
}

TEST(Interleave, KeepsTheOrderOfMicroBatchesPerChunk) {
  for (int stage = 0; stage < 4; ++stage) {
    std::map<std::pair<bool, int>, int> last;
    for (const PipelineOp& op : interleaved_order(4, 2, 8, stage, true)) {
      const auto [at, fresh] = last.try_emplace({op.forward, op.chunk}, -1);
      EXPECT_GT(op.micro_batch, at->second);
      at->second = op.micro_batch;
    }
  }
}

}  // namespace
}  // namespace tessera
