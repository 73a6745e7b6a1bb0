#include "cost_models/spec/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <string>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/lengths.h"
#include "cost_models/spec/length_table.h"
#include "cost_models/spec/spec_document.h"
#include "tests/cost_models/documents/malformed.h"

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

std::string with_prompts(const std::string& prompts) {
  std::string text = kGood;
  return text.replace(text.find("prompt_tokens: 128"), 18, "prompt_tokens: " + prompts);
}

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
  for (const std::string& text :
       {std::string(kGood), std::string(kCustom), with_prompts("{mean: 100, max: 900}")}) {
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

/// The number of former files is the mean and the longest, and stays a number where they are equal.
TEST(Workload, PromptsAreOneNumberOrAMeanAndALongest) {
  Problems problems;
  const Workload one = *parse_workload(kGood, "w.yaml", problems);
  EXPECT_EQ(one.longest_prompt(), 128);
  EXPECT_EQ(longest_sequence(one), 128 + 512);
  const auto two = parse_workload(with_prompts("{mean: 100, max: 1024}"), "w.yaml", problems);
  ASSERT_TRUE(two) << to_string(problems.at(0));
  EXPECT_EQ(two->prompt_tokens, 100);
  EXPECT_EQ(two->longest_prompt(), 1024);
  EXPECT_EQ(longest_sequence(*two), 1024 + 512);
  EXPECT_EQ(*parse_workload(with_prompts("{mean: 128, max: 128}"), "w.yaml", problems), one);
  EXPECT_EQ(to_node(one).find("prompt_tokens")->kind, Node::Kind::integer);
  const Node written = to_node(*two);
  const auto document = parse_json(json_text(written), "w.json", problems);
  ObjectReader reader(*document, problems);
  Workload again = workload_from(reader, Defaults::refused);
  again.dataflow = two->dataflow;
  EXPECT_EQ(again, *two);
  EXPECT_TRUE(problems.empty());
}

TEST(Workload, PromptsThatAreNoneAreRefusedAtTheirPlace) {
  const auto told = [](const std::string& prompts) {
    Problems problems;
    EXPECT_FALSE(parse_workload(with_prompts(prompts), "w.yaml", problems)) << prompts;
    std::string all;
    for (const Problem& problem : problems) all += to_string(problem) + "\n";
    return all;
  };
  using testing::AllOf;
  using testing::HasSubstr;
  EXPECT_THAT(told("{mean: 200, max: 100}"),
              AllOf(HasSubstr("w.yaml:5:"), HasSubstr("prompt_tokens.mean"),
                    HasSubstr("at most max = 100")));
  EXPECT_THAT(told("{mean: 200, maxx: 300}"),
              AllOf(HasSubstr("unknown key"), HasSubstr("did you mean"), HasSubstr("max")));
  EXPECT_THAT(told("{max: 300}"), HasSubstr("prompt_tokens.mean"));
  EXPECT_THAT(told("{mean: 0, max: 300}"), HasSubstr("prompt_tokens.mean"));
  EXPECT_THAT(told("{mean: 1.5, max: 300}"), HasSubstr("prompt_tokens.mean"));
  EXPECT_THAT(told("{mean: 1, max: 99999999999}"), HasSubstr("prompt_tokens.max"));
  EXPECT_THAT(told("[1, 2]"), HasSubstr("prompt_tokens"));
  EXPECT_THAT(told("long"), HasSubstr("prompt_tokens"));
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

TEST(Workload, TellsAllThatIsWrongWithAFileAtOnce) {
  Problems problems;
  EXPECT_FALSE(
      parse_workload("algorithm: pppo\nprompts_per_step: 0\nprompts_per_step: 8\n"
                     "prompt_tokens: .inf\nresponse_tokens: {max: 8, mean: -1, cvv: 1}\n"
                     "epochs: !!int 2\nkl: lost\nmini_batch: 3\n",
                     "w.yaml", problems));
  std::vector<std::string> found;
  for (const Problem& problem : problems) found.push_back(problem.found);
  EXPECT_THAT(found, testing::UnorderedElementsAre("the key 'prompts_per_step' again", ".inf",
                                                   "the tag 'tag:yaml.org,2002:int'", "\"pppo\"",
                                                   "0", "-1", "the unknown key 'cvv'", "\"lost\"",
                                                   "the unknown key 'mini_batch'"));
}

TEST(Workload, RefusesEveryMalformedFileWithItsPlaceAndReason) {
  const Edit edits[] = {
      {"algorithm: ppo\n", "", "1:1 (algorithm)", "no 'algorithm'", "ppo, grpo"},
      {"algorithm: ppo", "algorithm: pppo", "2:12 (algorithm)", "\"pppo\"", "ppo, grpo"},
      {"algorithm: ppo", "algorithm: 3", "2:12 (algorithm)", "3", "ppo, grpo"},
      {"algorithm: ppo", "algorithm: [gen]", "2:13 (algorithm.0)", "\"gen\"", "a map"},
      {"prompts_per_step: 64", "prompts_per_step: 0", "3:19", "0", "an integer from 1"},
      {"prompts_per_step: 64", "prompts_per_step: 64.5", "3:19", "64.5", "an integer from 1"},
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
      {"cv: 0.5", "cv: -0.5", "8:7 (response_tokens.cv)", "-0.5", "from 0 to 100"},
      {"cv: 0.5", "std: 0.5", "8:8 (response_tokens.std)", "'std'", "a known key"},
      {"max: 512", "max: 0", "9:8 (response_tokens.max)", "0", "an integer from 1"},
      {"cv: 0.5", "csv: lengths.csv", "7:9 (response_tokens.mean)", "'mean'", "a known key"},
      {"mini_batches: 4", "mini_batches: 3", "10:15 (mini_batches)", "3", "a divisor"},
      {"epochs: 2", "epochs: 0", "11:9 (epochs)", "0", "from 1 to 1024"},
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

TEST(Workload, TellsABadNumberAndAnUnknownKeyOfTheSameFile) {
  std::string text = kGood;
  text.replace(text.find("64"), 2, "9223372036854775808");
  text += "colour: red\n";
  Problems problems;
  EXPECT_FALSE(parse_workload(text, "w.yaml", problems));
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].found, "9223372036854775808");
  EXPECT_EQ(problems[0].expected, "an integer of 64 bits");
  EXPECT_EQ(problems[1].found, "the unknown key 'colour'");
}

// A workload beside its table of lengths, in a folder of its own.
class LengthTable : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::optional<Workload> read(const std::string& table, const std::string& more,
                               Problems& problems) const {
    std::ofstream(folder_ / "lengths.csv") << table;
    std::ofstream(folder_ / "w.yaml") << "algorithm: grpo\nprompts_per_step: 8\nprompt_tokens: 16\n"
                                         "response_tokens: {csv: lengths.csv"
                                      << more << "}\n";
    return read_workload(folder_ / "w.yaml", problems);
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("tessera-lengths-" + std::to_string(getpid()));
};

TEST_F(LengthTable, GivesMeanDeviationLongestAndTheLengthsThemselves) {
  Problems problems;
  const auto workload = read("prompt,response_tokens\n0,30\n0,10\n1,20\n1,100.0\n", "", problems);
  ASSERT_TRUE(workload) << (problems.empty() ? "" : to_string(problems[0]));
  const LengthSpec& lengths = workload->response_tokens;
  EXPECT_EQ(lengths.quantiles, (std::vector<std::int64_t>{10, 20, 30, 100}));
  EXPECT_EQ(lengths.max, 100);
  EXPECT_DOUBLE_EQ(lengths.mean, 40);
  EXPECT_DOUBLE_EQ(lengths.cv, std::sqrt(1250.0) / 40);
  // Against sums over the rows.
  EXPECT_DOUBLE_EQ(mean_length(lengths), 40);
  EXPECT_NEAR(mean_square_length(lengths), (900 + 100 + 400 + 10000) / 4.0, 1e-9);
  EXPECT_DOUBLE_EQ(survival(lengths, 0), 1);
  EXPECT_DOUBLE_EQ(survival(lengths, 10), 0.75);
  EXPECT_DOUBLE_EQ(survival(lengths, 99.5), 0.25);
  EXPECT_DOUBLE_EQ(survival(lengths, 100), 0);
  EXPECT_DOUBLE_EQ(length_horizon(lengths, 1e6), 100);
  // A plan's file says the same.
  Problems again;
  const auto text = json_text(to_node(*workload));
  const auto document = parse_json(text, "plan", again);
  ASSERT_TRUE(document);
  ObjectReader reader(*document, again);
  EXPECT_EQ(workload_from(reader, Defaults::refused).response_tokens, lengths);
  EXPECT_TRUE(again.empty());
}

TEST_F(LengthTable, KeepsTheMomentsAndTheTailOfALongOne) {
  std::string table = "tokens\n";
  double sum = 0;
  for (int i = 1; i <= 5000; ++i) {
    const int tokens = i == 5000 ? 90000 : i;
    table += std::to_string(tokens) + "\n";
    sum += tokens;
  }
  Problems problems;
  const auto workload = read(table, ", max: 100000", problems);
  ASSERT_TRUE(workload);
  const LengthSpec& lengths = workload->response_tokens;
  EXPECT_EQ(lengths.quantiles.size(), kMostQuantiles);
  EXPECT_EQ(lengths.quantiles.back(), 90000);
  EXPECT_EQ(lengths.max, 100000);
  EXPECT_DOUBLE_EQ(lengths.mean, sum / 5000);
  EXPECT_NEAR(survival(lengths, 2500), 0.5, 0.002);
}

TEST_F(LengthTable, RefusesEveryCellThatIsNoLength) {
  Problems problems;
  EXPECT_FALSE(read("response_tokens\n12\n0\nmany\n1.5\n", "", problems));
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].place, "3 (response_tokens)");
  EXPECT_EQ(problems[1].place, "4 (response_tokens)");
  EXPECT_EQ(problems[1].found, "'many'");
  EXPECT_EQ(problems[2].place, "5 (response_tokens)");
  EXPECT_NE(problems[0].file.find("lengths.csv"), std::string::npos);
  problems.clear();
  EXPECT_FALSE(read("a,b\n1,2\n", "", problems));
  EXPECT_NE(to_string(problems.at(0)).find("no column 'response_tokens'"), std::string::npos);
  problems.clear();
  EXPECT_FALSE(read("response_tokens\n", "", problems));
  EXPECT_EQ(problems.at(0).found, "no row");
  problems.clear();
  EXPECT_FALSE(read("response_tokens\n50\n", ", max: 40", problems));
  EXPECT_NE(to_string(problems.at(0)).find("at least the table's longest, 50"), std::string::npos);
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
