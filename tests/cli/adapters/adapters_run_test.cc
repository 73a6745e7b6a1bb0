// Runs that train low-rank adapters, as a user starts them: what moves, what is saved, what peft
// makes of it.
#include <gmock/gmock.h>

#include "cost_models/adapters.h"
#include "cost_models/documents/problem.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"
#include "tests/cli/programs.h"
#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

constexpr std::int64_t kRank = 8;

class AdaptersRun : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    std::ofstream(at("ppo.yaml")) << "version: 1\nalgorithm: ppo\nprompts_per_step: 16\n"
                                     "samples_per_prompt: 4\nprompt_tokens: 8\n"
                                     "response_tokens: {mean: 4, cv: 0, max: 4}\n"
                                     "mini_batches: 1\nepochs: 1\nkl: reward\n";
  }

  static int plan(const std::string& name, const std::string& fixed,
                  const std::string& workload = "grpo-digits") {
    return run("plan --model " + at("model") + " --cluster local-cpu --workload " + workload +
               " --fix " + fixed + " -o " + at(name));
  }

  /// With digests of the rollout's weights after every reshard.
  static int train_adapters(const std::string& name, int steps, const std::string& more = "",
                            const std::string& plan = "plan.json",
                            const std::string& preset = "grpo-digits") {
    const std::string line = kTessera + " run " + at(plan) + " --config " + preset +
                             " --set 'data.train_files=[" + at("prompts.jsonl") +
                             "]' --set trainer.total_training_steps=" + std::to_string(steps) +
                             " --set actor_rollout_ref.rollout.verify_weights=1 " + more + " -o " +
                             at(name) + " >" + at("messages") + " 2>&1";
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static std::string messages() { return text_of(at("messages")); }

  static Plan plan_of(const std::string& name) {
    Problems problems;
    const auto plan = read_plan(at(name), problems);
    EXPECT_TRUE(plan) << Error(problems).what();
    return plan.value_or(Plan{});
  }

  static std::vector<StepNumbers> metrics(const std::string& name) {
    Problems problems;
    auto read = read_metrics(folder_ / name / "metrics.jsonl", problems);
    return read ? *read : std::vector<StepNumbers>{};
  }
  static std::vector<double> numbers(const std::string& name, const std::string& key) {
    std::vector<double> values;
    for (const StepNumbers& step : metrics(name)) values.push_back(step.data.at(key));
    return values;
  }

  /// Bytes of the adapters that a rank of two tensor-parallel ones computes with, of all layers.
  static double adapter_bytes() {
    Problems problems;
    const auto model = read_model_spec(folder_ / "model", problems);
    const auto elements = adapter_elements(parameter_table(*model), {.rank = kRank}, 2);
    double sum = 0;
    for (const std::int64_t each : elements) sum += static_cast<double>(each);
    return 4 * sum * static_cast<double>(model->layers);
  }

  inline static const std::string kLora =
      "--set actor_rollout_ref.model.lora_rank=" + std::to_string(kRank) + " ";
};

/// The rollout's weights move once, then the adapters alone, no byte more than a rank lacks.
TEST_F(AdaptersRun, AReshardMovesAdaptersOnly) {
  ASSERT_EQ(plan("apart.json",
                 "'placement=actor | rollout' actor.gpus=2 rollout.gpus=2 actor.tp=2 rollout.tp=2"),
            0);
  ASSERT_EQ(train_adapters("apart", 3, kLora, "apart.json"), 0) << messages();
  ASSERT_EQ(train("whole", 1, "", "apart.json"), 0);
  const double all = numbers("whole", "reshard/bytes").at(0), own = adapter_bytes();
  EXPECT_EQ(numbers("apart", "reshard/bytes"), (std::vector<double>{all + own, own, own}));
  EXPECT_EQ(numbers("apart", "reshard/lower_bound_bytes").at(1), own);
  // Training holds one of two stages, and generation both.
  ASSERT_EQ(train_adapters("together", 2, kLora), 0) << messages();
  EXPECT_EQ(numbers("together", "reshard/bytes").at(1), own / 2);
  EXPECT_THAT(text_of(folder_ / "together/log.txt"),
              testing::HasSubstr("the plan was made without them"));
  const std::vector<double> a = rewards("apart"), b = rewards("together");
  EXPECT_EQ(a[0], b[0]) << "the model without trained adapters";
  EXPECT_NEAR(a[1], b[1], 0.02);
}

