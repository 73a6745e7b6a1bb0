#include "planner/interop/export.h"
#include "planner/request/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <tuple>

#include "cost_models/documents/document.h"
#include "cost_models/documents/strict_yaml.h"
#include "cost_models/fit/derived_calibration.h"
#include "planner/engines/engine.h"
#include "planner/engines/engine_check.h"
#include "planner/engines/read_plan.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/planner.h"
#include "planner/explain/report.h"
#include "planner/interop/files/setting.h"
#include "planner/plan/hub_name.h"
#include "planner/plan/one_step_off.h"
#include "planner/request/describe.h"
#include "planner/request/request.h"
#include "planner/search/search.h"
#include "tests/planner/interop/random_plans.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "tessera-export-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Export must_export(const Plan& plan, const ExportTarget& target,
                   const ExportOptions& options = {}) {
  Problems problems;
  const auto made = export_plan(plan, target, options, problems);
  EXPECT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
  return made.value_or(Export{});
}

std::string text_of(const Export& made, std::string_view name) {
  for (const ExportedFile& file : made.files) {
    if (file.name == name) return file.text;
  }
  ADD_FAILURE() << "no file " << name;
  return {};
}

std::string output_of(const std::string& command, int* status = nullptr) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  while (const std::size_t size = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, size);
  const int code = pclose(pipe);
  if (status != nullptr) *status = code;
  return text;
}

Plan tessera_plan() {
  Plan plan = RandomPlans("verl-megatron", 3).next();
  plan.engine = "tessera";
  for (RolePlan& role : plan.roles) {
    const int world = static_cast<int>(role.ranks.size());
    role.layout = {.tp = 1, .dp_replicate = world};
    role.layout.stages = even_stages(plan.models.at(role.model).spec.layers, 1, 1);
    role.rank_order = RankOrder::contiguous;
    role.recompute = Recompute::none;
    role.offload = {};
  }
  plan.reshard[0].keep = true;
  return plan;
}

