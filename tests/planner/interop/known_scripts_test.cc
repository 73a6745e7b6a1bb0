// Oracle: verl's scripts that are known to run (docs/perf/device_tuning.rst and examples/tuning,
// examples/grpo_trainer): their settings, as a shell script would give them, are imported and must
// fit the GPUs that they ran on. Responses have the mean of their data set where the script's bound
// is far above it (gsm8k: questions
// of about 120 tokens with the chat template, solutions of about 200).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "cost_models/adapters.h"
#include "planner/engines/engine_check.h"
#include "planner/engines/read_plan.h"
#include "planner/interop/export.h"
#include "planner/interop/import.h"
#include "planner/interop/price.h"
#include "planner/plan/plan_json.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kGsm8k = 200, kGsm8kPrompt = 120;  // tokens on average

// Of all: GRPO, five responses of a prompt, KL in the loss, gradient checkpointing, everything
// offloaded.
const std::string kFsdp =
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "
    "actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.rollout.n=5 "
    "actor_rollout_ref.rollout.name=vllm "
    "actor_rollout_ref.model.enable_gradient_checkpointing=True "
    "actor_rollout_ref.model.use_remove_padding=True "
    "actor_rollout_ref.ref.fsdp_config.param_offload=True ";
const std::string kOffloaded =
    "actor_rollout_ref.actor.fsdp_config.param_offload=True "
    "actor_rollout_ref.actor.fsdp_config.optimizer_offload=True ";
const std::string kMegatron =
    "python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer.yaml "
    "algorithm.adv_estimator=grpo actor_rollout_ref.actor.use_kl_loss=True "
    "actor_rollout_ref.rollout.n=5 actor_rollout_ref.actor.megatron.param_offload=True "
    "actor_rollout_ref.actor.megatron.optimizer_offload=True "
    "actor_rollout_ref.ref.megatron.param_offload=True ";
const std::string kLora =
    "actor_rollout_ref.model.lora_rank=32 actor_rollout_ref.model.lora_alpha=32 "
    "actor_rollout_ref.model.target_modules=all-linear "
    "actor_rollout_ref.rollout.load_format=safetensors "
    "actor_rollout_ref.rollout.layered_summon=True data.max_prompt_length=512 "
    "data.max_response_length=1024 actor_rollout_ref.actor.entropy_coeff=0.001 "
    "actor_rollout_ref.rollout.max_num_seqs=512 actor_rollout_ref.rollout.max_model_len=1536 "
    "actor_rollout_ref.rollout.max_num_batched_tokens=1536 trainer.nnodes=1 ";

std::string micro_batch(int sequences) {
  const std::string count = std::to_string(sequences) + " ";
  return "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=" + count +
         "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=" + count +
         "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=" + count;
}

std::string lora_script(const char* model, int gpus, int prompts, int sequences, int tp, int sp,
                        const char* share) {
  const std::string batch = std::to_string(prompts) + " ";
  return kFsdp + kOffloaded + kLora + micro_batch(sequences) +
         "actor_rollout_ref.model.path=" + model + " data.train_batch_size=" + batch +
         "actor_rollout_ref.actor.ppo_mini_batch_size=" + batch +
         "trainer.n_gpus_per_node=" + std::to_string(gpus) +
         " actor_rollout_ref.rollout.tensor_model_parallel_size=" + std::to_string(tp) +
         " actor_rollout_ref.actor.ulysses_sequence_parallel_size=" + std::to_string(sp) +
         " actor_rollout_ref.rollout.gpu_memory_utilization=" + share + "\n";
}

std::string lora_7b() { return lora_script("Qwen/Qwen2.5-7B-Instruct", 1, 16, 16, 1, 1, "0.2"); }

