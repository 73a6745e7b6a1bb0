// Rules of a run that act: lower learning rates, roll back, pause. On four CPU ranks.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "simulator/rules/plan_metrics.h"
#include "simulator/timeline/rank_status.h"
#include "tests/cli/programs.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

/// A rule file with one rule.
void write_rule(const std::string& file, const std::string& metric, const std::string& relation,
                double value, const std::string& action) {
  const nlohmann::json rule{{"name", "tested"},     {"metric", metric},        {"scope", "step"},
                            {"operator", relation}, {"value", value},          {"unit", "ratio"},
                            {"source", "a test"},   {"evidence", "confirmed"}, {"published", ""},
                            {"advice", "do this"},  {"action", action},        {"enabled", true}};
  std::ofstream(file) << nlohmann::json{
      {"tessera_rules", 1},
      {"profile", "test"},
      {"note", ""},
      {"rules", nlohmann::json::array(
                    {rule})}}.dump();
}

class RulesRun : public ProgramTest {
 protected:
  static fs::path checkpoint(const std::string& name, int step) {
    return folder_ / name / "checkpoints" / ("global_step_" + std::to_string(step));
  }
  static std::vector<StepNumbers> metrics(const std::string& name,
                                          const std::string& file = "metrics.jsonl") {
    Problems problems;
    auto read = read_metrics(folder_ / name / file, problems);
    return read ? *read : std::vector<StepNumbers>{};
  }
  static std::vector<double> column(const std::string& name, const std::string& key) {
    std::vector<double> values;
    for (const StepNumbers& step : metrics(name)) values.push_back(step.data.at(key));
    return values;
  }
  static std::string log(const std::string& name) { return text_of(folder_ / name / "log.txt"); }

