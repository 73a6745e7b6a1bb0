// What ranks receive of an engine that gathers whole tensors, counted box by box.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/model_tensors.h"
#include "cost_models/layout/parameter_table.h"
#include "planner/engines/engine.h"
#include "planner/plan/plan.h"
#include "planner/request/candidate.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

struct Received {
  std::int64_t busiest = 0, all = 0;
};

// Every rank gets what it has not of every tensor, in the type that the engine gathers.
Received box_by_box(const Plan& plan, const RankMap& from) {
  const RolePlan& actor = *plan.find(Role::actor);
  const ParameterTable table = parameter_table(plan.model_of(Role::actor));
  const bool masters = engine_named(plan.engine).weights.gather.value().master_weights;
  const std::int64_t element = size_of(masters ? actor.dtypes.master : actor.dtypes.wire);
  std::map<int, std::int64_t> lacking;
  for (const int rank : from.ranks) lacking[rank] = table.elements();
  for (const ShardedTensor& tensor : full_gather_tensors(table, from, from, actor.dtypes.wire)) {
    for (const Holding& held : tensor.source) lacking[held.rank] -= volume(held.box);
  }
  Received received;
  for (const auto& [rank, elements] : lacking) {
    received.busiest = std::max(received.busiest, elements * element);
    received.all += elements * element;
  }
  return received;
}

Plan gathering(const std::string& engine, const std::vector<std::string>& words,
               const std::string& cluster = "h200-8") {
  PlanRequest request = by_engine(request_for(cluster), engine);
  request.fixed = settings(words);
  return planned(request);
}

TEST(GatheredReshard, StatesWhatTheBusiestRankReceives) {
  struct Case {
    const char* engine;
    std::vector<std::string> words;
  };
  int unequal = 0;  // cases whose ranks hold parts of different sizes
  for (const Case& each :
       {Case{"verl", {"placement=colocated", "actor.zero=3", "actor.dp_shard=8", "actor.cp=1"}},
        Case{"verl", {"placement=colocated", "actor.zero=3", "actor.dp_shard=4", "actor.cp=1"}},
        Case{"verl-megatron", {"placement=colocated", "actor.tp=2", "actor.pp=4", "actor.cp=1"}}}) {
    const Plan plan = gathering(each.engine, each.words);
    ASSERT_EQ(plan.reshard.size(), 1U);
    const Received received = box_by_box(plan, rank_map_of(plan, Role::actor));
    const auto ranks = static_cast<std::int64_t>(plan.find(Role::actor)->ranks.size());
    unequal += received.busiest * ranks > received.all ? 1 : 0;
    EXPECT_EQ(plan.reshard[0].bytes_received.value, received.busiest) << each.engine;
    EXPECT_EQ(plan.reshard[0].total_received_bytes.value, received.all) << each.engine;
  }
  EXPECT_GE(unequal, 2);
}

// verl's FSDP cuts weights over Ulysses' groups, too: as many parts as without them.
TEST(GatheredReshard, CountsUlyssesGroupsAsShards) {
  const std::vector<std::string> words = {"placement=colocated", "actor.zero=3"};
  std::vector<std::string> whole = words, ulysses = words;
  whole.insert(whole.end(), {"actor.dp_shard=8", "actor.cp=1"});
  ulysses.insert(ulysses.end(), {"actor.dp_shard=4", "actor.cp=2"});
  const Plan plan = gathering("verl", ulysses);
  ASSERT_EQ(plan.find(Role::actor)->layout.cp, 2);
  const Plan plain = gathering("verl", whole);
  EXPECT_EQ(plan.reshard.at(0).bytes_received, plain.reshard.at(0).bytes_received);
  EXPECT_EQ(plan.reshard.at(0).total_received_bytes, plain.reshard.at(0).total_received_bytes);
}

}  // namespace
}  // namespace tessera
