// Low-rank adapters in run.yaml: what is read, and what is refused with the reason.
#include <gmock/gmock.h>

#include <fstream>

#include "cost_models/documents/problem.h"
#include "executor/config/run_config.h"
#include "executor/config/run_config_lora.h"
#include "tests/executor/config/grpo_plan.h"
#include "tests/executor/config/rollout_file.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

using testing::HasSubstr;

/// `model`: the keys of actor_rollout_ref.model.
std::string lora_yaml(const std::string& model, const std::string& rollout = "",
                      const std::string& more = "") {
  return "version: 1\ndata: {train_files: [a.jsonl]}\nactor_rollout_ref: {model: {" + model +
         "}, rollout: {" + rollout + "}}\ntrainer: {total_training_steps: 2}\n" + more;
}

/// One type of weights everywhere: adapters move as they are.
Plan plan_of_one_type() {
  Plan plan = grpo_plan();
  for (RolePlan& role : plan.roles) role.dtypes.param = DType::bf16;
  return plan;
}

Lora read(const std::string& model) {
  Problems problems;
  const auto config = parse_run_config(lora_yaml(model), "run.yaml", plan_of_one_type(), problems);
  EXPECT_TRUE(config) << to_string(problems.at(0));
  return config ? config->actor.lora : Lora{};
}

std::string wrong(const std::string& model, const std::string& rollout = "",
                  const std::string& more = "") {
  return refused(plan_of_one_type(), lora_yaml(model, rollout, more));
}

TEST(LoraConfig, ReadsVerlsKeysWithVerlsDefaults) {
  EXPECT_FALSE(read("").used());
  EXPECT_FALSE(read("lora_rank: 0, lora_alpha: 16, target_modules: all-linear").used());
  EXPECT_EQ(read("lora_rank: 8"), (Lora{.rank = 8, .alpha = 16, .targets = {}}));
  EXPECT_EQ(read("lora_rank: 4, lora_alpha: 32, target_modules: all-linear"),
            (Lora{.rank = 4, .alpha = 32, .targets = {}}));
  EXPECT_EQ(read("lora_rank: 4, target_modules: [q_proj, down_proj]").targets,
            (std::vector<std::string>{"q_proj", "down_proj"}));
  EXPECT_EQ(read("lora_rank: 4, target_modules: v_proj").targets,
            std::vector<std::string>{"v_proj"});
}

TEST(LoraConfig, RefusesWhatNoMatrixIsCalled) {
  EXPECT_THAT(wrong("lora_rank: 4, target_modules: [q_prj]"), HasSubstr("did you mean 'q_proj'?"));
  EXPECT_THAT(wrong("lora_rank: 4, target_modules: [lm_head]"),
              HasSubstr("all-linear, or some of"));
  EXPECT_THAT(wrong("lora_rank: 4, target_modules: [linear_qkv]"), HasSubstr("\"linear_qkv\""));
  EXPECT_THAT(wrong("lora_rank: 4, target_modules: []"), HasSubstr("at least one module"));
  EXPECT_THAT(wrong("lora_rank: -1"), HasSubstr("lora_rank"));
  EXPECT_THAT(wrong("lora_rank: 4, lora_alpha: 0"), HasSubstr("lora_alpha"));
  EXPECT_THAT(wrong("lora_rnk: 4"), HasSubstr("did you mean 'lora_rank'?"));
  EXPECT_THAT(wrong("lora: {rank: 4}"), HasSubstr("lora_rank, lora_alpha and target_modules"));
}

TEST(LoraConfig, RefusesWhatAdaptersCannotBeWith) {
  EXPECT_THAT(wrong("lora_rank: 4", "batch_invariant: true"), HasSubstr("batch_invariant"));
  EXPECT_THAT(wrong("lora_rank: 4", "engine: vllm"), HasSubstr("get whole weights"));
  for (const char* option : {"overlap", "incremental", "verify"}) {
    EXPECT_THAT(wrong("lora_rank: 4", "", "reshard: {" + std::string(option) + ": true}\n"),
                HasSubstr("no adapters with reshard." + std::string(option)));
  }
  Plan experts = plan_of_one_type();
  experts.models["actor"].spec.moe = MoeSpec{.experts = 4, .experts_per_token = 2, .expert_ffn = 8};
  EXPECT_THAT(refused(experts, lora_yaml("lora_rank: 4")), HasSubstr("a model without experts"));
  const std::string critic = "critic: {model: {lora_rank: 4}}\n";
  EXPECT_THAT(refused(sample_plan(), lora_yaml("", "", critic)),
              HasSubstr("the critic is trained whole"));
}

