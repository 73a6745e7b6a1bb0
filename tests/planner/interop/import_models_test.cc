// Models by the names that hubs and folders give them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "planner/interop/config/config_values.h"
#include "planner/interop/config/imported.h"
#include "planner/plan/hub_name.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

TEST(Models, AreFoundByTheirHubNames) {
  const ConfigValues config;
  const std::vector<std::pair<std::string, std::string>> known{
      {"Qwen/Qwen2.5-Math-7B", "qwen2.5-7b"},
      {"/models/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"},
      {"mistralai/Mistral-Nemo-Instruct-2407", "mistral-nemo"},
      {"deepseek-ai/deepseek-llm-7b-chat", "deepseek-llm-7b"},
      {"deepseek-ai/DeepSeek-R1", "deepseek-v3"},
      {"Qwen/Qwen2-72B-Instruct", "qwen2.5-72b"},
      {"meta-llama/Meta-Llama-3-8B-Instruct", "llama3.1-8b"}};
  for (const auto& [name, preset] : known) {
    std::vector<std::string> notes;
    Problems problems;
    const auto model = find_model(name, config, "model", notes, problems);
    ASSERT_TRUE(model.has_value()) << name;
    EXPECT_EQ(model->spec, read_model_spec(preset, problems)) << name;
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_THAT(notes[0], HasSubstr(preset));
  }
  std::vector<std::string> notes;
  Problems problems;
  EXPECT_FALSE(find_model("Qwen/Qwen2.5-8B", config, "model", notes, problems));
  EXPECT_EQ(problems.size(), 1U);
}

// What the exporter writes for a preset is read as that preset.
TEST(Models, OfEveryPresetAreFoundByTheirRepository) {
  const ConfigValues config;
  int named = 0;
  for (const std::string& preset : preset_names("models", "")) {
    const std::string repository = hub_name_of_preset(preset);
    if (repository.empty()) continue;
    ++named;
    std::vector<std::string> notes;
    Problems problems;
    const auto model = find_model(repository, config, "model", notes, problems);
    ASSERT_TRUE(model.has_value()) << repository;
    EXPECT_EQ(model->spec, read_model_spec(preset, problems)) << repository;
  }
  EXPECT_GT(named, 30);
}

// 32,000 words instead of 32,768.
TEST(Models, WithAnotherVocabularyAreNotAPreset) {
  for (const char* const name :
       {"mistralai/Mistral-7B-v0.1", "mistralai/Mistral-7B-Instruct-v0.2"}) {
    std::vector<std::string> notes;
    Problems problems;
    EXPECT_FALSE(find_model(name, ConfigValues{}, "model", notes, problems)) << name;
    EXPECT_EQ(problems.size(), 1U);
  }
  std::vector<std::string> notes;
  Problems problems;
  const auto third =
      find_model("mistralai/Mistral-7B-Instruct-v0.3", ConfigValues{}, "model", notes, problems);
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->spec.vocab, 32768);
}

}  // namespace
}  // namespace tessera
