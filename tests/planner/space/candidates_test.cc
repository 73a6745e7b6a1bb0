// Candidates against the tables of their engines, fixed settings and the cluster's nodes.
#include "planner/space/layout_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/engines/engine.h"
#include "planner/engines/engine_check.h"
#include "planner/pricing/fixed.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "planner/space/place_pools.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

FixedSettings parsed(std::vector<std::string> words, Problems& problems) {
  return parse_settings(words, problems);
}

// 28 heads, 4 of keys and values; 18 layers, which 4 stages do not divide; experts.
ModelSpec awkward_model() {
  ModelSpec model = tiny_model(18);
  model.family = ModelFamily::qwen3_moe;
  model.query_heads = 28;
  model.kv_heads = 4;
  model.ffn = 0;
  model.moe = MoeSpec{.experts = 8, .experts_per_token = 2, .expert_ffn = 64};
  model.vocab = 1024;
  model.dtype = DType::bf16;
  return model;
}

// Of Qwen3-MoE's decoder_sparse_step and mlp_only_layers; transformers' layers with experts are the
// others (modeling_qwen3_moe.py, Qwen3MoeDecoderLayer).
TEST(Candidates, DealOutTheExpertsOfModelsThatEndInADenseLayer) {
  ModelSpec ending = awkward_model(), dense = ending;
  ending.ffn = 352;
  ending.moe->dense_layers = {0, 17};
  dense.ffn = 352;
  dense.moe.reset();
  const Capabilities& table = engine_named("megatron").capabilities;
  const auto degrees = [&](const ModelSpec& model, Role role) {
    PlanRequest request =
        request_of(model, workload_of("grpo", KlPlace::none, false), cluster_of(8, 1, 80));
    CostEvaluator costs(request);
    std::set<int> found;
    for (const Candidate& c : enumerate_candidates(request, table, role, 8)) {
      if (found.insert(c.ep).second) {
        EXPECT_EQ(price_fixed(costs, c).why.find(" experts"), std::string::npos) << c.ep;
      }
    }
    return found;
  };
  EXPECT_EQ(degrees(ending, Role::actor), (std::set<int>{1, 2, 4, 8}));
  EXPECT_EQ(degrees(dense, Role::actor), std::set<int>{1});
}

TEST(Candidates, ShardTheReferenceAndScatterSequencesWhereAsked) {
  PlanRequest request =
      request_of(tiny_model(), workload_of("grpo", KlPlace::loss, false), cluster_of(8, 1, 80));
  Problems problems;
  const Capabilities& table = engine_named("tessera").capabilities;
  request.fixed = parsed({"reference.zero=3", "actor.sequence_parallel=1"}, problems);
  const auto references = enumerate_candidates(request, table, Role::reference, 8);
  const auto actors = enumerate_candidates(request, table, Role::actor, 8);
  ASSERT_FALSE(references.empty());
  ASSERT_FALSE(actors.empty());
  for (const Candidate& c : references) EXPECT_EQ(c.zero, 3);
  for (const Candidate& c : actors) EXPECT_TRUE(c.sequence_parallel && c.tp > 1);
  request.fixed = parsed({"reference.zero=0", "actor.sequence_parallel=0"}, problems);
  for (const Candidate& c : enumerate_candidates(request, table, Role::reference, 8)) {
    EXPECT_EQ(c.zero, 0);
  }
  for (const Candidate& c : enumerate_candidates(request, table, Role::actor, 8)) {
    EXPECT_FALSE(c.sequence_parallel);
  }
}