std::string full_script(const char* model, int gpus, int nodes, int tp, const char* share,
                        int length, const std::string& rest) {
  return kFsdp + kOffloaded + "actor_rollout_ref.model.path=" + model +
         " data.train_batch_size=1024 actor_rollout_ref.actor.ppo_mini_batch_size=256 "
         "data.max_prompt_length=" +
         std::to_string(length) + " data.max_response_length=" + std::to_string(length) +
         " trainer.n_gpus_per_node=" + std::to_string(gpus) +
         " trainer.nnodes=" + std::to_string(nodes) +
         " actor_rollout_ref.rollout.tensor_model_parallel_size=" + std::to_string(tp) +
         " actor_rollout_ref.rollout.gpu_memory_utilization=" + share + " " + rest + "\n";
}

struct Outcome {
  Imported imported;
  Pricing pricing;
  double peak_gib = 0;
};

ImportOptions on(const std::string& cluster, double response_mean, double memory_share = 1) {
  Problems none;
  ImportOptions options{.cluster = *read_cluster_spec(cluster, none),
                        .response_mean = {},
                        .response_cv = {},
                        .prompt_mean = {}};
  if (response_mean > 0) {
    options.response_mean = response_mean;
    options.prompt_mean = kGsm8kPrompt;
  }
  options.cluster.device.memory.value = static_cast<std::int64_t>(
      memory_share * static_cast<double>(options.cluster.device.memory.value));
  return options;
}

Outcome judge(const std::string& text, const ImportOptions& options, const char* calibration) {
  Problems problems;
  auto imported = import_config(text, "a.sh", options, problems);
  EXPECT_TRUE(imported.has_value()) << Error(ExitCode::bad_input, problems).what();
  if (!imported) return {};
  Outcome outcome{.imported = *std::move(imported), .pricing = {}};
  outcome.imported.plan.certificate.risk = 0.5;  // they ran: at even odds they must fit
  outcome.pricing = price(outcome.imported.plan, *find_calibration(calibration, problems),
                          outcome.imported.memory_share);
  outcome.peak_gib = gib(outcome.imported.plan.prediction.peak_bytes);
  return outcome;
}

std::string why(const Outcome& outcome) {
  std::string all;
  for (const std::string& note : outcome.pricing.notes) all += note + " ";
  return all;
}

struct Known {
  const char *name, *cluster, *calibration;
  std::string text;
  double response_mean;
};

