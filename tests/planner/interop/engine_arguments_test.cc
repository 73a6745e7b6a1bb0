// Every exported argument of Megatron-LM, vLLM and SGLang before what their parsers accept
// (fixtures/engine_arguments.json: names and kinds of values, each with its source).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "cost_models/documents/document.h"
#include "cost_models/documents/preset.h"
#include "cost_models/documents/strict_json.h"
#include "planner/engines/engine.h"
#include "planner/interop/export.h"
#include "planner/interop/import.h"
#include "planner/interop/megatron/megatron_model.h"
#include "planner/interop/shell/shell_words.h"
#include "tests/planner/interop/random_plans.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

/// What is wrong with `value` (nullptr = none given) for an argument of this kind; empty = nothing.
std::string wrong_value(const Node& kind, const std::string* value) {
  if (kind.is(Node::Kind::string) && kind.text == "flag") {
    return value == nullptr ? "" : "a flag with the value " + *value;
  }
  if (value == nullptr) return "no value";
  if (const Node* const choices = kind.find("choices")) {
    const bool known = std::any_of(choices->items.begin(), choices->items.end(),
                                   [&](const Node& one) { return one.text == *value; });
    return known ? "" : *value + " is no choice";
  }
  std::size_t read = 0;
  try {
    if (kind.text == "integer") std::stoll(*value, &read);
    if (kind.text == "number") std::stod(*value, &read);
  } catch (const std::exception&) {
    return *value + " is no " + kind.text;
  }
  return kind.text == "text" || read == value->size() ? "" : *value + " is no " + kind.text;
}

struct Accepted {
  Node root;
  Accepted() {
    Problems problems;
    const auto text = read_text_file(
        std::string(TESSERA_SOURCE_DIR) + "/tests/planner/interop/fixtures/engine_arguments.json",
        1 << 20, problems);
    root = parse_json(text.value_or(""), "engine_arguments.json", problems)->root;
  }

  /// Checks the words of an exported array; adds the arguments to `seen`.
  void check(const std::string& program, const ExportedFile& file, const std::string& array,
             std::set<std::string>& seen) const {
    Problems problems;
    const auto commands =
        shell_commands(file.text + "\nwords \"${" + array + "[@]}\"\n", file.name, problems);
    ASSERT_TRUE(problems.empty());
    const ShellCommand& words = commands.back();
    ASSERT_GT(words.size(), 4U);
    const Node& arguments = *root.find(program)->find("arguments");
    for (std::size_t i = 1; i < words.size();) {
      const std::string& name = words[i].text;
      const Node* const kind = arguments.find(name);
      ASSERT_NE(kind, nullptr) << program << " has no " << name;
      if (const Node* const several = kind->find("several")) {
        ASSERT_LT(++i, words.size()) << name << " without words";
        for (; i < words.size() && words[i].text.rfind("--", 0) != 0; ++i) {
          EXPECT_TRUE(std::any_of(several->items.begin(), several->items.end(),
                                  [&](const Node& one) { return one.text == words[i].text; }))
              << words[i].text << " is no choice of " << name;
        }
        seen.insert(name);
        continue;
      }
      const bool valued = i + 1 < words.size() && words[i + 1].text.rfind("--", 0) != 0;
      EXPECT_EQ(wrong_value(*kind, valued ? &words[i + 1].text : nullptr), "")
          << program << " " << name;
      seen.insert(name);
      i += valued ? 2 : 1;
    }
  }
};

TEST(EngineArguments, MegatronAcceptsEveryExportedArgument) {
  const Accepted accepted;
  RandomPlans plans("verl-megatron", 31);
  std::set<std::string> seen;
  for (int i = 0; i < 120; ++i) {
    const Plan plan = plans.next();
    Problems problems;
    const auto made = export_plan(plan, target_of("megatron"), {}, problems);
    if (!made) continue;  // what Megatron-LM lacks is refused with its reason
    for (const ExportedFile& file : made->files) {
      if (file.name.ends_with(".sh")) accepted.check("megatron", file, "megatron_arguments", seen);
    }
  }
  for (const char* const name :
       {"--tensor-model-parallel-size", "--num-layers-per-virtual-pipeline-stage",
        "--decoder-first-pipeline-num-layers", "--recompute-method", "--recompute-modules",
        "--sequence-parallel", "--use-distributed-optimizer", "--group-query-attention",
        "--add-qkv-bias", "--qk-layernorm", "--bf16"}) {
    EXPECT_TRUE(seen.contains(name)) << name;
  }
}

