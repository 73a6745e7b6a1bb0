// SPDX-License-Identifier: GPL-3.0-or-later
// What is wrong with a file, in Chinese: every shipped file with each of its values spoiled in many
// ways, and texts that are no documents. In English the window says what the commands say.
#include <gtest/gtest.h>

#include <QTemporaryDir>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "cost_models/calibration.h"
#include "cost_models/documents/csv.h"
#include "cost_models/documents/document.h"
#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/documents/strict_yaml.h"
#include "cost_models/spec/length_table.h"
#include "gui/document/file_kind.h"
#include "gui/document/project.h"
#include "gui/document/text.h"
#include "gui/samples/sample_reader.h"
#include "gui/topology/node_topology.h"
#include "gui/translations/language.h"
#include "gui/translations/said.h"
#include "planner/engines/engine.h"
#include "planner/engines/engine_check.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan_json.h"
#include "simulator/rules/rules.h"
#include "simulator/timeline/metrics.h"
#include "tests/gui/sample_plans.h"
#include "tests/gui/translations/stays_english.h"

namespace tessera::gui {
namespace {

namespace fs = std::filesystem;

using Read = std::function<void(const fs::path&, Problems&)>;

class FaultsSaid : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!languages().contains("zh_CN")) GTEST_SKIP() << "built without lrelease";
  }
  /// One of each sort of problem is looked at, not each of its thousand values.
  void TearDown() override {
    speak("en");
    for (const auto& [sort, problem] : held_) {
      std::string text = to_string(problem);
      // The window has settings, and no options of a command.
      if (problem.file == "--fix") text.replace(0, std::string("--fix:").size(), "setting ");
      EXPECT_EQ(problemText(problem).toStdString(), text);
    }
    speak("zh_CN");
    for (const auto& [sort, problem] : held_) {
      for (const std::string& part : {problem.found, problem.expected, problem.hint}) {
        const std::string word = english_word(said(part)).toStdString();
        EXPECT_EQ(word, "") << part << "\n<- " << to_string(problem);
      }
    }
    speak("en");
  }

  fs::path file(const std::string& name, const std::string& text) {
    const fs::path path = fs::path(folder_.path().toStdString()) / name;
    std::ofstream(path) << text;
    return path;
  }

  void hold(const Problem& problem) {
    std::string sort = problem.found + "|" + problem.expected + "|" + problem.hint;
    std::erase_if(sort, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
    held_.try_emplace(std::move(sort), problem);
  }

  void read(const std::string& name, const std::string& text, const Read& reader) {
    Problems problems;
    try {
      reader(file(name, text), problems);
    } catch (const Error& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
    for (const Problem& problem : problems) hold(problem);
  }

  /// Every value of the tree (of lists the first two) spoiled, one at a time; once in all trees of
  /// the family where it stands at the same place.
  void spoil(const std::string& name, Node root, const Read& reader) {
    const Node* const family = root.find("model_type");
    const std::function<void(Node&, const std::string&)> each = [&](Node& node,
                                                                    const std::string& place) {
      if (!spoilt_.insert(place).second) return;
      const Node whole = node;
      for (const Node& other : spoilt(whole)) {
        node = other;
        read(name, json_text(root), reader);
      }
      node = whole;
      if (node.is(Node::Kind::map)) {
        for (std::size_t i = 0; i < node.items.size(); ++i) {
          node.items.erase(node.items.begin() + static_cast<std::ptrdiff_t>(i));
          node.keys.erase(node.keys.begin() + static_cast<std::ptrdiff_t>(i));
          read(name, json_text(root), reader);
          node = whole;
        }
        add(node, "no_such_key", node_of(1));
        read(name, json_text(root), reader);
        node = whole;
      }
      const std::size_t most = node.is(Node::Kind::map) ? node.items.size() : 2;
      for (std::size_t i = 0; i < std::min(most, node.items.size()); ++i) {
        each(node.items[i],
             place + "/" + (node.is(Node::Kind::map) ? node.keys[i] : std::to_string(i)));
      }
    };
    each(root, family != nullptr ? family->text : "");
  }

  static std::vector<Node> spoilt(const Node& node) {
    std::vector<Node> others{node_of(-1), node_of(7), node_of("x"), {}, list_node()};
    if (node.is(Node::Kind::integer)) {
      others.push_back(node_of(node.integer + 1));
      others.push_back(node_of(3 * node.integer));
    }
    if (node.is(Node::Kind::list) && !node.items.empty()) {
      Node twice = node, fewer = node;
      twice.items.push_back(node.items.front());
      fewer.items.pop_back();
      others.insert(others.end(), {twice, fewer});
      std::reverse(twice.items.begin(), twice.items.end());
      others.push_back(twice);
    }
    return others;
  }

  void spoil_presets(const std::string& kind, const std::string& ending, const Read& reader) {
    for (const std::string& name : preset_names(kind, ending)) {
      Problems problems;
      const auto path = find_config(name, kind, ending, problems);
      ASSERT_TRUE(path) << name;
      fs::path source = *path;
      if (fs::is_directory(source)) source /= "config.json";
      const auto text = read_text_file(source, 1 << 24, problems);
      const bool json = source.extension() == ".json";
      const auto document =
          json ? parse_json(*text, "it", problems) : parse_yaml(*text, "it", problems);
      ASSERT_TRUE(document) << name;
      spoil(json ? "it.json" : "it.yaml", document->root, reader);
    }
  }

  void spoil_again() { spoilt_.clear(); }
  std::size_t held() const { return held_.size(); }

 private:
  QTemporaryDir folder_;
  std::set<std::string> spoilt_;
  std::map<std::string, Problem> held_;  // by what they say but for digits
};

TEST_F(FaultsSaid, OfClusters) {
  spoil_presets("clusters", ".yaml", [](const fs::path& path, Problems& problems) {
    read_cluster_spec(path, problems);
  });
  EXPECT_GT(held(), 30u);
}

TEST_F(FaultsSaid, OfWorkloads) {
  spoil_presets("workloads", ".yaml",
                [](const fs::path& path, Problems& problems) { read_workload(path, problems); });
  EXPECT_GT(held(), 30u);
}

TEST_F(FaultsSaid, OfModels) {
  spoil_presets("models", "",
                [](const fs::path& path, Problems& problems) { read_model_spec(path, problems); });
  EXPECT_GT(held(), 30u);
}

TEST_F(FaultsSaid, OfRulesAndCalibrations) {
  spoil_presets("rules", ".json",
                [](const fs::path& path, Problems& problems) { read_rules(path, problems); });
  Problems problems;
  const auto path = find_config("cpu", "calibrations", ".json", problems);
  ASSERT_TRUE(path);
  const auto document = parse_json(*read_text_file(*path, 1 << 24, problems), "it", problems);
  spoil("it.json", document->root,
        [](const fs::path& spoilt, Problems& found) { read_calibration(spoilt, found); });
  EXPECT_GT(held(), 30u);
}

TEST_F(FaultsSaid, OfPlansAndProjects) {
  Problems problems;
  const auto plan = parse_json(to_json(digits_plan()), "it", problems);
  spoil("it.json", plan->root,
        [](const fs::path& path, Problems& found) { read_plan(path, found); });
  const fs::path written = file("project.json", "");
  PlanQuery question{
      .model = "tiny-qwen2-digits", .cluster = "local-cpu", .workload = "grpo-digits"};
  write_project({.question = question, .pinned = {}, .runs = {fs::path("run")}}, written);
  const auto project = parse_json(*read_text_file(written, 1 << 24, problems), "it", problems);
  spoil_again();
  spoil("it.json", project->root,
        [](const fs::path& path, Problems& found) { read_project(path, found); });
  EXPECT_GT(held(), 30u);
}

/// For every engine the same plan, with degrees that some do not have.
TEST_F(FaultsSaid, OfPlansOfOtherEngines) {
  for (const std::string model : {"qwen2.5-0.5b", "deepseek-v2-lite"}) {
    for (const std::string fixed : {"actor.pp=2", "actor.cp=2", "actor.zero=3", "rollout.tp=2",
                                    "actor.ep=2", "placement=actor+reference | rollout"}) {
      const PlanAnswer found = answer(PlanQuery{
          .model = model, .cluster = "h100-8", .workload = "grpo-7b-1k", .fixed = {fixed}});
      if (const auto* problems = std::get_if<Problems>(&found.result)) {
        for (const Problem& problem : *problems) hold(problem);
      }
      const auto* plan = std::get_if<SharedPlan>(&found.result);
      if (plan == nullptr) continue;
      for (const std::string& engine : engine_names()) {
        Plan other = **plan;
        other.engine = engine;
        for (const Problem& problem : outside_capabilities(other)) hold(problem);
      }
    }
  }
  EXPECT_GT(held(), 5u);
}

TEST_F(FaultsSaid, OfTextsThatAreNoDocuments) {
  const std::string deep(100, '['), nul("{\"a\": \0}", 8);
  for (const std::string& text : {std::string(),
                                  std::string("{"),
                                  std::string("{\"a\": 1, \"a\": 2}"),
                                  std::string("[1, 2"),
                                  std::string("{\"a\": nope}"),
                                  std::string("\xEF\xBB\xBF{}"),
                                  std::string("{\"a\": \"\xFF\"}"),
                                  nul,
                                  deep,
                                  std::string("{\"a\": 1e999}"),
                                  std::string("{\"a\": 99999999999999999999}"),
                                  std::string("a: &b 1"),
                                  std::string("a: *b"),
                                  std::string("a: !c d"),
                                  std::string("a: 1\na: 2"),
                                  std::string("? {b: 1}\n: 2"),
                                  std::string("a: \"b"),
                                  std::string("---\na: 1\n---\nb: 2"),
                                  std::string("a: .inf"),
                                  std::string("- a\n b: c: d"),
                                  std::string("a\tb"),
                                  std::string("{\"a\" 1}"),
                                  std::string("{} {}")}) {
    Problems problems;
    parse_json(text, "it.json", problems);
    parse_yaml(text, "it.yaml", problems);
    for (const Problem& problem : problems) hold(problem);
    for (const char* name : {"it.json", "it.yaml", "it.txt", "it.bin"}) {
      read(name, text, [](const fs::path& path, Problems& found) { kind_of(path, found); });
    }
  }
  EXPECT_GT(held(), 25u);
}

TEST_F(FaultsSaid, OfTablesTopologiesAndRuns) {
  for (const std::string text :
       {"", "a,b\n1\n", "a,b\n1,\"2\n", "a,a\n1,2\n", "a,,c\n1,2,3\n", "a,b\n1,2\"3\n",
        "a,b\n\"1\"x,2\n", "response_tokens\n", "response_tokens\nmany\n", "a,b\n1,2\n",
        "response_tokens,b\n,2\n", "response_tokens\n0\n", "a\rb\n1\n"}) {
    read("it.csv", text,
         [](const fs::path& path, Problems& problems) { read_length_table(path, problems); });
  }
  for (const std::string text :
       {"", "GPU0 GPU1\nGPU0 X NV4\n", " GPU0 GPU1\nGPU0 X NV4\nGPU1 PIG X\n",
        " GPU0 GPU1\nGPU0 X NV4 NV4\nGPU1 NV4 X\n", " GPU0 GPU1\nGPU0 X\n",
        " GPU0 NIC0\nGPU0 X PIX\nNIC0 PIX X\n"}) {
    read("it.txt", text,
         [](const fs::path& path, Problems& problems) { read_topology(path, problems); });
  }
  for (const std::string text :
       {"{", "{\"step\": -1, \"data\": {}}\n", "{\"step\": 1, \"data\": {\"timing_s/gen\": -3}}\n",
        "{\"step\": 1, \"data\": {\"a\": \"b\"}}\n", "{\"step\": 1, \"data\": 4}\n", "[]\n",
        "{\"step\": 1, \"data\": {\"timing_s/step\": 1, \"timing_s/gen\": 30}}\n"}) {
    read("metrics.jsonl", text,
         [](const fs::path& path, Problems& problems) { read_metrics(path, problems); });
  }
  for (const char* missing : {"nowhere.json", "folder"}) {
    Problems problems;
    fs::create_directories(file("x", "").parent_path() / "folder");
    const fs::path path = file("x", "").parent_path() / missing;
    read_plan(path, problems);
    read_metrics(path, problems);
    kind_of(path, problems);
    read_cluster_spec(path, problems);
    for (const Problem& problem : problems) hold(problem);
  }
  EXPECT_GT(held(), 20u);
}

TEST_F(FaultsSaid, OfQuestions) {
  for (const std::string word :
       {"actor.tp=0", "actor.tp=x", "actor.size=2", "driver.tp=2", "tp=2", "actor.tp",
        "critic.tp=2", "placement=", "placement=actor", "placement=actor|actor", "actor.gpu=B300",
        "actor.gpu=", "actor.recompute=some", "reference.zero=2", "rollout.zero=3",
        "actor.tp=2 actor.tp=4", "actor.gpu=H100 actor.gpu=H200", "reward.tp=2",
        "placement=standalone"}) {
    PlanQuery query{.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "grpo-7b-1k"};
    for (const QString& one : QString::fromStdString(word).split(' ')) {
      query.fixed.push_back(one.toStdString());
    }
    const PlanAnswer found = answer(query);
    if (const auto* problems = std::get_if<Problems>(&found.result)) {
      for (const Problem& problem : *problems) hold(problem);
    }
  }
  for (const PlanQuery& query :
       {PlanQuery{.model = "qwen9", .cluster = "h100-8", .workload = "grpo-7b-1k"},
        PlanQuery{.model = "gpt2", .cluster = "h100-8", .workload = "ppo-7b-1k"},
        PlanQuery{.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "nothing"},
        PlanQuery{.model = "qwen2.5-0.5b",
        .cluster = "h100-64",
        .workload = "grpo-7b-1k",
        .engine = "tessera+vllm"},
        PlanQuery{.model = "deepseek-v2-lite",
        .cluster = "h100-8",
        .workload = "grpo-7b-1k",
        .engine = "tessera+vllm"},
        PlanQuery{.model = "qwen2.5-0.5b",
        .cluster = "h100-8",
        .workload = "grpo-7b-1k",
        .engine = "nanotron"},
        PlanQuery{.model = "qwen2.5-0.5b",
        .cluster = "h100-8",
        .workload = "grpo-7b-1k",
        .objective = "beauty"},
        PlanQuery{
            .model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "grpo-7b-1k", .risk = 0.9}}) {
    const PlanAnswer found = answer(query);
    if (const auto* problems = std::get_if<Problems>(&found.result)) {
      for (const Problem& problem : *problems) hold(problem);
    }
  }
  EXPECT_GT(held(), 15u);
}

}  // namespace
}  // namespace tessera::gui