std::vector<Known> known_scripts() {
  const std::string by_tokens =
      "actor_rollout_ref.actor.use_dynamic_bsz=True "
      "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=24000 ";
  const std::string example_7b =
      kFsdp + micro_batch(40) +
      "actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct data.train_batch_size=1024 "
      "data.max_prompt_length=512 data.max_response_length=1024 "
      "actor_rollout_ref.actor.ppo_mini_batch_size=256 "
      "actor_rollout_ref.rollout.tensor_model_parallel_size=2 "
      "actor_rollout_ref.rollout.gpu_memory_utilization=0.6 trainer.n_gpus_per_node=8\n";
  const std::string megatron_32b =
      kMegatron + micro_batch(1) +
      "actor_rollout_ref.model.path=Qwen/Qwen2.5-32B data.train_batch_size=512 "
      "data.max_prompt_length=2048 data.max_response_length=6144 "
      "actor_rollout_ref.actor.ppo_mini_batch_size=256 "
      "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=8 "
      "actor_rollout_ref.rollout.tensor_model_parallel_size=8 "
      "actor_rollout_ref.rollout.gpu_memory_utilization=0.6 trainer.n_gpus_per_node=8\n";
  // examples/tuning/scaling/run_qwen2_5_72b_fsdp.sh
  const std::string scaled_72b =
      kFsdp + kOffloaded +
      "actor_rollout_ref.model.path=Qwen/Qwen2.5-72B-Instruct data.train_batch_size=1024 "
      "actor_rollout_ref.actor.ppo_mini_batch_size=256 data.max_prompt_length=1024 "
      "data.max_response_length=2048 trainer.n_gpus_per_node=8 trainer.nnodes=4 "
      "actor_rollout_ref.actor.use_dynamic_bsz=True "
      "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=24576 "
      "actor_rollout_ref.rollout.log_prob_use_dynamic_bsz=True "
      "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu=24576 "
      "actor_rollout_ref.ref.log_prob_use_dynamic_bsz=True "
      "actor_rollout_ref.ref.log_prob_max_token_len_per_gpu=24576 "
      "actor_rollout_ref.rollout.tensor_model_parallel_size=16 "
      "actor_rollout_ref.rollout.gpu_memory_utilization=0.6\n";
  return {
      {"7B, 8 x H100, micro-batch 40, any lengths", "h100-8", "h100", example_7b, 0},
      {"7B, 8 x A100, micro-batch 40, any lengths", "a100-8", "a100", example_7b, 0},
      {"7B, 2 x H800, TP2, micro-batch 16, gsm8k", "h800-8", "h800",
       full_script("Qwen/Qwen2-7B-Instruct", 2, 1, 2, "0.6", 1024, micro_batch(16)), kGsm8k},
      {"14B, 4 x H800, TP4, micro-batch 16, gsm8k", "h800-8", "h800",
       full_script("Qwen/Qwen2.5-Coder-14B-Instruct", 4, 1, 4, "0.5", 1024, micro_batch(16)),
       kGsm8k},
      {"32B, 8 x H20, Megatron TP8, micro-batch 1", "h20-8", "h20", megatron_32b, 0},
      {"72B, 32 x H800, TP16, 24000 tokens, gsm8k", "h800-64", "h800",
       full_script("Qwen/Qwen2-72B-Instruct", 8, 4, 16, "0.6", 512, by_tokens), kGsm8k},
      {"72B, 32 x H800, TP16, 24576 tokens, gsm8k", "h800-64", "h800", scaled_72b, kGsm8k},
      {"7B LoRA, 1 x H100, any lengths", "h100-8", "h100", lora_7b(), 0},
      {"14B LoRA, 2 x H100, gsm8k", "h100-8", "h100",
       lora_script("Qwen/Qwen2.5-14B-Instruct", 2, 116, 116, 2, 2, "0.25"), kGsm8k},
      {"32B LoRA, 4 x H100, gsm8k", "h100-8", "h100",
       lora_script("Qwen/Qwen2.5-32B-Instruct", 4, 180, 90, 4, 2, "0.3"), kGsm8k},
      {"72B LoRA, 8 x H100, Ulysses 2, gsm8k", "h100-8", "h100",
       lora_script("Qwen/Qwen2.5-72B-Instruct", 8, 176, 44, 8, 2, "0.4"), kGsm8k},
  };
}

TEST(KnownScripts, AreAllAccepted) {
  for (const Known& script : known_scripts()) {
    const Outcome here =
        judge(script.text, on(script.cluster, script.response_mean), script.calibration);
    std::printf("%-52s %-8s peak %6.1f GiB\n", script.name,
                here.pricing.fits ? "accepted" : "REFUSED", here.peak_gib);
    EXPECT_TRUE(here.pricing.fits) << script.name << ": " << why(here);
    EXPECT_THAT(here.imported.notes, Not(Contains(HasSubstr("does not run this")))) << script.name;
    const Outcome third =
        judge(script.text, on(script.cluster, script.response_mean, 1.0 / 3), script.calibration);
    EXPECT_FALSE(third.pricing.fits) << script.name << " on a third of the memory";
  }
}

// peft prints 40,370,176 trainable parameters for Qwen2.5-7B with r = 16 on every linear weight:
// 28 layers of 16 (in + out) over q, k, v, o, gate, up and down.
TEST(Lora, TrainsAsManyParametersAsPeftPrints) {
  Problems problems;
  const ParameterTable table = parameter_table(*read_model_spec("qwen2.5-7b", problems));
  const auto elements = [&](const Lora& lora, int tp = 1) {
    return 28 * adapter_elements(table, lora, tp)[0];
  };
  EXPECT_EQ(elements({.rank = 16}), 40'370'176);
  EXPECT_EQ(elements({.rank = 16, .targets = {"q_proj", "v_proj"}}),
            28 * 16 * (3584 + 3584 + 3584 + 512));
  // Fused targets share A: 16 (3584 + 3584 + 2 x 512).
  EXPECT_EQ(elements({.rank = 16, .targets = {"linear_qkv"}}), 28 * 16 * (3584 + 4608));
  // Cut by rows: A whole, B cut; by columns the other way round.
  EXPECT_EQ(elements({.rank = 16, .targets = {"up_proj", "down_proj"}}, 2),
            28 * 16 * 2 * (3584 + 18944 / 2));
  EXPECT_EQ(unknown_targets(table, {.rank = 16, .targets = {"q_proj", "c_attn"}}),
            std::vector<std::string>{"c_attn"});
}

