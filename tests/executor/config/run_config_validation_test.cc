// What a run.yaml says of validation.
#include <gtest/gtest.h>

#include <string>

#include "cost_models/documents/problem.h"
#include "executor/config/run_config.h"
#include "tests/executor/config/good_run.h"
#include "tests/planner/plan/sample_plan.h"

namespace tessera {
namespace {

/// kGoodRun with more keys in its sections.
std::string with_validation(const std::string& data, const std::string& rollout,
                            const std::string& trainer) {
  std::string text = kGoodRun;
  const auto add = [&](const std::string& behind, const std::string& keys) {
    text.insert(text.find(behind) + behind.size(), keys);
  };
  add("train_files: [a.jsonl]\n", data);
  add("    top_p: 0.9\n", rollout);
  add("  seed: 7\n", trainer);
  return text;
}

TEST(RunConfig, ValidationHasVerlsKeysAndDefaults) {
  Problems problems;
  const auto plain = parse_run_config(kGoodRun, "run.yaml", sample_plan(), problems);
  ASSERT_TRUE(plain);
  EXPECT_TRUE(plain->validation.files.empty());
  EXPECT_EQ(plain->validation.sampling.temperature, 0);
  EXPECT_EQ(plain->validation.samples, 1);
  EXPECT_EQ(plain->validation.freq, -1);
  EXPECT_TRUE(plain->validation.before_train);
  const auto set = parse_run_config(
      with_validation("  val_files: v.parquet\n  val_max_samples: 9\n",
                      "    min_p: 0.05\n    val_kwargs: {do_sample: true, temperature: 0.6, top_p: "
                      "0.95, min_p: 0.1, n: 4}\n",
                      "  test_freq: 5\n  val_before_train: false\n  validation_data_dir: d\n"
                      "  max_actor_ckpt_to_keep: 1\n  save_top_k: 1\n"
                      "  monitor: val-core/s/reward/mean@4\n"),
      "run.yaml", sample_plan(), problems);
  ASSERT_TRUE(set) << to_string(problems.at(0));
  EXPECT_EQ(set->validation.files, (std::vector<std::filesystem::path>{"v.parquet"}));
  EXPECT_EQ(set->validation.most_prompts, 9);
  EXPECT_EQ(set->validation.sampling.temperature, 0.6);
  EXPECT_EQ(set->rollout.sampling.min_p, 0.05);
  EXPECT_EQ(set->validation.sampling.top_p, 0.95);
  EXPECT_EQ(set->validation.sampling.min_p, 0.1);
  EXPECT_EQ(set->validation.samples, 4);
  EXPECT_EQ(set->validation.freq, 5);
  EXPECT_FALSE(set->validation.before_train);
  EXPECT_EQ(set->validation.samples_folder, "d");
}

TEST(RunConfig, AValidationThatCannotBeIsRefused) {
  const auto refused = [](const std::string& data, const std::string& rollout,
                          const std::string& trainer) {
    Problems problems;
    parse_run_config(with_validation(data, rollout, trainer), "run.yaml", sample_plan(), problems);
    return problems.size() == 1 ? problems[0].expected : std::to_string(problems.size());
  };
  EXPECT_EQ(refused("", "", "  test_freq: 5\n"),
            "data.val_files, the prompts that a validation answers");
  const std::string monitor = "  monitor: val-core/s/reward/mean@1\n";
  EXPECT_EQ(refused("", "", monitor), "2") << "neither key that it needs";
  EXPECT_EQ(refused("  val_files: v\n", "", monitor),
            "trainer.test_freq beside trainer.monitor: val-core/s/reward/mean@1, which validations "
            "measure");
  Problems problems;
  parse_run_config(with_validation("  val_files: v\n", "", "  save_freq: 4\n" + monitor),
                   "mine.yaml", sample_plan(), problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(to_string(problems[0]).find("found no test_freq"), std::string::npos);
  EXPECT_NE(problems[0].hint.find("test_freq: 4 validates"), std::string::npos);
  EXPECT_EQ(refused("  val_files: v\n", "    val_kwargs: {do_sample: true}\n", ""),
            "a number above 0 with do_sample: true");
  EXPECT_EQ(refused("  val_files: v\n", "    val_kwargs: {temperature: 1}\n", ""),
            "true beside a temperature above 0");
  EXPECT_EQ(refused("  val_files: []\n", "", ""), "at least one file");
  EXPECT_EQ(refused("  val_files: v\n", "", "  test_freq: 0\n"), "1 or more, or -1 for never");
}

}  // namespace
}  // namespace tessera
