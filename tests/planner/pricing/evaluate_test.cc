// Oracles: hand counts of pipelines and volumes, HybridFlow's closed forms.
#include "planner/pricing/evaluate.h"

#include <gtest/gtest.h>

#include <utility>

#include "cost_models/collective.h"
#include "cost_models/layout/rank_assignment.h"
#include "cost_models/layout/sharding.h"
#include "planner/engines/engine.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "planner/space/layout_space.h"
#include "tests/planner/pricing/small_request.h"

namespace tessera {
namespace {

TEST(ReshardBytes, AreHybridFlowsClosedFormWhereDegreesDivide) {
  const PlanRequest request = small_request();
  CostEvaluator costs(request);
  const Candidate actor{{.tp = 8, .pp = 2}, Role::actor, 16};
  const Candidate rollout{{.tp = 2, .dp = 8}, Role::rollout, 16};
  // (tp - tg pg) / (tg pg tp) M over the layers (HybridFlow Table 2); embedding and head sit on one
  // stage each, norms are whole everywhere.
  const std::int64_t layers =
      32LL * (4096LL * (32 + 16) * 128 + 4096LL * 4096 + 3LL * 4096 * 14336);
  const std::int64_t ends = 128256LL * 4096;
  const std::int64_t norms = 32LL * 2 * 4096;
  // Half of the layers are on the other stage; of its own half a rank holds 1/8 and needs 1/2.
  const std::int64_t expected = layers / 2 - layers / 16 + norms / 2 + 2 * ends / 2 - ends / 8;
  EXPECT_EQ(costs.reshard_bytes(actor, rollout), 2 * (expected + 4096));  // + final norm, stage 0
  EXPECT_EQ(costs.reshard_bytes({{.tp = 2, .dp = 8}, Role::actor, 16}, rollout), 0);
}

TEST(ReshardBytes, AreTheBusiestRanksMissingBoxesForAnyDegrees) {
  PlanRequest request = small_request();
  ModelSpec odd = tiny_model(5);
  odd.query_heads = 6;
  odd.kv_heads = 2;
  odd.vocab = 131;
  request.models["actor"].spec = odd;
  CostEvaluator costs(request);
  const ParameterTable table = parameter_table(odd);
  for (const auto& [t, p, d] : {std::array{2, 2, 2}, {4, 1, 2}, {1, 4, 2}, {4, 2, 1}, {2, 1, 4}}) {
    for (const int tg : {1, 2, 4, 8}) {
      const Candidate actor{{.tp = t, .pp = p, .dp = d}, Role::actor, 8};
      const Candidate rollout{{.tp = tg, .dp = 8 / tg}, Role::rollout, 8};
      Problems problems;
      const std::vector<int> ranks = {0, 1, 2, 3, 4, 5, 6, 7};
      const RankMap from =
          make_rank_map(RankOrder::contiguous, layout_of(actor, 5), ranks, nullptr, "", problems);
      const ParallelLayout wanted_layout = layout_of(rollout, 5);
      const bool strided = rollout_order(actor, rollout, request.cluster) == RankOrder::strided;
      const RankMap to = make_rank_map(
          strided ? RankOrder::strided : RankOrder::list, wanted_layout,
          strided ? ranks : assign_ranks(table, from, wanted_layout, ranks), &from, "", problems);
      ASSERT_TRUE(problems.empty());
      std::int64_t most = 0;
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        const auto on = static_cast<std::size_t>(from.index_of(to.ranks[r]));
        std::int64_t missing = 0;
        for (const Parameter& parameter : table.rows) {
          const auto wanted = compute_box(parameter, to.layout, to.coords[r]);
          const auto held = compute_box(parameter, from.layout, from.coords[on]);
          if (!wanted) continue;
          missing += volume(*wanted) - (held ? volume(intersect(*wanted, *held)) : 0);
        }
        most = std::max(most, missing);
      }
      EXPECT_EQ(costs.reshard_bytes(actor, rollout), 4 * most)
          << "tp" << t << " pp" << p << " -> tp" << tg;
    }
  }
}

TEST(Costs, FallWithMoreReplicasAndRiseWithTheBubble) {
  const PlanRequest request = small_request();
  CostEvaluator costs(request);
  const auto update = [&](int tp, int pp, int dp, std::int64_t tokens) {
    const Candidate candidate{{.tp = tp, .pp = pp, .dp = dp}, Role::actor, tp * pp * dp, 1, tokens};
    return costs.cost(candidate).seconds[Phase::update_actor];
  };
  EXPECT_LT(update(8, 1, 4, 6144), update(8, 1, 2, 6144));
  // One micro-batch per replica: every stage waits for the others.
  const std::int64_t all = 512 * kLongest;
  EXPECT_GT(update(8, 4, 1, all), 2.5 * update(8, 4, 1, 6144));
}

TEST(Costs, OfPipelinesFollow1F1BOfEqualStages) {
  PlanRequest request = small_request();
  request.calibration.call_s.value = 0;
  CostEvaluator costs(request);
  const std::int64_t limit = 4 * kLongest;
  const auto infer = [&](int pp, std::int64_t tokens) {
    const Candidate candidate{{.pp = pp}, Role::reference, pp, 0, tokens};
    return costs.cost(candidate).seconds[Phase::ref];
  };
  // (m + p - 1) / m of the work of one stage, and a stage is a quarter: 512 sequences of about 995
  // tokens in micro-batches of 6,144 tokens, m about 83.
  EXPECT_NEAR(infer(4, limit) / infer(1, limit), (83 + 3) / 83.0 / 4, 0.04);
}

// 24 sequences of a replica, 5 or 3 in a micro-batch: 5 and 8 of them, which verl's Megatron makes
// 8 (rearrange_micro_batches with num_batches_divided_by = pp) where stages are interleaved.
TEST(Costs, OfInterleavedStagesAreThoseOfWholeRounds) {
  PlanRequest request = small_request();
  request.workload.prompts_per_step = 24;
  request.workload.samples_per_prompt = request.workload.mini_batches = 1;
  request.workload.prompt_tokens = 512;
  request.workload.response_tokens = {512, 0, 512};
  const auto update = [&](const char* engine, int vpp, std::int64_t sequences) {
    request.engine = engine;
    request.traits = traits_of(engine);
    Candidate candidate{{.pp = 4, .vpp = vpp}, Role::actor, 4, 1, sequences * 1024};
    candidate.zero = 0;
    CostEvaluator costs(request);
    const auto seconds = costs.seconds(candidate);
    return std::pair{seconds[Phase::update_actor], seconds[Phase::old_log_prob]};
  };
  EXPECT_EQ(update("verl-megatron", 2, 5), update("verl-megatron", 2, 3));
  EXPECT_NE(update("verl-megatron", 1, 5), update("verl-megatron", 1, 3));
  EXPECT_EQ(update("megatron", 2, 5), update("megatron", 2, 3));
  EXPECT_NE(update("any", 2, 5), update("any", 2, 3));
}

TEST(Memory, CountsEveryPhaseOfTheFullestRank) {
  const PlanRequest request = small_request();
  CostEvaluator costs(request);
  const Candidate actor{{.tp = 2, .pp = 2, .dp = 2}, Role::actor, 8, 1, 6144};
  const RoleCost cost = costs.cost(actor);
  const MemoryUse idle = costs.memory(actor, Phase::gen);
  EXPECT_EQ(idle.total(), cost.resident);
  EXPECT_EQ(idle.activations, 0);
  const MemoryUse update = costs.memory(actor, Phase::update_actor);
  EXPECT_EQ(update.total(), cost.peak);
  EXPECT_GT(update.activations, 0);
  const Candidate rollout{{.tp = 2, .dp = 4}, Role::rollout, 8, 0, 8192, 16};
  const MemoryUse gen = costs.memory(rollout, Phase::gen);
  // 2 x 8 KV heads x 128 x 32 layers x 2 bytes = 131,072 per token, half of it at TP2.
  EXPECT_EQ(gen.kv_cache, 65'536LL * 16 * (512 + 1024));
  EXPECT_EQ(costs.memory(rollout, Phase::update_actor).weights, gen.weights);  // kept
}

// 512 sequences in two mini-batches: a replica of eight has 32 of a mini-batch's, 64 of all.
TEST(Memory, CountsNoMoreTokensThanACallHas) {
  PlanRequest request = small_request();
  request.workload.mini_batches = 2;
  CostEvaluator costs(request);
  const auto use = [&](Phase phase, std::int64_t tokens) {
    return costs.memory({{.dp = 8}, Role::actor, 8, 1, tokens}, phase);
  };
  for (const auto& [phase, sequences] :
       {std::pair{Phase::update_actor, 32}, {Phase::old_log_prob, 64}}) {
    const std::int64_t all = sequences * kLongest;
    EXPECT_EQ(use(phase, all), use(phase, 1000 * all));
    EXPECT_LT(use(phase, all / 2).total(), use(phase, all).total());
    EXPECT_EQ(use(phase, 1), use(phase, kLongest));
  }
}

// The search leaves out larger batches of what does not fit.
TEST(Memory, DoesNotFallWhenTokensDoubleOrSlotsGrow) {
  Workload workload = workload_of("ppo", KlPlace::reward, false);
  workload.prompts_per_step = 48;
  workload.response_tokens = {5, 0.5, 8};
  PlanRequest request = request_of(tiny_model(4), workload, cluster_of(4, 2, 80));
  CostEvaluator costs(request);
  std::size_t compared = 0;
  for (const char* engine : {"tessera", "any"}) {
    const Capabilities& table = engine_named(engine).capabilities;
    for (const Role role : roles_of(workload)) {
      for (const Candidate& candidate : enumerate_candidates(request, table, role, 8)) {
        Candidate larger = candidate;
        larger.tokens *= role == Role::rollout ? 1 : 2;
        larger.max_sequences *= 2;
        const RoleCost small = costs.cost(candidate), large = costs.cost(larger);
        ++compared;
        EXPECT_LE(small.resident, large.resident);
        EXPECT_LE(small.peak, large.peak);
        EXPECT_LE(small.in_reshard, large.in_reshard);
      }
    }
  }
  EXPECT_GT(compared, 1000U);
}

TEST(OversubscribedCores, SlowEveryRankByTheSameShare) {
  PlanRequest request = request_of(tiny_model(), workload_of("grpo", KlPlace::none, false),
                                   cluster_of(4, 1, 4), "cpu");
  const Candidate candidate{{.dp = 4}, Role::actor, 4, 0, 1000};
  request.calibration.cores = 4;
  const double alone = CostEvaluator(request).cost(candidate).seconds[Phase::old_log_prob];
  request.calibration.cores = 2;
  const auto shared = CostEvaluator(request).cost(candidate);
  EXPECT_NEAR(shared.seconds[Phase::old_log_prob] / alone, 2, 1e-9);
}

// verl's FSDP is one mesh of all GPUs: eight ranks hold an eighth of every parameter each, whatever
// part of them Ulysses' groups are. One forward pass gathers every layer and the embedding.
TEST(UlyssesShards, AreGatheredFromAllRanksThatHoldThem) {
  PlanRequest request = small_request();
  request.engine = "verl";
  request.traits = traits_of("verl");
  request.traits.shards.frozen_fetched = false;
  request.calibration.overlapped_dispatch = false;
  CostEvaluator costs(request);
  const double layer = 2.0 * (4096LL * (32 + 16) * 128 + 4096LL * 4096 + 3LL * 4096 * 14336 + 8192);
  const double embedding = 2.0 * 128256 * 4096;
  const auto gathered = [&](double bytes) {
    return collective_seconds(Collective::all_gather, Traffic{bytes}, {8, 1}, request.cluster,
                              request.calibration);
  };
  const auto ref = [&](const Candidate& candidate) {
    return costs.cost(candidate).seconds[Phase::ref];
  };
  for (const int cp : {1, 2, 4, 8}) {
    Candidate whole{{.dp = 8 / cp}, Role::reference, 8, 0, 512 * kLongest};  // one micro-batch
    whole.cp = cp;
    whole.ulysses = cp > 1;
    Candidate sharded = whole;
    sharded.zero = 3;
    sharded.dp_shard = whole.dp;
    EXPECT_NEAR(ref(sharded) - ref(whole), 32 * gathered(layer) + gathered(embedding), 1e-9) << cp;
    const MemoryUse held = costs.memory(whole, Phase::gen);
    const MemoryUse part = costs.memory(sharded, Phase::gen);
    EXPECT_EQ(part.weights, (held.weights + Bytes{15}) / 16 * 2) << cp;
    const MemoryUse scored = costs.memory(sharded, Phase::ref);
    EXPECT_GT(scored.gathered, static_cast<std::int64_t>(layer));
    EXPECT_EQ(costs.memory(whole, Phase::ref).gathered, 0);
    EXPECT_EQ(scored.communication, costs.memory(whole, Phase::ref).communication);
    Candidate offloaded = sharded;
    offloaded.offload.parameters = true;
    EXPECT_NEAR(ref(offloaded) - ref(sharded), host_copy_seconds(part.weights, request.calibration),
                1e-9);
  }
}

// verl hands weights over in buckets of 2048 MiB, or of the largest tensor: 128256 x 4096 fp32
// under FSDP are 2004 MiB.
TEST(Memory, OfASwitchCountsTheBucketsOfAnEngineThatGathersWhole) {
  PlanRequest request = small_request();
  Candidate rollout{{.tp = 2, .dp = 8}, Role::rollout, 16};
  rollout.tokens = 4096;
  rollout.max_sequences = 16;
  for (const auto& [engine, expected] : {std::pair{"verl", Bytes{2048LL << 20}},
                                         {"verl-megatron", Bytes{2048LL << 20}},
                                         {"tessera", Bytes{}}}) {
    request.engine = engine;
    request.traits = traits_of(engine);
    for (const bool unmapped : {false, true}) {
      rollout.offload.parameters = unmapped;
      CostEvaluator costs(request);
      const RoleCost cost = costs.cost(rollout);
      const MemoryUse generating = costs.memory(rollout, Phase::gen);
      // The cache and the working memory of an engine that does not sleep stay, too.
      const bool stays = request.traits.decode.keeps_cache && !unmapped;
      const Bytes working = generating.kv_cache + generating.activations + generating.logits;
      const Bytes kept = generating.weights + (stays ? working : Bytes{});
      EXPECT_EQ(costs.memory(rollout, Phase::reshard).reshard, expected) << engine;
      EXPECT_EQ(cost.in_reshard, kept + expected) << engine;
      EXPECT_EQ(cost.resident, unmapped ? Bytes{} : kept) << engine;
    }
  }
}

// verl 0.9.1, reward_loop: a reward model's server with free_cache_engine=false keeps its share of
// the GPU (workers/rollout/vllm_rollout/vllm_async_server.py, sleep), in updates as well.
TEST(Memory, OfAServedRewardModelStaysUnlessItSleeps) {
  PlanRequest request = small_request();
  request.workload.dataflow = preset_dataflow("grpo", KlPlace::loss, true);
  Candidate reward{{.tp = 2, .dp = 8}, Role::reward, 16};
  reward.tokens = 16384;
  for (const auto& [engine, serves] : {std::pair{"verl", true}, std::pair{"tessera", false}}) {
    request.engine = engine;
    request.traits = traits_of(engine);
    for (const bool sleeps : {false, true}) {
      reward.offload.parameters = sleeps;
      CostEvaluator costs(request);
      const Bytes scoring = costs.memory(reward, Phase::reward).total();
      const Bytes updating = costs.memory(reward, Phase::update_actor).total();
      EXPECT_GT(scoring, 0);
      if (serves && !sleeps) {
        EXPECT_EQ(updating, scoring);
      } else {
        EXPECT_LT(updating, scoring) << engine << sleeps;
      }
    }
  }
}

// 32 sequences of at most 1,536 tokens on each of 16 GPUs that hold 1/16 of all gradients.
TEST(Memory, OfFsdpHasNoGradientsBesideTheActivationsOfAnOnlyMicroBatch) {
  PlanRequest request = small_request();
  request.engine = "verl";
  request.traits = traits_of("verl");
  PlanRequest buffered = request;
  buffered.traits.gradients.fresh = false;
  CostEvaluator costs(request), persistent(buffered);
  Candidate candidate{{.dp = 16}, Role::actor, 16};
  candidate.zero = 3;
  candidate.dp_shard = 16;
  candidate.recompute = Recompute::full;
  const auto update = [&](CostEvaluator& by, std::int64_t sequences) {
    candidate.tokens = sequences * kLongest;
    return by.memory(candidate, Phase::update_actor);
  };
  const MemoryUse several = update(costs, 8), always = update(persistent, 8);
  EXPECT_EQ(several, always);  // the second micro-batch has the first one's gradients beside it
  EXPECT_TRUE(costs.cost(candidate).may_shrink);
  const MemoryUse one = update(costs, 32), both = update(persistent, 32);
  EXPECT_EQ(one.gradients, 0);
  EXPECT_EQ(one.total(), both.total() - both.gradients);
  EXPECT_FALSE(costs.cost(candidate).may_shrink);
  EXPECT_GT(both.gradients, 8'000'000'000LL * 4 / 16);
  // Between the steps there are none.
  EXPECT_EQ(costs.memory(candidate, Phase::gen).gradients, 0);
  EXPECT_EQ(persistent.memory(candidate, Phase::gen).gradients, both.gradients);
}

// saved_tensors_hooks counts 200,840 bytes for each token of a layer of Llama 3.1 8B
// (tests/cost_models/transformers/saved_tensors_test.cc); Megatron's layer keeps 139,264.
TEST(Memory, OfVerlIsThatOfTransformersModulesAndOfMegatronItsOwn) {
  PlanRequest request = small_request();
  Candidate candidate{{.dp = 16}, Role::actor, 16, 0, 4 * kLongest};
  const auto kept = [&](const char* engine) {
    request.engine = engine;
    request.traits = traits_of(engine);
    candidate.zero = request.traits.shards.over_context ? 3 : 1;
    candidate.dp_shard = candidate.zero == 3 ? 16 : 1;
    CostEvaluator costs(request);
    return costs.memory(candidate, Phase::update_actor).activations;
  };
  const std::int64_t tokens = 4 * kLongest, layers = 32;
  EXPECT_GE(kept("verl"), layers * 200'840 * tokens);
  EXPECT_LE(kept("verl"), layers * 200'840 * tokens * 101 / 100);
  for (const char* engine : {"megatron", "verl-megatron", "tessera"}) {
    EXPECT_GE(kept(engine), layers * 139'264 * tokens) << engine;
    EXPECT_LE(kept(engine), layers * 139'264 * tokens * 101 / 100) << engine;
  }
}

TEST(Memory, OfFsdpHasAllGradientsWhereActivationsAreFew) {
  PlanRequest request = small_request();
  request.workload.prompts_per_step = 16;
  request.workload.samples_per_prompt = 1;
  request.engine = "verl";
  request.traits = traits_of("verl");
  CostEvaluator costs(request);
  const auto update = [&](int gpus) {
    Candidate candidate{{.dp = gpus}, Role::actor, gpus};
    candidate.zero = 3;
    candidate.dp_shard = gpus;
    candidate.recompute = Recompute::full;
    candidate.tokens = 16 / gpus * kLongest;
    return costs.memory(candidate, Phase::update_actor);
  };
  // The backward pass needs most: a layer's activations, the head's and a layer's whole gradients.
  const MemoryUse backward = update(16);
  EXPECT_EQ(backward.gradients, backward.optimizer / 2);  // fp32, as each of the moments
  EXPECT_GT(backward.gathered, 0);
  // With large shards the step does: AdamW's square roots of all second moments.
  const MemoryUse step = update(2);
  EXPECT_EQ(step.gradients, step.optimizer / 2);
  EXPECT_EQ(step.workspace, step.optimizer / 2);
  EXPECT_EQ(step.activations, 0);
}

// verl's Megatron sums gradients after the last backward pass; Megatron-LM beside it.
TEST(Time, OfVerlsMegatronShowsTheReductionOfGradients) {
  PlanRequest request = small_request();
  Candidate candidate{{.tp = 4, .dp = 4}, Role::actor, 16};
  candidate.zero = 1;
  candidate.tokens = 8192;
  const auto update_s = [&](const char* engine) {
    request.engine = engine;
    request.traits = traits_of(engine);
    return CostEvaluator(request).cost(candidate).seconds[Phase::update_actor];
  };
  EXPECT_GT(update_s("verl-megatron"), 1.001 * update_s("megatron"));
}

}  // namespace
}  // namespace tessera
