// The published schemas against what the readers accept.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "cost_models/spec/preset.h"
#include "cost_models/spec/strict_json.h"
#include "cost_models/spec/strict_yaml.h"
#include "planner/plan/plan_json.h"
#include "tests/planner/plan/sample_plan.h"

namespace tessera {
namespace {

using nlohmann::json;

bool fits(const std::string& schema_name, const json& document) {
  std::ifstream stream(std::string(TESSERA_SOURCE_DIR) + "/docs/schemas/" + schema_name +
                       ".schema.json");
  const json text = json::parse(stream);
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(text), schema);
  valijson::Validator validator;
  return validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
}

json tree(const Node& node) { return json::parse(json_text(node)); }

TEST(Schema, AWrittenPlanFits) {
  Plan plan = sample_plan();
  EXPECT_TRUE(fits("plan", json::parse(to_json(plan))));
  plan.roles[0].rank_order = RankOrder::list;
  EXPECT_TRUE(fits("plan", json::parse(to_json(plan))));
}

TEST(Schema, APlanOfEveryFamilyFits) {
  for (const char* name : {"deepseek-v3", "deepseek-v2-lite", "gpt2", "gpt-oss-20b", "mixtral-8x7b",
                           "minitron-8b", "qwen1.5-moe-a2.7b", "qwen3-30b-a3b", "qwen2.5-vl-7b"}) {
    Problems problems;
    Plan plan = sample_plan();
    plan.models.at("actor").spec = read_model_spec(name, problems).value();
    const json written = json::parse(to_json(plan));
    EXPECT_TRUE(fits("plan", written)) << name;
    for (const auto& [key, value] : written["models"]["actor"]["spec"].items()) {
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

}  // namespace
}  // namespace tessera
