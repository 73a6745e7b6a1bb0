// verl's configurations for VeOmni and torchtitan: layouts as the engines' own sources make meshes
// of them, and what they do not run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost_models/fit/derived_calibration.h"
#include "planner/interop/export.h"
#include "planner/interop/price.h"
#include "tests/planner/interop/imported.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

const std::string kTraining = "actor_rollout_ref.actor.";

std::string script(const std::string& model, int nodes, const std::string& rest) {
  return "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=256 "
         "actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.model.path=" +
         model +
         " actor_rollout_ref.actor.use_dynamic_bsz=True trainer.nnodes=" + std::to_string(nodes) +
         " trainer.n_gpus_per_node=8 " + rest + "\n";
}

std::string refused(const std::string& text) {
  return Error(ExitCode::bad_input, refusals(text, "a.sh")).what();
}

/// parallel_state.init_parallel_state(dp_size = world / ulysses, dp_replicate, dp_shard, ep,
/// ulysses), as VeOmniEngine.__init__ computes them from these keys.
TEST(ImportVerlEngines, VeOmnisMeshIsTheOneThatItsEngineBuilds) {
  const Imported made = must_import(
      script("Qwen/Qwen3-30B-A3B", 2,
             "model_engine=veomni actor_rollout_ref.actor.veomni.ulysses_parallel_size=2 "
             "actor_rollout_ref.actor.veomni.expert_parallel_size=4 "
             "actor_rollout_ref.actor.veomni.fsdp_size=4 "
             "actor_rollout_ref.actor.veomni.param_offload=True "
             "actor_rollout_ref.actor.use_kl_loss=True"),
      "a.sh", h800());
  EXPECT_EQ(made.plan.engine, "verl-veomni");
  for (const Role role : {Role::actor, Role::reference}) {  // veomni_ref.yaml takes the actor's
    const RolePlan& each = *made.plan.find(role);
    EXPECT_EQ(each.layout.cp, 2);
    EXPECT_TRUE(each.layout.ulysses);
    EXPECT_EQ(each.layout.dp, 8);
    EXPECT_EQ(each.layout.dp_shard, 4);
    EXPECT_EQ(each.layout.ep, 4);
    EXPECT_EQ(each.layout.etp, 1);
    EXPECT_EQ(each.layout.zero, 3);
    EXPECT_TRUE(each.offload.parameters);
  }
  EXPECT_EQ(made.plan.find(Role::actor)->dtypes.master, DType::fp32);
  EXPECT_EQ(made.plan.find(Role::actor)->recompute, Recompute::full);  // verl's default
}

TEST(ImportVerlEngines, VeOmnisSwitchesOfShardingTypeAndOffloadAreRead) {
  const auto actor = [](const std::string& rest) {
    const Imported made =
        must_import(script("Qwen/Qwen3-8B", 1, "model_engine=veomni " + rest), "a.sh", h800());
    return made.plan.find(Role::actor) == nullptr ? RolePlan{} : *made.plan.find(Role::actor);
  };
  const std::string keys = kTraining + "veomni.";
  EXPECT_EQ(actor("").layout.zero, 3);
  EXPECT_EQ(actor(keys + "enable_full_shard=False").layout.zero, 2);
  EXPECT_EQ(actor(keys + "fsdp_size=1").layout.zero, 0);
  EXPECT_EQ(actor(keys + "mixed_precision=False").dtypes.master, DType::bf16);
  const RolePlan streamed = actor(keys + "enable_fsdp_offload=True");
  EXPECT_TRUE(streamed.offload.parameters && streamed.offload.optimizer && streamed.host_optimizer);
}

// parallel_state.py: ep_size must be a factor of dp_shard_sp_size; torch_parallelize.py asserts a
// parallel plan.
TEST(ImportVerlEngines, VeOmnisExpertsThatItsMeshCannotHoldAreRefused) {
  const auto told = [](const std::string& model, const std::string& rest) {
    return refused(script(model, 2, "model_engine=veomni " + rest));
  };
  const std::string keys = kTraining + "veomni.";
  EXPECT_THAT(
      told("Qwen/Qwen3-30B-A3B", keys + "fsdp_size=4 " + keys + "expert_parallel_size=8"),
      HasSubstr("a divisor of the 128 experts and of the 4 ranks over which weights are cut"));
  EXPECT_THAT(told("Qwen/Qwen3-8B", keys + "expert_parallel_size=2"),
              HasSubstr("1, for the model has no experts"));
  EXPECT_THAT(told("Qwen/Qwen3-8B", keys + "fsdp_size=3"),
              HasSubstr("a divisor of the 16 replicas"));
  EXPECT_THAT(told("Qwen/Qwen3-8B", keys + "fsdp_size=1 " + keys + "ulysses_parallel_size=2"),
              HasSubstr("a plan cuts weights over replicas"));
  EXPECT_THAT(told("Qwen/Qwen3-8B", keys + "ulysses_parallel_size=5"),
              HasSubstr("a divisor of the 16 GPUs"));
}

