// Merged messages: one per pair and round, both ends of one size, stages within their bound.
#include "executor/reshard/staged_messages.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "executor/reshard/pull_steps.h"
#include "executor/reshard/reshard.h"
#include "tests/cost_models/sample_models.h"
#include "tests/executor/reshard/layout_cases.h"

namespace tessera {
namespace {

TEST(StagedMessages, AreOneBetweenTwoRanksInEveryRoundAndEndAlike) {
  const ModelSpec model = even_model(4);
  const ParameterTable table = parameter_table(model);
  constexpr std::int64_t kStage = 20'000;
  for (const ParallelLayout& from :
       {layout_of(4, 1, 1, 4), layout_of(1, 4, 1, 4), layout_of(1, 1, 1, 4, 4)}) {
    for (const ParallelLayout& to : {layout_of(1, 1, 4, 4), layout_of(2, 1, 2, 4)}) {
      SCOPED_TRACE(describe(from) + " -> " + describe(to));
      std::vector<MessageRounds> of_rank;
      PullTraffic wanted;
      for (int rank = 0; rank < 4; ++rank) {
        const Reshard reshard(table, contiguous(from), contiguous(to), DType::fp32,
                              ReshardMode::minimal, rank);
        const SwitchPlan plan = reshard.switch_plan();
        wanted = traffic_of(plan.plan, plan.tensors, 4);
        of_rank.push_back(staged_messages(plan, rank, 4, kStage));
        const MessageRounds& mine = of_rank.back();
        ASSERT_EQ(mine.rounds.size(), of_rank[0].rounds.size());
        EXPECT_GT(mine.rounds.size(), 2u);
        // Rows of up to 256 bytes and the alignment of every message.
        EXPECT_LE(mine.out_bytes + mine.in_bytes, kStage + 2 * 2 * 3 * (256 + 256));
        for (std::size_t k = 0; k < mine.rounds.size(); ++k) {
          std::int64_t staged = 0, unpacked = 0;
          for (const auto& message : mine.rounds[k].receives) {
            if (!message.staged) continue;
            staged += message.range.bytes;
            EXPECT_LE(message.range.offset + message.range.bytes, mine.in_bytes);
            EXPECT_EQ(message.range.offset >= mine.in_bytes / 2, k % 2 == 1);
          }
          for (const auto& copy : mine.rounds[k].unpack) unpacked += copy.bytes;
          EXPECT_EQ(unpacked, staged);
        }
      }
      PullTraffic moved(4, std::vector<std::int64_t>(4));
      for (std::size_t k = 0; k < of_rank[0].rounds.size(); ++k) {
        std::map<std::pair<int, int>, std::int64_t> sent, received;
        for (int rank = 0; rank < 4; ++rank) {
          const MessageRound& round = of_rank[static_cast<std::size_t>(rank)].rounds[k];
          for (const auto& message : round.sends) {
            EXPECT_TRUE(sent.emplace(std::pair(rank, message.peer), message.range.bytes).second);
            moved[static_cast<std::size_t>(rank)][static_cast<std::size_t>(message.peer)] +=
                message.range.bytes;
          }
          for (const auto& message : round.receives) {
            EXPECT_TRUE(
                received.emplace(std::pair(message.peer, rank), message.range.bytes).second);
          }
        }
        EXPECT_EQ(sent, received);
      }
      EXPECT_EQ(moved, wanted);
    }
  }
}

/// What all peers want is packed once.
TEST(StagedMessages, PackWhatSeveralPeersWantOnce) {
  const ModelSpec model = even_model(4);
  const ParameterTable table = parameter_table(model);
  const Reshard reshard(table, contiguous(layout_of(4, 1, 1, 4)), contiguous(layout_of(1, 1, 4, 4)),
                        DType::fp32, ReshardMode::minimal, 1);
  const SwitchPlan plan = reshard.switch_plan();
  const MessageRounds all = staged_messages(plan, 1, 4, std::int64_t{1} << 40);
  ASSERT_EQ(all.rounds.size(), 1u);
  ASSERT_EQ(all.rounds[0].sends.size(), 3u);
  std::int64_t packed = 0;
  for (const auto& copy : all.rounds[0].pack) packed += copy.bytes;
  EXPECT_EQ(packed, plan.plan.traffic[1].sent / 3);
  for (const auto& send : all.rounds[0].sends) {
    EXPECT_TRUE(send.staged);
    EXPECT_EQ(send.range, all.rounds[0].sends[0].range);
  }
}

}  // namespace
}  // namespace tessera
