// Keys of a verl script that an advised plan changes. Oracle: verl 0.9.1's own configuration,
// composed by Hydra with the script's keys, and again with the changed ones (composed_oracle.py):
// whatever moved has the advised plan's value.
#include "planner/advice/changed_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "planner/interop/import.h"
#include "planner/interop/read_config.h"
#include "planner/interop/verl/verl_settings.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

const std::string kActor = "actor_rollout_ref.actor.", kRef = "actor_rollout_ref.ref.";

// A run, and what an advised plan changes of it.
struct Case {
  std::string name;
  Words overrides;
  std::function<void(Plan&)> change;
};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words grpo() {
  return {"algorithm.adv_estimator=grpo",
          "data.train_batch_size=64",
          "data.max_prompt_length=1024",
          "data.max_response_length=1024",
          "actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct",
          kActor + "ppo_mini_batch_size=64",
          kActor + "use_kl_loss=True",
          "actor_rollout_ref.rollout.name=vllm",
          "actor_rollout_ref.rollout.n=8",
          "actor_rollout_ref.rollout.tensor_model_parallel_size=2",
          "trainer.n_gpus_per_node=8",
          "trainer.nnodes=1"};
}

Words by_tokens() {
  return with(grpo(),
              {kActor + "use_dynamic_bsz=True", kActor + "ppo_max_token_len_per_gpu=16384"});
}

Words by_sequences() {
  return with(grpo(), {kActor + "ppo_micro_batch_size_per_gpu=2",
                       "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2",
                       kRef + "log_prob_micro_batch_size_per_gpu=2"});
}

RolePlan& role_of(Plan& plan, Role role) {
  return *std::find_if(plan.roles.begin(), plan.roles.end(),
                       [&](const RolePlan& each) { return each.role == role; });
}

void double_update(Plan& plan) { role_of(plan, Role::actor).batching.update_tokens *= 2; }

std::vector<Case> cases() {
  return {{"tokens", by_tokens(), double_update},
          {"sequences", by_sequences(), double_update},
          {"critic",
           with(by_sequences(),
                {"algorithm.adv_estimator=gae", "critic.model.path=Qwen/Qwen2.5-7B-Instruct",
                 "critic.enable=True", "critic.ppo_micro_batch_size_per_gpu=2"}),
           double_update},
          {"critic's tokens",
           with(by_tokens(),
                {"algorithm.adv_estimator=gae", "critic.model.path=Qwen/Qwen2.5-7B-Instruct",
                 "critic.enable=True", "critic.ppo_max_token_len_per_gpu=16384"}),
           [](Plan& plan) {
             Batching& batching = role_of(plan, Role::critic).batching;
             batching.update_tokens = batching.values_tokens = 4096;
           }},
          {"ulysses", by_tokens(),
           [](Plan& plan) {
             RolePlan& actor = role_of(plan, Role::actor);
             actor.layout.cp = 2;
             actor.layout.ulysses = true;
             actor.layout.dp /= 2;
             if (actor.layout.dp_shard > 1) actor.layout.dp_shard /= 2;
           }},
          {"megatron", with(by_tokens(), {"model_engine=megatron"}),
           [](Plan& plan) { role_of(plan, Role::actor).offload.parameters = true; }}};
}

ConfigValues script_of(const Words& overrides) {
  std::string text = "python3 -m verl.trainer.main_ppo";
  for (const std::string& each : overrides) text += " " + each;
  Problems problems;
  auto script = read_config_values(text + "\n", "run.sh", problems);
  EXPECT_TRUE(script) << Error(ExitCode::bad_input, problems).what();
  return script ? *std::move(script) : ConfigValues{};
}

Plan plan_of(const ConfigValues& script) {
  Problems problems;
  auto imported =
      import_config(script, {.cluster = *read_cluster_spec("h200-8", problems)}, problems);
  EXPECT_TRUE(imported) << Error(ExitCode::bad_input, problems).what();
  return imported ? std::move(imported->plan) : Plan{};
}

Words changed(const Case& of) {
  const ConfigValues script = script_of(of.overrides);
  const Plan before = plan_of(script);
  Plan after = before;
  of.change(after);
  return changed_keys(before, after, &script);
}

// The overrides with one of "KEY: OLD -> NEW" in the place of the one that it changes.
void apply(const std::string& change, Words& overrides) {
  const std::string key = change.substr(0, change.find(": ")) + "=";
  std::erase_if(overrides, [&](const std::string& each) { return each.starts_with(key); });
  overrides.push_back(key + change.substr(change.rfind(" -> ") + 4));
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string text_of(const Node& value) {
  return value.is(Node::Kind::string) ? value.text : describe(value);
}

std::string verl_python() {
  if (const char* given = getenv("TESSERA_VERL_VENV")) return std::string(given) + "/bin/python3";
  return std::string(TESSERA_SOURCE_DIR) + "/.venv-verl/bin/python3";
}

Json composed(const Json& overrides) {
  const fs::path file =
      fs::temp_directory_path() / ("tessera-composed-" + std::to_string(getpid()) + ".json");
  std::ofstream(file) << overrides;
  const std::string command = "'" + verl_python() + "' '" + TESSERA_SOURCE_DIR +
                              "/tests/planner/advice/composed_oracle.py' '" + file.string() + "'";
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer{};
  while (const std::size_t size = fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), size);
  }
  EXPECT_EQ(pclose(pipe), 0);
  fs::remove(file);
  return Json::parse(text);
}