  /// Makes an element of a model's tensor a number that is none.
  static void write_nan(const std::string& model, const std::string& tensor,
                        std::uint64_t element) {
    std::fstream file(folder_ / model / "model.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    std::uint64_t length = 0;
    file.read(reinterpret_cast<char*>(&length), sizeof length);
    std::string header(length, ' ');
    file.read(header.data(), static_cast<std::streamsize>(length));
    const auto offsets = nlohmann::json::parse(header).at(tensor).at("data_offsets");
    const std::uint64_t at = 8 + length + offsets.at(0).get<std::uint64_t>() + 4 * element;
    file.seekp(static_cast<std::streamoff>(at));
    file.write("\xff\xff\xff\xff", 4);
  }

  /// By step, in the order of the file: the samples' prompts.
  static std::vector<std::pair<int, std::vector<std::string>>> prompts(const std::string& name,
                                                                       const std::string& file) {
    std::vector<std::pair<int, std::vector<std::string>>> steps;
    std::ifstream in(folder_ / name / file);
    for (std::string line; std::getline(in, line);) {
      const auto sample = nlohmann::json::parse(line);
      const int step = sample.at("step").get<int>();
      const bool follows = !steps.empty() && steps.back().first == step &&
                           steps.back().second.size() < 512;  // 32 prompts x 16 samples
      if (!follows) steps.push_back({step, {}});
      steps.back().second.push_back(sample.at("uid").get<std::string>());
    }
    return steps;
  }

  /// Eight steps with checkpoints after every second, which no rule touched; made once.
  static const std::string& plain() {
    static const std::string name = [] {
      EXPECT_EQ(train("plain", 8, "--set trainer.save_freq=2"), 0);
      return std::string("plain");
    }();
    return name;
  }

  /// A run that goes on in the background.
  static pid_t start(const std::string& name, int steps, const std::string& more) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      const std::string line = "exec " + kTessera + " run " + at("plan.json") +
                               " --config grpo-digits --set 'data.train_files=[" +
                               at("prompts.jsonl") +
                               "]' --set trainer.total_training_steps=" + std::to_string(steps) +
                               " " + more + " -o " + at(name) + " >/dev/null 2>&1";
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
    return pid;
  }
  static int end_of(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static bool await_pause(const std::string& name) {
    for (int i = 0; i < 6000; ++i) {
      const auto rank = read_rank_status(folder_ / name / "ranks/0");
      if (rank && rank->phase == "paused") return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
};

/// The step is rolled back as often as it may be, each time with the prompts that follow, and the
/// run ends with the very weights of one that ended at the checkpoint.
TEST_F(RulesRun, ARollBackEndsAtTheCheckpointAndNeverRepeatsPrompts) {
  write_rule(at("back.json"), "training/global_step", "<=", 4, "roll back");
  EXPECT_EQ(train("back", 8,
                  "--set trainer.save_freq=2 --set trainer.rule_actions.roll_backs=2 "
                  "--set trainer.rules=" +
                      at("back.json")),
            130);
  EXPECT_THAT(column("back", "training/global_step"), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(fs::exists(checkpoint("back", 4) / "checkpoint.json"));
  EXPECT_FALSE(fs::exists(checkpoint("back", 5)));
  ASSERT_EQ(train("four", 4), 0);
  EXPECT_TRUE(text_of(folder_ / "back/hf/model.safetensors") ==
              text_of(folder_ / "four/hf/model.safetensors"));
  const auto wanted = prompts(plain(), "samples.jsonl");
  const auto taken_back = prompts("back", "rolled_back_samples.jsonl");
  ASSERT_EQ(taken_back.size(), 3U);
  for (std::size_t k = 0; k < taken_back.size(); ++k) {
    EXPECT_EQ(taken_back[k].first, 5);
    EXPECT_EQ(taken_back[k].second, wanted[4 + k].second) << "try " << k;
  }
  EXPECT_EQ(metrics("back", "rolled_back_metrics.jsonl").size(), 3U);
  EXPECT_THAT(log("back"), HasSubstr("[Rule] step 5 is rolled back, roll-back 1 of at most 2"));
  EXPECT_THAT(log("back"), HasSubstr("follow step 5: 32 are left out"));
  EXPECT_THAT(log("back"), HasSubstr("rolled back and the run ends"));
}

/// After a roll-back the run goes on, from the state of the checkpoint with later prompts; one that
/// dies then and resumes has the same bits.
TEST_F(RulesRun, AfterARollBackTheRunGoesOnAndMayBeResumed) {
  fs::copy(folder_ / plain(), folder_ / "on", fs::copy_options::recursive);
  for (const int step : {6, 8}) fs::remove_all(checkpoint("on", step));
  write_rule(at("once.json"), "rules/roll_backs", ">=", 1, "roll back");
  const std::string more = "--resume --set trainer.save_freq=2 --set trainer.rules=";
  ASSERT_EQ(train("on", 7, more + at("once.json")), 0) << log("on");
  EXPECT_THAT(log("on"), HasSubstr("[Rule] step 5 is rolled back"));
  const auto steps = prompts("on", "samples.jsonl"), wanted = prompts(plain(), "samples.jsonl");
  ASSERT_EQ(steps.size(), 7U);
  for (std::size_t k = 4; k < 7; ++k) EXPECT_EQ(steps[k].second, wanted[k + 1].second) << k;
  const auto numbers = metrics("on");
  EXPECT_EQ(numbers.back().data.at("rules/prompts_skipped"), 32);
  EXPECT_EQ(numbers.back().data.at("rules/roll_backs"), 1);
  EXPECT_EQ(metrics("on", "rolled_back_metrics.jsonl").size(), 1U);

  const std::string model = text_of(folder_ / "on/hf/model.safetensors");
  for (const int step : {6, 7}) fs::remove_all(checkpoint("on", step));
  ASSERT_EQ(train("on", 7, more + at("once.json")), 0);
  EXPECT_THAT(log("on"), HasSubstr("[Resume] from step 4"));
  EXPECT_TRUE(text_of(folder_ / "on/hf/model.safetensors") == model);
  EXPECT_TRUE(prompts("on", "samples.jsonl") == steps);
}

/// Without a checkpoint there is nothing to go back to: the run says so, saves and ends.
TEST_F(RulesRun, WithoutACheckpointARollBackEndsTheRun) {
  write_rule(at("first.json"), "training/global_step", "<=", 1, "roll back");
  EXPECT_EQ(train("first", 8, "--set trainer.rules=" + at("first.json")), 130);
  EXPECT_THAT(log("first"), HasSubstr("step 2 cannot be rolled back: there is no checkpoint"));
  EXPECT_TRUE(fs::exists(checkpoint("first", 2)));
}

TEST_F(RulesRun, ALowerLearningRateIsBoundedAndOutlivesTheRun) {
  write_rule(at("lower.json"), "actor/lr", "<=", 0, "set lr");
  const std::string floor = "--set trainer.rule_actions.lr_floor=0.2 --set trainer.save_freq=3 ";
  ASSERT_EQ(train("lower", 5, floor + "--set trainer.rules=" + at("lower.json")), 0);
  const double lr = 2e-3;
  EXPECT_THAT(column("lower", "actor/lr"),
              ElementsAre(lr, lr * 0.5, lr * 0.25, lr * 0.2, lr * 0.2));
  EXPECT_EQ(column("lower", "rules/lr_lowered").back(), 3);
  EXPECT_THAT(log("lower"), HasSubstr("from step 2 on learning rates are 0.5 of what run.yaml"));
  EXPECT_THAT(log("lower"), HasSubstr("learning rates stay at 0.2"));
  fs::remove_all(checkpoint("lower", 5));
  ASSERT_EQ(train("lower", 5, floor + "--resume"), 0);  // without the rule
  EXPECT_THAT(column("lower", "actor/lr"),
              ElementsAre(lr, lr * 0.5, lr * 0.25, lr * 0.2, lr * 0.2));
}

/// Longer than ranks wait for one another: nobody counts as stalled.
TEST_F(RulesRun, APauseIsSavedAndEndsByACommandASignalOrAStop) {
  write_rule(at("wait.json"), "training/global_step", "<=", 1, "pause");
  const std::string more =
      "--set actor_rollout_ref.nccl_timeout=3 --set trainer.rules=" + at("wait.json");
  const pid_t pid = start("wait", 4, more);
  ASSERT_TRUE(await_pause("wait"));
  EXPECT_TRUE(fs::exists(checkpoint("wait", 2) / "checkpoint.json"));
  EXPECT_EQ(text_of(folder_ / "wait/pause"), "the rule tested");
  EXPECT_THAT(log("wait"), HasSubstr("[Pause] saved after step 2, as the rule tested asks: "));
  std::this_thread::sleep_for(5s);
  EXPECT_EQ(metrics("wait").size(), 2U);
  EXPECT_EQ(::kill(pid, 0), 0);
  EXPECT_EQ(run("signal " + at("wait") + " go"), 0);
  EXPECT_EQ(end_of(pid), 0) << log("wait");
  EXPECT_THAT(column("wait", "rules/pauses"), ElementsAre(0, 1, 1, 1));
  EXPECT_EQ(run("signal " + at("wait") + " go"), 65) << "the run has ended";

  const pid_t other = start("asked", 100000, "--set trainer.rules=" + at("wait.json"));
  ASSERT_TRUE(await_pause("asked"));
  ::kill(other, SIGUSR2);
  for (int i = 0; i < 3000 && metrics("asked").size() < 4; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(run("signal " + at("asked") + " pause"), 0);
  ASSERT_TRUE(await_pause("asked"));
  EXPECT_THAT(text_of(folder_ / "asked/pause"), HasSubstr("tessera signal"));
  EXPECT_THAT(log("asked"), HasSubstr(", as tessera signal asks: `tessera signal RUN go` goes on"));
  EXPECT_THAT(log("asked"), testing::Not(HasSubstr("[Rule] the run pauses")));
  EXPECT_EQ(run("signal " + at("asked") + " stop"), 0);
  EXPECT_EQ(end_of(other), 130);
  EXPECT_TRUE(fs::exists(folder_ / "asked/hf"));
  EXPECT_EQ(column("asked", "rules/pauses").back(), 1) << "the other pause was no rule's";
  EXPECT_EQ(run("signal " + at("asked") + " wait"), 64);
}

/// A plan's times are no promise on processors, least of all those of a plan for GPUs: said once.
/// The window and `tessera explain` know such a run by its numbers.
TEST_F(RulesRun, PredictedTimesAreNotJudgedOnProcessors) {
  std::ofstream(at("two-gpus.yaml")) << "version: 1\nname: two-gpus\ngpu: H100-SXM-80GB\n"
                                        "memory_gib: 80\npeak_tflops_bf16: 989\nhbm_gb_s: 3350\n"
                                        "gpus_per_node: 2\nnodes: 1\nintra_node:\n"
                                        "  link: NVLink4\n  gb_s_per_gpu_one_way: 450\n";
  ASSERT_EQ(run("plan --model " + at("model") + " --cluster " + at("two-gpus.yaml") +
                " --workload grpo-digits -o " + at("gpu-plan.json")),
            0);
  const std::vector<std::pair<std::string, std::string>> plans{
      {"plan.json",
       "ranks share the processors with one another and with whatever else runs there"},
      {"gpu-plan.json", "the plan is for H100-SXM-80GB, and its ranks run on processors"}};
  for (const auto& [plan, why] : plans) {
    const std::string name = "of-" + plan;
    ASSERT_EQ(train(name, 5, "--device cpu --set trainer.rules=default", plan), 0);
    const std::string said = "[Rule] predicted times are not judged: ", text = log(name);
    EXPECT_THAT(text, HasSubstr(said + why + "\n"));
    EXPECT_EQ(text.find(said), text.rfind(said)) << text;
    for (const char* other : {"_than_planned", "below_plan", "nothing is predicted"}) {
      EXPECT_THAT(text, testing::Not(HasSubstr(other))) << plan;
    }
    EXPECT_EQ(column(name, "rules/warnings").back(), 0) << text;
    const auto last = metrics(name).back().data;
    EXPECT_TRUE(ranks_on_processors({last.begin(), last.end()}));
    EXPECT_EQ(run("explain " + at(plan) + " --rules default --run " + at(name)), 0);
  }
}

/// A loss beyond fp32 has no gradient: every update is left out, counted, and summed up.
TEST_F(RulesRun, NumbersThatAreNoneAreCounted) {
  ASSERT_EQ(train("none", 3, "--set actor_rollout_ref.actor.entropy_coeff=1e300"),
            static_cast<int>(ExitCode::check_failed));
  double not_finite = 0, skipped = 0;
  for (const StepNumbers& step : metrics("none")) {
    not_finite += step.data.at("training/not_finite");
    skipped += step.data.at("training/skipped_updates");
    EXPECT_EQ(step.data.at("training/not_finite_total"), not_finite);
    EXPECT_EQ(step.data.at("training/skipped_updates_total"), skipped);
  }
  EXPECT_GT(not_finite, 0);
  EXPECT_GT(skipped, 0);
  EXPECT_FALSE(fs::exists(folder_ / "none" / "hf"));
  EXPECT_THAT(log("none"), HasSubstr("[Checkpoint] the state after step 3 is neither saved nor "
                                     "exported: numbers of the step are NaN or infinite; there is "
                                     "no checkpoint\n"));
}

/// A model whose file holds a number that is none: the run names the file and the tensor, and is
/// not begun anew from them.
TEST_F(RulesRun, AModelWithANumberThatIsNoneIsRefused) {
  fs::copy(folder_ / "model", folder_ / "nan-model");
  write_nan("nan-model", "model.norm.weight", 0);
  ASSERT_EQ(run("plan --model " + at("nan-model") +
                " --cluster local-cpu --workload grpo-digits -o " + at("nan.json")),
            0);
  EXPECT_EQ(train("nan", 2, "--restarts 2", "nan.json"), static_cast<int>(ExitCode::bad_input));
  EXPECT_THAT(log("nan"), HasSubstr("nan-model:model.norm.weight: found weights that are NaN or "
                                    "infinite, expected numbers\n"));
  const std::string said = at("nan-doctor.txt");
  std::system((kTessera + " doctor " + at("nan") + " >" + said + " 2>&1").c_str());
  EXPECT_THAT(text_of(said), HasSubstr("an input was refused"));
  EXPECT_THAT(text_of(said), testing::Not(HasSubstr("tessera's own")));
}

/// The embedding of a digit that one prompt alone has, in answers of one token, none of which is
/// embedded: whichever replica answers that prompt, the log tells.
TEST_F(RulesRun, WhicheverReplicaCannotDrawTheLogTells) {
  auto config = nlohmann::json::parse(text_of(at("model/config.json")));
  config["tie_word_embeddings"] = false;
  fs::create_directory(folder_ / "untied");
  std::ofstream(at("untied/config.json")) << config.dump();
  ASSERT_EQ(run("init-model --model " + at("untied") + " --digits --seed 1 -o " + at("apart")), 0);
  write_nan("apart", "model.embed_tokens.weight",
            9 * config.at("hidden_size").get<std::uint64_t>());
  std::ofstream(at("short.yaml")) << "version: 1\nalgorithm: grpo\nprompts_per_step: 32\n"
                                     "samples_per_prompt: 2\nprompt_tokens: 8\n"
                                     "response_tokens: {mean: 1, cv: 0, max: 1}\n"
                                     "mini_batches: 1\nepochs: 1\nkl: none\n";
  ASSERT_EQ(
      run("plan --model " + at("apart") + " --cluster local-cpu --workload " + at("short.yaml") +
          " --fix actor.tp=2 actor.pp=2 rollout.tp=2 rollout.dp=2 -o " + at("apart.json")),
      0);
  for (const int nine : {0, 31}) {
    const std::string name = "nine-" + std::to_string(nine);
    std::ofstream prompts(at(name + ".jsonl"));
    for (int i = 0; i < 32; ++i) {
      prompts << R"({"data_source": "tessera/reverse", "prompt": ")" << (i == nine ? "129" : "123")
              << R"(=", "reward_model": {"ground_truth": "321"}})"
              << "\n";
    }
    prompts.close();
    EXPECT_EQ(run("run " + at("apart.json") + " --config grpo-digits --set 'data={train_files: [" +
                  at(name + ".jsonl") + "], shuffle: false}' --set trainer.total_training_steps=2" +
                  " -o " + at(name)),
              static_cast<int>(ExitCode::bad_input));
    EXPECT_THAT(log(name), HasSubstr("apart:model.embed_tokens.weight: found weights that are NaN "
                                     "or infinite, expected numbers\n"));
  }
}

/// What a diverged step leaves never takes the place of the checkpoint before it, under a rule and
/// without one: step 1 has a learning rate of 0, step 2 one that no weight survives.
TEST_F(RulesRun, ADivergedStepIsNotSaved) {
  const std::string diverges =
      "--set actor_rollout_ref.actor.optim.lr=1e38 actor_rollout_ref.actor.optim.lr_warmup_steps=2 "
      "trainer.save_freq=1 trainer.hf_save_freq=1 trainer.max_actor_ckpt_to_keep=1 ";
  EXPECT_EQ(train("ruled", 6, diverges + "trainer.rules=default"),
            static_cast<int>(ExitCode::stopped));
  EXPECT_EQ(train("not-ruled", 4, diverges + "--restarts 2"),
            static_cast<int>(ExitCode::check_failed));
  EXPECT_THAT(log("not-ruled"), HasSubstr(" of step 3: no token can be drawn: "));
  for (const char* name : {"ruled", "not-ruled"}) {
    EXPECT_TRUE(fs::exists(checkpoint(name, 1))) << log(name);
    EXPECT_FALSE(fs::exists(checkpoint(name, 1) / "ruined.txt")) << "its step began well";
    EXPECT_FALSE(fs::exists(checkpoint(name, 2))) << log(name);
    EXPECT_FALSE(fs::exists(checkpoint(name, 3))) << log(name);
    EXPECT_FALSE(fs::exists(folder_ / name / "hf")) << log(name);
    EXPECT_THAT(log(name), HasSubstr("; the newest checkpoint is of step 1\n"));
  }
}

}  // namespace
}  // namespace tessera