/// The export of a plan whose actor is a preset.
std::optional<Export> megatron_export(const ModelSpec& spec, const std::string& preset,
                                      Problems& problems) {
  Plan plan = RandomPlans("verl-megatron", 33).next();
  plan.models["actor"] = {spec, preset, ""};
  for (RolePlan& role : plan.roles) {
    const int world = static_cast<int>(role.ranks.size());
    role.layout = {{.tp = 1, .dp = world}, role.role == Role::actor ? 1 : 0};
    role.layout.stages = even_stages(plan.model_of(role.role).layers, 1, 1);
    role.offload = {};
  }
  return export_plan(plan, target_of("megatron"), {}, problems);
}

ModelSpec preset_spec(const std::string& preset) {
  Problems problems;
  return *read_model_spec(preset, problems);
}

/// What the actor's script of a preset says, by argument; "" = a flag.
std::map<std::string, std::string> megatron_arguments(const std::string& preset) {
  Problems problems;
  std::map<std::string, std::string> arguments;
  const auto made = megatron_export(preset_spec(preset), preset, problems);
  EXPECT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
  if (!made) return arguments;
  const Accepted accepted;
  std::set<std::string> seen;
  accepted.check("megatron", made->files[0], "megatron_arguments", seen);
  const auto commands = shell_commands(
      made->files[0].text + "\nwords \"${megatron_arguments[@]}\"\n", "actor.sh", problems);
  const ShellCommand& words = commands.back();
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool valued = i + 1 < words.size() && words[i + 1].text.rfind("--", 0) != 0;
    arguments[words[i].text] = valued ? words[i + 1].text : "";
    i += valued ? 1 : 0;
  }
  return arguments;
}

/// The model that a script's arguments describe, read without the plan's.
std::optional<ModelSpec> described(const ExportedFile& script, Problems& problems) {
  ImportOptions options;
  options.cluster = {.name = "any",
                     .device = {"H200-SXM-141GB", from_gib(131), tflop_per_s(989), gb_per_s(4800)},
                     .gpus_per_node = 8,
                     .nodes = 4,
                     .intra_link = "NVLink",
                     .intra_per_gpu = gb_per_s(450),
                     .inter_fabric = "IB",
                     .nics_per_node = 8,
                     .nic = gb_per_s(50)};
  const auto back = import_config(script.text, script.name, options, problems);
  if (!back) return std::nullopt;
  return back->plan.models.at("actor").spec;
}

TEST(EngineArguments, MegatronIsToldTheModelOfEveryPreset) {
  int compared = 0;
  for (const std::string& preset : preset_names("models", "")) {
    const ModelSpec spec = preset_spec(preset);
    Problems problems;
    const auto made = megatron_export(spec, preset, problems);
    const auto families = engine_named("megatron").capabilities.families;
    const bool known = std::find(families.begin(), families.end(), spec.family) != families.end();
    if (spec.vision || !known) {  // not the language model alone, without a word
      EXPECT_FALSE(made.has_value()) << preset;
      continue;
    }
    ASSERT_TRUE(made.has_value()) << preset << Error(ExitCode::bad_input, problems).what();
    const auto back = described(made->files[0], problems);
    ASSERT_TRUE(back.has_value()) << preset << Error(ExitCode::bad_input, problems).what();
    EXPECT_TRUE(unlike(*back, spec).empty()) << preset << ": " << unlike(*back, spec)[0];
    EXPECT_EQ(parameter_count(*back), parameter_count(spec)) << preset;
    EXPECT_EQ(active_parameter_count(*back), active_parameter_count(spec)) << preset;
    ++compared;
  }
  EXPECT_GT(compared, 35);
}

