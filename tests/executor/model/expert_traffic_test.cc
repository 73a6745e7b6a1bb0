// What passes among ranks for experts in fewer parts than the rest is what the planner prices
// (ExpertTraits::gathered_first).
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "executor/comm/comm_times.h"
#include "executor/comm/thread_communicator.h"
#include "tests/executor/model/fixture.h"

namespace tessera::testing {
namespace {

/// Bytes by group and operation of a forward pass, summed over ranks.
std::map<std::string, double> bytes_of_forward(const Fixture& fixture, const Degrees& degrees) {
  const ParallelLayout layout = layout_of(fixture.spec, degrees);
  std::vector<int> ranks;
  for (int rank = 0; rank < layout.ranks(); ++rank) ranks.push_back(rank);
  Problems problems;
  const RankMap map =
      make_rank_map(RankOrder::contiguous, layout, ranks, nullptr, "role", problems);
  std::map<std::string, double> sums;
  std::mutex mutex;
  run_ranks(layout.ranks(), [&](Communicator& world) {
    const torch::NoGradGuard no_grad;
    at::set_num_threads(1);
    CommTimes times(world.rank());
    const ParallelGroups groups = make_groups(world, map, times.decorator());
    const Weights weights = loaded(fixture.spec, layout, groups, fixture.folder);
    times.metrics();
    stage_forward(weights, groups, pack_tokens(fixture.sequences, torch::kCPU), {}, {});
    const std::lock_guard lock(mutex);
    for (const auto& [name, value] : times.metrics()) sums[name] += value;
  });
  return sums;
}

/// Of four tensor-parallel ranks two and two cut the same experts: each token passes once to the
/// other of the two and back, and either sends it to its k experts.
TEST(ExpertTraffic, IsWhatThePlannerPrices) {
  const Fixture fixture = read_fixture("tiny-qwen3-moe");
  double tokens = 0;
  for (const auto& sequence : fixture.sequences) tokens += static_cast<double>(sequence.size());
  const Degrees cut{.tp = 4, .ep = 2, .etp = 2, .sequence = true};
  const auto bytes = bytes_of_forward(fixture, cut);
  const auto layers = static_cast<double>(fixture.spec.layers);
  const double row = 4.0 * static_cast<double>(fixture.spec.hidden);
  const double gathered = layers * tokens / cut.tp * cut.etp * row;  // by a rank
  EXPECT_EQ(bytes.at("comm/etp/all_gather_bytes"), 4 * gathered);
  EXPECT_EQ(bytes.at("comm/etp/reduce_scatter_bytes"), 4 * gathered);
  // Of a message's two ends the larger counts: as much as is sent, or more where experts are busy.
  const double dealt = 2 * static_cast<double>(fixture.spec.moe->experts_per_token) * 4 * gathered;
  EXPECT_GE(bytes.at("comm/ep/exchange_bytes"), dealt);
  EXPECT_LT(bytes.at("comm/ep/exchange_bytes"), 1.5 * dealt);
}

}  // namespace
}  // namespace tessera::testing
