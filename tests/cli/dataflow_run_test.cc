// Workloads that state their calls themselves: in another order than the presets, with fewer calls,
// and such that nobody could carry them out. The order is the plan's in simulator and run.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/cli/called.h"
#include "tests/cli/programs.h"

namespace tessera {
namespace {

using testing::HasSubstr;

constexpr const char* kSizes =
    "prompts_per_step: 16\nsamples_per_prompt: 4\nprompt_tokens: 8\n"
    "response_tokens: {mean: 4, cv: 0, max: 4}\nmini_batches: 2\nepochs: 1\n";
constexpr const char* kGen =
    "  - {call: gen, role: rollout, kind: generate, inputs: [prompts], outputs: [texts]}\n";
constexpr const char* kOld =
    "  - {call: old_log_prob, role: actor, kind: infer, inputs: [texts], outputs: [old]}\n";
constexpr const char* kRef =
    "  - {call: ref, role: reference, kind: infer, inputs: [texts], outputs: [ref]}\n";
constexpr const char* kReward =
    "  - {call: reward, role: reward, kind: compute, inputs: [texts], outputs: [scores]}\n";
constexpr const char* kAdv =
    "  - {call: adv, role: actor, kind: compute, inputs: [scores], outputs: [gains]}\n";
constexpr const char* kUpdate =
    "  - {call: update_actor, role: actor, kind: train, inputs: [texts, old, ref, gains], "
    "outputs: []}\n";

constexpr const char* kValues =
    "  - {call: values, role: critic, kind: infer, inputs: [texts], outputs: [values]}\n";
constexpr const char* kGains =
    "  - {call: adv, role: actor, kind: compute, inputs: [scores, values, old, ref], outputs: "
    "[gains]}\n";
constexpr const char* kCritic =
    "  - {call: update_critic, role: critic, kind: train, inputs: [values, gains], outputs: []}\n";

using Names = std::vector<std::string>;

/// What each call of such a list reads, by the names of inputs and outputs alone.
std::map<std::string, Names> reads_of(const std::string& calls) {
  const std::regex line(R"(call: (\w+),.*inputs: \[([^\]]*)\], outputs: \[([^\]]*)\])");
  std::map<std::string, std::string> inputs, maker;
  for (std::sregex_iterator at(calls.begin(), calls.end(), line), end; at != end; ++at) {
    inputs[(*at)[1]] = (*at)[2].str() + ",";
    if ((*at)[3].length() > 0) maker[(*at)[3]] = (*at)[1];  // these calls make one thing each
  }
  std::map<std::string, Names> reads;
  for (const auto& [call, names] : inputs) {
    Names& read = reads[call];
    std::istringstream words(names);
    for (std::string word; std::getline(words >> std::ws, word, ',');) {
      if (word != "prompts") read.push_back(maker.at(word));
    }
  }
  return reads;
}

/// The calls of each step of each rank, in the order in which a trace has them begin.
std::map<std::pair<int, int>, Names> orders_of(const fs::path& trace, int first_step) {
  std::map<std::pair<int, int>, std::map<double, std::string>> begun;
  const nlohmann::json read = nlohmann::json::parse(text_of(trace));
  for (const nlohmann::json& event : read.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("tid") != 0) continue;
    begun[{event.at("args").at("step").get<int>() - first_step, event.at("pid")}][event.at("ts")] =
        event.at("cat");
  }
  std::map<std::pair<int, int>, Names> orders;
  for (const auto& [where, calls] : begun) {
    for (const auto& [when, call] : calls) {
      if (call != "save_checkpoint") orders[where].push_back(call);
    }
  }
  return orders;
}

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Of `all` those that `some` has.
Names among(const Names& all, const Names& some) {
  Names found;
  for (const std::string& name : all) {
    if (has(some, name)) found.push_back(name);
  }
  return found;
}

class DataflowRun : public ProgramTest {
 protected:
  /// Plans with the reference on ranks of its own: what it computes has to travel.
  static void plan(const std::string& name, const std::string& algorithm) {
    std::ofstream(at(name + ".yaml"))
        << "version: 1\nalgorithm: " << algorithm << kSizes << "kl: loss\n";
    ASSERT_EQ(run("plan --model " + at("model") + " --cluster local-cpu --workload " +
                  at(name + ".yaml") +
                  " --fix 'placement=actor | reference' actor.gpus=2 reference.gpus=2 actor.tp=1 "
                  "actor.pp=1 reference.tp=2 rollout.tp=1 -o " +
                  at(name + ".json")),
              0)
        << name;
  }

  static void expect_same(const std::string& a, const std::string& b) {
    for (const char* file : {"samples.jsonl", "hf/model.safetensors"}) {
      ASSERT_TRUE(fs::exists(folder_ / a / file)) << a;
      EXPECT_TRUE(text_of(folder_ / a / file) == text_of(folder_ / b / file)) << a << " " << file;
    }
  }

