// The comparison of reshard methods against HybridFlow's published table and against a count over
// every element of small models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "cost_models/layout/sharding.h"
#include "planner/plan/plan.h"
#include "simulator/reshard/gathered_flows.h"
#include "simulator/reshard/layout_words.h"
#include "simulator/reshard/methods.h"
#include "simulator/reshard/methods_report.h"
#include "tests/cost_models/layout/sample_models.h"

namespace tessera {
namespace {

using json = nlohmann::json;

std::vector<int> ranks_from(int first, int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

struct Degree3 {
  int pp = 1, tp = 1, dp = 1;
};

ParallelLayout layout_with(const ParameterTable& table, Degree3 degrees, int shard = 1) {
  return {{.tp = degrees.tp, .pp = degrees.pp, .dp = degrees.dp * shard, .dp_shard = shard},
          shard > 1 ? 3 : 0,
          even_stages(table.model.layers, degrees.pp)};
}

ReshardQuestion question_of(ParameterTable table, const ParallelLayout& from,
                            const ParallelLayout& to, bool apart = false) {
  Problems problems;
  ReshardQuestion question{.table = std::move(table), .from = {}, .to = to, .to_ranks = {}};
  question.from = make_rank_map(RankOrder::contiguous, from, ranks_from(0, from.ranks()), nullptr,
                                "", problems);
  question.to_ranks = ranks_from(apart ? from.ranks() : 0, to.ranks());
  question.cluster = read_cluster_spec("h100-64", problems).value();
  question.calibration = calibration_for_cluster(question.cluster, problems).value();
  EXPECT_TRUE(problems.empty());
  return question;
}

/// A model of matrices alone that every degree here cuts evenly, as the paper's M.
ParameterTable even_table() {
  ParameterTable table{.model = even_model(16), .rows = {}};
  for (int layer = 0; layer < 16; ++layer) {
    Parameter row;
    row.name = row.storage = "layer " + std::to_string(layer);
    row.shape = {64, 4};
    row.layer = layer;
    row.split_dim = 0;
    row.unit = SplitUnit::ffn_columns;
    row.units = 64;
    row.unit_size = 1;
    table.rows.push_back(row);
  }
  return table;
}

// Whose bytes they are, of trainers that are cut by stages, tensors, experts' ranks and shards.
TEST(ReshardMethods, GatheredFlowsAreTheModelOnEveryRank) {
  for (const ParameterTable& table : {even_table(), parameter_table(even_model(16))}) {
    for (const auto& [degrees, shard] :
         {std::pair(Degree3{.pp = 2, .tp = 4, .dp = 2}, 1), std::pair(Degree3{.tp = 2}, 4),
          std::pair(Degree3{.pp = 1, .tp = 1, .dp = 2}, 2)}) {
      const ParallelLayout layout = layout_with(table, degrees, shard);
      const ReshardQuestion question =
          question_of(table, layout, layout_with(table, {.dp = layout.ranks()}));
      std::map<int, std::int64_t> received, held;
      for (const WeightFlow& flow : gathered_flows(table, question.from, 8)) {
        (flow.from == flow.to ? held : received)[flow.to] += flow.elements;
      }
      std::int64_t most = 0;
      for (const auto& [rank, elements] : received) {
        EXPECT_EQ(elements + held[rank], table.elements());
        const RankCoord& at = question.from.coords[static_cast<std::size_t>(rank)];
        EXPECT_EQ(held[rank], stored_elements(table, layout, at));
        most = std::max(most, elements);
      }
      EXPECT_EQ(received.size(), static_cast<std::size_t>(layout.ranks()));
      const MethodCost cost = ReshardComparison(question).cost(ReshardMethod::gather_model);
      EXPECT_EQ(most * size_of(question.weights), cost.received.value);
    }
  }
}

// The first rank gathers the model, and sends it to GPUs of the rollout's own.
TEST(ReshardMethods, BroadcastFlowsComeFromOneRank) {
  const ParameterTable table = even_table();
  const ReshardQuestion question = question_of(table, layout_with(table, {.pp = 2, .tp = 2}),
                                               layout_with(table, {.dp = 4}), true);
  std::int64_t gathered = 0;
  std::set<int> receivers;
  for (const WeightFlow& flow : broadcast_flows(table, question.from, question.to_ranks, 8)) {
    if (flow.to == 0) {
      gathered += flow.elements;
      continue;
    }
    EXPECT_EQ(flow, (WeightFlow{0, flow.to, table.elements()}));
    receivers.insert(flow.to);
  }
  EXPECT_EQ(gathered, table.elements());
  EXPECT_EQ(receivers, std::set<int>(question.to_ranks.begin(), question.to_ranks.end()));
}

// arXiv 2409.19256, table 2: what a GPU receives, its peak, and what it keeps beside, in parts of
// the model. d counts training replicas; generation has d dg of them.
TEST(ReshardMethods, AreHybridFlowsTable) {
  struct Row {
    Degree3 from, to;
  };
  for (const Row& row : {Row{{1, 4, 2}, {1, 2, 4}},
                         {{2, 4, 2}, {1, 2, 8}},
                         {{1, 8, 2}, {1, 2, 8}},
                         {{2, 4, 2}, {2, 2, 4}},
                         {{4, 8, 1}, {1, 4, 8}}}) {
    const ParameterTable table = even_table();
    const ReshardComparison found(
        question_of(table, layout_with(table, row.from), layout_with(table, row.to)));
    const auto model = static_cast<double>(found.model_bytes().value);
    const double tp = row.from.tp * row.from.pp, tpd = tp * row.from.dp;
    const double generation = row.to.tp * row.to.pp;
    const auto expect = [&](ReshardMethod method, double received, double peak, double beside) {
      const MethodCost cost = found.cost(method);
      ASSERT_EQ(cost.unusable, "") << name_of(method);
      EXPECT_EQ(static_cast<double>(cost.received.value), received * model) << name_of(method);
      EXPECT_EQ(static_cast<double>(cost.peak.value), peak * model) << name_of(method);
      EXPECT_EQ(static_cast<double>(cost.redundant.value), beside * model) << name_of(method);
    };
    expect(ReshardMethod::gather_all, (tpd - 1) / tpd, 1, 1 / tpd);
    expect(ReshardMethod::gather_model, (tp - 1) / tp, 1, 1 / tp);
    const double received = (tp - generation) / (generation * tp);
    expect(ReshardMethod::micro_dp, received, 1 / generation, 0);
    expect(ReshardMethod::copy_engine, received, 1 / generation, 0);
  }
}

// The same of a real model: TP8 x PP4 to TP4 moves 77.4 % less than HybridFlow-V; TP8 to TP2 of 16
// GPUs receives 0.375 of the model, against 0.875 and 0.9375. Norms are no part of the formula.
TEST(ReshardMethods, OfA70BModelAreThePublishedShares) {
  Problems problems;
  const ParameterTable table = parameter_table(read_model_spec("llama2-70b", problems).value());
  const auto shares = [&](Degree3 from, Degree3 to, ReshardMethod method) {
    const ReshardComparison found(
        question_of(table, layout_with(table, from), layout_with(table, to)));
    return found.cost(method).received / found.model_bytes();
  };
  const double strided = shares({4, 8, 1}, {1, 4, 8}, ReshardMethod::micro_dp);
  EXPECT_NEAR(strided, 30.6 / 140, 0.002);
  EXPECT_NEAR(shares({4, 8, 1}, {1, 4, 8}, ReshardMethod::gather_model), 135.6 / 140, 0.002);
  EXPECT_NEAR(shares({1, 8, 2}, {1, 2, 8}, ReshardMethod::micro_dp), 0.375, 0.001);
  EXPECT_NEAR(shares({1, 8, 2}, {1, 2, 8}, ReshardMethod::gather_model), 0.875, 0.001);
  EXPECT_NEAR(shares({1, 8, 2}, {1, 2, 8}, ReshardMethod::gather_all), 0.9375, 0.001);
}

/// Elements of all tensors by rank: element k of tensor t is held or not.
using Elements = std::vector<std::set<std::pair<int, std::int64_t>>>;
using BoxOf = std::function<std::optional<Box>(const Parameter&, const RankCoord&)>;

// Every element of every tensor is asked one by one.
Elements elements_of(const ParameterTable& table, const RankMap& map, const BoxOf& box_of) {
  Elements all(map.ranks.size());
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::vector<std::int64_t>& shape = table.rows[row].shape;
    for (std::size_t i = 0; i < map.ranks.size(); ++i) {
      const auto box = box_of(table.rows[row], map.coords[i]);
      for (std::int64_t k = 0; box && k < table.rows[row].elements(); ++k) {
        bool inside = true;
        std::int64_t rest = k;
        for (std::size_t dim = shape.size(); dim-- > 0; rest /= shape[dim]) {
          const std::int64_t at = rest % shape[dim];
          inside = inside && box->dims[dim].lo <= at && at < box->dims[dim].hi;
        }
        if (inside) all[i].emplace(static_cast<int>(row), k);
      }
    }
  }
  return all;
}

std::int64_t missing(const std::set<std::pair<int, std::int64_t>>& wanted,
                     const std::set<std::pair<int, std::int64_t>>& held) {
  return std::count_if(wanted.begin(), wanted.end(),
                       [&](const auto& element) { return !held.contains(element); });
}

void expect_counted(const ParameterTable& table, const ParallelLayout& from,
                    const ParallelLayout& to) {
  const ReshardQuestion question = question_of(table, from, to);
  const ReshardComparison found(question);
  const Elements held = elements_of(
      table, question.from,
      [&](const Parameter& row, const RankCoord& at) { return stored_box(row, from, at); });
  const RankMap& dealt = found.dealt();
  const Elements needed = elements_of(table, dealt, [&](const Parameter& row, const RankCoord& at) {
    return compute_box(row, to, at);
  });
  std::set<std::pair<int, std::int64_t>> whole;
  for (const auto& rank : held) whole.insert(rank.begin(), rank.end());
  ASSERT_EQ(static_cast<std::int64_t>(whole.size()), table.elements());
  std::int64_t gathered = 0, moved = 0, total = 0, beside = 0;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const auto& own = held[static_cast<std::size_t>(question.from.index_of(dealt.ranks[i]))];
    gathered = std::max(gathered, missing(whole, own));
    moved = std::max(moved, missing(needed[i], own));
    total += missing(needed[i], own);
    beside = std::max(beside, missing(own, needed[i]));
  }
  const MethodCost per_tensor = found.cost(ReshardMethod::per_tensor);
  EXPECT_EQ(per_tensor.received, 2 * gathered);
  for (const ReshardMethod method :
       {ReshardMethod::copy_engine, ReshardMethod::window, ReshardMethod::send_recv}) {
    const MethodCost ours = found.cost(method);
    EXPECT_EQ(ours.received, 2 * moved) << describe(from) << " -> " << describe(to);
    EXPECT_EQ(ours.total_received, 2 * total);
    EXPECT_EQ(ours.redundant, 2 * beside);
  }
  const MethodCost strided = found.cost(ReshardMethod::micro_dp);
  if (strided.unusable.empty()) {
    EXPECT_EQ(strided.received, 2 * moved);
  }
}

TEST(ReshardMethods, ReceiveWhatACountOverEveryElementSays) {
  for (const ModelSpec& model : {even_model(4), odd_model(4)}) {
    const ParameterTable table = parameter_table(model);
    for (const auto& [from, to] :
         {std::pair{layout_with(table, {1, 4, 2}), layout_with(table, {1, 2, 4})},
          {layout_with(table, {2, 2, 2}), layout_with(table, {1, 2, 4})},
          {layout_with(table, {2, 2, 1}), layout_with(table, {1, 4, 1})},
          {layout_with(table, {1, 1, 1}, 4), layout_with(table, {1, 2, 2})},
          {layout_with(table, {1, 2, 1}, 2), layout_with(table, {2, 1, 2})}}) {
      expect_counted(table, from, to);
    }
  }
}

TEST(ReshardMethods, AlongTheCurveMemoryRisesAndTimeFalls) {
  const ParameterTable table = parameter_table(even_model(4));
  ReshardQuestion question =
      question_of(table, layout_with(table, {1, 4, 2}), layout_with(table, {1, 2, 4}));
  Problems problems;
  question.table = parameter_table(read_model_spec("qwen2-7b", problems).value());
  question.from.layout.stages = question.to.stages = even_stages(28, 1);
  const auto curve = bucket_curve(ReshardComparison(question));
  ASSERT_GT(curve.size(), 5U);
  for (std::size_t i = 1; i < curve.size(); ++i) {
    ASSERT_EQ(curve[i].costs.size(), curve[0].costs.size());
    for (std::size_t m = 0; m < curve[i].costs.size(); ++m) {
      const MethodCost &less = curve[i - 1].costs[m], &more = curve[i].costs[m];
      EXPECT_LE(less.peak, more.peak) << name_of(more.method);
      if (more.method == ReshardMethod::copy_engine || more.method == ReshardMethod::send_recv) {
        EXPECT_GE(less.wire, more.wire) << name_of(more.method);
      }
    }
  }
  for (std::size_t m = 0; m < curve.front().costs.size(); ++m) {
    const MethodCost &first = curve.front().costs[m], &last = curve.back().costs[m];
    if (first.method < ReshardMethod::copy_engine) {
      EXPECT_GT(last.peak, first.peak) << name_of(last.method);
    } else {
      EXPECT_LT(last.wire, first.wire) << name_of(last.method);
    }
  }
}

TEST(ReshardMethods, SayWhyTheyAreNotUsable) {
  const ParameterTable table = parameter_table(even_model(4));
  const ReshardComparison apart(
      question_of(table, layout_with(table, {1, 4, 1}), layout_with(table, {1, 2, 1}), true));
  EXPECT_TRUE(apart.apart());
  for (const MethodCost& cost : apart.all()) {
    const bool reaches = cost.method >= ReshardMethod::broadcast;
    EXPECT_EQ(cost.unusable.empty(), reaches) << name_of(cost.method);
    EXPECT_EQ(cost.received > 0, reaches);
  }
  const ReshardComparison wider(
      question_of(table, layout_with(table, {1, 2, 2}), layout_with(table, {1, 4, 1})));
  EXPECT_NE(wider.cost(ReshardMethod::micro_dp).unusable, "");
  EXPECT_EQ(wider.cost(ReshardMethod::gather_model).unusable, "");
}

TEST(ReshardMethods, SayWhichHoldMoreThanAGpuHas) {
  const ParameterTable table = even_table();
  ReshardQuestion question =
      question_of(table, layout_with(table, {1, 4, 2}), layout_with(table, {1, 2, 4}));
  const std::int64_t model = ReshardComparison(question).model_bytes().value;
  // The model and the quarter that a rank trains with; ours needs half of it and keeps nothing.
  question.cluster.device.memory = Bytes{model + model / 4};
  EXPECT_TRUE(ReshardComparison(question).cost(ReshardMethod::gather_model).fits);
  question.cluster.device.memory = Bytes{model + model / 4 - 1};
  const ReshardComparison less(question);
  EXPECT_FALSE(less.cost(ReshardMethod::gather_model).fits);
  EXPECT_TRUE(less.cost(ReshardMethod::copy_engine).fits);
  EXPECT_THAT(reshard_text(less, "even", false), testing::HasSubstr("nothing; DOES NOT FIT"));
}

TEST(ReshardMethods, AreWrittenAsTheSchemaAndTheTableSay) {
  const ParameterTable table = parameter_table(even_model(4));
  const ReshardComparison found(
      question_of(table, layout_with(table, {1, 2, 2}), layout_with(table, {1, 4, 1})));
  std::ifstream in(TESSERA_SOURCE_DIR "/docs/schemas/reshard.schema.json");
  const json text = json::parse(in);
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(text), schema);
  valijson::Validator validator;
  json written = json::parse(reshard_json(found, "even"));
  EXPECT_TRUE(
      validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(written), nullptr));
  ASSERT_EQ(written["methods"].size(), kReshardMethods.size());
  Problems problems;
  const CsvTable csv = parse_csv(reshard_csv(found, false), "", problems).value();
  ASSERT_EQ(csv.rows.size(), kReshardMethods.size());
  for (std::size_t i = 0; i < kReshardMethods.size(); ++i) {
    const json& row = written["methods"][i];
    EXPECT_EQ(row["method"], name_of(kReshardMethods[i]));
    EXPECT_EQ(csv.rows[i].cells[0], name_of(kReshardMethods[i]));
    if (row.contains("unusable")) continue;
    EXPECT_EQ(csv.rows[i].cells[1], std::to_string(row["received_bytes"].get<std::int64_t>()));
  }
  EXPECT_EQ(parse_csv(reshard_csv(found, true), "", problems)->rows.size(),
            bucket_curve(found).size() * 6);
  const std::string page = reshard_text(found, "even", true);
  EXPECT_THAT(page, testing::HasSubstr("tp2 pp1 dp2 -> tp4 pp1 dp1, on the same GPUs"));
  EXPECT_THAT(page, testing::HasSubstr("micro_dp      needs a trainer cut"));
  written["methods"][0].erase("peak_bytes");
  EXPECT_FALSE(
      validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(written), nullptr));
}

TEST(LayoutWords, AreReadWithWhatIsLeftAsReplicas) {
  Problems problems;
  const auto read = [&](const std::string& text, std::int64_t gpus = 16) {
    return read_layout_words(text, 8, gpus, "FROM", problems);
  };
  EXPECT_EQ(describe(read("tp=4,pp=2")->layout), "tp4 pp2 dp2");
  EXPECT_EQ(describe(read("fsdp")->layout), "tp1 pp1 dp16 fsdp16 zero3");
  EXPECT_EQ(describe(read("fsdp=4,tp=2")->layout), "tp2 pp1 dp8 fsdp4 zero3");
  EXPECT_EQ(read("tp=2,order=megatron")->order, RankOrder::megatron);
  EXPECT_TRUE(problems.empty());
  for (const char* const wrong :
       {"", "tp", "tp=0", "tp=3", "tp=2,tp=4", "tp=2x", "gp=2", "order=list", "pp=16,vpp=2",
        "tp=32", "tp=32768,cp=32768,pp=32768,dp=32768,fsdp=32768"}) {
    problems.clear();
    EXPECT_FALSE(read(wrong)) << wrong;
    EXPECT_FALSE(problems.empty()) << wrong;
  }
}

}  // namespace
}  // namespace tessera
