#include "cost_models/layout/rank_assignment.h"
#include "cost_models/layout/model_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/min_cost_flow.h"
#include "tests/cost_models/layout/sample_models.h"

namespace tessera {
namespace {

using ::testing::IsEmpty;
using Cost = std::vector<std::vector<std::int64_t>>;

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

ParallelLayout layout_of(int tp, int pp, int dp, std::int64_t layers, int shard = 1) {
  return {{.tp = tp, .pp = pp, .dp = dp, .dp_shard = shard},
          shard > 1 ? 3 : 0,
          even_stages(layers, pp)};
}

RankMap mapped(RankOrder order, const ParallelLayout& layout, const std::vector<int>& ranks,
               const RankMap* training = nullptr) {
  Problems problems;
  RankMap map = make_rank_map(order, layout, ranks, training, "", problems);
  EXPECT_THAT(problems, IsEmpty());
  return map;
}

ReshardOptions nodes_of(int per_node) {
  return {.node_of = [per_node](int rank) { return rank / per_node; }};
}

/// What each place would receive on each rank, and from other nodes on each rank's node: counted
/// element by element.
struct Counted {
  Cost received, across;
};

std::vector<bool> marked(const std::vector<std::int64_t>& shape, const std::vector<Box>& boxes) {
  const std::int64_t columns = shape.size() > 1 ? shape[1] : 1;
  std::vector<bool> marks(static_cast<std::size_t>(shape[0] * columns), false);
  for (const Box& box : boxes) {
    for (std::int64_t row = box.dims[0].lo; row < box.dims[0].hi; ++row) {
      const Interval across = box.rank > 1 ? box.dims[1] : Interval{0, 1};
      for (std::int64_t column = across.lo; column < across.hi; ++column) {
        marks[static_cast<std::size_t>(row * columns + column)] = true;
      }
    }
  }
  return marks;
}

std::int64_t missing(const std::vector<bool>& wanted, const std::vector<bool>& held) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) count += wanted[i] && !held[i] ? 1 : 0;
  return count;
}

Counted counted(const ParameterTable& table, const RankMap& from, const ParallelLayout& to,
                const std::vector<int>& ranks, const ReshardOptions& options) {
  const std::size_t n = ranks.size();
  Counted out{Cost(n, std::vector<std::int64_t>(n, 0)), Cost(n, std::vector<std::int64_t>(n, 0))};
  const RankMap places = mapped(RankOrder::list, to, first_ranks(static_cast<int>(n)));
  for (const ShardedTensor& tensor : model_tensors(table, from, places, DType::bf16)) {
    for (std::size_t r = 0; r < n; ++r) {
      std::vector<Box> own, near;
      for (const Holding& holding : tensor.source) {
        if (holding.rank == ranks[r]) own.push_back(holding.box);
        if (options.node_of(holding.rank) == options.node_of(ranks[r])) near.push_back(holding.box);
      }
      const auto held = marked(tensor.shape, own), beside = marked(tensor.shape, near);
      for (const Holding& holding : tensor.destination) {
        const auto wanted = marked(tensor.shape, {holding.box});
        const auto place = static_cast<std::size_t>(holding.rank);
        out.received[place][r] += missing(wanted, held);
        out.across[place][r] += missing(wanted, beside);
      }
    }
  }
  return out;
}

using Totals = std::pair<std::int64_t, std::int64_t>;  // across nodes, received

Totals totals(const Counted& cost, const std::vector<int>& takes) {
  Totals sum{0, 0};
  for (std::size_t place = 0; place < takes.size(); ++place) {
    sum.first += cost.across[place][static_cast<std::size_t>(takes[place])];
    sum.second += cost.received[place][static_cast<std::size_t>(takes[place])];
  }
  return sum;
}

