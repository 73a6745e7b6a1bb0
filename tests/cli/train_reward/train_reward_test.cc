// tessera train-reward on CPU ranks: it learns to tell right answers from wrong ones, goes on from
// a checkpoint in another layout, and leaves what transformers loads and a run scores with.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"
#include "simulator/timeline/rank_status.h"
#include "tests/cli/called.h"
#include "tests/cli/programs.h"
#include "tests/cli/running_program.h"
#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class TrainReward : public ProgramTest {
 protected:
  /// Pairs whose better answer is the larger digit, twice; the prompt is two digits.
  static void write_pairs(const std::string& name, int count, unsigned seed) {
    std::ofstream out(at(name));
    std::minstd_rand random(seed);
    for (int i = 0; i < count; ++i) {
      const int a = static_cast<int>(random() % 10);
      const int b = (a + 1 + static_cast<int>(random() % 9)) % 10;
      const auto twice = [](int digit) { return std::string(2, static_cast<char>('0' + digit)); };
      out << R"({"prompt": ")" << a << b << R"(", "chosen": ")" << twice(std::max(a, b))
          << R"(", "rejected": ")" << twice(std::min(a, b)) << "\"}\n";
    }
  }

  static Called train(const std::string& more, const std::string& output) {
    return call("train-reward " + at("pairs.jsonl") + " --model " + at("model") +
                " --lr 3e-3 --batch 32 --seed 5 --device cpu " + more + " -o " + at(output));
  }

  static std::vector<StepNumbers> steps_of(const std::string& name) {
    Problems problems;
    return read_metrics(folder_ / name / "metrics.jsonl", problems).value();
  }

  void SetUp() override {
    write_pairs("pairs.jsonl", 256, 1);
    write_pairs("held-out.jsonl", 64, 2);
  }
};

/// Loads the folder as a classifier and prints the mean difference of the scores of a file's pairs;
/// counts the tokens of those that it was trained on.
constexpr const char* kMargin = R"(
import json, sys, torch, transformers
folder, pairs, expected = sys.argv[1], sys.argv[2], float(sys.argv[3])
trained, tokens = sys.argv[4], float(sys.argv[5])
model, info = transformers.AutoModelForSequenceClassification.from_pretrained(
    folder, output_loading_info=True, dtype=torch.float32)
assert not info['missing_keys'] and not info['unexpected_keys'], info
assert model.config.num_labels == 1
tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
def ids(pair, which):
    prompt = tokenizer(pair['prompt'])['input_ids']
    return prompt + tokenizer(pair[which], add_special_tokens=False)['input_ids'] + [model.config.eos_token_id]
def score(pair, which):
    return model(torch.tensor([ids(pair, which)])).logits.item()
rows = [json.loads(line) for line in open(pairs)]
with torch.no_grad():
    margin = sum(score(r, 'chosen') - score(r, 'rejected') for r in rows) / len(rows)
print(margin, expected)
assert abs(margin - expected) < 1e-3 * max(1, abs(expected))
# Several at once are scored alike, whatever pads them.
two = [ids(r, 'chosen') for r in rows[:8]]
longest = max(map(len, two))
padded = torch.tensor([x + [model.config.pad_token_id] * (longest - len(x)) for x in two])
mask = torch.tensor([[1] * len(x) + [0] * (longest - len(x)) for x in two])
with torch.no_grad():
    together = model(padded, attention_mask=mask).logits[:, 0].tolist()
    alone = [score(r, 'chosen') for r in rows[:8]]
assert max(abs(a - b) for a, b in zip(together, alone)) < 1e-4, (together, alone)
counted = sum(len(ids(json.loads(line), key)) for line in open(trained) for key in ('chosen', 'rejected'))
assert counted == tokens, (counted, tokens)
)";

TEST_F(TrainReward, ANumberThatIsNoneIsToldInPlainWords) {
  for (const char* rate : {"abc", "0", "nan", "1e999"}) {
    const Called refused = call("train-reward " + at("pairs.jsonl") + " --model " + at("model") +
                                " --lr " + rate + " -o " + at("no-rate"));
    EXPECT_EQ(refused.code, 64);
    EXPECT_THAT(refused.out,
                HasSubstr("found '" + std::string(rate) + "', expected a number above 0"));
  }
}