// Qwen3-30B-A3B: 48 layers of 2048, 32 query and 4 KV heads of 128, experts of 768 columns.
TEST(Lora, OfMegatronBridgeAdaptsTheExpertsOfARankAsOne) {
  Problems problems;
  const ParameterTable table = parameter_table(*read_model_spec("qwen3-30b-a3b", problems));
  const auto elements = [&](std::vector<std::string> targets) {
    const auto each = adapter_elements(table, {.rank = 32, .targets = std::move(targets)}, 1);
    return each[static_cast<std::size_t>(LayerKind::sparse)];
  };
  EXPECT_EQ(elements({"linear_fc1"}), 32 * (2048 + 2 * 768));  // gate and up share A
  EXPECT_EQ(elements({"linear_fc2"}), 32 * (768 + 2048));
  EXPECT_EQ(elements({"linear_fc1_gate", "linear_fc1_up"}), 32 * 2 * (2048 + 768));
  EXPECT_EQ(elements({"linear_qkv", "linear_proj"}), 32 * (2048 + 4096 + 1024 + 4096 + 2048));
  EXPECT_EQ(elements({"router"}), 32 * (2048 + 128));
  EXPECT_EQ(elements({"gate_proj"}), 0);  // peft: experts are no modules
  EXPECT_EQ(elements({}), 32 * (2 * (4096 + 2048) + 2 * (512 + 2048)));
  EXPECT_TRUE(
      unknown_targets(table, {.rank = 32, .targets = {"linear_fc1", "linear_fc2"}}).empty());
  EXPECT_EQ(unknown_targets(table, {.rank = 32, .targets = {"gate_proj"}}),
            std::vector<std::string>{"gate_proj"});
}

TEST(Lora, FreezesWeightsAndMovesTheAdaptersAlone) {
  const Outcome lora = judge(lora_7b(), on("h100-8", 0), "h100");
  const Plan& plan = lora.imported.plan;
  const RolePlan& actor = *plan.find(Role::actor);
  ASSERT_EQ(actor.lora.rank, 32);
  EXPECT_EQ(actor.lora.alpha, 32);
  constexpr std::int64_t kWeights = 7'615'616'512, kAdapters = 2 * std::int64_t{40'370'176};
  const MemoryUse& update = actor.memory.at(Phase::update_actor);
  EXPECT_EQ(update.weights, 4 * (kWeights + kAdapters));  // fp32, as verl loads what it trains
  EXPECT_EQ(update.gradients, 4 * kAdapters);
  EXPECT_EQ(update.master_weights, 0);
  EXPECT_LE(update.optimizer + update.workspace, 8 * kAdapters + (std::int64_t{4} << 30));
  // The reference is the actor's own weights, in host memory but in its own phase.
  const RolePlan& reference = *plan.find(Role::reference);
  EXPECT_EQ(reference.lora.rank, 32);
  EXPECT_EQ(reference.memory.at(Phase::gen).weights, 0);
  EXPECT_EQ(reference.memory.at(Phase::ref).weights, 0);
  EXPECT_EQ(actor.memory.at(Phase::gen).weights, 0);
  EXPECT_EQ(actor.memory.at(Phase::ref).weights, 4 * (kWeights + kAdapters));
  EXPECT_EQ(plan.find(Role::rollout)->memory.at(Phase::gen).weights, 2 * (kWeights + kAdapters));
  EXPECT_EQ(plan.reshard[0].bytes_received, 0);  // one GPU
  EXPECT_TRUE(
      std::any_of(lora.imported.notes.begin(), lora.imported.notes.end(),
                  [](const std::string& note) { return note.find("80.7 million") != note.npos; }));
  const Outcome two = judge(lora_script("Qwen/Qwen2.5-7B-Instruct", 2, 16, 8, 1, 1, "0.3"),
                            on("h100-8", 0), "h100");
  EXPECT_EQ(two.imported.plan.reshard[0].bytes_received, 2 * kAdapters);
}