// A window of 4,096 tokens in half of the layers; scaled positions that Megatron-LM has, or not.
TEST(EngineArguments, MegatronIsToldOfWindowsAndScaledPositionsOrRefuses) {
  const auto roundtrip = [](const ModelSpec& spec) {
    Problems problems;
    const auto made = megatron_export(spec, "none", problems);
    const auto back = made ? described(made->files[0], problems) : std::nullopt;
    return back ? unlike(*back, spec) : std::vector<std::string>{problems.at(0).found};
  };
  using Names = std::vector<std::string>;
  ModelSpec window = preset_spec("mistral-7b");
  window.sliding_window = 4096;
  EXPECT_EQ(roundtrip(window), Names{});
  for (std::int64_t i = 1; i < window.layers; i += 2) window.full_attention_layers.push_back(i);
  EXPECT_EQ(roundtrip(window), Names{});
  ModelSpec scaled = preset_spec("llama2-7b");
  scaled.rope.kind = RopeScalingKind::linear;
  scaled.rope.factor = 4;
  EXPECT_EQ(roundtrip(scaled), Names{});
  scaled.rope.factor = 2.5;
  EXPECT_EQ(roundtrip(scaled), Names{"a broken rope factor"});
  scaled.rope = {.kind = RopeScalingKind::yarn,
                 .factor = 4,
                 .original_max_position_embeddings = 4096,
                 .beta_fast = 16,
                 .attention_factor = 1.3,
                 .truncate = false};
  EXPECT_EQ(roundtrip(scaled), Names{});
  ModelSpec frequencies = preset_spec("llama3.1-8b");
  frequencies.rope.low_freq_factor = 2;
  EXPECT_EQ(roundtrip(frequencies).at(0).substr(0, 19), "llama3 rope scaling");
  ModelSpec biased = preset_spec("llama2-7b");
  biased.qkv_bias = biased.output_bias = true;
  EXPECT_EQ(roundtrip(biased), Names{"a bias of the attention's output alone"});
}

// Oracles: NVIDIA/Megatron-LM examples/post_training/modelopt/conf/{openai/gpt-oss-20b,
// deepseek-ai/DeepSeek-V2-Lite}.sh; configuration of Nemotron: nvidia/Minitron-8B-Base.
TEST(EngineArguments, MegatronIsToldOfGptOssLatentAttentionAndNemotron) {
  auto oss = megatron_arguments("gpt-oss-20b");
  EXPECT_EQ(oss["--window-size"], "127,0");
  EXPECT_TRUE(oss["--window-attn-skip-freq"].starts_with("[1,0,1,0,"));
  EXPECT_EQ(oss["--softmax-type"], "learnable");
  EXPECT_EQ(oss["--glu-linear-offset"], "1");
  EXPECT_EQ(oss["--activation-func-clamp-value"], "7");
  EXPECT_TRUE(oss.contains("--quick-geglu"));
  EXPECT_FALSE(oss.contains("--swiglu") || oss.contains("--disable-bias-linear"));
  EXPECT_EQ(oss["--position-embedding-type"], "yarn");
  EXPECT_EQ(oss["--rotary-scaling-factor"], "32");
  EXPECT_EQ(oss["--mscale"], "1");
  EXPECT_TRUE(oss.contains("--no-yarn-correction-range-round-to-int"));
  auto latent = megatron_arguments("deepseek-v2-lite");
  EXPECT_TRUE(latent.contains("--qk-layernorm"));
  EXPECT_EQ(latent["--rotary-scaling-factor"], "40");
  EXPECT_EQ(latent["--mscale"], "0.707");
  EXPECT_EQ(latent["--mscale-all-dim"], "0.707");
  EXPECT_EQ(latent["--original-max-position-embeddings"], "4096");
  auto squared = megatron_arguments("minitron-8b");
  EXPECT_TRUE(squared.contains("--squared-relu") && squared.contains("--apply-layernorm-1p"));
  EXPECT_FALSE(squared.contains("--swiglu"));
  EXPECT_EQ(squared["--normalization"], "LayerNorm");
  EXPECT_EQ(squared["--rotary-percent"], "0.5");
  auto gpt2 = megatron_arguments("gpt2");
  EXPECT_EQ(gpt2["--position-embedding-type"], "learned_absolute");
  EXPECT_FALSE(gpt2.contains("--swiglu") || gpt2.contains("--disable-bias-linear"));
}