/// The rank's state once it has begun a step behind `step`, of another process than `but`.
std::optional<RankStatus> rank_behind(const fs::path& file, std::int64_t step, pid_t but,
                                      RunningProgram& program) {
  using namespace std::chrono_literals;
  for (int look = 0; look < 12000 && !program.ended(); ++look, std::this_thread::sleep_for(10ms)) {
    std::optional<RankStatus> rank = read_rank_status(file);
    if (rank && rank->step > step && rank->pid != but) return rank;
  }
  return std::nullopt;
}

TEST_F(TrainReward, ARankThatIsKilledIsNamedAndTheTrainingGoesOn) {
  using namespace std::chrono_literals;
  RunningProgram program({kTessera, "train-reward", at("pairs.jsonl"), "--model", at("model"),
                          "--batch", "32", "--device", "cpu", "--ranks", "2", "--save-freq", "2",
                          "--steps", "100000", "-o", at("killed")},
                         at("killed.out"));
  const auto victim = rank_behind(folder_ / "killed/ranks/1", 4, 0, program);
  ASSERT_TRUE(victim) << program.messages();
  ASSERT_EQ(::kill(victim->pid, SIGKILL), 0);
  EXPECT_EQ(program.wait(60s), 75) << program.messages();
  EXPECT_THAT(program.messages(), HasSubstr("tessera: lost rank 1 in phase "));
  EXPECT_THAT(program.messages(), HasSubstr("; the newest checkpoint is of step "));
  EXPECT_THAT(program.messages(), HasSubstr(", from which --resume goes on"));
  EXPECT_THAT(call("doctor " + at("killed")).out, HasSubstr("its own command with --resume"));
}

/// With --restarts it ends as if nobody had killed a rank, its model bit for bit.
TEST_F(TrainReward, KilledRanksAreStartedAgain) {
  using namespace std::chrono_literals;
  const std::string more = "--ranks 2 --steps 120 --save-freq 5";
  ASSERT_EQ(train(more, "undisturbed").code, 0);
  RunningProgram program({kTessera,
                          "train-reward",
                          at("pairs.jsonl"),
                          "--model",
                          at("model"),
                          "--lr",
                          "3e-3",
                          "--batch",
                          "32",
                          "--seed",
                          "5",
                          "--device",
                          "cpu",
                          "--ranks",
                          "2",
                          "--steps",
                          "120",
                          "--save-freq",
                          "5",
                          "--restarts",
                          "2",
                          "-o",
                          at("restarted")},
                         at("restarted.out"));
  pid_t before = 0;
  for (const std::int64_t step : {12, 24}) {
    const auto victim = rank_behind(folder_ / "restarted/ranks/1", step, before, program);
    ASSERT_TRUE(victim) << program.messages();
    ASSERT_EQ(::kill(victim->pid, SIGKILL), 0);
    before = victim->pid;
  }
  EXPECT_EQ(program.wait(120s), 0) << program.messages();
  EXPECT_THAT(program.messages(), HasSubstr("restart 2 of 2, from the newest checkpoint"));
  EXPECT_TRUE(text_of(folder_ / "restarted/hf/model.safetensors") ==
              text_of(folder_ / "undisturbed/hf/model.safetensors"));
  EXPECT_EQ(steps_of("restarted").size(), 120U);
}

TEST_F(TrainReward, LearnsToTellAnswersApartAndTransformersScoresAlike) {
  const Called called = train(
      "--ranks 2 --epochs 8 --validation " + at("held-out.jsonl") + " --test-freq 20", "learned");
  ASSERT_EQ(called.code, 0) << called.out;
  const std::vector<StepNumbers> steps = steps_of("learned");
  ASSERT_EQ(steps.size(), 64U);
  EXPECT_NEAR(steps.front().data.at("reward_model/loss"), 0.693, 0.05);
  EXPECT_GT(steps.back().data.at("val/accuracy"), 0.9);
  EXPECT_TRUE(steps[19].data.contains("val/margin"));
  EXPECT_FALSE(steps[20].data.contains("val/margin"));
  EXPECT_THAT(text_of(folder_ / "learned/hf/config.json"),
              HasSubstr("Qwen2ForSequenceClassification"));
  const std::string python = python_with("transformers");
  if (python.empty()) GTEST_SKIP() << "no Python with transformers";
  std::ofstream(at("margin.py")) << kMargin;
  double tokens = 0;  // of an epoch
  for (std::size_t i = 0; i < 8; ++i) tokens += steps[i].data.at("perf/total_num_tokens");
  EXPECT_EQ(
      run_python(python, at("margin.py") + " " + at("learned/hf") + " " + at("held-out.jsonl") +
                             " " + std::to_string(steps.back().data.at("val/margin")) + " " +
                             at("pairs.jsonl") + " " + std::to_string(tokens)),
      0);
}