TEST(Lora, TakesLessTimeThanTrainingEveryWeight) {
  // Micro-batches whose products take longer than the host needs to launch them.
  const std::string lora = lora_script("Qwen/Qwen2.5-7B-Instruct", 8, 128, 16, 1, 1, "0.3");
  std::string full = lora;
  full.replace(full.find("lora_rank=32"), 12, "lora_rank=0 ");
  const Outcome some = judge(lora, on("h100-8", kGsm8k), "h100");
  const Outcome all = judge(full, on("h100-8", kGsm8k), "h100");
  const auto seconds = [](const Outcome& outcome, Phase phase) {
    return outcome.imported.plan.prediction.phases_s.at(phase);
  };
  // Of a training pass' three products and the forward pass of recomputation one is left out.
  const double ratio = seconds(some, Phase::update_actor) / seconds(all, Phase::update_actor);
  EXPECT_LT(ratio, 0.95);
  EXPECT_GT(ratio, 0.5);
  // The engine's calls take as long for either, and adapters are as many tensors.
  EXPECT_LT(seconds(some, Phase::reshard), seconds(all, Phase::reshard));
  const auto received = [](const Outcome& outcome) {
    return outcome.imported.plan.reshard.at(0).bytes_received;
  };
  EXPECT_LT(received(some), received(all) / 4);
  // Generation is the fullest phase of both, where adapters lie beside the rollout's weights.
  const auto update = [](const Outcome& outcome) {
    return outcome.imported.plan.find(Role::actor)->memory.at(Phase::update_actor).total();
  };
  EXPECT_LT(update(some), update(all));
}

TEST(Lora, IsKeptByPlanFilesAndExportsAndRefusedByEnginesWithoutIt) {
  const Plan plan = judge(lora_7b(), on("h100-8", 0), "h100").imported.plan;
  Problems problems;
  const auto read = parse_plan(to_json(plan), "plan.json", problems);
  ASSERT_TRUE(read.has_value()) << Error(ExitCode::bad_input, problems).what();
  EXPECT_EQ(*read, plan);
  const auto made = export_plan(plan, target_of("verl"), {}, problems);
  ASSERT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
  const std::string& script = made->files[1].text;
  for (const char* const key : {"model.lora_rank=32", "model.lora_alpha=32", "all-linear",
                                "load_format=safetensors", "layered_summon=true"}) {
    EXPECT_THAT(script, HasSubstr(key));
  }
  const Outcome back = judge(script, on("h100-8", 0), "h100");
  EXPECT_EQ(back.imported.plan.find(Role::actor)->lora, plan.find(Role::actor)->lora);
  const auto refuses = [&](const char* engine) {
    const Problems refused = outside_capabilities(plan, "plan.json", engine);
    return std::any_of(refused.begin(), refused.end(), [&](const Problem& problem) {
      return problem.place == "/roles/0/lora" && problem.hint.find(engine) != std::string::npos;
    });
  };
  EXPECT_TRUE(refuses("megatron"));
  EXPECT_TRUE(refuses("tessera+vllm"));
  EXPECT_FALSE(refuses("tessera"));
}

TEST(Lora, RefusesTargetsThatTheModelDoesNotHave) {
  std::string text = lora_7b();
  text.replace(text.find("target_modules=all-linear"), 25, "target_modules=[q_proj,c_attn]");
  Problems problems;
  EXPECT_FALSE(import_config(text, "a.sh", on("h100-8", 0), problems).has_value());
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].found, HasSubstr("c_attn"));
}