// Oracles: the models' config.json; THUDM/slime's scripts/models/{qwen3-30B-A3B,deepseek-v3}.sh.
TEST(EngineArguments, MegatronIsToldOfExpertsLatentAttentionAndScaledPositions) {
  auto moe = megatron_arguments("qwen3-30b-a3b");
  EXPECT_EQ(moe["--num-experts"], "128");
  EXPECT_EQ(moe["--moe-ffn-hidden-size"], "768");
  EXPECT_EQ(moe["--moe-router-topk"], "8");
  EXPECT_TRUE(moe.contains("--moe-grouped-gemm"));
  EXPECT_FALSE(moe.contains("--moe-router-pre-softmax"));  // the chosen scores sum to 1
  EXPECT_FALSE(moe.contains("--moe-layer-freq"));          // every layer
  auto latent = megatron_arguments("deepseek-v3");
  EXPECT_EQ(latent["--q-lora-rank"], "1536");
  EXPECT_EQ(latent["--kv-lora-rank"], "512");
  EXPECT_EQ(latent["--qk-head-dim"], "128");
  EXPECT_EQ(latent["--qk-pos-emb-head-dim"], "64");
  EXPECT_EQ(latent["--moe-router-score-function"], "sigmoid");
  EXPECT_EQ(latent["--moe-router-topk-scaling-factor"], "2.5");
  EXPECT_EQ(latent["--moe-router-num-groups"], "8");
  EXPECT_EQ(latent["--moe-shared-expert-intermediate-size"], "2048");
  EXPECT_TRUE(latent["--moe-layer-freq"].starts_with("[0,0,0,1,1,"));
  EXPECT_FALSE(latent.contains("--kv-channels"));
  auto scaled = megatron_arguments("llama3.1-8b");
  EXPECT_TRUE(scaled.contains("--use-rope-scaling"));
  EXPECT_EQ(scaled["--rope-scaling-factor"], "8");
  EXPECT_EQ(scaled["--hidden-dropout"], "0");
  EXPECT_FALSE(scaled.contains("--num-experts"));
}

/// A plan whose rollout has experts over all its GPUs.
Plan expert_plan(RandomPlans& plans) {
  Plan plan = plans.next();
  while (plan.find(Role::rollout)->ranks.size() < 4) plan = plans.next();
  Problems problems;
  const auto spec =
      read_model_spec(std::string(TESSERA_SOURCE_DIR) + "/configs/models/qwen3-30b-a3b", problems);
  plan.models["actor"] = {*spec, "qwen3-30b-a3b", ""};
  for (RolePlan& role : plan.roles) {
    if (role.role != Role::rollout) continue;
    role.layout.tp = 2;
    role.layout.dp = static_cast<int>(role.ranks.size()) / 2;
    role.layout.ep = 4;
    role.layout.stages = even_stages(spec->layers, 1);
  }
  return plan;
}

TEST(EngineArguments, ServersAcceptEveryExportedArgument) {
  const Accepted accepted;
  for (const auto& [target, program, expert] :
       {std::tuple{target_of("vllm"), "vllm", "--enable-expert-parallel"},
        std::tuple{target_of("sglang"), "sglang", "--ep-size"}}) {
    RandomPlans plans("verl", 32);
    std::set<std::string> seen;
    for (int i = 0; i < 60; ++i) {
      const Plan plan = i % 3 == 0 ? expert_plan(plans) : plans.next();
      Problems problems;
      const auto made = export_plan(plan, target, {}, problems);
      ASSERT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
      accepted.check(program, made->files[0], "arguments", seen);
    }
    EXPECT_TRUE(seen.contains("--dtype"));
    EXPECT_TRUE(seen.contains(expert));
    EXPECT_EQ(seen.contains("--enable-dp-attention"), target.name == "sglang");
  }
}

TEST(EngineArguments, ValuesOfAnotherKindAreFound) {
  const Accepted accepted;
  const Node& vllm = *accepted.root.find("vllm")->find("arguments");
  const auto wrong = [&](const char* name, const std::string& value) {
    return !wrong_value(*vllm.find(name), &value).empty();
  };
  EXPECT_TRUE(wrong("--tensor-parallel-size", "two"));
  EXPECT_TRUE(wrong("--tensor-parallel-size", "2.5"));
  EXPECT_TRUE(wrong("--enable-prefix-caching", "true"));
  EXPECT_TRUE(wrong("--dtype", "bf16"));
  EXPECT_FALSE(wrong("--gpu-memory-utilization", "0.85"));
  EXPECT_FALSE(wrong_value(*vllm.find("--max-num-seqs"), nullptr).empty());
}

}  // namespace
}  // namespace tessera
