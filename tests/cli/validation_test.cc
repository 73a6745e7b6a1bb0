// Validation during runs on four CPU ranks: what it reports, and that training does not notice it.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/cli/programs.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

const std::string kMean = "val-core/tessera/reverse/acc/mean@3";
const std::string kReward = "val-aux/tessera/reverse/reward/mean@3";

class ValidationRun : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    ASSERT_EQ(run("make-data --task reverse --digits 3 --count 12 --seed 9 -o " + at("val.jsonl")),
              0);
  }

  /// Four steps of GRPO with checkpoints, which validate where `files` is set.
  static int train_four(const std::string& name, const std::string& more) {
    return train(name, 4, "--set trainer.save_freq=1 " + more);
  }
  /// Drawn answers, three a prompt, every second step.
  static std::string validating() {
    return "--set 'data.val_files=[" + at("val.jsonl") + "]' --set trainer.test_freq=2 " +
           "--set 'actor_rollout_ref.rollout.val_kwargs={do_sample: true, temperature: 1, n: 3}' ";
  }
  static const std::string& validated() {
    static const std::string name = [] {
      EXPECT_EQ(train_four("validated", validating()), 0);
      return std::string("validated");
    }();
    return name;
  }

  static std::map<std::int64_t, std::map<std::string, double>> numbers(const std::string& name) {
    Problems problems;
    const auto read = read_metrics(folder_ / name / "metrics.jsonl", problems);
    std::map<std::int64_t, std::map<std::string, double>> by_step;
    for (const StepNumbers& step : read.value()) {
      EXPECT_TRUE(by_step.emplace(step.step, step.data).second) << "step " << step.step << " twice";
    }
    return by_step;
  }
  static std::vector<Json> answers(const std::string& name, int step) {
    std::istringstream in(
        text_of(folder_ / name / "validation" / (std::to_string(step) + ".jsonl")));
    std::vector<Json> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
    return lines;
  }
};

TEST_F(ValidationRun, TrainingHasTheSameBitsWithAndWithoutIt) {
  ASSERT_EQ(train_four("plain", ""), 0);
  const auto with = numbers(validated()), without = numbers("plain");
  for (const auto& [step, data] : without) {
    for (const char* key : {"actor/pg_loss", "actor/grad_norm", "critic/score/mean"}) {
      EXPECT_EQ(data.at(key), with.at(step).at(key)) << key << " of step " << step;
    }
    EXPECT_EQ(data.count("timing_s/testing"), 0u);
  }
  EXPECT_TRUE(text_of(folder_ / "plain/samples.jsonl") ==
              text_of(folder_ / validated() / "samples.jsonl"));
  EXPECT_TRUE(text_of(folder_ / "plain/hf/model.safetensors") ==
              text_of(folder_ / validated() / "hf/model.safetensors"));
  EXPECT_FALSE(fs::exists(folder_ / "plain/validation"));
}

TEST_F(ValidationRun, ItsNumbersAreThoseOfTheAnswersInItsFiles) {
  const auto by_step = numbers(validated());
  EXPECT_EQ(by_step.size(), 5u) << "four steps, and the validation before them as step 0";
  for (const int step : {0, 2, 4}) {
    const std::vector<Json> lines = answers(validated(), step);
    ASSERT_EQ(lines.size(), 36u) << "12 prompts, 3 answers each";
    double sum = 0;
    std::set<std::string> inputs, outputs;
    for (const Json& line : lines) {
      sum += line.at("score").get<double>();
      inputs.insert(line.at("input").get<std::string>());
      outputs.insert(line.at("output").get<std::string>());
      EXPECT_EQ(line.at("step").get<int>(), step);
    }
    EXPECT_EQ(inputs.size(), 12u);
    EXPECT_GT(outputs.size(), 12u) << "answers are drawn, each with numbers of its own";
    EXPECT_NEAR(by_step.at(step).at(kMean), sum / 36, 1e-9) << step;
    EXPECT_GT(by_step.at(step).at("timing_s/testing"), 0);
    EXPECT_EQ(by_step.at(step).at(kReward), by_step.at(step).at(kMean));
    EXPECT_GE(by_step.at(step).at("val-core/tessera/reverse/acc/best@3/mean"),
              by_step.at(step).at(kMean));
  }
  for (const int step : {1, 3}) EXPECT_EQ(by_step.at(step).count(kMean), 0u);
  EXPECT_NE(answers(validated(), 0)[0].at("response_ids"),
            answers(validated(), 4)[0].at("response_ids"))
      << "each validation draws anew";
}

/// The rule gives a plain number: its accuracy is that number, whatever the length costs.
TEST_F(ValidationRun, TheAccuracyIsTheScoreWithoutItsShaping) {
  ASSERT_EQ(
      train("shaped", 1,
            validating() + "--set trainer.val_only=true --set reward.reward_manager.name=dapo "
                           "--set reward.reward_kwargs.overlong_buffer_cfg.enable=true "
                           "--set reward.reward_kwargs.overlong_buffer_cfg.len=2"),
      0);
  const auto shaped = numbers("shaped").at(0), plain = numbers(validated()).at(0);
  EXPECT_EQ(shaped.at(kMean), plain.at(kMean)) << "the same answers";
  EXPECT_LT(shaped.at(kReward), plain.at(kReward) - 0.1);
}