/// torchtitan's ParallelDims: fsdp = dp_shard x cp, efsdp = fsdp x tp / ep.
TEST(ImportVerlEngines, TorchtitansMeshIsTheOneThatItsEngineBuilds) {
  const std::string keys = kTraining + "torchtitan.";
  const Imported made = must_import(
      script("Qwen/Qwen3-30B-A3B", 2,
             "model_engine=torchtitan " + keys + "data_parallel_replicate_size=2 " + keys +
                 "data_parallel_shard_size=2 " + keys + "tensor_parallel_size=2 " + keys +
                 "context_parallel_size=2 " + keys + "expert_parallel_size=8"),
      "a.sh", h800());
  EXPECT_EQ(made.plan.engine, "verl-torchtitan");
  const RolePlan& actor = *made.plan.find(Role::actor);
  EXPECT_EQ(actor.layout.tp, 2);
  EXPECT_TRUE(actor.layout.sequence_parallel);
  EXPECT_EQ(actor.layout.cp, 2);
  EXPECT_FALSE(actor.layout.ulysses);
  EXPECT_EQ(actor.layout.dp, 4);
  EXPECT_EQ(actor.layout.dp_shard, 2);
  EXPECT_EQ(actor.layout.ep, 8);
  EXPECT_EQ(actor.layout.etp, 1);
  EXPECT_EQ(actor.recompute, Recompute::selective);  // its default
}

std::string exported(const Plan& plan, const char* target) {
  Problems problems;
  const auto made = export_plan(plan, *export_target_from(target, problems), {}, problems);
  if (!made) return Error(ExitCode::bad_input, problems).what();
  std::string all;
  for (const ExportedFile& file : made->files) all += file.text;
  return all;
}

/// Its sp_size is the tensor-parallel size (forward_backward_batch), which prepare_micro_batches
/// multiplies the limit by.
TEST(ImportVerlEngines, TorchtitansLimitsOfTokensAreMultipliedByItsTensorParallelism) {
  const std::string keys = kTraining + "torchtitan.";
  const Imported made =
      must_import(script("Qwen/Qwen3-8B", 1,
                         "model_engine=torchtitan " + keys + "data_parallel_shard_size=4 " + keys +
                             "tensor_parallel_size=2 data.max_response_length=1001 " + kTraining +
                             "ppo_max_token_len_per_gpu=8192"),
                  "a.sh", h800());
  EXPECT_EQ(made.plan.find(Role::actor)->batching.update_tokens, 16384);
  const std::string script = exported(made.plan, "verl-torchtitan");
  EXPECT_THAT(script, HasSubstr("actor.ppo_max_token_len_per_gpu=8192"));
  // 512 + 1,001 tokens: torchtitan's trainer raises unless tp divides its length.
  EXPECT_THAT(script, HasSubstr("torchtitan.max_seq_len=1514"));
}

/// "eager ... the varlen training path then raises" (VeOmniEngineConfig's docstring).
TEST(ImportVerlEngines, VeOmnisKernelsOfQwen35TakePackedSequences) {
  const auto settings = [](const char* model) {
    return exported(must_import(script(model, 1, "model_engine=veomni"), "a.sh", h800()).plan,
                    "verl-veomni");
  };
  const std::string recurrent = settings("Qwen/Qwen3.5-0.8B");
  EXPECT_THAT(recurrent, HasSubstr("actor.veomni.causal_conv1d_implementation=fla"));
  EXPECT_THAT(recurrent, HasSubstr("actor.veomni.chunk_gated_delta_rule_implementation=fla"));
  EXPECT_THAT(settings("Qwen/Qwen3-8B"), testing::Not(HasSubstr("_implementation=fla")));
}

