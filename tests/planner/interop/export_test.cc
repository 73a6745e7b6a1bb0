#include "planner/interop/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cost_models/documents/document.h"
#include "cost_models/documents/strict_yaml.h"
#include "planner/engines/engine.h"
#include "planner/engines/read_plan.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/planner.h"
#include "planner/explain/report.h"
#include "planner/interop/files/setting.h"
#include "planner/plan/schedule.h"
#include "planner/request/describe.h"
#include "planner/request/request.h"
#include "tests/executor/temporary_folder.h"
#include "tests/planner/interop/exported.h"
#include "tests/planner/interop/random_plans.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Export, WritesVerlKeysInTheirUnits) {
  Plan plan = RandomPlans("verl", 7).next();
  plan.workload.prompts_per_step = 512;
  plan.workload.mini_batches = 4;
  RolePlan& actor = plan.roles[0];
  actor.layout = {{.cp = 2,
                   .dp = static_cast<int>(actor.ranks.size()) / 2,
                   .dp_shard = static_cast<int>(actor.ranks.size()) / 2},
                  3,
                  {},
                  false,
                  true};
  actor.layout.stages = even_stages(plan.models.at("actor").spec.layers, 1, 1);
  actor.batching.update_tokens = 2 * std::int64_t{9000};
  const std::string script = text_of(must_export(plan, target_of("verl")), "run.sh");
  // Prompts, whatever the samples per prompt; tokens per GPU, not per group of two.
  EXPECT_THAT(script, HasSubstr("\n  data.train_batch_size=512\n"));
  EXPECT_THAT(script, HasSubstr("\n  actor_rollout_ref.actor.ppo_mini_batch_size=128\n"));
  EXPECT_THAT(script, HasSubstr("\n  actor_rollout_ref.actor.ppo_max_token_len_per_gpu=9000\n"));
  EXPECT_THAT(script, HasSubstr("\n  actor_rollout_ref.actor.ulysses_sequence_parallel_size=2\n"));
  EXPECT_THAT(script, HasSubstr("\n  actor_rollout_ref.actor.fsdp_config.fsdp_size=-1\n"));
}

/// utils/seqlen_balancing.py asserts that the limit of all of a sequence's GPUs holds the longest.
TEST(Export, LimitsOfVerlHoldALongestSequenceOfOddLength) {
  for (const char* engine : {"verl", "verl-megatron"}) {
    RandomPlans plans(engine, 40);
    int cut = 0;
    for (int i = 0; i < 40; ++i) {
      Plan plan = plans.next();
      plan.workload.prompt_tokens = 777;
      const std::int64_t longest = 777 + plan.workload.response_tokens.max;
      RolePlan& actor = plan.roles[0];
      actor.batching.update_tokens = longest;
      for (RolePlan& role : plan.roles) {
        std::int64_t& tokens = role.batching.log_prob_tokens;
        if (tokens > 0) tokens = longest;
        if (role.batching.values_tokens > 0) {
          role.batching.values_tokens = role.batching.update_tokens = longest;
        }
      }
      Problems problems;
      const ExportTarget target =
          plan.engine == "verl" ? target_of("verl") : target_of("verl-megatron");
      const auto made = export_plan(plan, target, {}, problems);
      ASSERT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
      const std::string script = text_of(*made, "run.sh");
      const std::string key = "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=";
      const auto at = script.find(key);
      ASSERT_NE(at, script.npos);
      const std::int64_t limit = std::stoll(script.substr(at + key.size()));
      EXPECT_GE(limit * actor.layout.cp, longest);
      EXPECT_LT((limit - 1) * actor.layout.cp, longest);
      cut += actor.layout.cp > 1 ? 1 : 0;
    }
    EXPECT_GT(cut, 5) << engine;
  }
}

