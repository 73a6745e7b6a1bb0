// What a script does not say of lengths and micro-batches, and what verl itself stops at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cost_models/documents/problem.h"
#include "cost_models/lengths.h"
#include "planner/engines/read_plan.h"
#include "planner/interop/import.h"
#include "planner/interop/price.h"
#include "planner/plan/plan_json.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct Read {
  std::optional<Imported> imported;
  Problems problems;

  const RolePlan& role(Role role) const { return *imported->plan.find(role); }
  const LengthSpec& lengths() const { return imported->plan.workload.response_tokens; }
  std::string told() const { return Error(ExitCode::bad_input, problems).what(); }
};

ImportOptions on(const char* cluster) {
  Problems none;
  return {.cluster = *read_cluster_spec(cluster, none)};
}

Read read(const std::string& text, const ImportOptions& options) {
  Read made;
  made.imported = import_config(text, "a.sh", options, made.problems);
  return made;
}

// GRPO on eight GPUs: 64 prompts of at most 512 tokens, four responses each, at most 3,584 tokens.
std::string script(const std::string& rest, const std::string& model = "Qwen/Qwen2.5-14B") {
  return "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 "
         "actor_rollout_ref.actor.ppo_mini_batch_size=8 actor_rollout_ref.rollout.n=4 "
         "data.max_prompt_length=512 data.max_response_length=3584 "
         "actor_rollout_ref.model.path=" +
         model + " " + rest + "\n";
}

const std::string kDynamic = "actor_rollout_ref.actor.use_dynamic_bsz=true ";

Read measured(const std::string& rest, double mean) {
  ImportOptions options = on("h200-8");
  options.response_mean = mean;
  return read(script(rest), options);
}

/// verl's rearrange_micro_batches: a replica's sequences by the limit, and by virtual stages as a
/// multiple of the stages. A replica is tp x pp x cp GPUs.
TEST(ImportTokens, AMicroBatchHoldsWhatAReplicaHas) {
  const std::string megatron =
      "model_engine=megatron actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4 "
      "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2 ";
  const std::string wide = kDynamic + "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=131072 ";
  const auto update = [](const Read& made) {
    EXPECT_TRUE(made.imported) << made.told();
    return made.imported ? made.role(Role::actor).batching.update_tokens : 0;
  };
  EXPECT_EQ(update(measured(megatron + wide, 3584)), 32 * 4096);  // one replica, 32 sequences
  const std::string chunks =
      "actor_rollout_ref.actor.megatron.virtual_pipeline_model_parallel_size=8 ";
  EXPECT_EQ(update(measured(megatron + chunks + wide, 3584)), 16 * 4096);
  EXPECT_EQ(update(measured(wide, 3584)), 4 * 4096);  // FSDP: eight replicas
  const std::string pairs = "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size=2 ";
  EXPECT_EQ(update(measured(pairs + wide, 3584)), 8 * 4096);
  // The older key counts the sequences of all replicas.
  EXPECT_EQ(update(measured(megatron + "actor_rollout_ref.actor.ppo_micro_batch_size=16 ", 3584)),
            16 * 4096);
}

TEST(ImportTokens, OfACriticAreLimitedAlike) {
  ImportOptions options = on("h200-8");
  options.response_mean = 3584;
  std::string text = script(kDynamic + "+critic.ppo_infer_max_token_len_per_gpu=131072");
  text.replace(text.find("=grpo"), 5, "=gae ");
  const Read made = read(text, options);
  ASSERT_TRUE(made.imported) << made.told();
  const Batching& critic = made.role(Role::critic).batching;
  EXPECT_EQ(critic.values_tokens, 32 * 4096);  // of 256 sequences on eight replicas
  EXPECT_EQ(critic.update_tokens, 4 * 4096);   // of a mini-batch
}