TEST_F(AdaptersRun, TrainOnEveryLayoutAndLearn) {
  const std::string rollout = " rollout.tp=2 rollout.dp=2";
  ASSERT_EQ(plan("fsdp.json", "actor.tp=1 actor.pp=1 actor.zero=3" + rollout), 0);
  const std::string faster = kLora + "--set actor_rollout_ref.actor.optim.lr=1e-2 ";
  ASSERT_EQ(train_adapters("stages", 20, faster), 0) << messages();
  ASSERT_EQ(train_adapters("shards", 3, faster, "fsdp.json"), 0) << messages();
  const std::vector<double> learned = rewards("stages"), other = rewards("shards");
  EXPECT_GT(mean_of_last(learned, 5), learned[0] + 0.1);
  EXPECT_EQ(other[0], learned[0]);
  for (std::size_t i = 1; i < other.size(); ++i) EXPECT_NEAR(other[i], learned[i], 0.03);
}

TEST_F(AdaptersRun, ARunThatGoesOnIsTheRunThatWentThrough) {
  const std::string saving = kLora + "--set trainer.save_freq=2 ";
  ASSERT_EQ(train_adapters("through", 4, saving), 0) << messages();
  ASSERT_EQ(train_adapters("halves", 2, saving), 0) << messages();
  ASSERT_EQ(train_adapters("halves", 4, saving + "--resume"), 0) << messages();
  EXPECT_EQ(text_of(folder_ / "halves/samples.jsonl"), text_of(folder_ / "through/samples.jsonl"));
  for (const char* file : {"hf/adapter_model.safetensors", "hf/adapter_config.json"}) {
    const std::string got = text_of(folder_ / "halves" / file);
    EXPECT_FALSE(got.empty()) << file;
    EXPECT_TRUE(got == text_of(folder_ / "through" / file)) << file;
  }
  EXPECT_FALSE(fs::exists(folder_ / "through/hf/model.safetensors"));
  // Its checkpoints have the states of the adapters alone.
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "through/checkpoints/global_step_4")) {
    if (entry.path().extension() == ".safetensors") bytes += entry.file_size();
  }
  EXPECT_LT(bytes, fs::file_size(folder_ / "model/model.safetensors") * 3);
  EXPECT_NE(train("other", 4,
                  "--set trainer.resume_mode=resume_path --set "
                  "trainer.resume_from_path=" +
                      at("through")),
            0)
      << "a run of whole weights cannot go on from adapters";
}

