// Folders of adapters as peft writes them: what is read, and what is refused with its name.
#include "executor/checkpoint/peft_folder.h"

#include <gmock/gmock.h>

#include <fstream>
#include <map>

#include "cost_models/documents/problem.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

/// Reads a folder whose adapter_config.json has `more` beside what each needs; its Problems.
std::string problems_with(const TemporaryFolder& folder, const std::string& more) {
  std::ofstream(folder.path / "adapter_config.json")
      << R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"])" << more
      << "}";
  Problems problems;
  const bool read = read_peft_settings(folder.path, problems).has_value();
  EXPECT_EQ(read, problems.empty());
  return problems.empty() ? std::string() : to_string(problems.front());
}

/// What peft 0.18 does with the key when it reads a folder (LoraLayer.update_layer): pissa_init,
/// olora_init, corda_init and loftq_init assign base_layer.weight, the others A and B alone.
TEST(PeftFolder, ABeginningThatChangesTheBaseIsRefused) {
  const TemporaryFolder folder;
  for (const char* kept : {"true", "false", "null", "\"gaussian\"", "\"eva\"", "\"orthogonal\""}) {
    EXPECT_EQ(problems_with(folder, std::string(", \"init_lora_weights\": ") + kept), "");
  }
  for (const char* changed : {"pissa", "pissa_niter_16", "olora", "OLoRA", "corda", "loftq"}) {
    const std::string told =
        problems_with(folder, std::string(", \"init_lora_weights\": \"") + changed + '"');
    EXPECT_THAT(told, HasSubstr("init_lora_weights"));
    EXPECT_THAT(told, HasSubstr(std::string("\"") + changed + '"'));
    EXPECT_THAT(told, HasSubstr("path_initial_model_for_weight_conversion"));
  }
  EXPECT_THAT(problems_with(folder, ", \"init_lora_weights\": 3"), HasSubstr("init_lora_weights"));
  EXPECT_THAT(problems_with(folder, ", \"arrow_config\": {\"top_k\": 1}"),
              HasSubstr("arrow_config"));
}

TEST(PeftFolder, SaysWhichModelItStandsBeside) {
  const TemporaryFolder folder;
  EXPECT_EQ(problems_with(folder, ", \"base_model_name_or_path\": \"Qwen/Qwen3-8B\""), "");
  Problems problems;
  EXPECT_EQ(read_peft_settings(folder.path, problems)->base_model, "Qwen/Qwen3-8B");
  EXPECT_EQ(problems_with(folder, ", \"base_model_name_or_path\": null"), "");
  EXPECT_EQ(read_peft_settings(folder.path, problems)->base_model, "");
}

/// A table of adapters of two matrices.
ParameterTable two_matrices() {
  ParameterTable table;
  for (const std::string name : {"a.q_proj", "b.q_proj"}) {
    table.rows.push_back({.name = name + ".lora_A.weight", .shape = {4, 8}});
    table.rows.push_back({.name = name + ".lora_B.weight", .shape = {6, 4}});
  }
  return table;
}

std::vector<std::string> problems_of(const std::vector<TensorSpec>& tensors) {
  SafetensorsFile file;
  for (const TensorSpec& spec : tensors) {
    TensorView& view = file.tensors.emplace_back();
    static_cast<TensorSpec&>(view) = spec;
  }
  Problems problems;
  const bool right = check_peft_tensors(file, "F", two_matrices(), problems);
  EXPECT_EQ(right, problems.empty());
  std::vector<std::string> told;
  for (const Problem& problem : problems) told.push_back(problem.place + ": " + problem.found);
  return told;
}

TEST(PeftFolder, TensorsAreThoseOfTheAdaptersInTheirShapes) {
  std::vector<TensorSpec> all;
  for (const Parameter& row : two_matrices().rows)
    all.push_back({row.name, DType::fp32, row.shape});
  EXPECT_TRUE(problems_of(all).empty());
  all[0].shape = {8, 4};
  all[3].name = "b.q_proj.lora_B.bias";
  EXPECT_THAT(problems_of(all),
              UnorderedElementsAre(two_matrices().rows[0].name + ": another shape",
                                   two_matrices().rows[3].name + ": no such tensor",
                                   "b.q_proj.lora_B.bias: a tensor of no adapter of this model"));
}

TEST(PeftFolder, PickledTensorsAreNamedAndNotOpened) {
  const TemporaryFolder folder;
  std::ofstream(folder.path / "adapter_model.bin") << "PK";
  Problems problems;
  EXPECT_FALSE(open_peft_tensors(folder.path, problems));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(to_string(problems[0]), HasSubstr("adapter_model.bin is pickle"));
}

}  // namespace
}  // namespace tessera