  /// NAME.json states its calls in an order in which each comes after those that it reads, and its
  /// simulation and NAME-run had every rank go through them in that order.
  static void expect_one_order(const std::string& name, const std::string& calls, int steps) {
    SCOPED_TRACE(name);
    const nlohmann::json plan = nlohmann::json::parse(text_of(at(name + ".json")));
    Names stated;
    for (const nlohmann::json& call : plan.at("schedule")) stated.push_back(call.at("call"));
    const std::map<std::string, Names> reads = reads_of(calls);
    EXPECT_EQ(stated.size(), reads.size() + 1);  // and the reshard, before the generation
    for (const auto& [call, read] : reads) {
      const auto place = std::find(stated.begin(), stated.end(), call);
      ASSERT_NE(place, stated.end()) << call;
      for (const std::string& before : read) {
        EXPECT_NE(std::find(stated.begin(), place, before), place) << call << " reads " << before;
      }
    }
    const std::string trace = at(name + "-predicted.json");
    ASSERT_EQ(run("simulate " + at(name + ".json") + " --steps " + std::to_string(steps) +
                  " --trace " + trace),
              0);
    const auto predicted = orders_of(trace, 0);
    const auto measured = orders_of(folder_ / (name + "-run") / "trace.json", 1);
    ASSERT_EQ(measured.size(), 4U * static_cast<std::size_t>(steps));
    ASSERT_EQ(predicted.size(), measured.size());
    Names everywhere;
    for (const auto& [where, calls_of_rank] : measured) {
      EXPECT_EQ(calls_of_rank, among(stated, calls_of_rank)) << "rank " << where.second;
      // A rank also notes calls in which it only hands results on.
      EXPECT_EQ(predicted.at(where), among(calls_of_rank, predicted.at(where)));
      EXPECT_EQ(predicted.at(where), among(stated, predicted.at(where)));
      const Names& some = predicted.at(where);
      everywhere.insert(everywhere.end(), some.begin(), some.end());
    }
    for (const auto& [call, read] : reads) EXPECT_TRUE(has(everywhere, call)) << call;
  }

  static constexpr const char* kRun = "--set actor_rollout_ref.actor.kl_loss_coef=0.5";
};

/// The reference's and the actor's log-probs may come before the advantages or after them.
TEST_F(DataflowRun, EveryOrderThatTheCallsAllowTrainsAlike) {
  plan("preset", "grpo\n");
  ASSERT_EQ(train("preset-run", 3, kRun, "preset.json"), 0);
  expect_one_order("preset", std::string(kGen) + kOld + kRef + kReward + kAdv + kUpdate, 3);
  const std::vector<std::pair<std::string, std::string>> orders = {
      {"late", std::string("\n") + kGen + kReward + kAdv + kOld + kRef + kUpdate},
      {"mixed", std::string("\n") + kUpdate + kAdv + kRef + kReward + kOld + kGen}};
  for (const auto& [name, calls] : orders) {
    plan(name, calls);
    ASSERT_EQ(train(name + "-run", 3, kRun, name + ".json"), 0) << name;
    expect_same(name + "-run", "preset-run");
    expect_one_order(name, calls, 3);
  }
  EXPECT_THAT(text_of(folder_ / "late.json"), testing::ContainsRegex("adv(.|\n)*\"ref\""));
}

/// PPO with the critic on ranks of its own, its updates in the other order than the preset's, and
/// ReMax, whose generation answers every prompt once more.
TEST_F(DataflowRun, PlanSimulatorAndRunHaveOneOrder) {
  const std::string own =
      std::string("\n") + kUpdate + kCritic + kGains + kReward + kRef + kValues + kOld + kGen;
  std::ofstream(at("ppo.yaml")) << "version: 1\nalgorithm: " << own << kSizes << "kl: reward\n";
  ASSERT_EQ(
      run("plan --model " + at("model") + " --cluster local-cpu --workload " + at("ppo.yaml") +
          " --fix 'placement=actor+reference | critic' actor.gpus=2 critic.gpus=2 actor.tp=2 "
          "actor.pp=1 rollout.tp=1 -o " +
          at("ppo.json")),
      0);
  ASSERT_EQ(
      run("run " + at("ppo.json") + " --config ppo-digits --set 'data.train_files=[" +
          at("prompts.jsonl") + "]' --set trainer.total_training_steps=2 -o " + at("ppo-run")),
      0);
  expect_one_order("ppo", own, 2);
  const std::string calls = std::string("\n") + kGen + kReward + kRef + kOld + kAdv + kUpdate;
  plan("remax", calls);
  ASSERT_EQ(train("remax-run", 2, std::string(kRun) + " --set algorithm.adv_estimator=remax",
                  "remax.json"),
            0);
  expect_one_order("remax", calls, 2);
}

/// In bypass mode generation itself makes what `old_log_prob` would.
TEST_F(DataflowRun, ACallThatNobodyReadsMayBeLeftOut) {
  const std::string bypass =
      std::string(kRun) + " --set algorithm.rollout_correction.bypass_mode=true";
  plan("with", "grpo\n");
  ASSERT_EQ(train("with-run", 3, bypass, "with.json"), 0);
  std::string update = kUpdate;
  update.replace(update.find("old, "), 5, "");
  plan("without", std::string("\n") + kGen + kReward + kAdv + kRef + update);
  ASSERT_EQ(train("without-run", 3, bypass, "without.json"), 0);
  expect_same("without-run", "with-run");
}

TEST_F(DataflowRun, ACallThatDoesNotFindWhatItReadsIsRefusedBeforeTheRun) {
  std::string early = kAdv;
  early.replace(early.find("[scores]"), 8, "[texts]");
  plan("early", std::string("\n") + kGen + early + kReward + kOld + kRef + kUpdate);
  const Called refused =
      call("run " + at("early.json") + " --config grpo-digits --set 'data.train_files=[" +
           at("prompts.jsonl") + "]' -o " + at("early-run"));
  EXPECT_EQ(refused.code, 65);
  EXPECT_THAT(refused.out, HasSubstr("'adv' without 'reward' before it"));
  EXPECT_FALSE(fs::exists(folder_ / "early-run"));
}

}  // namespace
}  // namespace tessera