TEST(Candidates, ObeySettingsEngineAndBatch) {
  PlanRequest request =
      request_of(tiny_model(), workload_of("grpo", KlPlace::none, false), cluster_of(8, 1, 80));
  Problems problems;
  const Capabilities& table = engine_named("tessera").capabilities;
  for (const Candidate& c : enumerate_candidates(request, table, Role::actor, 8)) {
    EXPECT_EQ(c.tp * c.pp * c.dp, 8);
    EXPECT_LE(c.tp, 4);  // heads
    EXPECT_LE(c.pp, 2);  // layers
    EXPECT_EQ(16 % c.dp, 0);
    EXPECT_TRUE(c.zero == 0 || c.dp > 1);
    EXPECT_EQ(c.vpp, 1);  // two layers
    EXPECT_EQ(c.dp_shard > 1, c.zero == 3);
    EXPECT_TRUE(c.tp > 1 || !c.sequence_parallel);
    EXPECT_EQ(c.cp, 1);  // short sequences
    EXPECT_EQ(c.offload.parameters, c.offload.gradients);
  }
  for (const Candidate& c : enumerate_candidates(request, table, Role::rollout, 8)) {
    EXPECT_EQ(c.pp, 1);
  }
  request.fixed = parsed({"rollout.offload=all"}, problems);
  const auto unmapped = enumerate_candidates(request, table, Role::rollout, 8);
  EXPECT_FALSE(unmapped.empty());
  for (const Candidate& c : unmapped) EXPECT_TRUE(c.offload.parameters);
  request.fixed = parsed({"actor.tp=2", "actor.pp=2", "actor.tokens=100"}, problems);
  const auto fixed = enumerate_candidates(request, table, Role::actor, 8);
  // ZeRO 0, 1, 2 and FSDP; recompute; nothing, the optimizer or everything offloaded.
  std::set<std::pair<int, int>> sharding;
  for (const Candidate& c : fixed) sharding.insert({c.zero, c.dp_shard});
  EXPECT_EQ(sharding, (std::set<std::pair<int, int>>{{0, 1}, {1, 1}, {2, 1}, {3, 2}}));
  ASSERT_EQ(fixed.size(), sharding.size() * 3 * 3 * 2);  // with sequence parallelism and without
  EXPECT_EQ(fixed[0].tokens, 100);
  request.fixed =
      parsed({"actor.tp=2", "actor.pp=2", "actor.zero=2", "actor.offload=optimizer"}, problems);
  for (const Candidate& c : enumerate_candidates(request, table, Role::actor, 8)) {
    EXPECT_EQ(c.zero, 2);
    EXPECT_TRUE(c.offload.optimizer);
  }
  EXPECT_FALSE(enumerate_candidates(request, table, Role::actor, 8).empty());
  request.fixed = parsed({"actor.gpus=4"}, problems);
  EXPECT_TRUE(enumerate_candidates(request, table, Role::actor, 8).empty());
  EXPECT_FALSE(enumerate_candidates(request, table, Role::actor, 4).empty());
}

TEST(Candidates, LimitTheTokensOfCallsThatTrainApart) {
  PlanRequest request =
      request_of(tiny_model(), workload_of("ppo", KlPlace::none, false), cluster_of(8, 1, 80));
  Problems problems;
  const auto limits = [&](const char* engine, Role role, std::vector<std::string> words) {
    request.fixed = parsed(std::move(words), problems);
    DistinctLimits distinct(request.workload);
    std::set<std::pair<bool, bool>> kinds;  // calls that train take less, or more
    for (const Candidate& c : candidates_of(
             enumerate_layouts(request, engine_named(engine).capabilities, role, 8, distinct))) {
      kinds.insert({c.update_tokens > 0 && c.update_tokens<c.tokens, c.update_tokens> c.tokens});
    }
    return kinds;
  };
  const std::set<std::pair<bool, bool>> all{{false, false}, {false, true}, {true, false}};
  const std::set<std::pair<bool, bool>> alike{{false, false}}, less{{true, false}};
  EXPECT_EQ(limits("tessera", Role::actor, {}), all);
  EXPECT_EQ(limits("tessera", Role::critic, {}), all);
  EXPECT_EQ(limits("tessera", Role::reference, {}), alike);
  EXPECT_EQ(limits("verl", Role::actor, {}), all);
  EXPECT_EQ(limits("verl", Role::critic, {}), alike);  // has one limit
  EXPECT_EQ(limits("tessera", Role::actor, {"actor.tokens=64"}), alike);
  EXPECT_EQ(limits("tessera", Role::actor, {"actor.tokens=64", "actor.update_tokens=32"}), less);
  EXPECT_TRUE(
      limits("verl", Role::critic, {"critic.tokens=64", "critic.update_tokens=32"}).empty());
}

// Short sequences: one collective less outweighs what norms of whole sequences take.
TEST(Candidates, HaveTensorParallelismWithoutSequencesForShortOnesAlone) {
  Workload workload = workload_of("grpo", KlPlace::none, false);
  PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, 1, 80));
  const auto kinds = [&](std::int64_t longest) {
    request.workload.prompt_tokens = 8;
    request.workload.response_tokens = {static_cast<double>(longest - 8), 0, longest - 8};
    std::set<bool> found;
    for (const Candidate& c :
         enumerate_candidates(request, engine_named("tessera").capabilities, Role::actor, 8)) {
      if (c.tp > 1) found.insert(c.sequence_parallel);
    }
    return found;
  };
  EXPECT_EQ(kinds(2048), (std::set<bool>{false, true}));  // of 4,096 hidden, bf16: 16 MiB
  EXPECT_EQ(kinds(2049), std::set<bool>{true});
}

