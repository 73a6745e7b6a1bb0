#include "cost_models/layout/reshard_plan.h"
#include "cost_models/layout/model_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <ctime>
#include <numeric>
#include <set>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/sharding.h"
#include "tests/cost_models/layout/reshard_oracle.h"
#include "tests/cost_models/layout/sample_models.h"

namespace tessera {
namespace {

/// rapidcheck with 10,000 cases over the whole ranges, reported through GoogleTest.
template <class Property>
void check_many(const std::string& what, Property property) {
  int cases = 0;
  rc::detail::TestParams params;
  params.maxSuccess = 10000;
  params.maxSize = 200;  // inRange reaches its end at 100
  rc::detail::TestMetadata metadata;
  metadata.id = metadata.description = what;
  const auto counted = [&] { return ++cases, property(); };
  const auto result = rc::detail::checkTestable(counted, metadata, params);
  EXPECT_GE(cases, 10000);
  EXPECT_TRUE(result.template is<rc::detail::SuccessResult>()) << [&] {
    std::ostringstream text;
    rc::detail::printResultMessage(result, text);
    return text.str();
  }();
}

std::vector<int> iota(int count, int first = 0) {
  std::vector<int> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

RankMap mapped(RankOrder order, const ParallelLayout& layout, int first = 0,
               const RankMap* training = nullptr) {
  Problems problems;
  RankMap map =
      make_rank_map(order, layout, iota(layout.ranks(), first), training, "/test", problems);
  EXPECT_TRUE(problems.empty());
  return map;
}

ParallelLayout ptd(std::int64_t layers, int pp, int tp, int dp, int shard = 1) {
  return {{.tp = tp, .pp = pp, .dp = dp * shard, .dp_shard = shard},
          shard > 1 ? 3 : 0,
          even_stages(layers, pp)};
}

Box random_box(const std::vector<std::int64_t>& shape) {
  Box box = whole(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto lo = *rc::gen::inRange<std::int64_t>(0, shape[d]);
    box.dims[d] = {lo, *rc::gen::inRange<std::int64_t>(lo, shape[d] + 1)};
  }
  return box;
}

/// A tensor whose sources overlap at random and together cover it.
ShardedTensor random_tensor(int ranks) {
  ShardedTensor tensor;
  const int dims = *rc::gen::inRange(0, 4);
  for (int d = 0; d < dims; ++d) tensor.shape.push_back(*rc::gen::inRange<std::int64_t>(1, 6));
  tensor.element_bytes = Bytes{*rc::gen::element<std::int64_t>(2, 4)};
  tensor.outer_dim = dims > 0 ? *rc::gen::inRange(0, dims) : 0;
  std::vector<Box> pieces{whole(tensor.shape)};
  if (dims > 0) {
    const int dim = *rc::gen::inRange(0, dims);
    const std::int64_t side = tensor.shape[static_cast<size_t>(dim)];
    const auto cut = *rc::gen::inRange<std::int64_t>(0, side + 1);
    pieces = {restricted(whole(tensor.shape), dim, {0, cut}),
              restricted(whole(tensor.shape), dim, {cut, side})};
  }
  for (const Box& piece : pieces) tensor.source.push_back({*rc::gen::inRange(0, ranks), piece});
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) {
    tensor.source.push_back({*rc::gen::inRange(0, ranks), random_box(tensor.shape)});
  }
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) {
    tensor.destination.push_back({*rc::gen::inRange(0, ranks), random_box(tensor.shape)});
  }
  return tensor;
}

TEST(ReshardPlan, HoldsEveryInvariantForRandomTensors) {
  check_many("random tensors", [] {
    const int ranks = *rc::gen::inRange(1, 8);
    std::vector<ShardedTensor> tensors;
    for (int i = *rc::gen::inRange(1, 4); i > 0; --i) tensors.push_back(random_tensor(ranks));
    ReshardOptions options;
    if (*rc::gen::arbitrary<bool>()) options.node_of = [](int rank) { return rank / 2; };
    RC_ASSERT(broken_invariant(tensors, plan_reshard(tensors, options)) == "");
  });
}

ParallelLayout random_layout(std::int64_t layers) {
  const int tp = *rc::gen::inRange(1, 5), pp = *rc::gen::inRange(1, 4);
  const int replicate = *rc::gen::inRange(1, 3), shard = *rc::gen::inRange(1, 4);
  ParallelLayout layout = ptd(layers, pp, tp, replicate, shard);
  if (pp == 2) {
    const auto cut = *rc::gen::inRange<std::int64_t>(0, layers + 1);
    layout.stages = {{0, cut}, {cut, layers}};
  }
  return layout.ranks() <= 10 ? layout : ptd(layers, pp, 2, 1, 1);
}

TEST(ReshardPlan, HoldsEveryInvariantBetweenRandomLayoutsOfAModel) {
  ModelSpec small = odd_model(2);
  small.hidden = 2, small.head_dim = 1, small.query_heads = 4, small.ffn = 5, small.vocab = 7;
  const ParameterTable table = parameter_table(small);
  check_many("random layouts", [&] {
    const ParallelLayout a = random_layout(2);
    ParallelLayout b = random_layout(2);
    b.dp_shard = 1, b.zero = 0;
    const auto order = [] { return *rc::gen::element(RankOrder::contiguous, RankOrder::megatron); };
    const RankMap from = mapped(order(), a);
    const RankMap to = mapped(order(), b, *rc::gen::element(0, 0, 3, a.ranks()));
    const auto tensors = model_tensors(table, from, to, DType::bf16);
    RC_ASSERT(broken_invariant(tensors, plan_reshard(tensors)) == "");
  });
}

// The short way against the list: equal totals, traffic and digest, over one node and several.
TEST(ReshardTotals, EqualThoseOfTheListedPlan) {
  std::set<std::uint64_t> digests;
  for (const ModelSpec& model : {even_model(8), odd_model(6)}) {
    const ParameterTable table = parameter_table(model);
    for (const auto& [pp, tp, dp] : {std::array{1, 2, 4}, {2, 2, 2}, {4, 1, 2}, {3, 2, 2}}) {
      for (const int to_tp : {1, 2, 4}) {
        const RankMap from = mapped(RankOrder::contiguous, ptd(model.layers, pp, tp, dp));
        const int ranks = from.layout.ranks();
        const RankMap to =
            mapped(RankOrder::contiguous, ptd(model.layers, 1, to_tp, ranks / to_tp));
        for (const int per_node : {ranks, 4, 2}) {
          ReshardOptions options;
          options.node_of = [per_node](int rank) { return rank / per_node; };
          const ReshardPlan listed =
              plan_reshard(model_tensors(table, from, to, DType::bf16), options);
          const ReshardPlan totals = reshard_totals(table, from, to, DType::bf16, options);
          EXPECT_EQ(totals.digest, listed.digest);
          EXPECT_EQ(totals.traffic, listed.traffic);
          EXPECT_EQ(totals.bytes_received.value, listed.bytes_received.value);
          EXPECT_EQ(totals.lower_bound.value, listed.lower_bound.value);
          EXPECT_EQ(totals.total_received.value, listed.total_received.value);
          EXPECT_EQ(totals.min_max_sent.value, listed.min_max_sent.value);
          EXPECT_TRUE(totals.transfers.empty());
          digests.insert(totals.digest);
        }
      }
    }
  }
  EXPECT_GT(digests.size(), 20U);
}

/// Rows that tp and pp divide: the layers' matrices alone.
ParameterTable divisible_table() {
  ParameterTable table = parameter_table(even_model(8));
  std::erase_if(table.rows, [](const Parameter& row) {
    return row.place != StagePlace::layer || row.split_dim < 0;
  });
  return table;
}

struct Transition {
  int p, t, pg, tg, d;  // HybridFlow's notation; N = p t d
};

// HybridFlow Table 2 (arXiv 2409.19256), M = bytes of the model.
TEST(ReshardPlan, MovesWhatTable2SaysForEveryEngine) {
  const ParameterTable table = divisible_table();
  const std::int64_t m = table.elements() * 2;
  for (const auto& [p, t, pg, tg, d] :
       {Transition{1, 4, 1, 2, 2}, Transition{2, 4, 1, 2, 2}, Transition{1, 8, 1, 2, 2},
        Transition{2, 4, 2, 2, 2}, Transition{4, 8, 1, 4, 1}}) {
    const RankMap training = mapped(RankOrder::contiguous, ptd(8, p, t, d));
    const RankMap generation =
        mapped(RankOrder::strided, ptd(8, pg, tg, p * t / (pg * tg) * d), 0, &training);
    const auto received = [](const std::vector<ShardedTensor>& tensors) {
      const ReshardPlan plan = plan_reshard(tensors);
      EXPECT_EQ(plan.total_received.value,
                plan.bytes_received.value * static_cast<std::int64_t>(plan.traffic.size()))
          << "every rank receives the same";
      return plan;
    };
    const std::int64_t trained = std::int64_t{t} * p, generating = std::int64_t{tg} * pg;
    const ReshardPlan hybrid = received(model_tensors(table, training, generation, DType::bf16));
    EXPECT_EQ(hybrid.bytes_received.value * generating * trained, (trained - generating) * m);
    for (const RankTraffic& rank : hybrid.traffic)
      EXPECT_EQ(rank.kept * trained, m);  // redundancy 0

    const ReshardPlan gather =
        received(full_gather_tensors(table, training, generation, DType::bf16));
    EXPECT_EQ(gather.bytes_received.value * trained, (trained - 1) * m);

    const int n = t * p * d;
    const RankMap fsdp = mapped(RankOrder::contiguous, ptd(8, 1, 1, 1, n));
    const ReshardPlan chat =
        plan_reshard(full_gather_tensors(table, fsdp, generation, DType::bf16));
    EXPECT_EQ(chat.total_received.value, (n - 1) * m);
  }
}

// The least that a rank of the 8- and 16-GPU examples receives.
TEST(ReshardPlan, VanillaGroupsReceiveMoreThanHybridFlows) {
  const ParameterTable table = divisible_table();
  const std::int64_t m = table.elements() * 2;
  const RankMap training = mapped(RankOrder::contiguous, ptd(8, 1, 4, 2));
  const RankMap vanilla = mapped(RankOrder::contiguous, ptd(8, 1, 2, 4));
  const ReshardPlan plan = plan_reshard(model_tensors(table, training, vanilla, DType::bf16));
  std::vector<int> redundant;
  for (int rank = 0; rank < 8; ++rank) {
    const RankTraffic& traffic = plan.traffic[static_cast<size_t>(rank)];
    EXPECT_TRUE(traffic.received * 4 == m || traffic.received * 2 == m);
    if (traffic.kept == 0) redundant.push_back(rank);
  }
  EXPECT_THAT(redundant, testing::ElementsAre(1, 2, 5, 6));
}

TEST(ReshardPlan, PrefersReplicasOfTheDestinationsNode) {
  ShardedTensor tensor{.name = "w", .shape = {64, 8}};
  const Box all = whole(tensor.shape);
  for (const int rank : {0, 2, 4, 6}) tensor.source.push_back({rank, all});
  for (const int rank : {1, 3, 5, 7}) tensor.destination.push_back({rank, all});
  const std::vector<ShardedTensor> tensors{tensor};
  const ReshardPlan plan = plan_reshard(tensors, {.node_of = [](int rank) { return rank / 2; }});
  for (const Transfer& transfer : plan.transfers) {
    EXPECT_EQ(transfer.source / 2, transfer.destination / 2);
  }
  EXPECT_EQ(plan.bytes_sent, plan.min_max_sent);
}

TEST(ReshardPlan, SendsATiedEmbeddingFromBothItsStages) {
  ModelSpec model = even_model(4);
  model.tied_embeddings = true;
  ParameterTable table = parameter_table(model);
  table.rows.resize(1);
  const RankMap from = mapped(RankOrder::contiguous, ptd(4, 2, 1, 1));
  const RankMap to = mapped(RankOrder::contiguous, ptd(4, 1, 1, 2), 2);
  const ReshardPlan plan = plan_reshard(model_tensors(table, from, to, DType::bf16));
  EXPECT_EQ(plan.traffic[0].sent, table.elements() * 2);
  EXPECT_EQ(plan.traffic[1].sent, table.elements() * 2);
}

TEST(ReshardPlan, MovesNothingBetweenEqualLayouts) {
  const ParameterTable table = parameter_table(odd_model());
  const RankMap map = mapped(RankOrder::contiguous, ptd(3, 3, 2, 2));
  const ReshardPlan plan = plan_reshard(model_tensors(table, map, map, DType::bf16));
  EXPECT_EQ(plan.total_received.value, 0);
  EXPECT_EQ(plan.traffic[3].kept, stored_elements(table, map.layout, map.coords[3]) * 2);
}

TEST(ReshardPlan, TheDigestTellsPlansApartAndRepeats) {
  const ParameterTable table = parameter_table(odd_model());
  const RankMap from = mapped(RankOrder::contiguous, ptd(3, 1, 2, 2));
  std::set<std::uint64_t> digests;
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const int tp : {1, 2, 4}) {
      const RankMap to = mapped(RankOrder::contiguous, ptd(3, 1, tp, 4 / tp));
      digests.insert(plan_reshard(model_tensors(table, from, to, DType::bf16)).digest);
    }
  }
  EXPECT_EQ(digests.size(), 3u);
}