TEST(Export, WritesVerlKeysInTheirUnits) {
  Plan plan = RandomPlans("verl", 7).next();
  plan.workload.prompts_per_step = 512;
  plan.workload.mini_batches = 4;
  RolePlan& actor = plan.roles[0];
  actor.layout = {
      .cp = 2, .dp_shard = static_cast<int>(actor.ranks.size()) / 2, .zero = 3, .ulysses = true};
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

TEST(Export, RefusesEightWayTensorParallelismOf28HeadsWithTheReason) {
  Plan plan = tessera_plan();
  Problems none;
  plan.models["actor"] = {*read_model_spec("qwen2.5-7b", none), "qwen2.5-7b", ""};
  RolePlan& rollout = plan.roles[1];
  for (RolePlan& role : plan.roles) {
    role.ranks = {0, 1, 2, 3, 4, 5, 6, 7};
    role.layout.dp_replicate = 8;
    role.layout.stages = even_stages(28, 1, 1);
  }
  rollout.layout.tp = 8;
  rollout.layout.dp_replicate = 1;
  Problems tessera;
  EXPECT_TRUE(export_plan(plan, target_of("torchrun"), {}, tessera).has_value());
  for (const ExportTarget& target : {target_of("verl"), target_of("verl-megatron"),
                                     target_of("vllm"), target_of("sglang"), target_of("ray")}) {
    Problems problems;
    EXPECT_FALSE(export_plan(plan, target, {}, problems).has_value()) << target.name;
    ASSERT_FALSE(problems.empty());
    EXPECT_EQ(problems[0].place, "/roles/1/layout/tp");
    EXPECT_THAT(problems[0].expected, HasSubstr("28 query heads"));
  }
}

TEST(Export, RefusesWhatOneEngineLacks) {
  const auto refusal = [](auto change, const char* engine, const ExportTarget& target) {
    Plan plan = RandomPlans(engine, 21).next();
    while (plan.roles[0].ranks.size() < 8 || plan.find(Role::reference) == nullptr) {
      static RandomPlans more(engine, 22);
      plan = more.next();
    }
    change(plan);
    Problems problems;
    EXPECT_FALSE(export_plan(plan, target, {}, problems).has_value());
    return problems.empty() ? Problem{} : problems[0];
  };
  EXPECT_EQ(refusal([](Plan& p) { p.roles[1].layout.pp = 2; }, "verl", target_of("verl")).place,
            "/roles/1/layout/pp");
  EXPECT_EQ(refusal([](Plan& p) { p.roles[0].layout.zero = 1; }, "verl", target_of("verl")).place,
            "/roles/0/layout/zero");
  EXPECT_EQ(refusal([](Plan& p) { p.roles[0].recompute = Recompute::selective; }, "verl",
                    target_of("verl"))
                .place,
            "/roles/0/recompute");
  EXPECT_EQ(refusal([](Plan& p) { p.roles[0].layout.zero = 3; }, "verl-megatron",
                    target_of("verl-megatron"))
                .place,
            "/roles/0/layout/zero");
  EXPECT_EQ(refusal([](Plan& p) { p.roles[1].ranks.pop_back(); }, "verl", target_of("verl")).place,
            "/roles/1/ranks");
  EXPECT_EQ(
      refusal([](Plan& p) { p.workload.algorithm = "custom"; }, "verl", target_of("verl")).place,
      "/workload/algorithm");
  EXPECT_EQ(
      refusal([](Plan& p) { p.models["actor"].path = "${oc.env:HOME}"; }, "verl", target_of("verl"))
          .place,
      "actor_rollout_ref.model.path");
}

TEST(Export, NamesFullGatherAgainstTheMinimum) {
  Plan plan = RandomPlans("verl", 31).next();
  while (plan.roles[0].ranks.size() != 8) {
    static RandomPlans more("verl", 32);
    plan = more.next();
  }
  plan.roles[0].layout = {.dp_shard = 8, .zero = 3};
  plan.roles[0].layout.stages = even_stages(plan.models.at("actor").spec.layers, 1, 1);
  plan.roles[1].layout.tp = 4;
  plan.roles[1].layout.dp_replicate = 2;
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

// A config.json alone says nothing of weights or data: the job asks for them.
TEST(Export, AsksForWhatThePlanDoesNotKnow) {
  Folder folder;
  const fs::path config = folder.path() / "config.json";
  fs::copy_file(fs::path(TESSERA_SOURCE_DIR) / "configs/models/qwen2.5-7b/config.json", config);
  Plan plan = RandomPlans("verl", 51).next();
  while (plan.models.contains("reward")) {
    static RandomPlans more("verl", 52);
    plan = more.next();
  }
  plan.models["actor"].path = config.string();
  const Export made = must_export(plan, target_of("verl"));
  for (const ExportedFile& file : made.files) write_text_file(folder.path() / file.name, file.text);
  EXPECT_THAT(text_of(made, "run.sh"), Not(HasSubstr("config.json")));
  EXPECT_THAT(text_of(made, "verl.yaml"), HasSubstr("${oc.env:MODEL_PATH}"));
  const std::string notes = text_of(made, "NOTES.md");
  for (const char* const name : {"MODEL_PATH", "TRAIN_FILES", "VAL_FILES"}) {
    EXPECT_THAT(notes, HasSubstr(name));
  }
  const std::string script = (folder.path() / "run.sh").string();
  const std::string run =
      "env -u MODEL_PATH -u TRAIN_FILES -u VAL_FILES PATH=" + folder.path().string() + ":$PATH ";
  write_text_file(folder.path() / "python3", "#!/bin/sh\nprintf '%s\\n' \"$@\"\n");
  fs::permissions(folder.path() / "python3", fs::perms::owner_all);
  int status = 0;
  EXPECT_THAT(output_of(run + "bash " + script + " 2>&1", &status),
              HasSubstr("TRAIN_FILES: set it to the parquet file of the prompts"));
  EXPECT_NE(status, 0);
  EXPECT_THAT(output_of(run + "TRAIN_FILES=/t VAL_FILES=/v bash " + script + " 2>&1", &status),
              HasSubstr("MODEL_PATH: set it to a folder with the weights of the model"));
  EXPECT_NE(status, 0);
  const std::string started = output_of(
      run + "MODEL_PATH=/m TRAIN_FILES=/t.parquet VAL_FILES=/v.parquet bash " + script + " 2>&1",
      &status);
  EXPECT_EQ(status, 0) << started;
  for (const char* const word :
       {"\nactor_rollout_ref.model.path=/m\n", "\ndata.train_files=/t.parquet\n",
        "\ndata.val_files=/v.parquet\n"}) {
    EXPECT_THAT(started, HasSubstr(word));
  }
  if (!output_of("command -v shellcheck").empty()) {
    EXPECT_EQ(output_of("shellcheck " + script + " 2>&1"), "");
  }
  const Export given =
      must_export(plan, target_of("verl"), {.model = "/m", .train_files = "/t", .val_files = "/v"});
  EXPECT_THAT(text_of(given, "run.sh"), Not(HasSubstr(":?")));
  EXPECT_THAT(text_of(given, "NOTES.md"), Not(HasSubstr("MODEL_PATH")));
}

// What verl's example for DeepSeek-V3 has users do to config.json.
TEST(Export, AsksForWeightsThatAreNotQuantized) {
  Plan plan = RandomPlans("verl-megatron", 62).next();
  Problems problems;
  plan.models["actor"] = {plan.models.at("actor").spec, "deepseek-v3", ""};
  const Export made = must_export(plan, target_of("verl-megatron"));
  const std::string script = text_of(made, "run.sh");
  EXPECT_THAT(script, Not(HasSubstr("model.path=deepseek-ai")));
  EXPECT_THAT(script, HasSubstr("\"actor_rollout_ref.model.path=$MODEL_PATH\""));
  EXPECT_THAT(text_of(made, "NOTES.md"), HasSubstr("prepare_model.py deepseek-ai/DeepSeek-V3"));
  Folder folder;
  write_text_file(folder.path() / "prepare_model.py", text_of(made, "prepare_model.py"));
  write_text_file(folder.path() / "run.sh", script);
  const std::string in = "cd " + folder.path().string() + "; ";
  const std::string asked =
      output_of(in + "env -u MODEL_PATH TRAIN_FILES=t VAL_FILES=v bash run.sh 2>&1");
  EXPECT_THAT(asked, HasSubstr("`python3 prepare_model.py deepseek-ai/DeepSeek-V3 NEW_FOLDER`"));
  fs::create_directory(folder.path() / "given");
  write_text_file(folder.path() / "given/config.json",
                  R"({"num_nextn_predict_layers": 1, "quantization_config": {}, "vocab_size": 7})");
  write_text_file(folder.path() / "given/model.safetensors", "weights");
  int status = 1;
  const std::string printed =
      output_of(in + "python3 prepare_model.py given made 2>&1; cat made/*", &status);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(printed,
              AllOf(HasSubstr("\"num_nextn_predict_layers\": 0"), HasSubstr("\"vocab_size\": 7"),
                    HasSubstr("weights"), Not(HasSubstr("quantization_config"))));
  write_text_file(folder.path() / "given/config.json", R"({"quantization_config": {"bits": 8}})");
  EXPECT_TRUE(has_quantized_weights({.spec = {}, .path = (folder.path() / "given").string()}));
  EXPECT_FALSE(has_quantized_weights({.spec = {}, .path = (folder.path() / "made").string()}));
  EXPECT_FALSE(has_quantized_weights({.spec = {}, .path = "qwen2.5-7b"}));
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
      role.layout = {.tp = 1, .dp_replicate = world};
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

TEST(Export, NamesWhereTheWeightsAre) {
  const auto weights = [](const fs::path& path) {
    return weights_of({.spec = {}, .path = path.string(), .config_sha256 = ""});
  };
  const fs::path presets = fs::path(TESSERA_SOURCE_DIR) / "configs/models";
  EXPECT_EQ(weights("qwen2.5-7b"), "Qwen/Qwen2.5-7B");
  EXPECT_EQ(weights(presets / "qwen2.5-7b"), "Qwen/Qwen2.5-7B");
  EXPECT_EQ(weights(presets / "llama3.1-70b/config.json"), "meta-llama/Llama-3.1-70B");
  EXPECT_EQ(weights("Qwen/Qwen2-7B-Instruct"), "Qwen/Qwen2-7B-Instruct");
  EXPECT_EQ(weights("/models/elsewhere"), "/models/elsewhere");
  EXPECT_EQ(weights("missing/config.json"), "");
  Folder folder;
  const fs::path config = folder.path() / "config.json";
  write_text_file(config, R"({"_name_or_path": "Qwen/Qwen2.5-7B-Instruct"})");
  EXPECT_EQ(weights(config), "Qwen/Qwen2.5-7B-Instruct");
  write_text_file(config, R"({"_name_or_path": "/home/somebody/checkpoint"})");
  EXPECT_EQ(weights(config), "");
  write_text_file(folder.path() / "model-00001-of-00002.safetensors", "");
  EXPECT_EQ(weights(config), fs::absolute(folder.path()).string());
  EXPECT_EQ(weights(folder.path()), fs::absolute(folder.path()).string());
}

/// A preset is its config.json and nothing else: it may name its repository, or leave the weights
/// to whoever starts the job.
TEST(Export, AsksForTheWeightsOfAPresetThatNamesNoRepository) {
  Folder root;
  const std::string config = "{\"model_type\": \"qwen2\"";
  for (const char* name : {"models/named", "models/nameless"}) {
    fs::create_directories(root.path() / name);
  }
  write_text_file(root.path() / "models/named/config.json",
                  config + ", \"_name_or_path\": \"somebody/named\"}");
  write_text_file(root.path() / "models/nameless/config.json", config + "}");
  setenv("TESSERA_CONFIGS_DIR", root.path().c_str(), 1);
  for (const std::string& before : {std::string{}, (root.path() / "models/").string()}) {
    EXPECT_EQ(weights_of({.spec = {}, .path = before + "named", .config_sha256 = ""}),
              "somebody/named");
    EXPECT_EQ(weights_of({.spec = {}, .path = before + "nameless", .config_sha256 = ""}), "");
  }
  unsetenv("TESSERA_CONFIGS_DIR");
  Plan plan = RandomPlans("verl", 51).next();
  plan.models.at("actor").path = "tiny-qwen2-digits";  // random weights, of no repository
  EXPECT_THAT(text_of(must_export(plan, target_of("verl")), "run.sh"),
              HasSubstr(": \"${MODEL_PATH:?"));
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
    const bool megatron = target.name == "verl-megatron";
    const bool launcher =
        target.program == ExportedProgram::tessera_run || target.name == "megatron";
    const Plan plan = launcher ? own : RandomPlans(megatron ? "verl-megatron" : "verl", 51).next();
    const Export made = must_export(plan, target, options);
    Folder folder;
    for (const ExportedFile& file : made.files) {
      write_text_file(folder.path() / file.name, file.text);
      const bool script = file.executable || file.name == "job.sbatch";
      if (!script) continue;
      ++scripts;
      const std::string report =
          output_of("shellcheck " + (folder.path() / file.name).string() + " 2>&1", &status);
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

TEST(Placements, OfVerlAreThoseOfItsPools) {
  PlanRequest request;
  request.workload.algorithm = "ppo";
  request.workload.kl = KlPlace::loss;
  request.workload.reward_model = "qwen2.5-0.5b";
  request.workload.dataflow = preset_dataflow("ppo", KlPlace::loss, true);
  request.engine = "verl";
  request.one_step_off = true;
  Problems problems;
  std::vector<std::string> names;
  for (const Placement& placement : allowed_placements(request, problems)) {
    names.push_back(describe(placement));
  }
  EXPECT_THAT(names, ::testing::ElementsAre("colocated", "actor+critic+reference | reward",
                                            "actor+critic+reference | reward | rollout"));
  for (const char* words : {"reward | actor + reference + critic", "actor+critic+reference|reward",
                            "reward|critic+actor+rollout+reference"}) {
    request.fixed.placement = words;
    const std::vector<Placement> one = allowed_placements(request, problems);
    ASSERT_EQ(one.size(), 1U) << words;
    EXPECT_EQ(describe(one.front()), "actor+critic+reference | reward");
  }
  request.fixed.placement = "rollout | reward | critic+reference+actor";
  EXPECT_EQ(describe(allowed_placements(request, problems).at(0)),
            "actor+critic+reference | reward | rollout");
  request.fixed.placement = "reward|reward|actor+critic+reference";
  EXPECT_TRUE(allowed_placements(request, problems).empty());
  problems.clear();
  request.fixed.placement = "actor|critic+reference+reward";
  EXPECT_TRUE(allowed_placements(request, problems).empty());
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].expected, HasSubstr("actor+critic+reference|reward|rollout"));
}

TEST(Capabilities, EveryEngineHasATableAndRefusesUnknownNames) {
  for (const std::string& name : engine_names()) {
    Problems problems;
    const Engine* const engine = engine_of(name, problems);
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(engine->name, name);
    EXPECT_FALSE(engine->capabilities.roles.empty());
  }
  Problems problems;
  EXPECT_EQ(engine_of("verl_megatron", problems), nullptr);
  EXPECT_EQ(problems[0].hint, "did you mean 'verl-megatron'?");
}

// core/pipeline_parallel/schedules.py raises an error where global batch / (micro-batch x dp) is no
// multiple of pp.
TEST(Export, MicroBatchesOfMegatronFillTheRoundsOfVirtualStages) {
  Plan plan = RandomPlans("verl-megatron", 62).next();
  plan.engine = "megatron";
  RolePlan actor = plan.roles[0];
  actor.ranks.resize(8);
  std::iota(actor.ranks.begin(), actor.ranks.end(), 0);
  actor.offload = {};
  actor.lora = {};
  actor.layout = {.pp = 4, .vpp = 2, .dp_replicate = 2, .zero = 1};
  const auto layers = static_cast<int>(plan.models.at(actor.model).spec.layers);
  actor.layout.stages = even_stages(layers - layers % 8, 4, 2);
  plan.models.at(actor.model).spec.layers = layers - layers % 8;
  plan.reshard.clear();
  const std::int64_t longest = plan.workload.prompt_tokens + plan.workload.response_tokens.max;
  const auto exported = [&](std::int64_t mini_batch, std::int64_t sequences, Problems& problems) {
    actor.batching.mini_batch = mini_batch;
    actor.batching.update_tokens = sequences * longest;
    plan.roles = {actor};
    return export_plan(plan, target_of("megatron"), {}, problems);
  };
  Problems problems;
  for (const auto& [mini_batch, sequences, micro] :
       {std::tuple{24, 6, 3}, {24, 12, 3}, {24, 2, 1}, {40, 5, 5}, {8, 4, 1}}) {
    const auto made = exported(mini_batch, sequences, problems);
    ASSERT_TRUE(made) << to_string(problems.at(0));
    EXPECT_EQ(mini_batch / 2 / micro % 4, 0);
    EXPECT_THAT(text_of(*made, "actor.sh"),
                HasSubstr("--micro-batch-size\n  " + std::to_string(micro) + "\n"));
  }
  EXPECT_FALSE(exported(20, 5, problems));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].place, "/roles/0/layout/vpp");
}

TEST(Capabilities, MegatronStagesMayDifferOnlyAtTheEnds) {
  Problems problems;
  const Engine& megatron = engine_named("megatron");
  const ModelSpec model = *read_model_spec("qwen3-8b", problems);
  ParallelLayout layout{.pp = 4};
  layout.stages = {{0, 8}, {8, 18}, {18, 28}, {28, 36}};
  EXPECT_TRUE(outside_capabilities(megatron, model, Role::actor, layout).empty());
  layout.stages = {{0, 8}, {8, 17}, {17, 28}, {28, 36}};
  EXPECT_EQ(outside_capabilities(megatron, model, Role::actor, layout).at(0).place, "stages");
  layout.stages = even_stages(36, 2, 2);
  layout.pp = layout.vpp = 2;
  EXPECT_TRUE(outside_capabilities(megatron, model, Role::actor, layout).empty());
  layout.stages = {{0, 8}, {8, 18}, {18, 27}, {27, 36}};
  EXPECT_EQ(outside_capabilities(megatron, model, Role::actor, layout).size(), 1U);
}

Plan on_two_types(const std::string& engine, const std::vector<std::string>& fixed) {
  Problems problems;
  PlanRequest request;
  request.engine = engine;
  request.models["actor"] = {read_model_spec("qwen2-7b", problems).value(), "qwen2-7b", ""};
  request.cluster = read_cluster_spec("h800-h20-64", problems).value();
  request.workload = read_workload("grpo-7b-1k", problems).value();
  request.calibration = calibration_for_cluster(request.cluster, problems).value();
  request.fixed = parse_settings(fixed, problems);
  request.one_step_off = true;
  auto outcome = make_plan(request, problems);
  EXPECT_TRUE(problems.empty());
  return std::get<Plan>(*std::move(outcome));
}

TEST(Export, SaysWhereEachGpuTypeHasToStand) {
  const Plan apart = on_two_types("verl", {"placement=actor+reference|rollout"});
  EXPECT_THAT(text_of(must_export(apart, target_of("verl")), "NOTES.md"),
              HasSubstr("accelerator_type"));
  const Plan first =
      on_two_types("tessera", {"placement=colocated", "actor.gpu=H800-SXM-80GB", "actor.gpus=32"});
  EXPECT_THAT(text_of(must_export(first, target_of("kubernetes")), "NOTES.md"),
              HasSubstr("nodeSelector for H800-SXM-80GB"));
  EXPECT_THAT(text_of(must_export(first, target_of("torchrun")), "NOTES.md"),
              AllOf(HasSubstr("nodes 0-3 (ranks 0-31) H800-SXM-80GB"),
                    HasSubstr("4-7 (ranks 32-63) H20-96GB")));
}

TEST(Export, RefusesLaunchersThatCannotPlaceByType) {
  const auto refused = [](const Plan& plan, const ExportTarget& target) {
    Problems problems;
    EXPECT_FALSE(export_plan(plan, target, {}, problems));
    return problems.empty() ? Problem{} : problems[0];
  };
  const Plan second =
      on_two_types("tessera", {"placement=colocated", "actor.gpu=H20-96GB", "actor.gpus=32"});
  EXPECT_EQ(refused(second, target_of("torchrun")).found, "32 of 64 ranks without a role");
  const Plan both = on_two_types(
      "tessera", {"placement=colocated", "actor.gpu=H800-SXM-80GB+H20-96GB", "actor.gpus=64"});
  EXPECT_EQ(refused(both, target_of("kubernetes")).place, "/cluster/node_types");
  EXPECT_THAT(text_of(must_export(both, target_of("slurm")), "NOTES.md"),
              HasSubstr("SLURM_HOSTFILE"));
}

}  // namespace
}  // namespace tessera