// Ulysses' groups are all the ways that FSDP alone has to cut a sequence.
TEST(Candidates, OfVerlHaveEveryUlyssesDegree) {
  Workload workload = workload_of("grpo", KlPlace::none, false);
  workload.prompts_per_step = 64;
  const auto degrees = [&](const char* engine) {
    const PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, 1, 80), "h100");
    std::set<int> found;
    for (const Candidate& c :
         enumerate_candidates(request, engine_named(engine).capabilities, Role::actor, 8)) {
      found.insert(c.cp);
    }
    return found;
  };
  EXPECT_EQ(degrees("verl"), (std::set<int>{1, 2, 4, 8}));
  EXPECT_EQ(degrees("tessera"), std::set<int>{1});
}

// Short sequences are cut where replicas cannot take a factor of the context's degree: 32 of them
// have no equal parts for 24, 48 or 64 replicas.
TEST(Candidates, CutSequencesWhereReplicasDoNotDivideTheBatch) {
  Workload workload = workload_of("grpo", KlPlace::none, false);
  workload.prompts_per_step = 32;
  workload.samples_per_prompt = 1;
  const auto splits = [&](int nodes) {
    const PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, nodes, 80), "h100");
    std::set<std::pair<int, int>> found;  // cp, dp
    for (const Candidate& c : enumerate_candidates(request, engine_named("tessera").capabilities,
                                                   Role::actor, 8 * nodes)) {
      if (c.tp == 1 && c.pp == 1) found.emplace(c.cp, c.dp);
    }
    return found;
  };
  EXPECT_EQ(splits(3), (std::set<std::pair<int, int>>{{3, 8}}));
  EXPECT_EQ(splits(4), (std::set<std::pair<int, int>>{{1, 32}}));
  EXPECT_EQ(splits(6), (std::set<std::pair<int, int>>{{3, 16}}));
  EXPECT_EQ(splits(8), (std::set<std::pair<int, int>>{{2, 32}}));
}

TEST(Candidates, NeverPutATensorParallelGroupAcrossNodes) {
  const PlanRequest request =
      request_of(llama_8b(), workload_of("grpo", KlPlace::none, false), cluster_of(4, 4, 80));
  for (const Candidate& c :
       enumerate_candidates(request, engine_named("tessera").capabilities, Role::actor, 16)) {
    EXPECT_EQ(4 % c.tp, 0);
  }
}

TEST(Candidates, OfEveryEngineAreWhatItsTableAllows) {
  for (const std::string& engine : engine_names()) {
    for (const bool sparse : {false, true}) {
      Workload workload = workload_of("ppo", KlPlace::reward, true);
      workload.prompts_per_step = 16;
      ModelSpec dense = tiny_model(18);
      dense.query_heads = 12;
      dense.kv_heads = 3;
      PlanRequest request =
          request_of(sparse ? awkward_model() : dense, workload, cluster_of(8, 2, 80));
      const Engine& named = engine_named(engine);
      const Capabilities& table = named.capabilities;
      std::size_t count = 0;
      for (const Role role : table.roles) {
        const ModelSpec model = model_of(request, role);
        for (const int gpus : {1, 2, 4, 8, 16}) {
          for (const Candidate& candidate : enumerate_candidates(request, table, role, gpus)) {
            ++count;
            for (const Problem& problem :
                 outside_capabilities(named, model, role, layout_of(candidate, model.layers))) {
              ADD_FAILURE() << engine << " " << name_of(role) << " " << to_string(problem);
            }
          }
        }
      }
      EXPECT_GT(count, 10U) << engine;
    }
  }
}

