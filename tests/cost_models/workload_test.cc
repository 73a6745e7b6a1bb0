#include "cost_models/spec/workload.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "cost_models/spec/preset.h"
#include "cost_models/spec/spec_document.h"
#include "cost_models/spec/strict_json.h"
#include "tests/cost_models/malformed.h"

namespace tessera {
namespace {

constexpr char kGood[] =
    "version: 1\nalgorithm: ppo\nprompts_per_step: 64\nsamples_per_prompt: 4\nprompt_tokens: 128\n"
    "response_tokens:\n  mean: 200\n  cv: 0.5\n  max: 512\nmini_batches: 4\nepochs: 2\n"
    "kl: reward\nmodels:\n  critic: qwen2.5-0.5b\n  reward: rm\n";

constexpr char kCustom[] =
    "algorithm:\n"
    "- {call: gen, role: rollout, kind: generate, inputs: [prompts], outputs: [responses]}\n"
    "- {call: reward, role: reward, kind: compute, inputs: [responses], outputs: [scores]}\n"
    "- {call: adv, role: actor, kind: compute, inputs: [scores], outputs: [advantages]}\n"
    "- {call: update_actor, role: actor, kind: train, inputs: [advantages], outputs: []}\n"
    "prompts_per_step: 8\nprompt_tokens: 16\nresponse_tokens: {max: 32}\n";

std::set<Phase> phases(const Dataflow& dataflow) {
  std::set<Phase> result;
  for (const Call& call : dataflow) result.insert(call.phase);
  return result;
}

TEST(Workload, ReadsEveryField) {
  Problems problems;
  const auto workload = parse_workload(kGood, "w.yaml", problems);
  ASSERT_TRUE(workload) << to_string(problems.at(0));
  EXPECT_EQ(workload->algorithm, "ppo");
  EXPECT_EQ(workload->sequences(), 256);
  EXPECT_EQ(workload->prompt_tokens, 128);
  EXPECT_EQ(workload->response_tokens, (LengthSpec{.mean = 200, .cv = 0.5, .max = 512}));
  EXPECT_EQ(workload->mini_batches, 4);
  EXPECT_EQ(workload->epochs, 2);
  EXPECT_EQ(workload->kl, KlPlace::reward);
  EXPECT_EQ(workload->critic_model, "qwen2.5-0.5b");
  EXPECT_EQ(workload->reward_model, "rm");
  EXPECT_EQ(workload->dataflow, preset_dataflow("ppo", KlPlace::reward, true));
}

TEST(Workload, AbsentKeysTakeTheirDefaults) {
  Problems problems;
  const auto workload = parse_workload(kCustom, "w.yaml", problems);
  ASSERT_TRUE(workload) << to_string(problems.at(0));
  EXPECT_EQ(workload->algorithm, "custom");
  EXPECT_EQ(workload->dataflow.size(), 4u);
  EXPECT_EQ(workload->samples_per_prompt, 1);
  EXPECT_EQ(workload->mini_batches, 1);
  EXPECT_EQ(workload->epochs, 1);
  EXPECT_EQ(workload->kl, KlPlace::none);
  EXPECT_EQ(workload->response_tokens, (LengthSpec{.mean = 32, .cv = 0, .max = 32}));
}

TEST(Workload, EveryPresetReads) {
  const auto names = preset_names("workloads", ".yaml");
  EXPECT_GE(names.size(), 4u);
  for (const std::string& name : names) {
    Problems problems;
    EXPECT_TRUE(read_workload(name, problems)) << to_string(problems.at(0));
  }
  Problems problems;
  EXPECT_EQ(read_workload("grpo-digits", problems)->sequences(), 512);
}

TEST(Workload, SurvivesItsTree) {
  for (const char* text : {kGood, kCustom}) {
    Problems problems;
    const Workload workload = *parse_workload(text, "w.yaml", problems);
    Node root = to_node(workload);
    const auto document = parse_json(json_text(root), "w.json", problems);
    ObjectReader reader(*document, problems);
    Workload again = workload_from(reader, Defaults::refused);
    EXPECT_TRUE(problems.empty());
    Node calls = map_node();
    add(calls, "dataflow", to_node(workload.dataflow));
    const auto flow = parse_json(json_text(calls), "d.json", problems);
    ObjectReader flow_reader(*flow, problems);
    again.dataflow = dataflow_from(flow_reader, "dataflow");
    EXPECT_EQ(again, workload);
  }
}

TEST(Dataflow, PpoHasACriticAndTheReferenceOnlyWithKl) {
  using enum Phase;
  EXPECT_EQ(
      phases(preset_dataflow("ppo", KlPlace::reward, true)),
      (std::set<Phase>{gen, old_log_prob, ref, values, reward, adv, update_critic, update_actor}));
  EXPECT_EQ(phases(preset_dataflow("grpo", KlPlace::none, false)),
            (std::set<Phase>{gen, old_log_prob, reward, adv, update_actor}));
  EXPECT_TRUE(phases(preset_dataflow("grpo", KlPlace::loss, false)).contains(ref));
}

TEST(Dataflow, ARuleRewardComputesAndARewardModelInfers) {
  for (const bool model : {false, true}) {
    for (const Call& call : preset_dataflow("grpo", KlPlace::none, model)) {
      if (call.phase == Phase::reward) {
        EXPECT_EQ(call.kind, model ? CallKind::infer : CallKind::compute);
      }
    }
  }
}

TEST(Dataflow, PresetsAreInOrderAlready) {
  for (const char* algorithm : {"ppo", "grpo"}) {
    for (const KlPlace kl : {KlPlace::none, KlPlace::loss, KlPlace::reward}) {
      const Dataflow dataflow = preset_dataflow(algorithm, kl, true);
      std::vector<int> identity(dataflow.size());
      std::iota(identity.begin(), identity.end(), 0);
      Problems problems;
      EXPECT_EQ(topological_order(dataflow, "w", problems), identity);
      EXPECT_TRUE(problems.empty());
    }
  }
}

TEST(Dataflow, AnyShuffleIsPutInAnOrderThatRespectsItsInputs) {
  EXPECT_TRUE(rc::check([] {
    Dataflow dataflow = preset_dataflow("ppo", KlPlace::reward, true);
    for (std::size_t i = dataflow.size(); i > 1; --i) {
      std::swap(dataflow[i - 1], dataflow[*rc::gen::inRange<std::size_t>(0, i)]);
    }
    Problems problems;
    const std::vector<int> order = topological_order(dataflow, "w", problems);
    RC_ASSERT(problems.empty());
    RC_ASSERT(order.size() == dataflow.size());
    std::set<std::string> made{"prompts"};
    std::set<int> seen;
    for (const int i : order) {
      RC_ASSERT(seen.insert(i).second);
      for (const std::string& input : dataflow[i].inputs) RC_ASSERT(made.contains(input));
      made.insert(dataflow[i].outputs.begin(), dataflow[i].outputs.end());
    }
  }));
}

TEST(Dataflow, ACycleIsNamedByItsCalls) {
  Dataflow dataflow = preset_dataflow("ppo", KlPlace::none, false);
  for (Call& call : dataflow) {
    if (call.phase == Phase::values) call.inputs.push_back("advantages");
  }
  Problems problems;
  EXPECT_TRUE(topological_order(dataflow, "w", problems).empty());
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].found, "a cycle through values, adv");
}