/// Adapters are differences to the weights beside which they were trained.
TEST_F(AdaptersRun, AdaptersOfOtherWeightsDoNotGoOn) {
  fs::copy(folder_ / "model", folder_ / "other-base");
  ASSERT_EQ(run("plan --model " + at("other-base") +
                " --cluster local-cpu --workload grpo-digits -o " + at("base.json")),
            0);
  const std::string saving = kLora + "--set trainer.save_freq=1 ";
  ASSERT_EQ(train_adapters("base", 1, saving, "base.json"), 0) << messages();
  EXPECT_EQ(
      train_adapters("base", 2, saving + "--resume --set actor_rollout_ref.model.lora_alpha=64",
                     "base.json"),
      65);
  EXPECT_THAT(messages(), testing::HasSubstr("adapters that are scaled by 2"));
  const std::string fewer = "'actor_rollout_ref.model.target_modules=[q_proj]'";
  EXPECT_EQ(train_adapters("base", 2, saving + "--resume --set " + fewer, "base.json"), 65);
  EXPECT_THAT(messages(), testing::HasSubstr("roles/actor/parameters"));
  const fs::path weights = folder_ / "other-base/model.safetensors";
  const std::string before = text_of(weights);
  std::string other = before;
  other.replace(other.size() - 2, 2, "!?");
  std::ofstream(weights, std::ios::binary) << other;
  EXPECT_EQ(train_adapters("base", 2, saving + "--resume", "base.json"), 65);
  EXPECT_THAT(messages(), testing::HasSubstr("adapters of other weights"));
  std::ofstream(weights, std::ios::binary) << before;
  EXPECT_EQ(train_adapters("base", 2, saving + "--resume", "base.json"), 0) << messages();
  // A folder of adapters says by name only what it was trained beside.
  const fs::path named = folder_ / "named";
  fs::copy(folder_ / "base/hf", named);
  std::string config = text_of(named / "adapter_config.json");
  config.replace(config.find(at("other-base")), at("other-base").size(), "Qwen/Qwen3-8B");
  std::ofstream(named / "adapter_config.json") << config;
  const std::string begin = "--set actor_rollout_ref.model.lora_adapter_path=";
  ASSERT_EQ(train_adapters("elsewhere", 1, begin + named.string()), 0) << messages();
  EXPECT_THAT(text_of(folder_ / "elsewhere/log.txt"),
              testing::HasSubstr("were trained beside Qwen/Qwen3-8B"));
  ASSERT_EQ(train_adapters("copy", 1, begin + at("base/hf")), 0) << messages();
  EXPECT_EQ(text_of(folder_ / "copy/log.txt").find("were trained beside"), std::string::npos)
      << "the same weights in another folder";
}

TEST_F(AdaptersRun, AFoldersTensorsAreLookedAtBeforeRanksStart) {
  const fs::path adapters = folder_ / "pickled";
  fs::create_directories(adapters);
  std::ofstream(adapters / "adapter_config.json")
      << R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]})";
  std::ofstream(adapters / "adapter_model.bin") << "PK";
  const std::string begin = "--set actor_rollout_ref.model.lora_adapter_path=";
  EXPECT_EQ(train_adapters("unread", 1, begin + adapters.string()), 65);
  EXPECT_THAT(messages(), testing::HasSubstr("adapter_model.bin is pickle"));
  EXPECT_FALSE(fs::exists(folder_ / "unread")) << "a rank makes files there";
}

/// A second run begins with the adapters of the first; its samples have peft's log-probs.
TEST_F(AdaptersRun, PeftComputesWhatTheRolloutHasDrawn) {
  const std::string python = python_with("peft");
  if (python.empty()) GTEST_SKIP() << "no Python with peft";
  ASSERT_EQ(train_adapters("first", 3,
                           "--set actor_rollout_ref.model.lora_rank=4 --set "
                           "actor_rollout_ref.model.lora_alpha=8 --set "
                           "'actor_rollout_ref.model.target_modules=[q_proj, o_proj, up_proj]'"),
            0)
      << messages();
  ASSERT_EQ(train_adapters("second", 1,
                           "--set actor_rollout_ref.model.lora_adapter_path=" + at("first/hf")),
            0)
      << messages();
  EXPECT_THAT(text_of(folder_ / "second/log.txt"),
              testing::HasSubstr("the weights were trained for 3 steps by a run with seed 1"));
  const std::string script =
      TESSERA_SOURCE_DIR "/tests/executor/adapters/adapters_oracle.py score ";
  EXPECT_EQ(run_python(python, script + at("model") + " " + at("first/hf") + " " +
                                   at("second/samples.jsonl")),
            0);
}