// Megatron-LM's interleaved schedule runs a multiple of pp micro-batches of equally many sequences
// (core/pipeline_parallel/schedules.py); verl's packs them into one, none of them empty.
TEST(Candidates, OfInterleavedStagesHaveTheSequencesOfWholeRounds) {
  Workload workload = workload_of("grpo", KlPlace::none, false);
  workload.prompts_per_step = 60;
  workload.samples_per_prompt = 1;
  workload.mini_batches = 2;
  PlanRequest request = request_of(tiny_model(16), workload, cluster_of(8, 1, 80));
  const auto found = [&](const char* name) {
    request.engine = name;
    request.traits = traits_of(name);
    std::set<std::pair<int, std::int64_t>> layouts;  // (pp, sequences of a replica's update)
    for (const int gpus : {4, 8}) {
      for (const Candidate& candidate :
           enumerate_candidates(request, engine_named(name).capabilities, Role::actor, gpus)) {
        if (candidate.vpp > 1) layouts.emplace(candidate.pp, 30 / candidate.dp);
      }
    }
    return layouts;
  };
  using Layouts = std::set<std::pair<int, std::int64_t>>;
  EXPECT_EQ(found("megatron"), (Layouts{{2, 30}}));
  EXPECT_EQ(found("verl-megatron"), (Layouts{{2, 15}, {2, 30}, {4, 15}, {4, 30}, {8, 30}}));
  EXPECT_EQ(found("any"), found("verl-megatron"));
}

// What the table allows is there: the reward model of verl is served, with any tp of a server's.
TEST(Candidates, OfAServedRewardModelHaveTensorParallelism) {
  Workload workload = workload_of("grpo", KlPlace::none, true);
  const PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, 1, 80));
  for (const char* engine : {"verl", "verl-megatron"}) {
    const Capabilities& table = engine_named(engine).capabilities;
    int most = 1;
    for (const Candidate& candidate : enumerate_candidates(request, table, Role::reward, 8)) {
      most = std::max(most, candidate.tp);
      EXPECT_EQ(candidate.pp, 1);
      EXPECT_FALSE(candidate.sequence_parallel);
    }
    EXPECT_EQ(most, 8) << engine;
  }
}

TEST(Candidates, ObeyTheLargestDegreesOfATable) {
  const PlanRequest request =
      request_of(llama_8b(), workload_of("grpo", KlPlace::none, false), cluster_of(8, 1, 80));
  Capabilities table = engine_named("tessera").capabilities;
  table.training.most_tp = 4;
  table.training.most_pp = 2;
  int tp = 0, pp = 0;
  for (const Candidate& candidate : enumerate_candidates(request, table, Role::actor, 8)) {
    tp = std::max(tp, candidate.tp);
    pp = std::max(pp, candidate.pp);
  }
  EXPECT_EQ(tp, 4);
  EXPECT_EQ(pp, 2);
}

TEST(PlaceBlocks, NeverCrossesANodeUnlessItFillsWholeOnes) {
  const ClusterSpec cluster = cluster_of(8, 3, 80);
  EXPECT_EQ(place_blocks({4, 16, 4}, cluster), (std::vector<int>{16, 0, 20}));
  EXPECT_EQ(place_blocks({1, 2, 4}, cluster), (std::vector<int>{6, 4, 0}));
  EXPECT_TRUE(place_blocks({16, 8, 1}, cluster).empty());
  EXPECT_EQ(block_sizes(cluster), (std::vector<int>{1, 2, 4, 8, 16, 24}));
  EXPECT_EQ(block_sizes(cluster_of(6, 1, 80)), (std::vector<int>{1, 2, 3, 6}));
}

// Megatron-Core's expert tensor parallelism is any part of tp, and so is Tessera's own, of the
// rollout too; that of other servers is tp or none.
TEST(Candidates, CutExpertsByAnyDivisorOfTheTensorParallelDegreeWhereTheEngineDoes) {
  PlanRequest request =
      request_of(awkward_model(), workload_of("grpo", KlPlace::none, false), cluster_of(8, 1, 80));
  Problems problems;
  request.fixed = parsed({"actor.tp=4", "rollout.tp=4"}, problems);
  const auto degrees = [&](const char* engine, Role role) {
    std::set<int> etp;
    for (const Candidate& c :
         enumerate_candidates(request, engine_named(engine).capabilities, role, 8)) {
      etp.insert(c.etp);
    }
    return etp;
  };
  EXPECT_EQ(degrees("verl-megatron", Role::actor), (std::set{1, 2, 4}));
  EXPECT_EQ(degrees("verl-megatron", Role::rollout), (std::set{1, 4}));
  EXPECT_EQ(degrees("any", Role::actor), (std::set{1, 2, 4}));
  EXPECT_EQ(degrees("tessera", Role::actor), (std::set{1, 2, 4}));
  EXPECT_EQ(degrees("tessera", Role::rollout), (std::set{1, 2, 4}));
}

}  // namespace
}  // namespace tessera