TEST_F(TrainReward, GoesOnFromACheckpointInAnotherLayout) {
  ASSERT_EQ(train("--steps 6", "whole").code, 0);
  ASSERT_EQ(train("--steps 4 --save-freq 2 --ranks 2 --layout tp=2", "parts").code, 0);
  const Called again = train("--steps 6 --ranks 2 --layout pp=2", "parts");
  EXPECT_EQ(again.code, 65);
  EXPECT_EQ(again.out,
            "tessera: " + at("parts") + ": found it exists, expected a new folder, or --resume\n")
      << "nothing of the launcher's";
  const Called resumed = train("--steps 6 --ranks 2 --layout pp=2 --resume", "parts");
  ASSERT_EQ(resumed.code, 0) << resumed.out;
  EXPECT_THAT(resumed.out, HasSubstr("[Resume] from step 4"));
  const std::vector<StepNumbers> whole = steps_of("whole"), parts = steps_of("parts");
  ASSERT_EQ(whole.size(), 6U);
  ASSERT_EQ(parts.size(), 6U);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(parts[i].step, whole[i].step);
    EXPECT_NEAR(parts[i].data.at("reward_model/loss"), whole[i].data.at("reward_model/loss"), 1e-4);
  }
  write_pairs("pairs.jsonl", 128, 3);
  const Called other = train("--steps 8 --resume", "parts");
  EXPECT_EQ(other.code, 65);
  EXPECT_THAT(other.out, HasSubstr("256 pairs"));
  const Called ranks = train("--steps 8 --ranks 2 --resume", "parts");
  EXPECT_EQ(ranks.code, 65);
  EXPECT_THAT(ranks.out, HasSubstr("256 pairs"));
  EXPECT_THAT(ranks.out, Not(HasSubstr("mpirun"))) << "of ranks that a launcher has started, too";
  EXPECT_THAT(ranks.out, Not(HasSubstr("-----")));
}

TEST_F(TrainReward, IsPlannedForAClusterAndFollowsThePlan) {
  const Called checked = train("--cluster local-cpu --check", "planned");
  ASSERT_EQ(checked.code, 0) << checked.out;
  EXPECT_THAT(checked.out, AllOf(HasSubstr("update_critic"), HasSubstr("critic     0-3")));
  EXPECT_FALSE(fs::exists(folder_ / "planned"));
  ASSERT_EQ(train("--steps 4", "alone").code, 0);
  const std::vector<StepNumbers> alone = steps_of("alone");
  const auto trained = [&](const std::string& words, const std::string& name) {
    const Called called = train("--cluster local-cpu --steps 4 " + words, name);
    EXPECT_EQ(called.code, 0) << called.out;
    const std::vector<StepNumbers> steps = steps_of(name);
    EXPECT_EQ(steps.size(), alone.size());
    for (std::size_t i = 0; i < std::min(steps.size(), alone.size()); ++i) {
      EXPECT_NEAR(steps[i].data.at("reward_model/loss"), alone[i].data.at("reward_model/loss"),
                  1e-4);
    }
    Problems problems;
    auto plan = read_plan(folder_ / name / "plan.json", problems);
    EXPECT_TRUE(plan) << called.out;
    return plan.value_or(Plan{});
  };
  EXPECT_EQ(trained("", "planned").world_size(), 4);
  const Plan stated = trained(
      "--ranks 2 --layout tp=2 --recompute full --offload-optimizer --micro-batch-tokens 64",
      "stated");
  ASSERT_EQ(stated.roles.size(), 1U);
  const RolePlan& role = stated.roles.front();
  EXPECT_EQ(stated.world_size(), 2);
  EXPECT_EQ(role.layout.tp, 2);
  EXPECT_EQ(role.recompute, Recompute::full);
  EXPECT_TRUE(role.offload.optimizer);
  EXPECT_EQ(role.batching.update_tokens, 64);
  // Sequences of 2 + 2 tokens and the one that ends them: 64 in each of 8 steps.
  EXPECT_EQ(stated.workload.sequences(), 64);
  EXPECT_EQ(stated.workload.prompt_tokens + stated.workload.response_tokens.max, 6);
  const Called compared =
      call("compare " + at("planned/plan.json") + " " + at("planned") + " --warm-up 1");
  EXPECT_EQ(compared.code, 0);
  EXPECT_THAT(compared.out, AllOf(HasSubstr("values "), HasSubstr("update_critic "),
                                  HasSubstr("means over 3 steps")));
}