TEST(Workload, RefusesEveryMalformedFileWithItsPlaceAndReason) {
  const Edit edits[] = {
      {"algorithm: ppo\n", "", "1:1 (algorithm)", "no 'algorithm'", "ppo, grpo"},
      {"algorithm: ppo", "algorithm: pppo", "2:12 (algorithm)", "\"pppo\"", "ppo, grpo"},
      {"algorithm: ppo", "algorithm: 3", "2:12 (algorithm)", "3", "ppo, grpo"},
      {"algorithm: ppo", "algorithm: [gen]", "2:13 (algorithm.0)", "\"gen\"", "a map"},
      {"prompts_per_step: 64", "prompts_per_step: 0", "3:19", "0", "an integer from 1"},
      {"prompts_per_step: 64", "prompts_per_step: 64.0", "3:19", "64", "an integer from 1"},
      {"prompts_per_step: 64", "prompts_per_step: 66", "10:15 (mini_batches)", "4",
       "a divisor of prompts_per_step = 66"},
      {"samples_per_prompt: 4", "samples_per_prompt: -4", "4:21", "-4", "an integer from 1"},
      {"samples_per_prompt: 4", "samples_per_prompt: true", "4:21", "true", "an integer"},
      {"prompt_tokens: 128", "prompt_tokens: 12e10", "5:16", "1.2e+11", "an integer"},
      {"prompt_tokens: 128", "prompt_token: 128", "1:1 (prompt_tokens)", "no 'prompt_tokens'", ""},
      {"prompt_tokens: 128", "prompt_token: 128", "5:15 (prompt_token)", "'prompt_token'", "known"},
      {"response_tokens:\n  mean: 200\n  cv: 0.5\n  max: 512\n", "response_tokens: 512\n",
       "6:18 (response_tokens)", "512", "a map"},
      {"mean: 200", "mean: 600", "7:9 (response_tokens.mean)", "600", "at most max = 512"},
      {"mean: 200", "mean: 0", "7:9 (response_tokens.mean)", "0", "above 0"},
      {"cv: 0.5", "cv: -0.5", "8:7 (response_tokens.cv)", "-0.5", "at least 0"},
      {"cv: 0.5", "std: 0.5", "8:8 (response_tokens.std)", "'std'", "a known key"},
      {"max: 512", "max: 0", "9:8 (response_tokens.max)", "0", "an integer from 1"},
      {"cv: 0.5", "csv: lengths.csv", "8:8 (response_tokens.csv)", "lengths.csv", "mean, cv"},
      {"mini_batches: 4", "mini_batches: 3", "10:15 (mini_batches)", "3", "a divisor"},
      {"epochs: 2", "epochs: 0", "11:9 (epochs)", "0", "a positive integer"},
      {"kl: reward", "kl: rewards", "12:5 (kl)", "\"rewards\"", "none, loss, reward"},
      {"kl: reward", "kl: yes", "12:5 (kl)", "\"yes\"", "none, loss, reward"},
      {"  critic: qwen2.5-0.5b", "  critic: 7", "14:11 (models.critic)", "7", "a string"},
      {"  critic: ", "  critics: ", "14:12 (models.critics)", "'critics'", "a known key"},
      {"version: 1", "version: 0", "1:10 (version)", "0", "version 1"},
      {kGood, "{}", "1:1 (prompts_per_step)", "no 'prompts_per_step'", "a value"},
  };
  expect_refused(kGood, edits, [](const std::string& text, Problems& problems) {
    return parse_workload(text, "w.yaml", problems).has_value();
  });
}