TEST(ImportLengths, AMeasuredMeanIsThatOfWhatTheLimitCuts) {
  for (const double mean : {200.0, 1600.0, 2900.0, 3500.0}) {
    const Read made = measured(kDynamic, mean);
    ASSERT_TRUE(made.imported) << made.told();
    EXPECT_NEAR(mean_length(made.lengths()), mean, 1e-3 * mean);
    EXPECT_LE(made.lengths().mean, 3584);  // a plan's reader refuses more
    EXPECT_GT(made.lengths().cv, 0);
    EXPECT_LE(made.lengths().cv, 0.5);
    EXPECT_THAT(made.imported->notes,
                Contains(AllOf(HasSubstr("assumed to be 0."), HasSubstr("--response-cv"))));
    Problems problems;
    Plan plan = made.imported->plan;
    price(plan, *find_calibration("h200", problems));
    EXPECT_TRUE(parse_plan(to_json(plan), "plan.json", problems)) << mean;
  }
  EXPECT_EQ(measured(kDynamic, 1600).lengths().cv, 0.5);
  EXPECT_EQ(measured(kDynamic, 3584).lengths(), (LengthSpec{3584, 0, 3584}));
}

TEST(ImportLengths, ASpreadThatIsStatedIsNotAssumed) {
  ImportOptions options = on("h200-8");
  options.response_mean = 1000;
  options.response_cv = 1.25;
  const Read wide = read(script(kDynamic), options);
  ASSERT_TRUE(wide.imported) << wide.told();
  EXPECT_EQ(wide.lengths().cv, 1.25);
  EXPECT_GT(wide.lengths().mean, 1010);  // the limit cuts much of it
  EXPECT_NEAR(mean_length(wide.lengths()), 1000, 0.1);
  EXPECT_THAT(wide.imported->notes, Not(Contains(HasSubstr("assumed"))));
  options.response_cv = 0;
  EXPECT_EQ(read(script(kDynamic), options).lengths(), (LengthSpec{1000, 0, 3584}));
}

TEST(ImportLengths, ThatAreNoneAreRefusedWithWhatWasExpected) {
  const auto refused = [](auto change, const char* text) {
    ImportOptions options = on("h200-8");
    change(options);
    const Read made = read(script(kDynamic), options);
    EXPECT_FALSE(made.imported) << text;
    ASSERT_EQ(made.problems.size(), 1U) << text;
    EXPECT_THAT(made.told(), HasSubstr(text));
  };
  for (const double mean : {std::nan(""), 0.0, -5.0, 99999.0, double{INFINITY}}) {
    refused([&](ImportOptions& options) { options.response_mean = mean; },
            "expected a number above 0, at most the 3584 tokens");
    refused([&](ImportOptions& options) { options.prompt_mean = mean; },
            "expected a number above 0, at most the 512 tokens");
  }
  for (const double cv : {std::nan(""), -0.1, 200.0}) {
    refused(
        [&](ImportOptions& options) {
          options.response_mean = 1000;
          options.response_cv = cv;
        },
        "--response-cv");
  }
  // No log-normal so wide has such a mean below its limit.
  refused(
      [](ImportOptions& options) {
        options.response_mean = 3500;
        options.response_cv = 0.5;
      },
      "expected a number from 0 to 0.0588");
  refused([](ImportOptions& options) { options.response_cv = 0.5; }, "no --response-mean");
}

// No key of verl's says how large images are: the user does, or is told that none are counted.
TEST(ImportLengths, OfImagesAreTheUsersAndWhatIsNotCountedIsTold) {
  ImportOptions options = on("h200-8");
  options.model = "qwen2.5-vl-7b";
  const Read without = read(script(kDynamic), options);
  ASSERT_TRUE(without.imported) << without.told();
  EXPECT_THAT(without.imported->notes, Contains(HasSubstr("--image-tokens")));
  options.image_tokens = 400;
  const Read with = read(script(kDynamic), options);
  ASSERT_TRUE(with.imported) << with.told();
  EXPECT_EQ(with.imported->plan.workload.images, (ImageSpec{1, 400}));
  EXPECT_THAT(with.imported->notes, Not(Contains(HasSubstr("--image-tokens"))));
  for (const std::int64_t tokens : {0L, -1L, 513L}) {
    options.image_tokens = tokens;
    EXPECT_THAT(read(script(kDynamic), options).told(), HasSubstr("1 to 512")) << tokens;
  }
  options.model = "qwen2.5-7b";
  options.image_tokens = 400;
  EXPECT_THAT(read(script(kDynamic), options).told(), HasSubstr("no vision tower"));
}