TEST(LoraConfig, TakesAFoldersAdaptersAsTheyAre) {
  const TemporaryFolder folder;
  const std::string path = "lora_adapter_path: " + folder.path.string();
  EXPECT_THAT(wrong(path), HasSubstr("adapter_config.json"));
  std::ofstream(folder.path / "adapter_config.json")
      << R"({"peft_type": "LORA", "r": 6, "lora_alpha": 12, "bias": "none",
             "target_modules": ["model.layers.0.self_attn.v_proj", "model.layers.1.self_attn.v_proj",
                                "q_proj"]})";
  const Lora found{.rank = 6, .alpha = 12, .targets = {"q_proj", "v_proj"}};
  EXPECT_EQ(read(path), found);
  EXPECT_EQ(read(path + ", lora_rank: 6, lora_alpha: 12, target_modules: [q_proj, v_proj]"), found);
  EXPECT_THAT(wrong(path + ", lora_rank: 8"), HasSubstr("6, as lora_adapter_path has"));
  EXPECT_THAT(wrong(path + ", lora_alpha: 8"), HasSubstr("lora_alpha"));
  EXPECT_THAT(wrong(path + ", target_modules: all-linear"), HasSubstr("target_modules"));
}

/// A plan that counts adapters of rank 8 of q_proj and v_proj.
Plan plan_with_adapters() {
  Plan plan = plan_of_one_type();
  for (RolePlan& role : plan.roles) {
    if (role.role != Role::critic) role.lora = {.rank = 8, .targets = {"q_proj", "v_proj"}};
  }
  return plan;
}

TEST(LoraConfig, AreThePlansWhereItCountsSome) {
  const Plan plan = plan_with_adapters();
  const Lora planned = plan.find(Role::actor)->lora;
  const auto read = [&](const std::string& text) {
    Problems problems;
    const auto config = parse_run_config(text, "run.yaml", plan, problems);
    EXPECT_TRUE(config) << to_string(problems.at(0));
    return config ? config->actor.lora : Lora{};
  };
  EXPECT_EQ(read(lora_yaml("")), planned);
  EXPECT_EQ(read("version: 1\ndata: {train_files: [a.jsonl]}\n"
                 "trainer: {total_training_steps: 2}\n"),
            planned)
      << "the file says nothing of the model";
  EXPECT_EQ(read(lora_yaml("lora_rank: 8, target_modules: [v_proj, q_proj]")).rank, 8);
  EXPECT_EQ(read(lora_yaml("lora_alpha: 3")).alpha, 3) << "a scale changes nothing of the plan";
  for (const char* const other : {"lora_rank: 4", "lora_rank: 0"}) {
    EXPECT_THAT(refused(plan, lora_yaml(other)), HasSubstr("adapters of rank 8, as the plan has"));
  }
  EXPECT_THAT(refused(plan, lora_yaml("target_modules: [q_proj]")),
              HasSubstr("the matrices that the plan's adapters have"));
  EXPECT_THAT(refused(plan, lora_yaml("target_modules: all-linear")),
              HasSubstr("the matrices that the plan's adapters have"));
  EXPECT_THAT(refused(plan,
                      "version: 1\ndata: {train_files: [a.jsonl]}\n"
                      "trainer: {total_training_steps: 2}\nreshard: {overlap: true}\n"),
              HasSubstr("no adapters with reshard.overlap"));
}

TEST(LoraConfig, TellsARunWhosePlanCountsNone) {
  const std::string note = adapter_note(plan_of_one_type(), {.rank = 4});
  EXPECT_THAT(note, HasSubstr("the plan was made without them"));
  EXPECT_THAT(note, HasSubstr("tessera plan --lora-rank 4"));
  EXPECT_EQ(adapter_note(plan_of_one_type(), {}), "");
  EXPECT_EQ(adapter_note(plan_with_adapters(), {.rank = 8}), "");
}

}  // namespace
}  // namespace tessera