TEST(Servers, HoldAsManySequencesAsTheirShareLeavesRoomFor) {
  const auto served = [](const std::string& command) {
    return judge(command + "\n", on("h100-8", 0), "h100");
  };
  const Outcome vllm =
      served("vllm serve Qwen/Qwen2.5-7B --tensor-parallel-size 4 --max-num-seqs 64");
  EXPECT_TRUE(vllm.pricing.fits) << why(vllm);
  const RolePlan& rollout = vllm.imported.plan.roles[0];
  const std::int64_t held = rollout.batching.max_sequences;
  // 131,072 tokens of 2 x 28 layers x 1 head x 128 x 2 bytes are 1.75 GiB on each of four GPUs;
  // 0.9 of 80 GB less 3.6 GiB of weights holds 30 to 40 of them.
  EXPECT_GE(held, 25);
  EXPECT_LE(held, 42);
  const MemoryUse& use = rollout.memory.at(Phase::gen);
  EXPECT_LE(static_cast<double>((use.total() - use.reserve).value),
            0.9 * static_cast<double>(vllm.imported.plan.cluster.device.memory.value));
  EXPECT_EQ(vllm.imported.plan.workload.prompts_per_step, held);
  const Outcome less = served(
      "vllm serve Qwen/Qwen2.5-7B --tensor-parallel-size 4 --max-num-seqs 64 "
      "--gpu-memory-utilization 0.5");
  EXPECT_TRUE(less.pricing.fits);
  EXPECT_LT(less.imported.plan.roles[0].batching.max_sequences, held * 2 / 3);
  const Outcome sglang =
      served("python3 -m sglang.launch_server --model-path Qwen/Qwen2.5-7B --tp 2");
  EXPECT_TRUE(sglang.pricing.fits) << why(sglang);
  EXPECT_GE(sglang.imported.plan.roles[0].batching.max_sequences, 1);
  // One sequence of the model's length does not fit one GPU's share; a shorter one does.
  const Outcome large = served("vllm serve Qwen/Qwen2.5-32B --max-model-len 65536");
  EXPECT_FALSE(large.pricing.fits);
  EXPECT_THAT(why(large), HasSubstr("one sequence of 65536 tokens"));
  EXPECT_TRUE(served("vllm serve Qwen/Qwen2.5-32B --max-model-len 4096").pricing.fits);
}

TEST(Servers, ReportArgumentsThatTheyDoNotHave) {
  Problems problems;
  const std::string misspelt = "vllm serve Qwen/Qwen2.5-7B --tensor-parallel-sise 8\n";
  EXPECT_FALSE(import_config(misspelt, "a.sh", on("h100-8", 0), problems).has_value());
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].found, "--tensor-parallel-sise");
  EXPECT_THAT(problems[0].hint, HasSubstr("tensor-parallel-size"));
  EXPECT_EQ(problems[0].place, "1");
  ImportOptions lenient = on("h100-8", 0);
  lenient.allow_unknown = true;
  const Outcome noted = judge(misspelt, lenient, "h100");
  EXPECT_THAT(noted.imported.notes.front(), HasSubstr("--tensor-parallel-sise"));
  const std::string foreign =
      "python3 -m sglang.launch_server --model-path Qwen/Qwen2.5-7B --tp 2 --of-another-program 1 "
      "--quantization fp8 --host 0.0.0.0 --port 30000\n";
  problems.clear();
  EXPECT_FALSE(import_config(foreign, "a.sh", on("h100-8", 0), problems).has_value());
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].found, "--of-another-program");
  EXPECT_THAT(problems[0].expected, HasSubstr("SGLang"));
  const Outcome others = judge(foreign, lenient, "h100");
  std::string notes;
  for (const std::string& note : others.imported.notes) notes += note + "\n";
  EXPECT_THAT(notes, HasSubstr("--of-another-program is no argument"));
  EXPECT_THAT(notes, HasSubstr("--quantization is not counted"));
  EXPECT_THAT(notes, Not(HasSubstr("--port")));
}

}  // namespace
}  // namespace tessera