TEST_F(TrainReward, RefusesWhatNoPlanHolds) {
  const Called other = train("--cluster h100-8 --ranks 1", "none");
  EXPECT_EQ(other.code, 65);
  EXPECT_THAT(other.out, HasSubstr("--cluster: found h100-8, devices H100-SXM-80GB, expected"));
  const Called many = train("--cluster local-cpu --ranks 64", "none");
  EXPECT_EQ(many.code, 2);
  EXPECT_THAT(many.out, HasSubstr("critic.gpus=64"));
  const Called large =
      call("train-reward " + at("pairs.jsonl") + " --model " + at("model") +
           " --batch 32 --cluster local-cpu --ranks 1 --layout tp=2 -o " + at("none"));
  EXPECT_EQ(large.code, 64);
  EXPECT_FALSE(fs::exists(folder_ / "none"));
}

TEST_F(TrainReward, SavesBeforeItEndsOnASignal) {
  const std::string words = "train-reward " + at("pairs.jsonl") + " --model " + at("model") +
                            " --batch 32 --device cpu --ranks 2 --steps 100000 -o " + at("asked");
  const Called called =
      call(words, ">/dev/null 2>&1 & for i in $(seq 600); do test -s " + at("asked/metrics.jsonl") +
                      " && break; sleep 0.1; done; kill -USR1 $!; wait $!");
  EXPECT_EQ(called.code, 138);
  const auto step = steps_of("asked").back().step;
  EXPECT_TRUE(fs::exists(folder_ / "asked/checkpoints" / ("global_step_" + std::to_string(step))));
}

TEST_F(TrainReward, RefusesPairsThatAreNoneBeforeRanksStart) {
  std::ofstream(at("pairs.jsonl")) << R"({"prompt": "1", "chosen": "2", "rejected": "3"})"
                                   << "\n"
                                   << R"({"prompt": "1", "chosen": "2"})"
                                   << "\n";
  const Called called = train("--ranks 2", "none");
  EXPECT_EQ(called.code, 65);
  EXPECT_THAT(called.out, HasSubstr("pairs.jsonl:2:1 (/rejected): found nothing"));
  EXPECT_FALSE(fs::exists(folder_ / "none"));
  write_pairs("pairs.jsonl", 8, 1);
  EXPECT_THAT(train("", "none").out, HasSubstr("found 8 pairs"));
  EXPECT_THAT(train("--ranks 2", "none").out, HasSubstr("found 8 pairs"));
  // A model of no class that transformers has a classifier for is told before anything is trained.
  fs::copy(folder_ / "model", folder_ / "other");
  std::string config = text_of(folder_ / "other/config.json");
  const std::size_t name = config.find("Qwen2ForCausalLM");
  ASSERT_NE(name, config.npos);
  config.replace(name, 16, "Qwen2LMHeadModel");
  std::ofstream(folder_ / "other/config.json") << config;
  const Called other = call("train-reward " + at("pairs.jsonl") + " --model " + at("other") +
                            " --batch 8 --device cpu -o " + at("none"));
  EXPECT_EQ(other.code, 65);
  EXPECT_THAT(other.out, HasSubstr("/architectures"));
  EXPECT_FALSE(fs::exists(folder_ / "none"));
  EXPECT_EQ(train("--layout tp=3", "none").code, 64);
}

TEST_F(TrainReward, HasAPageThatNamesEveryOption) {
  const std::string page = text_of(TESSERA_SOURCE_DIR "/docs/commands/train-reward.md");
  const std::string help = call("train-reward --help").out;
  std::size_t options = 0;
  for (std::size_t at = help.find("--"); at != std::string::npos; at = help.find("--", at + 2)) {
    const std::size_t end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
    const std::string option = help.substr(at, end - at);
    if ((help[at - 1] != ' ' && help[at - 1] != ',') || option == "--help") continue;
    EXPECT_THAT(page, HasSubstr("`" + option + "`"));
    ++options;
  }
  EXPECT_GT(options, 20U);
}

}  // namespace
}  // namespace tessera
