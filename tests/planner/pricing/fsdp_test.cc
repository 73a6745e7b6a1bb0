// What verl's FSDP keeps between passes. Oracle: what torch's allocator has given out at the ends
// of passes (tests/cost_models/fsdp_root_oracle.py); of time, the collectives that are left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cost_models/collective.h"
#include "planner/engines/engine.h"
#include "planner/pricing/evaluate.h"
#include "planner/request/candidate.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

Json counted() {
  std::ifstream in(std::string(TESSERA_SOURCE_DIR) + "/tests/fixtures/activations/fsdp_root.json");
  return Json::parse(in);
}

/// The fixture's model, whose two ends outweigh all else.
PlanRequest request_for(const Json& fixture, const Json& each) {
  ModelSpec model;
  model.family = ModelFamily::qwen2;
  model.hidden = fixture.at("hidden_size");
  model.ffn = fixture.at("intermediate_size");
  model.query_heads = model.kv_heads = fixture.at("num_attention_heads");
  model.head_dim = model.hidden / model.query_heads;
  model.vocab = fixture.at("vocab_size");
  model.layers = fixture.at("num_hidden_layers");
  model.max_positions = 128;
  model.qkv_bias = true;
  model.tied_embeddings = each.at("ends") == "tied";
  PlanRequest request =
      request_of(model, workload_of("grpo", KlPlace::loss, false), cluster_of(8, 1, 80));
  request.engine = "verl";
  request.traits = traits_of("verl");
  const Fsdp fsdp = each.at("fsdp") == 1 ? Fsdp::fsdp1 : Fsdp::fsdp2;
  request.choices.fsdp[Role::actor] = request.choices.fsdp[Role::reference] = fsdp;
  return request;
}

Candidate sharded(Role role, int gpus, int shard, std::int64_t tokens) {
  Candidate candidate{{.dp = gpus}, role, gpus, 3, tokens};
  candidate.dp_shard = shard;
  return candidate;
}

/// Of the ends that a policy has.
std::vector<Json> cases_of(const Json& fixture) {
  std::vector<Json> cases;
  for (const Json& each : fixture.at("cases")) {
    if (each.at("ends") != "value") cases.push_back(each);
  }
  return cases;
}

TEST(Fsdp, KeepsItsFirstVersionsRootAfterAPassThatScores) {
  const Json fixture = counted();
  for (const Json& each : cases_of(fixture)) {
    SCOPED_TRACE(each.dump());
    CostEvaluator costs(request_for(fixture, each));
    const int ranks = each.at("ranks");
    const Candidate actor = sharded(Role::actor, ranks, ranks, 64);
    const Candidate reference = sharded(Role::reference, ranks, ranks, 64);
    const std::int64_t left = each.at("left"), cut = each.at("cut");
    const auto near = [](Bytes said, std::int64_t counted) {
      EXPECT_NEAR(static_cast<double>(said.value), static_cast<double>(counted), 1024);
    };
    for (const Phase phase : {Phase::gen, Phase::reshard, Phase::old_log_prob, Phase::adv,
                              Phase::update_actor, Phase::save_checkpoint}) {
      near(costs.memory(reference, phase).gathered, left);
    }
    // Of the actor from the old log-probs to its update.
    for (const Phase phase : {Phase::ref, Phase::adv}) {
      near(costs.memory(actor, phase).gathered, left);
    }
    for (const Phase phase : {Phase::gen, Phase::reshard, Phase::save_checkpoint}) {
      near(costs.memory(actor, phase).gathered, cut);
    }
    const RoleCost cost = costs.cost(reference);
    near(cost.resident, costs.memory(reference, Phase::gen).total().value);
    // What a search fills ranks by is no less than what they hold while the reference scores.
    near(costs.cost(actor).resident, costs.memory(actor, Phase::ref).total().value);
  }
}

// verl cuts the root itself where fsdp_size is stated.
TEST(Fsdp, CutsItsRootWhereShardsAreOfSomeRanks) {
  const Json fixture = counted();
  CostEvaluator costs(request_for(fixture, fixture.at("cases").at(0)));
  EXPECT_EQ(costs.memory(sharded(Role::reference, 8, 4, 64), Phase::gen).gathered, 0);
  EXPECT_GT(costs.memory(sharded(Role::reference, 8, 8, 64), Phase::gen).gathered, 0);
}

TEST(Fsdp, KeepsWholeGradientsThatAreNotReducedBetweenMicroBatches) {
  const Json fixture = counted();
  for (const Json& each : cases_of(fixture)) {
    SCOPED_TRACE(each.dump());
    const int ranks = each.at("ranks");
    PlanRequest request = request_for(fixture, each);
    const auto most = [&](std::int64_t micro_batches) {
      // 16 sequences of 12 tokens.
      const Candidate actor = sharded(Role::actor, ranks, ranks, 12 * 16 / ranks / micro_batches);
      CostEvaluator costs(request);
      return costs.memory(actor, Phase::update_actor).total();
    };
    const auto at = [&](const char* moment) { return each.at(moment).get<std::int64_t>(); };
    const Bytes one = most(1), reduced = most(2);
    request.choices.no_sync[Role::actor] = true;
    EXPECT_EQ(most(1), one);
    const std::int64_t more = std::max({at("first_end"), at("last_layers"), at("last_end")}) -
                              std::max(at("layers"), at("end"));
    EXPECT_GT(more, 0);
    EXPECT_NEAR(static_cast<double>((most(2) - reduced).value) / static_cast<double>(more), 1,
                0.01);
  }
}

// A slow network, beside which nothing hides: a reduction of every layer for each micro-batch but
// one.
TEST(Fsdp, ReducesGradientsOnceAMiniBatchWithoutSynchronisation) {
  const Json fixture = counted();
  PlanRequest request = request_for(fixture, fixture.at("cases").at(3));
  ASSERT_EQ(request.choices.fsdp[Role::actor], Fsdp::fsdp2);
  request.cluster = cluster_of(1, 2, 80);
  request.cluster.nic = gb_per_s(0.01);
  const auto seconds = [&](bool no_sync, std::int64_t micro_batches) {
    request.choices.no_sync[Role::actor] = no_sync;
    CostEvaluator costs(request);
    return costs.seconds(
        sharded(Role::actor, 2, 2, std::int64_t{96} / micro_batches))[Phase::update_actor];
  };
  EXPECT_EQ(seconds(true, 1), seconds(false, 1));
  const Traffic layer{4 * fixture.at("cases").at(3).at("layer").get<double>()};
  const Seconds reduction = collective_seconds(Collective::reduce_scatter, layer, {2, 2},
                                               request.cluster, request.calibration);
  for (const int count : {2, 4, 8}) {
    const Seconds saved = seconds(false, count) - seconds(true, count);
    EXPECT_NEAR(saved / ((count - 1) * request.models["actor"].spec.layers * reduction), 1, 0.02)
        << count;
  }
}

}  // namespace
}  // namespace tessera