/// verl's wheel does not pin these libraries, and their changes break it.
TEST(ImportVerlEngines, AnExportNamesTheRevisionOfItsLibrary) {
  const auto notes = [](const std::string& engine, const std::string& rest) {
    return exported(
        must_import(script("Qwen/Qwen3-8B", 1, "model_engine=" + engine + rest), "a.sh", h800())
            .plan,
        ("verl-" + engine).c_str());
  };
  EXPECT_THAT(notes("veomni", ""), HasSubstr("d977449"));
  EXPECT_THAT(notes("torchtitan", " " + kTraining + "torchtitan.data_parallel_shard_size=8"),
              HasSubstr("a6df53f"));
}

TEST(ImportVerlEngines, TorchtitansMeshesThatDoNotExistAreRefusedWithTheirSizes) {
  const std::string keys = kTraining + "torchtitan.";
  const auto told = [&](const std::string& rest) {
    return refused(script("Qwen/Qwen3-8B", 1, "model_engine=torchtitan " + rest));
  };
  EXPECT_THAT(told(keys + "data_parallel_shard_size=4"), HasSubstr("= 8 GPUs, not 4"));
  EXPECT_THAT(told(keys + "data_parallel_shard_size=4 " + keys + "pipeline_parallel_size=2"),
              HasSubstr("raises NotImplementedError with stages"));
}

TEST(ImportVerlEngines, AKeyOfAnotherEngineSaysWhose) {
  EXPECT_THAT(refused(script("Qwen/Qwen3-8B", 1, kTraining + "veomni.fsdp_size=8")),
              HasSubstr("a key of model_engine=veomni"));
  EXPECT_THAT(refused(script("Qwen/Qwen3-8B", 1,
                             "model_engine=veomni " + kTraining + "fsdp_config.fsdp_size=8")),
              HasSubstr("a key of FSDP, not of veomni"));
  EXPECT_THAT(refused(script("Qwen/Qwen3-8B", 1,
                             "model_engine=veomni " + kTraining + "veomni.ulyses_parallel_size=2")),
              HasSubstr("did you mean 'actor_rollout_ref.actor.veomni.ulysses_parallel_size'?"));
  EXPECT_THAT(refused(script("Qwen/Qwen3-8B", 1,
                             "model_engine=veomni " + kTraining + "veomni.ulysses_size=2")),
              HasSubstr("did you mean 'actor_rollout_ref.actor.veomni.ulysses_parallel_size'?"));
}

// What the engines' own code stops at: a plan that is read, and notes that say why it does not run.
TEST(ImportVerlEngines, ModelsThatAnEngineDoesNotHaveAreNotedWithTheirSizes) {
  const auto notes = [](const std::string& model, const std::string& rest) {
    std::string all;
    for (const std::string& note : must_import(script(model, 1, rest), "a.sh", h800()).notes) {
      all += note + "\n";
    }
    return all;
  };
  EXPECT_THAT(notes("google/gemma-2-9b-it", "model_engine=veomni"),
              HasSubstr("engine 'verl-veomni' cannot run this architecture"));
  const std::string shards = " " + kTraining + "torchtitan.data_parallel_shard_size=8";
  EXPECT_THAT(notes("deepseek-ai/deepseek-llm-7b-chat", "model_engine=torchtitan" + shards),
              HasSubstr("hidden/layers/vocab 4096/30/102400; torchtitan has of this family "
                        "2048/16/128256"));
  EXPECT_THAT(notes("Qwen/Qwen3-8B", "model_engine=veomni actor_rollout_ref.model.lora_rank=8"),
              HasSubstr("it trains and serves every weight"));
}

/// Experts that are dealt out and cut once more leave a rank 1 / (ep x shards) of them.
TEST(ImportVerlEngines, ExpertsOfVeOmniTakeTheMemoryThatIsLeftOfThem) {
  const auto weights = [](const std::string& rest) {
    Imported made =
        must_import(script("Qwen/Qwen3-30B-A3B", 2, "model_engine=veomni " + rest), "a.sh", h800());
    Problems problems;
    price(made.plan, *calibration_for_cluster(made.plan.cluster, problems), made.memory_share);
    return made.plan.find(Role::actor)->memory.at(Phase::update_actor).weights;
  };
  const std::string keys = kTraining + "veomni.";
  const Bytes whole = weights("");
  // 30.5e9 parameters in fp32 over 16 ranks, whether experts are dealt out or not.
  EXPECT_NEAR(whole.value, 30.53e9 * 4 / 16, 0.02 * whole.value);
  EXPECT_NEAR(weights(keys + "expert_parallel_size=8").value, whole.value, 0.01 * whole.value);
}

}  // namespace
}  // namespace tessera
