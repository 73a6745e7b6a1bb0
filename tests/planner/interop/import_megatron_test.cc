// Scripts of Megatron-LM as plans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "planner/interop/config/stage_text.h"
#include "planner/interop/export.h"
#include "planner/interop/import.h"
#include "tests/planner/interop/imported.h"
#include "tests/planner/interop/random_plans.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

/// The first file of a plan's export to Megatron-LM, with the plan made into one that its arguments
/// can say: nothing offloaded, whole nodes. nullopt where replicas do not divide the mini-batch.
std::optional<ExportedFile> megatron_script(Plan& plan) {
  const RolePlan& actor = plan.roles[0];
  for (RolePlan& role : plan.roles) role.offload = {};
  plan.cluster.gpus_per_node =
      static_cast<std::int64_t>(std::min<std::size_t>(8, actor.ranks.size()));
  plan.cluster.nodes = static_cast<std::int64_t>(actor.ranks.size()) / plan.cluster.gpus_per_node;
  if (actor.batching.mini_batch % actor.layout.dp != 0) return std::nullopt;
  Problems problems;
  const auto made = export_plan(plan, target_of("megatron"), {}, problems);
  EXPECT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
  return made->files[0];
}

TEST(Import, ReadsMegatronArgumentsOfAnExport) {
  RandomPlans plans("verl-megatron", 77);
  int compared = 0;
  for (int i = 0; i < 60; ++i) {
    Plan plan = plans.next();
    RolePlan& actor = plan.roles[0];
    actor.batching.update_tokens = plan.workload.prompt_tokens + plan.workload.response_tokens.max;
    const auto script = megatron_script(plan);
    if (!script) continue;
    ImportOptions options = on(plan);
    options.model = plan.models.at("actor").path;
    const Imported back = must_import(script->text, script->name, options);
    ASSERT_EQ(back.plan.roles.size(), 1U);
    EXPECT_EQ(back.plan.roles[0].layout, actor.layout);
    EXPECT_EQ(back.plan.roles[0].recompute, actor.recompute);
    EXPECT_EQ(back.plan.roles[0].batching.update_tokens, actor.batching.update_tokens);
    EXPECT_EQ(back.plan.roles[0].batching.mini_batch, actor.batching.mini_batch);
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

// Megatron-LM's examples: arrays that are expanded without quotes, an 8-bit format, and GPT-3's
// vocabulary by its files.
TEST(Import, ReadsMegatronsOwnExamples) {
  const std::string layers =
      "ARGS=('--num-layers 4' --hidden-size 256 --num-attention-heads 8 --seq-length 512\n"
      "  --max-position-embeddings 512 --micro-batch-size 1 --global-batch-size 8 --bf16)\n";
  const Imported fp8 = must_import(
      layers +
          "FP8=()\nif [[ fp8 == \"fp8\" ]]; then FP8+=('--fp8-format hybrid' "
          "'--fp8-amax-compute-algo max' --fp8-param-gather); fi\n"
          "DATA=('--vocab-size 128256' \"--tokenizer-type NullTokenizer\")\n"
          "torchrun --nproc_per_node 8 pretrain_gpt.py ${ARGS[@]} ${FP8[@]} ${DATA[@]}\n",
      "a.sh", h800());
  EXPECT_EQ(fp8.plan.models.at("actor").spec.vocab, 128256);
  EXPECT_EQ(fp8.plan.models.at("actor").spec.layers, 4);
  EXPECT_THAT(fp8.notes, ::testing::Contains(HasSubstr("--fp8-format hybrid: the layers' products "
                                                       "run in 8 bit")));
  const Imported gpt =
      must_import(layers +
                      "torchrun --nproc_per_node 8 pretrain_gpt.py ${ARGS[@]} --vocab-file v.json "
                      "--merge-file m.txt --tokenizer-type GPT2BPETokenizer\n",
                  "a.sh", h800());
  EXPECT_EQ(gpt.plan.models.at("actor").spec.vocab, 50257);
  EXPECT_EQ(
      refusals(layers + "torchrun pretrain_gpt.py ${ARGS[@]} --vocab-file v.json\n", "a.sh").size(),
      1U);
}

// Only what plans of the model count on is recomputation to them.
TEST(Import, ReadsTheModulesThatMegatronRecomputes) {
  const auto read = [](const std::string& flags, std::vector<std::string>& notes) {
    ImportOptions options = h800();
    options.model = "qwen3-30b-a3b";
    const Imported made = must_import(
        "torchrun --nproc_per_node 8 pretrain_gpt.py --seq-length 512 --micro-batch-size 1 "
        "--global-batch-size 8 --bf16 " +
            flags + "\n",
        "a.sh", options);
    notes = made.notes;
    return made.plan.roles[0].recompute;
  };
  std::vector<std::string> notes;
  const std::string selective = "--recompute-granularity selective --recompute-modules ";
  EXPECT_EQ(read(selective + "moe_act", notes), Recompute::selective);
  EXPECT_THAT(notes, ::testing::Not(::testing::Contains(HasSubstr("recompute_modules"))));
  EXPECT_EQ(read(selective + "moe_act layernorm", notes), Recompute::selective);
  EXPECT_THAT(notes, ::testing::Contains(HasSubstr("[moe_act, layernorm] is priced as")));
  EXPECT_EQ(read("--recompute-activations", notes), Recompute::none);
  EXPECT_THAT(notes, ::testing::Contains(HasSubstr("[core_attn] is priced as no recomputation")));
}

// The examples of Megatron-LM's own documentation and of verl's script of DeepSeek-V4; what its
// parser refuses is refused.
TEST(StageText, TellsTheLayersOfEachStage) {
  using Layers = std::vector<std::int64_t>;
  EXPECT_EQ(stage_layers("Et*3|(tt|)*29,m|L"),
            (Layers{3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
                    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0}));
  EXPECT_EQ(stage_layers("Et*6|t*6|t*6|t*5|t*5|t*5|t*5|t*5L"), (Layers{6, 6, 6, 5, 5, 5, 5, 5}));
  EXPECT_EQ(stage_layers("E|(t|(tt)*2|)*2L"), (Layers{0, 1, 4, 1, 4, 0}));
  for (const char* const wrong : {"", "Et*|L", "E(t|L", "Et)L", "Ex|L", "E(t*65536)*65536L"}) {
    EXPECT_FALSE(stage_layers(wrong)) << wrong;
  }
  for (const Layers& layers : {Layers{6, 6, 5}, Layers{1, 0, 12, 3}, Layers{0, 7}}) {
    EXPECT_EQ(stage_layers(stage_text(stage_ranges(layers), 1)), layers);
  }
}

// Stages that are neither alike nor told by their ends, on one chunk and on two chunks a rank.
TEST(Import, ReadsStagesOfAnyLengthThatAnExportStates) {
  RandomPlans plans("verl-megatron", 79);
  int compared = 0;
  for (int i = 0; i < 200 && compared < 4; ++i) {
    Plan plan = plans.next();
    RolePlan& actor = plan.roles[0];
    const std::int64_t layers = plan.models.at("actor").spec.layers;
    std::vector<LayerRange>& stages = actor.layout.stages;
    if (stages.size() < 4 || layers < std::ssize(stages) + 2) continue;
    std::vector<std::int64_t> each(stages.size(), 1);
    each[1] = 2;
    each[2] = layers - std::ssize(stages);
    stages = stage_ranges(each);
    actor.batching.update_tokens = plan.workload.prompt_tokens + plan.workload.response_tokens.max;
    const auto script = megatron_script(plan);
    if (!script) continue;
    EXPECT_THAT(script->text, HasSubstr("--pipeline-model-parallel-layout\n  'Et|t*2|"));
    ImportOptions options = on(plan);
    options.model = plan.models.at("actor").path;
    const Imported back = must_import(script->text, script->name, options);
    EXPECT_EQ(back.plan.roles[0].layout, actor.layout);
    ++compared;
  }
  EXPECT_EQ(compared, 4);
  EXPECT_THAT(
      refusals("torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 256 "
               "--num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 "
               "--micro-batch-size 1 --global-batch-size 8 --bf16 --vocab-size 512 "
               "--pipeline-model-parallel-size 2 "
               "--pipeline-model-parallel-layout 'Et|t*2L'\n",
               "a.sh")
          .at(0)
          .expected,
      HasSubstr("4 decoder layers (t)"));
}

TEST(Import, BuildsAModelFromMegatronArgumentsWhereTheySuffice) {
  RandomPlans plans("verl-megatron", 78);
  int compared = 0;
  for (int i = 0; i < 20; ++i) {
    Plan plan = plans.next();
    const RolePlan& actor = plan.roles[0];
    const ModelSpec& spec = plan.models.at("actor").spec;
    if (spec.moe || spec.mla || spec.vision) continue;
    const auto script = megatron_script(plan);
    if (!script) continue;
    const Imported back = must_import(script->text, script->name, on(plan));
    ASSERT_EQ(back.plan.roles.size(), 1U);
    EXPECT_EQ(back.plan.roles[0].layout, actor.layout);
    EXPECT_EQ(parameter_count(back.plan.models.at("actor").spec), parameter_count(spec));
    ++compared;
  }
  EXPECT_GT(compared, 5);
  const Problems missing = refusals("torchrun pretrain_gpt.py --num-layers 4 --swiglu\n", "a.sh");
  ASSERT_EQ(missing.size(), 3U);
  EXPECT_THAT(missing[0].hint, HasSubstr("--vocab-size"));
}

}  // namespace
}  // namespace tessera