TEST(ImportLengths, AreNotSaidOfFilesThatHaveNone) {
  ImportOptions options = on("h200-8");
  options.response_mean = 100;
  const std::string pretrain =
      "torchrun pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 "
      "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 "
      "--global-batch-size 64 --vocab-size 50304\n";
  const Read made = read(pretrain, options);
  EXPECT_FALSE(made.imported);
  EXPECT_THAT(made.told(), HasSubstr("--response-mean"));
  EXPECT_THAT(made.told(), HasSubstr("--seq-length"));
  const Read served = read("vllm serve qwen2.5-7b --max-model-len 4096\n", options);
  ASSERT_TRUE(served.imported) << served.told();
  EXPECT_NEAR(mean_length(served.lengths()), 100, 0.1);
  options.response_mean = 2049;
  EXPECT_THAT(read("vllm serve qwen2.5-7b --max-model-len 4096\n", options).told(),
              HasSubstr("at most the 2048 tokens"));
}

// verl 0.9.1's own checks: seqlen_balancing.py, engine_workers.py, workers/config/rollout.py,
// vllm_async_server.py, trainer_separate_async.py and core_algos.py.
TEST(ImportStops, WhatVerlItselfStopsAtIsNotedWithWhatItExpects) {
  const std::string own = "actor_rollout_ref.";
  struct Stop {
    std::string keys, found, expected;
  };
  const std::vector<Stop> stops{
      {kDynamic + own + "actor.ppo_max_token_len_per_gpu=2048",
       "actor_rollout_ref.actor.ppo_max_token_len_per_gpu = 2048",
       "at least the longest sequence, 4096 tokens"},
      {kDynamic + own + "rollout.log_prob_max_token_len_per_gpu=4095",
       "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu = 4095", "4096 tokens"},
      {kDynamic + own + "rollout.log_prob_use_dynamic_bsz=false " + own +
           "rollout.log_prob_micro_batch_size_per_gpu=4",
       "rollout.log_prob_use_dynamic_bsz = false", "expected true"},
      {own + "actor.ppo_micro_batch_size_per_gpu=3 " + own +
           "rollout.log_prob_micro_batch_size_per_gpu=1",
       "ppo_micro_batch_size_per_gpu = 3", "a divisor of the 4 sequences of a replica"},
      {kDynamic + own + "rollout.mode=sync", "rollout.mode = sync", "expected async"},
      {kDynamic + own + "rollout.name=hf", "rollout.name = hf", "vllm, sglang or trtllm"},
      {kDynamic + own + "rollout.max_model_len=512", "max_model_len = 512",
       "more than data.max_prompt_length, 512"},
      {kDynamic + own + "rollout.max_model_len=1000000", "max_model_len = 1000000", "positions"},
      {kDynamic + own + "model.use_remove_padding=false " + own +
           "actor.ulysses_sequence_parallel_size=2",
       "use_remove_padding = false", "true with Ulysses"},
      {kDynamic + "trainer.v1.trainer_mode=separate_async "
                  "trainer.v1.separate_async.parameter_sync_step=8",
       "checkpoint_engine.backend = naive", "nccl"},
      {kDynamic + own + "actor.fsdp_config.model_dtype=8k", "fsdp_config.model_dtype = 8k", "bf16"},
      {kDynamic + own + "rollout.dtype=8k", "rollout.dtype = 8k", "half, float16"},
      {kDynamic + own + "actor.strategy=1.5", "actor.strategy = 1.5", "fsdp, fsdp2"},
      {kDynamic + own + "actor.strategy=null", "actor.strategy = null", "fsdp, fsdp2"},
      {kDynamic + own + "actor.loss_agg_mode=x", "loss_agg_mode = x", "token-mean, token-sum"}};
  const Read runs = read(script(kDynamic), on("h200-8"));
  ASSERT_TRUE(runs.imported) << runs.told();
  EXPECT_THAT(runs.imported->notes, Not(Contains(HasSubstr("does not run this"))));
  for (const Stop& stop : stops) {
    const Read made = read(script(stop.keys), on("h200-8"));
    ASSERT_TRUE(made.imported) << made.told();
    const auto told = std::count_if(
        made.imported->notes.begin(), made.imported->notes.end(),
        [](const std::string& note) { return note.starts_with("verl 0.9.1 does not run this"); });
    EXPECT_EQ(told, 1) << stop.keys;
    EXPECT_THAT(made.imported->notes,
                Contains(AllOf(HasSubstr("verl 0.9.1 does not run this: "), HasSubstr(stop.found),
                               HasSubstr(stop.expected))))
        << stop.keys;
  }
}