/// Of the busiest rank.
Totals busiest(const Counted& cost, const std::vector<int>& takes) {
  Totals most{0, 0};
  for (std::size_t place = 0; place < takes.size(); ++place) {
    const auto rank = static_cast<std::size_t>(takes[place]);
    most.first = std::max(most.first, cost.across[place][rank]);
    most.second = std::max(most.second, cost.received[place][rank]);
  }
  return most;
}

/// The least over all permutations that keep `together` consecutive places on one node and let no
/// rank receive more than the busiest of the identity.
Totals least(const Counted& cost, const std::vector<int>& ranks, int together,
             const ReshardOptions& options) {
  std::vector<int> takes = first_ranks(static_cast<int>(ranks.size()));
  const Totals limit = busiest(cost, takes);
  Totals best{std::numeric_limits<std::int64_t>::max(), 0};
  do {
    const Totals most = busiest(cost, takes);
    bool kept = most.first <= limit.first && most.second <= limit.second;
    for (std::size_t i = 0; i < takes.size() && kept; ++i) {
      const auto first = i - i % static_cast<std::size_t>(together);
      kept = options.node_of(ranks[static_cast<std::size_t>(takes[i])]) ==
             options.node_of(ranks[static_cast<std::size_t>(takes[first])]);
    }
    if (kept) best = std::min(best, totals(cost, takes));
  } while (std::next_permutation(takes.begin(), takes.end()));
  return best;
}

struct Case {
  ParallelLayout from, to;
  int per_node;
};

void expect_least(const ModelSpec& model, const Case& a) {
  SCOPED_TRACE(describe(a.from) + " -> " + describe(a.to) + ", " + std::to_string(a.per_node));
  const ParameterTable table = parameter_table(model);
  const std::vector<int> ranks = first_ranks(a.to.ranks());
  const ReshardOptions options = nodes_of(a.per_node);
  const RankMap from = mapped(RankOrder::contiguous, a.from, first_ranks(a.from.ranks()));
  const std::vector<int> found = assign_ranks(table, from, a.to, ranks, options);
  EXPECT_TRUE(std::is_permutation(found.begin(), found.end(), ranks.begin(), ranks.end()));

  const Counted cost = counted(table, from, a.to, ranks, options);
  std::vector<int> slots;
  for (int first = 0; first < a.to.ranks(); first += a.per_node) {
    slots.push_back(std::min(a.per_node, a.to.ranks() - first));
  }
  const int together = places_together(a.to, slots);
  ASSERT_GT(together, 0);
  const Totals best = least(cost, ranks, together, options);
  EXPECT_EQ(totals(cost, found), best);
  const MovedElements moved =
      moved_elements(table, from, mapped(RankOrder::list, a.to, found), options);
  EXPECT_EQ(Totals(moved.across_nodes, moved.received), best);
}

TEST(RankAssignment, EqualsTheBestOfAllPermutations) {
  const ModelSpec even = even_model(4), odd = odd_model(5);
  for (const ModelSpec& model : {even, odd}) {
    const std::int64_t layers = model.layers;
    for (const Case& a : {
             Case{layout_of(2, 1, 2, layers), layout_of(4, 1, 1, layers), 4},     // finer slices
             Case{layout_of(1, 1, 4, layers, 4), layout_of(2, 1, 2, layers), 4},  // FSDP
             Case{layout_of(1, 3, 2, layers), layout_of(2, 1, 3, layers), 6},     // uneven stages
             Case{layout_of(2, 3, 1, layers), layout_of(3, 2, 1, layers), 6},     // unequal meshes
             Case{layout_of(1, 3, 2, layers), layout_of(3, 1, 2, layers), 3},     // over two nodes
             Case{layout_of(2, 1, 3, layers), layout_of(1, 3, 2, layers), 2},  // stages over nodes
             Case{layout_of(1, 2, 3, layers), layout_of(2, 3, 1, layers), 2},
         }) {
      expect_least(model, a);
    }
  }
}