TEST(ChangedKeys, MoveNothingInVerlButWhatThePlanMoves) {
  if (!fs::exists(verl_python())) GTEST_SKIP() << "no verl: scripts/setup_verl.sh makes it";
  Json lists = Json::array();
  for (const Case& each : cases()) {
    Words after = each.overrides;
    for (const std::string& change : changed(each)) apply(change, after);
    lists.push_back(each.overrides);
    lists.push_back(after);
  }
  const Json trees = composed(lists);
  std::size_t index = 0;
  for (const Case& each : cases()) {
    const Json &before = trees[index++], &after = trees[index++];
    Plan plan = plan_of(script_of(each.overrides));
    each.change(plan);
    Problems problems;
    const VerlSettings settings = verl_settings(plan, {}, problems);
    int moved = 0;
    EXPECT_TRUE(problems.empty()) << each.name << to_string(problems[0]);
    for (const Setting& setting : settings.settings) {
      const std::string& key = setting.key;
      if (!after.contains(key) || before.value(key, Json()) == after[key]) continue;
      const std::string limit = "log_prob_max_token_len_per_gpu";
      if (key.ends_with(limit)) {  // of no effect where sequences are counted
        const std::string block = key.substr(0, key.size() - limit.size());
        if (!after.at(block + "log_prob_use_dynamic_bsz").get<bool>()) continue;
      }
      ++moved;
      EXPECT_EQ(text_of(after[key]), text_of(setting.value)) << each.name << " " << key;
    }
    EXPECT_GT(moved, 0) << each.name;
  }
}

TEST(ChangedKeys, KeepWhatWouldFollow) {
  const auto of = [](std::size_t index) { return changed(cases()[index]); };
  EXPECT_THAT(of(0), Contains(kRef + "log_prob_max_token_len_per_gpu: (not set) -> 16384"));
  EXPECT_THAT(of(1), Contains(kActor + "use_dynamic_bsz: (not set) -> true"));
  EXPECT_THAT(of(1), Contains(kRef + "log_prob_use_dynamic_bsz: (not set) -> false"));
  EXPECT_THAT(of(1), Not(Contains(HasSubstr("ref.log_prob_max_token_len_per_gpu"))));
  EXPECT_THAT(of(2), Contains("critic.use_dynamic_bsz: (not set) -> false"));
  EXPECT_THAT(of(3), Contains("+critic.ppo_infer_max_token_len_per_gpu: (not set) -> 4096"));
  EXPECT_THAT(of(4), Contains(kRef + "ulysses_sequence_parallel_size: (not set) -> 1"));
  EXPECT_THAT(of(5), Contains(kRef + "megatron.param_offload: (not set) -> false"));
  // What the script states follows nothing.
  Case stated = cases()[0];
  stated.overrides.push_back(kRef + "log_prob_max_token_len_per_gpu=16384");
  EXPECT_THAT(changed(stated), Not(Contains(HasSubstr("ref.log_prob_max_token_len_per_gpu"))));
}

// A server that slept may have had any share; one that stays awake beside training has the plan's.
TEST(ChangedKeys, StateTheShareOfAServerThatStaysAwake) {
  const std::string share = "actor_rollout_ref.rollout.gpu_memory_utilization";
  Case of{"kept", with(by_tokens(), {share + "=0.6"}), double_update};
  EXPECT_THAT(changed(of), Not(Contains(HasSubstr(share))));
  of.change = [](Plan& plan) {
    plan.reshard[0].keep = true;
    role_of(plan, Role::rollout).offload.parameters = false;
  };
  EXPECT_THAT(changed(of),
              Contains("actor_rollout_ref.rollout.free_cache_engine: (not set) -> false"));
  EXPECT_THAT(changed(of), Contains(testing::MatchesRegex(share + ": 0.6 -> 0[.].*")));
}

TEST(ChangedKeys, AreFoundUnderTheirFormerNames) {
  const Words words =
      changed({"former",
               with(by_tokens(), {"reward_model.enable=True",
                                  "reward_model.model.path=Skywork/Skywork-Reward-Llama-3.1-8B",
                                  "reward_model.rollout.tensor_model_parallel_size=4"}),
               [](Plan& plan) {
                 RolePlan& reward = role_of(plan, Role::reward);
                 reward.layout.tp = 2;
                 reward.layout.dp *= 2;
               }});
  const std::string now = "reward.reward_model.rollout.tensor_model_parallel_size";
  EXPECT_THAT(words, Contains(now + ": 4 -> 2"));
  EXPECT_THAT(words, Contains("reward_model.rollout.tensor_model_parallel_size: 4 -> (remove: its "
                              "name is " +
                              now + ")"));
}

}  // namespace
}  // namespace tessera