// create_device_mesh divides the number of GPUs by it.
TEST(ImportStops, AGroupOfNoGpusIsRefused) {
  const Read made =
      read(script(kDynamic + "actor_rollout_ref.actor.fsdp_config.fsdp_size=0"), on("h200-8"));
  EXPECT_FALSE(made.imported);
  EXPECT_THAT(made.told(), AllOf(HasSubstr("fsdp_config.fsdp_size = 0"), HasSubstr("-1")));
}

// vllm_async_server.py hands both to the server.
TEST(ImportStops, HowAServerDecodesOtherwiseIsNotedAsNotPriced) {
  const std::string rollout = kDynamic + "actor_rollout_ref.rollout.";
  const auto notes = [](const std::string& keys) {
    const Read made = read(script(keys), on("h200-8"));
    EXPECT_TRUE(made.imported) << made.told();
    return made.imported ? made.imported->notes : std::vector<std::string>{};
  };
  EXPECT_THAT(notes(rollout + "enforce_eager=true"),
              Contains(HasSubstr("rollout.enforce_eager = true is not priced")));
  EXPECT_THAT(notes(rollout + "enforce_eager=false"), Not(Contains(HasSubstr("enforce_eager"))));
  EXPECT_THAT(notes(rollout + "quantization=fp8"),
              AllOf(Contains(HasSubstr("rollout.quantization = fp8 is not priced")),
                    Not(Contains(HasSubstr("does not run this")))));
  EXPECT_THAT(notes(rollout + "quantization=int3"),
              Contains(AllOf(HasSubstr("does not run this"), HasSubstr("quantization = int3"))));
}

TEST(ImportStops, AnEstimatorThatVerlLacksIsNamedWithThoseThatItHas) {
  const auto notes = [](const std::string& name) {
    std::string text = script(kDynamic);
    text.replace(text.find("=grpo"), 5, "=" + name);
    const Read made = read(text, on("h200-8"));
    EXPECT_TRUE(made.imported) << made.told();
    return made.imported ? made.imported->notes : std::vector<std::string>{};
  };
  EXPECT_THAT(notes("foo"), Contains(AllOf(HasSubstr("algorithm.adv_estimator = foo"),
                                           HasSubstr("rloo_vectorized"))));
  EXPECT_THAT(notes("rloo"), Not(Contains(HasSubstr("does not run this"))));
}

// Four sequences of 512 and, on average, 1,000 tokens in a micro-batch: the longest of four
// log-normal lengths with a cv of 0.5 has 1,537, and (512 + 1537) / 1512 is 1.355.
TEST(ImportPadding, IsNotedWithTheTokensThatItAdds) {
  const std::string padded =
      "actor_rollout_ref.model.use_remove_padding=false "
      "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=";
  const auto note = [](const Read& made) {
    EXPECT_TRUE(made.imported) << made.told();
    for (const std::string& each : made.imported->notes) {
      if (each.find("use_remove_padding = false") != each.npos) return each;
    }
    return std::string{};
  };
  EXPECT_THAT(note(measured(kDynamic + padded + "6048", 1000)), HasSubstr("about 1.36 in the"));
  EXPECT_THAT(note(measured(kDynamic + padded + "131072", 3584)), HasSubstr("nothing is added"));
  EXPECT_EQ(note(measured(kDynamic, 1000)), "");
}

TEST(ImportExperts, OfAModelWithoutAnyAreNoLackOfMemory) {
  const Read made =
      read(script(kDynamic + "actor_rollout_ref.rollout.expert_parallel_size=2"), on("h200-8"));
  EXPECT_FALSE(made.imported);
  EXPECT_THAT(made.told(), HasSubstr("1, for the model has no experts"));
  Read trained = read(script(kDynamic + "model_engine=megatron "
                                        "actor_rollout_ref.actor.megatron.expert_model_parallel_"
                                        "size=2"),
                      on("h200-8"));
  ASSERT_TRUE(trained.imported) << trained.told();
  Problems problems;
  const Pricing pricing = price(trained.imported->plan, *find_calibration("h200", problems));
  EXPECT_FALSE(pricing.fits);
  EXPECT_THAT(pricing.notes, Contains(HasSubstr("is not possible: actor: ep 2 of a model that has "
                                                "no experts")));
}

}  // namespace
}  // namespace tessera