TEST(RankAssignment, EqualsTheBestOfAllPermutationsOfEightRanks) {
  const ModelSpec model = even_model(3);
  expect_least(model, {layout_of(2, 1, 4, 3), layout_of(4, 1, 2, 3), 8});
  expect_least(model, {layout_of(1, 1, 8, 3, 8), layout_of(2, 1, 4, 3), 8});
  expect_least(model, {layout_of(2, 2, 2, 3), layout_of(4, 1, 2, 3), 4});
  // Both stages of a replica fit on neither node: they go where the training has them.
  expect_least(model, {layout_of(1, 8, 1, 3), layout_of(2, 3, 1, 3), 2});
}

TEST(RankAssignment, MeshesOfDifferentSizeShareOnlyPartOfTheirRanks) {
  // Six ranks train, the last four of them and two more generate; nodes of four.
  const ModelSpec model = even_model(3);
  const ParameterTable table = parameter_table(model);
  const ReshardOptions options = nodes_of(4);
  const RankMap from = mapped(RankOrder::contiguous, layout_of(2, 3, 1, 3), first_ranks(6));
  const std::vector<int> ranks{2, 3, 4, 5, 6, 7};
  const ParallelLayout to = layout_of(2, 3, 1, 3);
  const std::vector<int> found = assign_ranks(table, from, to, ranks, options);
  const Counted cost = counted(table, from, to, ranks, options);
  std::vector<int> takes;
  for (const int rank : found) takes.push_back(rank - 2);
  EXPECT_EQ(totals(cost, takes), least(cost, ranks, 2, options));
  EXPECT_LT(totals(cost, takes), totals(cost, first_ranks(6)));
}

TEST(RankAssignment, StridedMapsAreAsGoodInClosedForm) {
  const ParameterTable table = parameter_table(odd_model(4));
  for (const auto& [a, b] : {std::pair{layout_of(4, 1, 2, 4), layout_of(2, 1, 4, 4)},
                             std::pair{layout_of(2, 2, 2, 4), layout_of(2, 1, 4, 4)},
                             std::pair{layout_of(2, 2, 2, 4), layout_of(1, 2, 4, 4)},
                             std::pair{layout_of(4, 2, 1, 4), layout_of(1, 1, 8, 4)}}) {
    const std::vector<int> ranks = first_ranks(8);
    const RankMap from = mapped(RankOrder::contiguous, a, ranks);
    const MovedElements strided =
        moved_elements(table, from, mapped(RankOrder::strided, b, ranks, &from));
    const MovedElements flow = moved_elements(
        table, from, mapped(RankOrder::list, b, assign_ranks(table, from, b, ranks)));
    EXPECT_EQ(strided.received, flow.received) << describe(a) << " -> " << describe(b);
  }
}

TEST(RankAssignment, QuartersStayWhereTheHalvesThatContainThemAre) {
  const ParameterTable table = parameter_table(even_model());
  const std::vector<int> ranks = first_ranks(8);
  const RankMap from = mapped(RankOrder::contiguous, layout_of(2, 1, 4, 8), ranks);
  const ParallelLayout to = layout_of(4, 1, 2, 8);
  const auto busiest = [&](const std::vector<int>& order) {
    return reshard_totals(table, from, mapped(RankOrder::list, to, order), DType::bf16);
  };
  EXPECT_EQ(busiest(assign_ranks(table, from, to, ranks)).total_received.value, 0);
  EXPECT_GT(busiest(ranks).bytes_received.value, 2 * table.elements() / 4 * 9 / 10);
}

