// Where an exported job finds weights and data, and what it asks for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

#include "cost_models/adapters.h"
#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "planner/interop/export.h"
#include "planner/interop/verl/verl_engines.h"
#include "planner/interop/verl/verl_settings.h"
#include "planner/plan/hub_name.h"
#include "tests/executor/python_oracle.h"
#include "tests/executor/temporary_folder.h"
#include "tests/planner/interop/exported.h"
#include "tests/planner/interop/random_plans.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A config.json alone says nothing of weights or data: the job asks for them.
TEST(Export, AsksForWhatThePlanDoesNotKnow) {
  TemporaryFolder folder;
  const fs::path config = folder.path / "config.json";
  fs::copy_file(fs::path(TESSERA_SOURCE_DIR) / "configs/models/qwen2.5-7b/config.json", config);
  Plan plan = RandomPlans("verl", 51).next();
  while (plan.models.contains("reward")) {
    static RandomPlans more("verl", 52);
    plan = more.next();
  }
  plan.models["actor"].path = config.string();
  const Export made = must_export(plan, target_of("verl"));
  for (const ExportedFile& file : made.files) write_text_file(folder.path / file.name, file.text);
  EXPECT_THAT(text_of(made, "run.sh"), Not(HasSubstr("config.json")));
  EXPECT_THAT(text_of(made, "verl.yaml"), HasSubstr("${oc.env:MODEL_PATH}"));
  const std::string notes = text_of(made, "NOTES.md");
  for (const char* const name : {"MODEL_PATH", "TRAIN_FILES", "VAL_FILES"}) {
    EXPECT_THAT(notes, HasSubstr(name));
  }
  const std::string script = (folder.path / "run.sh").string();
  const std::string run =
      "env -u MODEL_PATH -u TRAIN_FILES -u VAL_FILES PATH=" + folder.path.string() + ":$PATH ";
  write_text_file(folder.path / "python3", "#!/bin/sh\nprintf '%s\\n' \"$@\"\n");
  fs::permissions(folder.path / "python3", fs::perms::owner_all);
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
  TemporaryFolder folder;
  write_text_file(folder.path / "prepare_model.py", text_of(made, "prepare_model.py"));
  write_text_file(folder.path / "run.sh", script);
  const std::string in = "cd " + folder.path.string() + "; ";
  const std::string asked =
      output_of(in + "env -u MODEL_PATH TRAIN_FILES=t VAL_FILES=v bash run.sh 2>&1");
  EXPECT_THAT(asked, HasSubstr("`python3 prepare_model.py deepseek-ai/DeepSeek-V3 NEW_FOLDER "));
  fs::create_directory(folder.path / "given");
  write_text_file(folder.path / "given/config.json",
                  R"({"num_nextn_predict_layers": 1, "quantization_config": {}, "vocab_size": 7})");
  write_text_file(folder.path / "given/model.safetensors", "weights");
  int status = 1;
  const std::string printed =
      output_of(in + "python3 prepare_model.py given made 2>&1; cat made/*", &status);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(printed,
              AllOf(HasSubstr("\"num_nextn_predict_layers\": 0"), HasSubstr("\"vocab_size\": 7"),
                    HasSubstr("weights"), Not(HasSubstr("quantization_config"))));
  write_text_file(folder.path / "given/config.json", R"({"quantization_config": {"bits": 8}})");
  EXPECT_TRUE(has_quantized_weights({.spec = {}, .path = (folder.path / "given").string()}));
  EXPECT_FALSE(has_quantized_weights({.spec = {}, .path = (folder.path / "made").string()}));
  EXPECT_FALSE(has_quantized_weights({.spec = {}, .path = "qwen2.5-7b"}));
}

// A preset's own config.json tells, and so does one that the user gave; without mbridge the weights
// have to become bf16.
TEST(Export, AsksForWeightsWhoseConfigIsOfFp8) {
  TemporaryFolder folder;
  write_text_file(folder.path / "config.json",
                  R"({"quantization_config": {"quant_method": "fp8"}})");
  const ModelSource file{.spec = {}, .path = (folder.path / "config.json").string()};
  EXPECT_TRUE(has_quantized_weights(file));
  EXPECT_TRUE(has_quantized_weights({.spec = {}, .path = folder.path.string()}));
  EXPECT_TRUE(has_quantized_weights({.spec = {}, .path = "MiniMaxAI/MiniMax-M2"}));
  for (const char* const preset : {"minimax-m2", "kimi-k2", "deepseek-v4-flash", "gpt-oss-20b"}) {
    EXPECT_TRUE(has_quantized_weights({.spec = {}, .path = preset})) << preset;
  }
  Plan plan = RandomPlans("verl", 62).next();
  plan.models["actor"].path = "minimax-m2";
  const Export made = must_export(plan, target_of("verl"));
  EXPECT_THAT(text_of(made, "run.sh"),
              AllOf(HasSubstr("prepare_model.py MiniMaxAI/MiniMax-M2 NEW_FOLDER --dequantize-fp8"),
                    HasSubstr("\"actor_rollout_ref.model.path=$MODEL_PATH\"")));
}

