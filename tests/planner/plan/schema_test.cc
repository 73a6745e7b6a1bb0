// The published schemas against what the readers accept.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/documents/strict_yaml.h"
#include "cost_models/spec/workload.h"
#include "planner/engines/engine.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan_json.h"
#include "tests/planner/plan/sample_plan.h"

namespace tessera {
namespace {

using nlohmann::json;

json schema_of(const std::string& name) {
  std::ifstream stream(std::string(TESSERA_SOURCE_DIR) + "/docs/schemas/" + name + ".schema.json");
  return json::parse(stream);
}

bool fits(const std::string& schema_name, const json& document) {
  const json text = schema_of(schema_name);
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(text), schema);
  valijson::Validator validator;
  return validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
}

json tree(const Node& node) { return json::parse(json_text(node)); }

/// As the run's log writes them: JSON has no NaN.
TEST(Schema, OfMetricsTakesNumbersThatAreNone) {
  EXPECT_TRUE(fits("metrics", {{"step", 2}, {"data", {{"actor/loss", nullptr}}}}));
  EXPECT_TRUE(fits("metrics", {{"step", 2}, {"data", {{"actor/loss", 0.5}}}}));
  EXPECT_FALSE(fits("metrics", {{"step", 2}, {"data", {{"actor/loss", "nan"}}}}));
}

TEST(Schema, OfAPlanNamesEveryEngine) {
  json names = json::array();
  for (const Engine& engine : every_engine()) names.push_back(engine.name);
  EXPECT_EQ(schema_of("plan")["properties"]["engine"]["enum"], names);
}

/// Whether the reader of a workload takes the phase as a call of a dataflow.
bool is_call(Phase phase) {
  const std::string name(name_of(phase));
  Problems problems;
  parse_workload("algorithm: [{call: " + name + "}]", "workload.yaml", problems);
  return std::none_of(problems.begin(), problems.end(), [](const Problem& problem) {
    return problem.place.ends_with("algorithm.0.call)");
  });
}

TEST(Schema, OfAPlanAndAWorkloadNameEveryPhaseAndEveryCall) {
  json phases = json::array(), calls = json::array();
  std::set<std::string> keys;
  for (const Phase phase : kEveryPhase) {
    phases.push_back(name_of(phase));
    keys.emplace(name_of(phase));
    if (is_call(phase)) calls.push_back(name_of(phase));
  }
  ASSERT_LT(calls.size(), phases.size());
  const json plan = schema_of("plan").at("properties"), workload = schema_of("workload");
  const json::json_pointer call("/items/properties/call/enum");
  EXPECT_EQ(workload.at("/properties/algorithm/anyOf/1"_json_pointer).at(call), calls);
  EXPECT_EQ(plan.at("dataflow").at(call), calls);
  EXPECT_EQ(plan.at("schedule").at(call), phases);
  EXPECT_EQ(plan.at("/schedule/items/properties/after/items/enum"_json_pointer), phases);
  for (const json& map : {plan.at("/roles/items/properties/memory/properties"_json_pointer),
                          plan.at("/prediction/properties/phases_s/properties"_json_pointer)}) {
    std::set<std::string> told;
    for (const auto& [key, value] : map.items()) told.insert(key);
    EXPECT_EQ(told, keys);
  }
}

TEST(Schema, AWrittenPlanFits) {
  Plan plan = sample_plan();
  EXPECT_TRUE(fits("plan", json::parse(to_json(plan))));
  plan.roles[0].rank_order = RankOrder::list;
  EXPECT_TRUE(fits("plan", json::parse(to_json(plan))));
}

TEST(Schema, APlanWithAMeanAndALongestPromptFits) {
  Plan plan = sample_plan();
  plan.workload.prompt_max = 2 * plan.workload.prompt_tokens;
  plan.roles[0].batching.update_sequences = 2;
  const json good = json::parse(to_json(plan));
  EXPECT_TRUE(fits("plan", good));
  Problems problems;
  const auto again = parse_plan(to_json(plan), "plan.json", problems);
  ASSERT_TRUE(again) << to_string(problems.at(0));
  EXPECT_EQ(*again, plan);
  for (const char* key : {"mean", "max"}) {
    json without = good;
    without["workload"]["prompt_tokens"].erase(key);
    EXPECT_FALSE(fits("plan", without)) << key;
  }
}

TEST(Schema, APlanOnTwoGpuTypesFitsWithThemAndNothingElse) {
  Problems problems;
  Plan plan = sample_plan();
  plan.cluster = read_cluster_spec("h800-h20-64", problems).value();
  for (RolePlan& role : plan.roles) role.gpu_types = {"H800-SXM-80GB"};
  const json good = json::parse(to_json(plan));
  EXPECT_TRUE(fits("plan", good));
  EXPECT_EQ(good["cluster"]["node_types"].size(), 2U);
  EXPECT_EQ(good["roles"][0]["gpu_types"], json::array({"H800-SXM-80GB"}));
  for (const auto& [key, value] : good["cluster"]["node_types"][0].items()) {
    json without = good;
    without["cluster"]["node_types"][0].erase(key);
    EXPECT_FALSE(fits("plan", without)) << key;
  }
  EXPECT_TRUE(parse_plan(to_json(plan), "plan.json", problems)) << to_string(problems.at(0));
}

TEST(Schema, APlanOfEveryFamilyFits) {
  for (const char* name :
       {"deepseek-v3", "deepseek-v2-lite", "gpt2", "gpt-oss-20b", "mixtral-8x7b", "minitron-8b",
        "qwen1.5-moe-a2.7b", "qwen3-30b-a3b", "qwen2.5-vl-7b", "gemma3-1b", "phi4", "glm4.5",
        "qwen3.5-35b-a3b", "qwen3-vl-8b", "glm4.1v-9b", "minimax-m2", "hy3",
        "nemotron3-nano-30b-a3b", "nemotron-h-8b"}) {
    Problems problems;
    Plan plan = sample_plan();
    plan.models.at("actor").spec = read_model_spec(name, problems).value();
    const json written = json::parse(to_json(plan));
    EXPECT_TRUE(fits("plan", written)) << name;
    for (const auto& [key, value] : written["models"]["actor"]["spec"].items()) {
      // Plans of former versions do not have these.
      if (key == "linear_attention" || key == "state_space" || key == "blocks") continue;
      json without = written;
      without["models"]["actor"]["spec"].erase(key);
      EXPECT_FALSE(fits("plan", without)) << name << " " << key;
    }
  }
}

TEST(Schema, EveryKeyOfAPlanIsNeededAndNoOtherIsAllowed) {
  const json good = json::parse(to_json(sample_plan()));
  int removed = 0;
  for (const auto& [key, value] : good.items()) {
    json without = good;
    without.erase(key);
    EXPECT_FALSE(fits("plan", without)) << key;
    ++removed;
  }
  EXPECT_EQ(removed, 13);
  for (const char* place : {"", "/roles/0", "/roles/0/layout", "/cluster", "/workload",
                            "/models/actor/spec/rope", "/reshard/0", "/prediction"}) {
    json more = good;
    more[json::json_pointer(place)]["extra"] = 1;
    EXPECT_FALSE(fits("plan", more)) << place;
  }
  json other = good;
  other["tessera_plan"] = 2;
  EXPECT_FALSE(fits("plan", other));
}

TEST(Schema, EveryPresetFits) {
  for (const char* kind : {"cluster", "workload"}) {
    const std::string folder = std::string(kind) + "s";
    int read = 0;
    for (const std::string& name : preset_names(folder, ".yaml")) {
      Problems problems;
      const auto file = find_config(name, folder, ".yaml", problems);
      const auto text = read_text_file(*file, 1 << 20, problems);
      const auto document = parse_yaml(*text, name, problems);
      ASSERT_TRUE(document);
      EXPECT_TRUE(fits(kind, tree(document->root))) << name;
      json more = tree(document->root);
      more["extra"] = 1;
      EXPECT_FALSE(fits(kind, more)) << name;
      ++read;
    }
    EXPECT_GE(read, 4);
  }
}

json yaml_of(const std::filesystem::path& file) {
  Problems problems;
  const auto text = read_text_file(file, 1 << 20, problems);
  const auto document = parse_yaml(*text, file.string(), problems);
  EXPECT_TRUE(document.has_value());
  return tree(document->root);
}

json json_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return json::parse(stream);
}

