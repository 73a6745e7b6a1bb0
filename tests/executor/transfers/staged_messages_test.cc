// Messages in rounds: small ones merged, both ends of one size, stages within their bound.
#include "executor/transfers/staged_messages.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "executor/arena/shared_arena.h"
#include "executor/reshard/reshard.h"
#include "executor/transfers/gathers.h"
#include "executor/transfers/pull_traffic.h"
#include "tests/cost_models/layout/sample_models.h"
#include "tests/executor/reshard/layout_cases.h"

namespace tessera {
namespace {

constexpr std::int64_t kEverything = std::int64_t{1} << 40;
constexpr std::int64_t kAlignment = 256;  // of every message

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
        const PlacedReshard plan = reshard.placed();
        wanted = traffic_of(plan.plan, plan.tensors, 4);
        of_rank.push_back(staged_messages(plan, rank, 4, {kEverything, kStage}));
        const MessageRounds& mine = of_rank.back();
        ASSERT_EQ(mine.rounds.size(), of_rank[0].rounds.size());
        EXPECT_GT(mine.rounds.size(), 2u);
        // Rows of up to 256 bytes and the alignment of every message.
        EXPECT_LE(mine.out_bytes + mine.in_bytes, kStage + (256 + kAlignment) * 2 * 2 * 3);
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

/// A stage's weights lie in one piece at both ends: in one round they are one message, unpacked.
TEST(StagedMessages, StagesOfAPipelineAreOneMessageWithoutPacking) {
  ModelSpec model = even_model(4);
  model.head_dim = 64;  // every tensor fills what is aligned
  model.hidden = model.ffn = 512;
  const ParameterTable table = parameter_table(model);
  const RankMap from = contiguous(layout_of(1, 4, 1, 4)), to = contiguous(layout_of(1, 1, 4, 4));
  const auto arena_on = [&](int rank) {
    return shared_arena_on(table, from, to, rank, DType::fp32);
  };
  for (int rank = 0; rank < 4; ++rank) {
    const Reshard reshard(table, from, to, DType::fp32, ReshardMode::minimal, rank);
    const SharedArena arena = arena_on(rank);
    const PlacedReshard plan =
        reshard.placed([&](int of) { return arena_on(of).training; }, arena.rollout);
    const MessageRounds all = staged_messages(plan, rank, 4, {kEverything, kEverything});
    ASSERT_EQ(all.rounds.size(), 1u);
    EXPECT_EQ(all.out_bytes + all.in_bytes, 0);
    ASSERT_EQ(all.rounds[0].sends.size(), 3u);
    std::int64_t received = 0;
    for (const auto& message : all.rounds[0].receives) received += message.range.bytes;
    EXPECT_EQ(received, reshard.plan().traffic[static_cast<std::size_t>(rank)].received);
  }
}

/// A block that all peers want is packed once.
TEST(StagedMessages, PackWhatSeveralPeersWantOnce) {
  const ModelSpec model = even_model(4);
  const ParameterTable table = parameter_table(model);
  const Reshard reshard(table, contiguous(layout_of(4, 1, 1, 4)), contiguous(layout_of(1, 1, 4, 4)),
                        DType::fp32, ReshardMode::minimal, 1);
  const PlacedReshard plan = reshard.placed();
  const MessageRounds all = staged_messages(plan, 1, 4, {kEverything, kEverything});
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

/// Large transfers go from place to place, small ones through stages as large as those need; the
/// lists of both ends agree message by message.
TEST(StagedMessages, LargeTransfersTravelByThemselves) {
  const ModelSpec model = even_model(4);
  const ParameterTable table = parameter_table(model);
  constexpr std::int64_t kLarge = 2048;
  const auto messages = [&](const ParallelLayout& from, const ParallelLayout& to, int rank,
                            PlacedReshard& plan) {
    const Reshard reshard(table, contiguous(from), contiguous(to), DType::fp32,
                          ReshardMode::minimal, rank);
    plan = reshard.placed();
    return staged_messages(plan, rank, 4, {kLarge, 4000});
  };
  for (const ParallelLayout& from : {layout_of(4, 1, 1, 4), layout_of(1, 4, 1, 4)}) {
    SCOPED_TRACE(describe(from));
    const ParallelLayout to = layout_of(1, 1, 4, 4);
    std::map<std::pair<int, int>, std::vector<std::int64_t>> sent, received;
    for (int rank = 0; rank < 4; ++rank) {
      PlacedReshard plan;
      const MessageRounds mine = messages(from, to, rank, plan);
      std::int64_t large = 0, direct = 0;
      for (const Transfer& transfer : plan.plan.transfers) {
        const bool arrives = transfer.destination == rank && transfer.source != rank;
        const std::int64_t bytes = bytes_moved(transfer, plan.tensors);
        if (arrives && bytes >= kLarge) large += bytes;
      }
      EXPECT_GT(mine.rounds.size(), 1u);
      for (const MessageRound& round : mine.rounds) {
        for (const auto& message : round.sends) {
          sent[{rank, message.peer}].push_back(message.range.bytes);
        }
        for (const auto& message : round.receives) {
          received[{message.peer, rank}].push_back(message.range.bytes);
          if (!message.staged) direct += message.range.bytes;
        }
      }
      EXPECT_GT(large, 0);
      EXPECT_GE(direct, large);
      EXPECT_LE(mine.out_bytes + mine.in_bytes, 4000 + 2 * 2 * 3 * (256 + 256));
    }
    EXPECT_EQ(sent, received);
  }
}

/// Every block lands once in its place, staged or not, in stages of bounded size.
TEST(MergedGathers, CoverEveryGatherOnce) {
  GatherSchedule schedule{.groups = {{3, 1, 2}}};
  std::int64_t from = 0, to = 0;
  for (const std::int64_t bytes : {300, 5000, 20, 700, 256, 9000, 900, 4}) {
    schedule.gathers.push_back({0, from, to, bytes});
    from += bytes;
    to += 3 * bytes;
  }
  for (const std::int64_t stage : {std::int64_t{3000}, std::int64_t{12000}, kEverything}) {
    const GroupGathers made = merged_gathers(schedule, 0, 1, {1000, stage});
    EXPECT_LE(made.stage_bytes, std::max(stage, kAlignment * 3 * 3) + kAlignment * 3);
    EXPECT_EQ(made.last.stage + 3 * made.last.bytes, made.stage_bytes);
    ASSERT_EQ(made.large.size(), 2u);
    EXPECT_EQ(made.large[0].bytes, 5000);
    std::vector<int> landed(static_cast<std::size_t>(to)), packed(static_cast<std::size_t>(from));
    for (const Gather& gather : made.large) {
      for (std::int64_t i = 0; i < 3 * gather.bytes; ++i) ++landed[gather.to + i];
      for (std::int64_t i = 0; i < gather.bytes; ++i) ++packed[gather.from + i];
    }
    for (std::size_t k = 0; k < made.merged.size(); ++k) {
      const MergedGather& merged = made.merged[k];
      EXPECT_EQ(merged.stage, static_cast<std::int64_t>(k % 3) * made.last.stage / 3);
      EXPECT_LE(3 * merged.bytes, made.last.stage / 3);
      for (const StagedCopy& copy : merged.pack) {
        EXPECT_GE(copy.to, merged.stage + merged.bytes);  // the second member's block
        EXPECT_LE(copy.to + copy.bytes, merged.stage + 2 * merged.bytes);
        for (std::int64_t i = 0; i < copy.bytes; ++i) ++packed[copy.from + i];
      }
      for (const auto* list : {&merged.unpack, &merged.kept}) {
        for (const StagedCopy& copy : *list) {
          for (std::int64_t i = 0; i < copy.bytes; ++i) ++landed[copy.to + i];
        }
      }
    }
    EXPECT_EQ(landed, std::vector<int>(static_cast<std::size_t>(to), 1));
    EXPECT_EQ(packed, std::vector<int>(static_cast<std::size_t>(from), 1));
  }
}

}  // namespace
}  // namespace tessera