/// An answer without a score is as wrong as one that has 0 of it.
TEST_F(ValidationRun, AnAnswerThatFailsIsInTheMeanOfTheAccuracy) {
  std::ofstream(at("odd.py"))
      << "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
         "    if extra_info['index'] % 2: raise ValueError('odd')\n"
         "    return 1\n";
  ASSERT_EQ(
      train("odd", 1,
            validating() + "--set trainer.val_only=true --set 'reward={custom_reward_function: " +
                "{path: " + at("odd.py") + "}}'"),
      0);
  EXPECT_EQ(numbers("odd").at(0).at(kMean), 0.5);
  EXPECT_EQ(numbers("odd").at(0).at(kReward), 0.5);
}

/// The same weights, read from the checkpoint of step 2 into a run that does nothing else.
TEST_F(ValidationRun, ACheckpointIsValidatedAlone) {
  const std::string from = at(validated()) + "/checkpoints/global_step_2";
  ASSERT_EQ(train("alone", 4,
                  validating() +
                      "--set trainer.val_only=true --set "
                      "trainer.resume_mode=resume_path --set trainer.resume_from_path=" +
                      from),
            0);
  const auto alone = numbers("alone");
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone.at(2).at(kMean), numbers(validated()).at(2).at(kMean));
  EXPECT_EQ(answers("alone", 2), answers(validated(), 2));
  EXPECT_FALSE(fs::exists(folder_ / "alone/hf"));
}

TEST_F(ValidationRun, GreedyAnswersAreTheMostLikelyOnes) {
  ASSERT_EQ(train("greedy", 1,
                  "--set data.val_files=" + at("val.jsonl") +
                      " --set trainer.val_only=true "
                      "--set actor_rollout_ref.rollout.val_kwargs.n=2"),
            0);
  const std::vector<Json> lines = answers("greedy", 0);
  ASSERT_EQ(lines.size(), 24u);
  for (std::size_t i = 0; i < lines.size(); i += 2) {
    EXPECT_EQ(lines[i].at("response_ids"), lines[i + 1].at("response_ids"));
  }
  EXPECT_NE(
      text_of(at("greedy/log.txt")).find("n is 2 without do_sample: the 2 answers of a prompt"),
      std::string::npos);
}

/// The newest checkpoint and the best one by a number of the validation stay.
TEST_F(ValidationRun, TheBestCheckpointIsThatOfTheBestValidation) {
  ASSERT_EQ(train("best", 4,
                  validating() +
                      "--set trainer.test_freq=1 --set trainer.save_freq=1 "
                      "--set trainer.max_actor_ckpt_to_keep=1 "
                      "--set trainer.save_top_k=1 --set trainer.monitor_mode=min "
                      "--set trainer.monitor=" +
                      kMean),
            0);
  std::int64_t best = 1;
  const auto by_step = numbers("best");
  for (std::int64_t step = 2; step <= 3; ++step) {
    if (by_step.at(step).at(kMean) <= by_step.at(best).at(kMean)) best = step;
  }
  std::set<std::string> kept;
  for (const auto& entry : fs::directory_iterator(folder_ / "best/checkpoints")) {
    if (entry.path().filename().string().starts_with("global_step_")) {
      kept.insert(entry.path().filename().string());
    }
  }
  // No step has shown yet that the last one is sound.
  EXPECT_EQ(kept, (std::set<std::string>{"global_step_" + std::to_string(best), "global_step_3",
                                         "global_step_4"}));
}