TEST(Export, GivesEveryKeyOneValue) {
  for (const char* engine : {"verl", "verl-megatron"}) {
    RandomPlans plans(engine, 11);
    for (int i = 0; i < 40; ++i) {
      const Plan plan = plans.next();
      Problems problems;
      validate(plan, "plan", problems);
      ASSERT_TRUE(problems.empty()) << Error(ExitCode::bad_input, problems).what();
      const ExportTarget target =
          plan.engine == "verl" ? target_of("verl") : target_of("verl-megatron");
      std::istringstream script(text_of(must_export(plan, target), "run.sh"));
      std::vector<std::string> keys;
      for (std::string line; std::getline(script, line);) {
        const auto equals = line.find('=');
        if (line.rfind("  ", 0) == 0 && equals != line.npos) keys.push_back(line.substr(2, equals));
      }
      EXPECT_GT(keys.size(), 40U);
      std::sort(keys.begin(), keys.end());
      EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
    }
  }
}

TEST(Export, YamlAndScriptSayTheSame) {
  const Plan plan = RandomPlans("verl-megatron", 5).next();
  const Export made = must_export(plan, target_of("verl-megatron"),
                                  {.train_files = "/t.parquet", .val_files = "/v.parquet"});
  Problems problems;
  const auto yaml = parse_yaml(text_of(made, "verl.yaml"), "verl.yaml", problems);
  ASSERT_TRUE(yaml.has_value()) << Error(ExitCode::bad_input, problems).what();
  std::istringstream script(text_of(made, "run.sh"));
  int compared = 0;
  for (std::string line; std::getline(script, line);) {
    const auto equals = line.find('=');
    if (line.rfind("  ", 0) != 0 || equals == line.npos || line.find('.') > equals) continue;
    std::string key = line.substr(2, equals - 2);
    const bool quoted = key[0] == '"';
    if (quoted) key.erase(0, 1);
    if (key[0] == '+') key.erase(0, 1);
    const Node* node = &yaml->root;
    std::istringstream parts(key);
    for (std::string part; node != nullptr && std::getline(parts, part, '.');) {
      node = node->find(part);
    }
    ASSERT_NE(node, nullptr) << key;
    if (quoted) {  // a string that looks like a number: 'text' of Hydra in double quotes of bash
      EXPECT_EQ(yaml_scalar(*node),
                "\"" + line.substr(equals + 2, line.size() - equals - 4) + "\"");
    } else {
      EXPECT_EQ(yaml_scalar(*node), line.substr(equals + 1)) << key;
    }
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

TEST(Export, NamesFullGatherAgainstTheMinimum) {
  Plan plan = RandomPlans("verl", 31).next();
  while (plan.roles[0].ranks.size() != 8) {
    static RandomPlans more("verl", 32);
    plan = more.next();
  }
  plan.roles[0].layout = {{.dp = 8, .dp_shard = 8}, 3};
  plan.roles[0].layout.stages = even_stages(plan.models.at("actor").spec.layers, 1, 1);
  plan.roles[1].layout.tp = 4;
  plan.roles[1].layout.dp = 2;
  plan.reshard[0].mode = ReshardMode::minimal;
  plan.reshard[0].bytes_received = reshard_plan_of(plan, plan.reshard[0]).bytes_received;
  const Export made = must_export(plan, target_of("verl"));
  EXPECT_TRUE(std::any_of(made.notes.begin(), made.notes.end(), [](const std::string& note) {
    return note.find("gathers every tensor whole") != note.npos;
  }));
}

TEST(Export, NamesTheMeanOfWhatIsGeneratedBesideTheWorkloads) {
  Plan plan = RandomPlans("verl", 31).next();
  plan.workload.response_tokens = {640, 0.5, 1024};  // cut at 1,024 their mean is 608
  EXPECT_THAT(text_of(must_export(plan, target_of("verl")), "NOTES.md"),
              HasSubstr("expects responses of 608 tokens on average (640 before the"));
  plan.workload.response_tokens = {640, 0, 1024};
  EXPECT_THAT(text_of(must_export(plan, target_of("verl")), "NOTES.md"),
              HasSubstr("expects responses of 640 tokens on average;"));
}

TEST(Export, BucketHoldsTheLargestTensor) {
  Plan plan = RandomPlans("verl", 41).next();
  Problems none;
  plan.models["actor"] = {*read_model_spec("llama3.1-70b", none), "llama3.1-70b", ""};
  for (RolePlan& role : plan.roles) {
    if (role.model == "actor") role.layout.stages = even_stages(80, 1, 1);
  }
  // 128256 x 8192 x 4 bytes of fp32 master weights = 4008 MiB, more than verl's default of 2048.
  EXPECT_THAT(text_of(must_export(plan, target_of("verl")), "run.sh"),
              HasSubstr("update_weights_bucket_megabytes=4008\n"));
}

// The modules that the plan's bytes count on, by name.
TEST(Export, WritesTheModulesThatAreRecomputed) {
  Problems problems;
  for (const auto& [model, modules] :
       {std::pair{"deepseek-v3", "moe_act,mla_up_proj"}, std::pair{"qwen3-30b-a3b", "moe_act"},
        std::pair{"llama3.1-8b", "core_attn"}}) {
    Plan plan = RandomPlans("verl-megatron", 62).next();
    plan.models["actor"] = {*read_model_spec(model, problems), model, ""};
    for (RolePlan& role : plan.roles) {
      const std::int64_t layers = plan.models.at(role.model).spec.layers;
      const auto world = static_cast<int>(role.ranks.size());
      const int zero = role.layout.zero;
      role.layout = {{.tp = 1, .dp = world}};
      role.layout.zero = zero;
      role.layout.stages = even_stages(layers, 1, 1);
    }
    plan.roles[0].recompute = Recompute::selective;
    const std::string verl = text_of(must_export(plan, target_of("verl-megatron")), "run.sh");
    const std::string block = "actor_rollout_ref.actor.megatron.override_transformer_config.";
    EXPECT_THAT(verl, HasSubstr(block + "recompute_granularity=selective"));
    EXPECT_THAT(verl, HasSubstr(block + "recompute_modules=[" + modules + "]"));
    for (RolePlan& role : plan.roles) role.offload = {};
    const std::string megatron = text_of(must_export(plan, target_of("megatron")), "actor.sh");
    std::string lines = "--recompute-modules\n  " + std::string(modules) + "\n";
    if (const auto comma = lines.find(','); comma != lines.npos) lines.replace(comma, 1, "\n  ");
    EXPECT_THAT(megatron, HasSubstr("--recompute-granularity\n  selective\n  " + lines));
  }
}

TEST(Export, ScriptsAreShellcheckCleanAndQuoteEveryName) {
  int status = 0;
  if (output_of("command -v shellcheck", &status).empty()) GTEST_SKIP() << "no shellcheck";
  const std::string nasty = "/data/it's $HOME `id` \"q\" \\ ; rm -rf *&|<>(){}[]!#~ \xc3\xa9";
  ExportOptions options;
  options.model = options.train_files = options.val_files = nasty;
  options.run_config = options.run_folder = nasty;
  options.image = nasty;
  const Plan own = tessera_plan();
  int scripts = 0;
  for (const ExportTarget& target : every_export_target()) {
    const bool verl = target.program == ExportedProgram::verl;
    const bool launcher =
        target.program == ExportedProgram::tessera_run || target.name == "megatron";
    const std::string engine(verl ? target.engines.front() : "verl");
    const Plan plan = launcher ? own : RandomPlans(engine, 51).next();
    const Export made = must_export(plan, target, options);
    TemporaryFolder folder;
    for (const ExportedFile& file : made.files) {
      write_text_file(folder.path / file.name, file.text);
      const bool script = file.executable || file.name == "job.sbatch";
      if (!script) continue;
      ++scripts;
      const std::string report =
          output_of("shellcheck " + (folder.path / file.name).string() + " 2>&1", &status);
      EXPECT_EQ(status, 0) << target.name << "/" << file.name << "\n" << report;
    }
  }
  EXPECT_GE(scripts, 8);
}

TEST(Export, BashReadsEveryNameBackUnchanged) {
  std::mt19937 random(5);
  for (int i = 0; i < 50; ++i) {
    std::string name;
    const int size = static_cast<int>(random() % 12);
    for (int c = 0; c < size; ++c) name += static_cast<char>(1 + random() % 126);
    EXPECT_EQ(output_of("bash -c " + shell_word("printf %s " + shell_word(name))), name);
  }
}

TEST(Export, TrainJobIsYamlWithTheShapeOfThePlan) {
  const Plan plan = tessera_plan();
  ExportOptions options;
  options.image = "registry/x: y";
  const Export made = must_export(plan, target_of("kubernetes"), options);
  Problems problems;
  const auto yaml = parse_yaml(text_of(made, "trainjob.yaml"), "trainjob.yaml", problems);
  ASSERT_TRUE(yaml.has_value()) << Error(ExitCode::bad_input, problems).what();
  const Node* trainer = yaml->root.find("spec")->find("trainer");
  EXPECT_EQ(trainer->find("image")->text, "registry/x: y");
  EXPECT_EQ(trainer->find("numNodes")->integer * trainer->find("numProcPerNode")->integer,
            plan.world_size());
}

TEST(Export, EveryVariableHasItsReasonAbove) {
  Plan plan = RandomPlans("verl-megatron", 61).next();
  plan.environment.push_back({"NCCL_NVLS_ENABLE", "0", "because of this"});
  plan.environment.push_back({"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", "packed"});
  const std::string script = text_of(must_export(plan, target_of("verl-megatron")), "run.sh");
  // By verl's own way to the workers of every node, not by the trainer's own environment.
  EXPECT_THAT(script,
              HasSubstr("  # because of this\n"
                        "  \"+ray_kwargs.ray_init.runtime_env.env_vars.NCCL_NVLS_ENABLE='0'\"\n"));
  EXPECT_THAT(script, Not(HasSubstr("export ")));
  // vLLM's sleep mode refuses expandable segments.
  EXPECT_THAT(script, Not(HasSubstr("PYTORCH_CUDA_ALLOC_CONF")));
  for (const ExportTarget& target : every_export_target()) {
    for (const EnvironmentVariable& variable : environment_of(plan, target)) {
      EXPECT_GT(variable.reason.size(), 5U) << variable.name;
    }
  }
}

TEST(Export, TakesWhatThePlannerFindsForTheEngine) {
  Problems problems;
  PlanRequest request;
  const auto model = read_model_spec("qwen2.5-7b", problems);
  request.models["actor"] = {*model, "qwen2.5-7b", ""};
  request.cluster = *read_cluster_spec("h800-8", problems);
  request.workload = *read_workload("grpo-7b-1k", problems);
  request.calibration = *find_calibration("h800", problems);
  for (const ExportTarget& target : {target_of("verl"), target_of("verl-megatron")}) {
    request.engine = target.name;
    request.traits = traits_of(request.engine);
    for (const char* placement : {"", "colocated", "standalone"}) {
      request.fixed.placement = placement;
      request.one_step_off = placement == std::string_view("standalone");
      const auto outcome = make_plan(request, problems);
      ASSERT_TRUE(outcome.has_value()) << Error(ExitCode::bad_input, problems).what();
      const Plan* const plan = std::get_if<Plan>(&*outcome);
      ASSERT_NE(plan, nullptr) << describe(std::get<Infeasible>(*outcome));
      EXPECT_EQ(is_one_step_off(plan->schedule), placement == std::string_view("standalone"));
      const auto made = export_plan(*plan, target, {}, problems);
      ASSERT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
      // What leaves the GPU is what the plan counts on, of a rollout on GPUs of its own as well.
      EXPECT_THAT(made->files[0].text, HasSubstr("free_cache_engine: " +
                                                 std::string(plan->reshard[0].keep ? "f" : "t")));
    }
  }
}

}  // namespace
}  // namespace tessera