// transformers dequantizes the same checkpoints to the same numbers (prepare_oracle.py).
TEST(Export, PreparesQuantizedWeightsAsTransformersReadsThem) {
  const std::string python = python_with("transformers");
  if (python.empty()) GTEST_SKIP() << "no Python with transformers";
  Plan plan = RandomPlans("verl", 62).next();
  plan.models["actor"].path = "gpt-oss-20b";
  const Export made = must_export(plan, target_of("verl"));
  TemporaryFolder folder;
  const fs::path script = folder.path / "prepare_model.py";
  write_text_file(script, text_of(made, "prepare_model.py"));
  const std::string source = TESSERA_SOURCE_DIR, models = source + "/tests/fixtures/models/";
  EXPECT_EQ(run_python(python, source + "/tests/planner/interop/prepare_oracle.py " +
                                   script.string() + " " + models + "tiny-gpt-oss/config.json " +
                                   models + "tiny-qwen3/config.json"),
            0);
}

// transformers' names of towers; peft takes exclude_modules as a pattern of whole names.
TEST(Export, LeavesVisionTowersOutOfAdapters) {
  Problems problems;
  for (const char* const model : {"qwen2.5-vl-7b", "qwen3-vl-8b", "glm4.1v-9b", "gemma3-4b"}) {
    Plan plan = RandomPlans("verl", 62).next();
    RolePlan& actor = plan.roles[0];
    const auto source = read_model_source(model, problems);
    ASSERT_TRUE(source) << model;
    const ParameterTable table = parameter_table(source->spec);
    const std::regex excluded{std::string(kTowerModules)};
    std::vector<int> rows = adapted_rows(table, {.rank = 8});
    for (const Parameter& row : table.rows) {
      const bool tower = row.name.find("vis") != row.name.npos;
      EXPECT_TRUE(!tower || std::regex_match(row.name, excluded)) << row.name;
    }
    for (const int row : rows) {
      const std::string& name = table.rows[static_cast<std::size_t>(row)].name;
      EXPECT_FALSE(std::regex_match(name, excluded)) << name;
    }
    plan.models["actor"].spec.vision = source->spec.vision;
    actor.lora = {.rank = 8};
    Problems none;
    const VerlSettings made = verl_settings(plan, {}, none);
    const bool stated =
        std::any_of(made.settings.begin(), made.settings.end(), [](const Setting& setting) {
          return setting.key == "actor_rollout_ref.model.exclude_modules" &&
                 setting.value.text == kTowerModules;
        });
    EXPECT_TRUE(stated) << model;
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
  TemporaryFolder folder;
  const fs::path config = folder.path / "config.json";
  write_text_file(config, R"({"_name_or_path": "Qwen/Qwen2.5-7B-Instruct"})");
  EXPECT_EQ(weights(config), "Qwen/Qwen2.5-7B-Instruct");
  write_text_file(config, R"({"_name_or_path": "/home/somebody/checkpoint"})");
  EXPECT_EQ(weights(config), "");
  write_text_file(folder.path / "model-00001-of-00002.safetensors", "");
  EXPECT_EQ(weights(config), fs::absolute(folder.path).string());
  EXPECT_EQ(weights(folder.path), fs::absolute(folder.path).string());
}

/// A preset is its config.json and nothing else: it may name its repository, or leave the weights
/// to whoever starts the job.
TEST(Export, AsksForTheWeightsOfAPresetThatNamesNoRepository) {
  TemporaryFolder root;
  const std::string config = "{\"model_type\": \"qwen2\"";
  for (const char* name : {"models/named", "models/nameless"}) {
    fs::create_directories(root.path / name);
  }
  write_text_file(root.path / "models/named/config.json",
                  config + ", \"_name_or_path\": \"somebody/named\"}");
  write_text_file(root.path / "models/nameless/config.json", config + "}");
  setenv("TESSERA_CONFIGS_DIR", root.path.c_str(), 1);
  for (const std::string& before : {std::string{}, (root.path / "models/").string()}) {
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

}  // namespace
}  // namespace tessera