/// peft looks for the base model from wherever it is called, whatever path the plan was made with.
TEST_F(AdaptersRun, AdaptersOfARelativePathLoadFromAnywhere) {
  const std::string python = python_with("peft");
  if (python.empty()) GTEST_SKIP() << "no Python with peft";
  const std::string inside = "cd " + folder_.string() + " && " + kTessera + " ";
  ASSERT_EQ(std::system((inside + "plan --model model --cluster local-cpu --workload grpo-digits "
                                  "-o relative.json >/dev/null")
                            .c_str()),
            0);
  ASSERT_EQ(plan_of("relative.json").models.at("actor").path, "model");
  ASSERT_EQ(std::system((inside + "run relative.json --config grpo-digits " + kLora +
                         "--set 'data.train_files=[prompts.jsonl]' --set "
                         "trainer.total_training_steps=1 -o relative >/dev/null 2>&1")
                            .c_str()),
            0);
  const std::string script =
      "import sys, peft; peft.AutoPeftModelForCausalLM.from_pretrained(sys.argv[1])";
  const std::string elsewhere = "cd / && HF_HUB_OFFLINE=1 '" + python + "' -c '" + script + "' ";
  EXPECT_EQ(std::system((elsewhere + at("relative/hf")).c_str()), 0);
}

/// The reference is the model without adapters, whether it is the actor's own weights or others.
TEST_F(AdaptersRun, TheReferenceIsTheModelWithoutThem) {
  const std::string actor = "placement=colocated actor.tp=2 actor.pp=2 critic.tp=2 critic.pp=2 ";
  ASSERT_EQ(plan("same.json", actor + "reference.tp=2 reference.pp=2 rollout.tp=2 rollout.dp=2",
                 at("ppo.yaml")),
            0);
  ASSERT_EQ(plan("own.json", actor + "reference.tp=1 reference.pp=1 rollout.tp=2 rollout.dp=2",
                 at("ppo.yaml")),
            0);
  for (const std::string name : {"same", "own"}) {
    ASSERT_EQ(train_adapters(name, 3, kLora, name + ".json", "ppo-digits"), 0) << messages();
  }
  const std::vector<double> same = numbers("same", "actor/reward_kl_penalty");
  const std::vector<double> own = numbers("own", "actor/reward_kl_penalty");
  EXPECT_NEAR(same[0], 0, 1e-6) << "B begins as zero";
  EXPECT_GT(std::abs(same[2]), 1e-5);
  for (std::size_t i = 0; i < same.size(); ++i) EXPECT_NEAR(own[i], same[i], 1e-4);
}

/// A plan with adapters is run with them without a word in run.yaml, and says what moves and what
/// is held; one that counts others is refused, and one that counts none is told so.
TEST_F(AdaptersRun, APlanWithAdaptersIsRunAsItSays) {
  const std::string fixed =
      "placement=colocated actor.tp=2 actor.pp=2 rollout.tp=2 rollout.dp=2 --lora-rank 8 "
      "--lora-targets q_proj down_proj";
  ASSERT_EQ(plan("adapted.json", fixed), 0);
  const Plan planned = plan_of("adapted.json");
  const Lora lora{.rank = 8, .targets = {"q_proj", "down_proj"}};
  EXPECT_EQ(planned.find(Role::actor)->lora, lora);
  ASSERT_EQ(train_adapters("adapted", 2, "", "adapted.json"), 0) << messages();
  EXPECT_EQ(numbers("adapted", "reshard/bytes").at(1),
            static_cast<double>(planned.reshard.at(0).bytes_received.value));
  EXPECT_EQ(numbers("adapted", "reshard/lower_bound_bytes").at(1),
            static_cast<double>(planned.reshard.at(0).lower_bound_bytes.value));
  EXPECT_GT(planned.reshard.at(0).bytes_received, 0);
  EXPECT_EQ(text_of(folder_ / "adapted/log.txt").find("the plan was made without them"),
            std::string::npos);
  EXPECT_NE(
      train_adapters("refused", 1, "--set actor_rollout_ref.model.lora_rank=4", "adapted.json"), 0);
  EXPECT_THAT(messages(), testing::HasSubstr("adapters of rank 8, as the plan has"));
  EXPECT_EQ(run("explain " + at("adapted.json")), 0);
  EXPECT_EQ(run("simulate " + at("adapted.json")), 0);
}

}  // namespace
}  // namespace tessera