/// A stop while answers are scored: what is computed to its end is kept, and what is not is made
/// when the run goes on, which is then the run that nobody stopped.
TEST_F(ValidationRun, AStopInAValidationLosesNoneOfItsNumbers) {
  std::ofstream(at("asking.py"))
      << "import os, pathlib, time\n"
         "seen = 0\n"
         "def compute_score(data_source, solution_str, ground_truth, extra_info, folder, run):\n"
         "    global seen\n"
         "    if data_source != 'held-out': return 0.5\n"
         "    seen += 1\n"
         "    waits = pathlib.Path(folder) / 'waits'\n"
         "    if seen == 12: pathlib.Path(run, 'stop').touch()\n"
         "    while seen == 12 and waits.exists(): time.sleep(0.01)\n"
         "    return float(len(solution_str) % 3)\n";
  std::string held_out = text_of(at("val.jsonl"));
  for (std::size_t p = 0; (p = held_out.find("tessera/reverse", p)) != std::string::npos;) {
    held_out.replace(p, std::string("tessera/reverse").size(), "held-out");
  }
  std::ofstream(at("held-out.jsonl")) << held_out;
  const auto train_asking = [&](const std::string& name, const std::string& more) {
    return train(name, 2,
                 "--set 'data.val_files=[" + at("held-out.jsonl") +
                     "]' --set trainer.test_freq=1 --set trainer.val_before_train=false "
                     "--set 'reward={workers: {sandbox: none}, num_workers: 1, "
                     "custom_reward_function: {path: " +
                     at("asking.py") + ", reward_kwargs: {folder: " + at("") +
                     ", run: " + at(name) + "}}}' " + more);
  };
  const std::string key = "val-aux/held-out/reward/mean@1";
  fs::create_directories(folder_ / "elsewhere");
  std::vector<std::map<std::string, double>> wanted;
  for (const std::string name : {"kept", "cut"}) {
    if (name == "cut") std::ofstream(at("waits")) << "";
    ASSERT_EQ(train_asking(name, ""), 130) << text_of(folder_ / name / "log.txt");
    fs::remove(at("waits"));
    const bool whole = fs::exists(folder_ / name / "validation/1.jsonl");
    EXPECT_TRUE(name == "kept" || !whole);
    // The second time as after a kill: from the same checkpoint, which owes its validation still.
    for (int again = 0; again < 2; ++again) {
      ASSERT_EQ(
          train_asking(name, "--resume --set reward.custom_reward_function.reward_kwargs.run=" +
                                 at("elsewhere")),
          0)
          << text_of(folder_ / name / "log.txt");
    }
    std::vector<double> values;
    for (const auto& [step, data] : numbers(name)) {
      EXPECT_TRUE(data.contains("actor/pg_loss")) << "of step " << step;
      if (data.contains(key)) values.push_back(data.at(key));
    }
    EXPECT_EQ(values.size(), 2u) << name << ", whole " << whole;
    EXPECT_TRUE(fs::exists(folder_ / name / "validation/1.jsonl")) << name;
    wanted.push_back({{"first", values.at(0)}, {"second", values.at(1)}});
  }
  EXPECT_EQ(wanted.at(0), wanted.at(1));
}

/// Killed in its first steps a run begins again, and so does its first validation.
TEST_F(ValidationRun, ARunThatBeginsAgainHasOneLineOfItsFirstValidation) {
  fs::copy(folder_ / validated(), folder_ / "again", fs::copy_options::recursive);
  fs::remove_all(folder_ / "again/checkpoints");
  ASSERT_EQ(train("again", 1, "--resume " + validating()), 0);
  const auto by_step = numbers("again"), whole = numbers(validated());
  ASSERT_EQ(by_step.size(), 2u);
  EXPECT_EQ(by_step.at(0).at(kMean), whole.at(0).at(kMean));
  EXPECT_EQ(by_step.at(1).at("actor/pg_loss"), whole.at(1).at("actor/pg_loss"));
}

/// A number that no step has cannot rank checkpoints, which is said, once.
TEST_F(ValidationRun, AMonitorThatNoStepHasIsTold) {
  ASSERT_EQ(train("unranked", 2,
                  "--set trainer.save_freq=1 --set trainer.max_actor_ckpt_to_keep=1 --set "
                  "trainer.save_top_k=1 "
                  "--set trainer.monitor=actor/pg_losss"),
            0);
  const std::string log = text_of(folder_ / "unranked/log.txt");
  const std::string told = "[Checkpoint] step 1 has no 'actor/pg_losss' (trainer.monitor)";
  EXPECT_THAT(log, testing::HasSubstr(told));
  EXPECT_THAT(log, testing::HasSubstr("did you mean 'actor/pg_loss'?"));
  EXPECT_THAT(log, testing::Not(testing::HasSubstr("step 2 has no")));
}

/// verl 0.9.1's naive manager passes every key of a map on, and process_validation_metrics reports
/// the numbers among them, bools as well.
TEST_F(ValidationRun, EveryNumberOfAPythonRewardIsReported) {
  std::ofstream(at("reward.py"))
      << "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
         "    return {'score': 0.5, 'acc': 0.25, 'three': solution_str != '', 'four': 4, 'text': "
         "'x'}\n";
  ASSERT_EQ(train("numbers", 1,
                  validating() +
                      "--set 'reward={custom_reward_function: {path: " + at("reward.py") + "}}'"),
            0);
  const auto last = numbers("numbers").at(0);
  const std::string source = "tessera/reverse/";
  EXPECT_EQ(last.at("val-core/" + source + "acc/mean@3"), 0.25);
  EXPECT_EQ(last.at("val-aux/" + source + "score/mean@3"), 0.5);
  EXPECT_EQ(last.at("val-aux/" + source + "four/mean@3"), 4);
  EXPECT_TRUE(last.contains("val-aux/" + source + "three/best@3/mean"));
  EXPECT_FALSE(last.contains("val-aux/" + source + "text/mean@3"));
}

}  // namespace
}  // namespace tessera