TEST(Schema, EveryShippedCalibrationFitsAndNeedsEveryConstantButLaterOnes) {
  const std::set<std::string> later = {"grouped_rate", "narrow_heads"};  // older files lack them
  const auto names = preset_names("calibrations", ".json");
  EXPECT_GE(names.size(), 8u);
  for (const std::string& name : names) {
    Problems problems;
    const json good = json_of(*find_config(name, "calibrations", ".json", problems));
    EXPECT_TRUE(fits("calibration", good)) << name;
    for (const auto& [key, value] : good.at("constants").items()) {
      json without = good;
      without["constants"].erase(key);
      EXPECT_EQ(fits("calibration", without), later.contains(key)) << name << " " << key;
    }
    json more = good;
    more["tables"]["matmul"]["extra"] = 1;
    EXPECT_FALSE(fits("calibration", more)) << name;
    json still = good;
    still["constants"]["matmul_flop_per_s"]["value"] = 0;
    EXPECT_FALSE(fits("calibration", still)) << name;
  }
}

TEST(Schema, EveryRunConfigurationFits) {
  const auto names = preset_names("runs", ".yaml");
  EXPECT_GE(names.size(), 2u);
  for (const std::string& name : names) {
    Problems problems;
    const json good = yaml_of(*find_config(name, "runs", ".yaml", problems));
    EXPECT_TRUE(fits("run", good)) << name;
    for (const char* place : {"", "/data", "/trainer", "/actor_rollout_ref/actor/optim"}) {
      json more = good;
      more[json::json_pointer(place)]["extra"] = 1;
      EXPECT_FALSE(fits("run", more)) << name << place;
    }
    json without = good;
    without["trainer"].erase("total_training_steps");
    EXPECT_FALSE(fits("run", without)) << name;
    json wrong = good;
    wrong["algorithm"]["adv_estimator"] = "rlo";
    EXPECT_FALSE(fits("run", wrong)) << name;
  }
}

TEST(Schema, EveryLineOfARunsMetricsFits) {
  std::ifstream stream(std::string(TESSERA_SOURCE_DIR) + "/tests/gui/data/run/metrics.jsonl");
  int lines = 0;
  for (std::string line; std::getline(stream, line); ++lines) {
    const json good = json::parse(line);
    EXPECT_TRUE(fits("metrics", good)) << line;
    json wrong = good;
    wrong["data"]["actor/lr"] = "fast";
    EXPECT_FALSE(fits("metrics", wrong));
    wrong = good;
    wrong.erase("step");
    EXPECT_FALSE(fits("metrics", wrong));
  }
  EXPECT_GT(lines, 0);
}

}  // namespace
}  // namespace tessera
