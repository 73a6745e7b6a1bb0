// What a run file says of its data and its rewards.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cost_models/documents/problem.h"
#include "executor/config/run_config.h"
#include "tests/executor/config/grpo_plan.h"

namespace tessera {
namespace {

std::string with(const std::string& data, const std::string& reward) {
  return "data: {train_files: [a.jsonl, b.parquet]" + data + "}\nreward: {" + reward +
         "}\ntrainer: {total_training_steps: 1}\n";
}

RunConfig read(const std::string& data, const std::string& reward) {
  Problems problems;
  const auto config = parse_run_config(with(data, reward), "run.yaml", grpo_plan(), problems);
  if (!config) throw Error(ExitCode::bad_input, problems);
  return *config;
}

void refused(const std::string& data, const std::string& reward, const std::string& says) {
  Problems problems;
  EXPECT_FALSE(parse_run_config(with(data, reward), "run.yaml", grpo_plan(), problems)) << reward;
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(to_string(problems[0]).find(says), std::string::npos) << to_string(problems[0]);
}

TEST(RunRewards, ARuleIsNamedAndFractionIsTheDefault) {
  EXPECT_EQ(read("", "").reward.functions.functions.at(0).rule, reward_rule("fraction"));
  for (const RewardRule& rule : reward_rules()) {
    const RunConfig config = read("", "function: " + std::string(rule.name));
    ASSERT_EQ(config.reward.functions.functions.size(), 1u);
    EXPECT_EQ(config.reward.functions.functions[0].rule, &rule);
    EXPECT_EQ(config.reward.functions.functions[0].weight, 1);
  }
  refused("", "function: gsm8", "gsm8k");
  EXPECT_TRUE(read("", "function: unit_tests").reward.functions.functions.at(0).unit_tests);
  const RewardConfig tests =
      read("", "functions: [{name: unit_tests, reward_kwargs: {tests: 3}}]").reward;
  EXPECT_TRUE(tests.functions.functions.at(0).unit_tests);
  EXPECT_EQ(tests.functions.functions.at(0).kwargs, "{\"tests\":3}");
}

TEST(RunRewards, AServiceIsAskedAtAnAllowedHost) {
  const RewardOptions options =
      read("",
           "function: sandbox_fusion, sandbox_fusion: {url: 'http://127.0.0.1:8080/run_code', "
           "max_concurrent: 12, memory_limit_mb: 256, timeout_s: 3}")
          .reward.functions;
  EXPECT_TRUE(options.functions.at(0).service);
  const SandboxService& service = options.programs.service;
  EXPECT_EQ(service.server, "http://127.0.0.1:8080");
  EXPECT_EQ(service.path, "/run_code");
  EXPECT_EQ(service.connections, 12);
  EXPECT_EQ(service.limits.memory_limit_mb, 256);
  EXPECT_EQ(service.limits.timeout_s, 3);
  const RewardOptions named =
      read("",
           "functions: [{name: math}, {name: sandbox_fusion, weight: 2}], sandbox_fusion: {url: "
           "'http://box:1/run', allowed_hosts: [box]}")
          .reward.functions;
  EXPECT_TRUE(named.functions.at(1).service);
  EXPECT_EQ(named.programs.service.server, "http://box:1");
  refused("", "function: sandbox_fusion", "the url of the service");
  refused("", "function: sandbox_fusion, sandbox_fusion: {url: null}", "the url of the service");
  refused("", "function: sandbox_fusion, sandbox_fusion: {url: 'http://box:1/run'}",
          "allowed_hosts");
  for (const char* url : {"https://127.0.0.1:1/run", "http://127.0.0.1:1", "http:/x", "h",
                          "http://", "http://box@127.0.0.1:1/run", "http://127.0.0.1:1.box/run"}) {
    refused("", "function: sandbox_fusion, sandbox_fusion: {url: '" + std::string(url) + "'}",
            "http://127.0.0.1:8080/run_code");
  }
  refused("", "function: math, sandbox_fusion: {url: 'http://127.0.0.1:1/run'}",
          "function: sandbox_fusion beside it");
}

TEST(RunRewards, TheSchemaNamesEveryRule) {
  std::ifstream stream(std::string(TESSERA_SOURCE_DIR) + "/docs/schemas/run.schema.json");
  const nlohmann::json schema = nlohmann::json::parse(stream);
  const auto told = schema.at("/properties/reward/properties/function/enum"_json_pointer);
  std::vector<std::string> names = reward_rule_names();
  names.emplace_back(kUnitTestsName);
  names.emplace_back(kSandboxName);
  EXPECT_EQ(told.get<std::vector<std::string>>(), names);
  std::ifstream page(std::string(TESSERA_SOURCE_DIR) + "/docs/training/rewards.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  for (const std::string& name : reward_rule_names()) {
    EXPECT_NE(text.find("| `" + name + "` |"), std::string::npos) << name;
  }
}

TEST(RunRewards, SeveralHaveWeightsAndMayBeFilesAndCommands) {
  const RewardOptions options =
      read("",
           "functions: [{name: math}, {name: format, weight: 0.1}, "
           "{path: my/judge.py, weight: -2, reward_kwargs: {bonus: 0.5, words: [a]}}, "
           "{command: [./lint, --json]}], num_workers: 3, workers: {timeout_s: 2, "
           "start_timeout_s: 9, memory_gib: 0, sandbox: none, python: python3.11}")
          .reward.functions;
  ASSERT_EQ(options.functions.size(), 4u);
  EXPECT_EQ(options.functions[0].rule, reward_rule("math"));
  EXPECT_EQ(options.functions[1].weight, 0.1);
  const RewardFunction& judge = options.functions[2];
  EXPECT_EQ(judge.name, "judge");
  EXPECT_EQ(judge.file, "my/judge.py");
  EXPECT_EQ(judge.function, "compute_score");
  EXPECT_EQ(judge.kwargs, R"({"bonus":0.5,"words":["a"]})");
  EXPECT_EQ(judge.weight, -2);
  EXPECT_EQ(judge.rule, nullptr);
  EXPECT_EQ(options.functions[3].name, "lint");
  EXPECT_EQ(options.functions[3].command, (std::vector<std::string>{"./lint", "--json"}));
  EXPECT_EQ(options.programs.workers, 3);
  EXPECT_EQ(options.programs.limits.timeout_s, 2);
  EXPECT_EQ(options.programs.limits.start_timeout_s, 9);
  EXPECT_EQ(options.programs.limits.memory_gib, 0);
  EXPECT_EQ(options.programs.limits.sandbox, Sandbox::none);
  EXPECT_EQ(options.programs.python, "python3.11");
}

TEST(RunRewards, VerlsCustomFunctionIsAPythonFile) {
  const RewardOptions options =
      read("", "custom_reward_function: {path: r.py, name: f, reward_kwargs: {x: 1}}")
          .reward.functions;
  ASSERT_EQ(options.functions.size(), 1u);
  EXPECT_EQ(options.functions[0].file, "r.py");
  EXPECT_EQ(options.functions[0].function, "f");
  EXPECT_EQ(options.functions[0].kwargs, R"({"x":1})");
  EXPECT_EQ(read("", "custom_reward_function: {path: null, name: compute_score}")
                .reward.functions.functions[0]
                .rule,
            reward_rule("fraction"))
      << "verl's default";
}

TEST(RunRewards, ContradictionsAreRefused) {
  refused("", "function: math, functions: [{name: math}]", "one of function, functions");
  refused("", "function: math, custom_reward_function: {path: a.py}", "one of function");
  refused("", "functions: []", "at least one function");
  refused("", "functions: [{weight: 1}]", "the name of a rule, a path or a command");
  refused("", "functions: [{name: nothing}]", "a built-in rule");
  refused("", "functions: [{name: math}, {name: math}]", "a name of its own");
  refused("", "functions: [{path: a.py, name: my judge}]", "metrics are called so");
  refused("", "functions: [{path: a.py, command: [b]}]", "a path or a command");
  refused("", "functions: [{name: math, function: f}]", "the Python file");
  refused("", "functions: [{path: a.py, reward_kwargs: 1}]", "a map");
  refused("", "functions: [{name: math, weigth: 1}]", "weight");
  refused("", "num_workers: 0", "num_workers");
  refused("", "workers: {timeout_s: 0}", "timeout_s");
  refused("", "workers: {sandbox: docker}", "automatic");
}

TEST(RunData, FilesHaveWeightsAndLongPromptsAChoice) {
  const RunConfig plain = read("", "");
  EXPECT_TRUE(plain.data.train_weights.empty());
  EXPECT_FALSE(plain.data.filter_overlong_prompts);
  EXPECT_EQ(plain.data.truncation, Truncation::error);
  EXPECT_EQ(plain.data.chat_template_options, "{}");
  const DataConfig data = read(
                              ", train_weights: [0.3, 2], filter_overlong_prompts: true, "
                              "truncation: middle, "
                              "apply_chat_template_kwargs: {enable_thinking: false}",
                              "")
                              .data;
  EXPECT_EQ(data.train_weights, (std::vector<double>{0.3, 2}));
  EXPECT_TRUE(data.filter_overlong_prompts);
  EXPECT_EQ(data.truncation, Truncation::middle);
  EXPECT_EQ(data.chat_template_options, R"({"enable_thinking":false})");
  refused(", train_weights: [1]", "", "one number for each of train_files");
  refused(", train_weights: [1, 0]", "", "train_weights");
  refused(", truncation: centre", "", "middle");
  refused(", apply_chat_template_kwargs: 1", "", "a map");
}

}  // namespace
}  // namespace tessera