// HybridFlow's Table 2 for TP8 x PP8 -> TP4: (64 - 4) / (4 x 64) of the tensors that TP cuts.
TEST(ReshardPlan, PlansSeventyBillionParametersOnAThousandRanksWithinASecond) {
  const ModelSpec llama70b{.family = ModelFamily::llama,
                           .layers = 80,
                           .hidden = 8192,
                           .query_heads = 64,
                           .kv_heads = 8,
                           .head_dim = 128,
                           .ffn = 28672,
                           .vocab = 128256,
                           .max_positions = 131072};
  const ParameterTable table = parameter_table(llama70b);
  const RankMap from = mapped(RankOrder::contiguous, ptd(80, 8, 8, 16));
  const RankMap to = mapped(RankOrder::strided, ptd(80, 1, 4, 256), 0, &from);
  const std::clock_t begin = std::clock();
  const ReshardPlan plan = plan_reshard(model_tensors(table, from, to, DType::bf16));
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  RecordProperty("cpu_seconds", std::to_string(seconds));
#ifdef NDEBUG  // the release build
  EXPECT_LT(seconds, 1.0);
#endif
  std::int64_t block = 0;
  for (const Transfer& transfer : plan.transfers) {
    block = std::max(block, volume(transfer.box) * 2);
  }
  EXPECT_EQ(plan.bytes_received, plan.lower_bound);
  EXPECT_LE(plan.bytes_sent.value, plan.min_max_sent.value + block);
  const double share = static_cast<double>(plan.bytes_received.value) / (2.0 * table.elements());
  EXPECT_NEAR(share, 60.0 / 256, 0.01);
}

TEST(ReshardPlan, ADestinationThatNobodyHoldsIsTheCallersFault) {
  ShardedTensor tensor{.name = "w", .shape = {4}};
  tensor.source = {{0, restricted(whole(tensor.shape), 0, {0, 3})}};
  tensor.destination = {{1, whole(tensor.shape)}};
  const std::vector<ShardedTensor> tensors{tensor};
  EXPECT_THROW(plan_reshard(tensors), Error);
}

}  // namespace
}  // namespace tessera