TEST(Workload, RefusesEveryMalformedDataflowWithItsPlaceAndReason) {
  const Edit edits[] = {
      {"call: gen", "call: generate", "2:10 (algorithm.0.call)", "\"generate\"", "gen"},
      {"call: gen", "call: reshard", "2:10 (algorithm.0.call)", "\"reshard\"", "gen"},
      {"role: rollout", "role: worker", "2:21 (algorithm.0.role)", "\"worker\"", "rollout"},
      {"kind: train", "kind: learn", "5:43 (algorithm.3.kind)", "\"learn\"", "train"},
      {"inputs: [scores]", "inputs: scores", "4:51 (algorithm.2.inputs)", "\"scores\"", "a list"},
      {"inputs: [scores]", "inputs: [score]", "2:1 (algorithm)", "the input 'score'", "an output"},
      {"outputs: [scores]", "outputs: [responses]", "2:1 (algorithm)", "'responses' a second", ""},
      {"outputs: [scores]", "outputs: [prompts]", "2:1 (algorithm)", "'prompts'", "another name"},
      {"call: reward", "call: gen", "2:1 (algorithm)", "the call a second time", "once"},
      {"inputs: [prompts]", "inputs: [advantages]", "2:1 (algorithm)",
       "a cycle through gen, reward", "order"},
      {"prompts_per_step: 8", "prompts_per_step: 8\nkl: loss", "7:5 (kl)", "\"loss\"", "none"},
  };
  expect_refused(kCustom, edits, [](const std::string& text, Problems& problems) {
    return parse_workload(text, "w.yaml", problems).has_value();
  });
}

}  // namespace
}  // namespace tessera