RC_GTEST_PROP(RankAssignment, NeverMovesMoreThanTheContiguousOrder, ()) {
  const auto degrees = [] {
    const int tp = *rc::gen::element(1, 2, 3, 4), pp = *rc::gen::element(1, 2, 3);
    return std::pair(tp, pp);
  };
  const ModelSpec model = *rc::gen::arbitrary<bool>() ? even_model(6) : odd_model(5);
  const auto [tp, pp] = degrees();
  const auto [gen_tp, gen_pp] = degrees();
  const int each = std::lcm(tp * pp, gen_tp * gen_pp);
  const int count = each * *rc::gen::inRange(1, 4);
  const int shard = *rc::gen::arbitrary<bool>() ? count / (tp * pp) : 1;
  const int per_node = *rc::gen::inRange(1, count + 1);
  const ParallelLayout a = layout_of(tp, pp, count / (tp * pp), model.layers, shard);
  const ParallelLayout b = layout_of(gen_tp, gen_pp, count / (gen_tp * gen_pp), model.layers);
  const ParameterTable table = parameter_table(model);
  const std::vector<int> ranks = first_ranks(count);
  const ReshardOptions options = nodes_of(per_node);
  const RankMap from = mapped(RankOrder::contiguous, a, ranks);
  const RankMap before = mapped(RankOrder::contiguous, b, ranks);
  const RankMap after = mapped(RankOrder::list, b, assign_ranks(table, from, b, ranks, options));
  const MovedElements old = moved_elements(table, from, before, options);
  const MovedElements now = moved_elements(table, from, after, options);
  RC_ASSERT(Totals(now.across_nodes, now.received) <= Totals(old.across_nodes, old.received));
  RC_ASSERT(now.busiest_received <= old.busiest_received);
  RC_ASSERT(now.busiest_across_nodes <= old.busiest_across_nodes);
  const ReshardPlan plan = reshard_totals(table, from, after, DType::bf16, options);
  RC_ASSERT(plan.total_received.value == 2 * now.received);
  RC_ASSERT(plan.bytes_received.value == 2 * now.busiest_received);
  std::vector<int> sorted = after.ranks;
  std::sort(sorted.begin(), sorted.end());
  RC_ASSERT(sorted == ranks);
  // TP groups lie on as few nodes as before.
  const auto nodes = [&](const std::vector<int>& group) {
    std::set<int> on;
    for (const int rank : group) on.insert(options.node_of(rank));
    return on.size();
  };
  std::size_t most = 0;
  for (const auto& group : groups_along(before, Axis::tp)) most = std::max(most, nodes(group));
  for (const auto& group : groups_along(after, Axis::tp)) RC_ASSERT(nodes(group) <= most);
}

RC_GTEST_PROP(Transport, CostsAsLittleAsTheBestPermutation, ()) {
  const int n = *rc::gen::inRange(1, 7);
  Cost cost(static_cast<std::size_t>(n));
  for (auto& row : cost) {
    row = *rc::gen::container<std::vector<std::int64_t>>(static_cast<std::size_t>(n),
                                                         rc::gen::inRange<std::int64_t>(0, 50));
  }
  const std::vector<int> ones(static_cast<std::size_t>(n), 1);
  const auto flow = min_cost_assignment(ones, ones, cost);
  std::int64_t paid = 0;
  for (std::size_t i = 0; i < flow.size(); ++i) {
    RC_ASSERT(std::accumulate(flow[i].begin(), flow[i].end(), 0) == 1);
    for (std::size_t j = 0; j < flow.size(); ++j) paid += flow[i][j] * cost[i][j];
  }
  std::vector<int> takes = first_ranks(n);
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  do {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < takes.size(); ++i) {
      sum += cost[i][static_cast<std::size_t>(takes[i])];
    }
    best = std::min(best, sum);
  } while (std::next_permutation(takes.begin(), takes.end()));
  RC_ASSERT(paid == best);
}

TEST(Transport, FillsDemandsOfSeveralUnits) {
  // Supplies 3 and 2, demands 1 and 4: the second supply's units are cheaper at the second demand.
  const auto flow = min_cost_assignment({3, 2}, {1, 4}, {{5, 7}, {9, 2}});
  EXPECT_EQ(flow, (std::vector<std::vector<int>>{{1, 2}, {0, 2}}));
}

}  // namespace
}  // namespace tessera
