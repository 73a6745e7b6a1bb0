// A run whose ranks are allowed less memory than they need: its report, its exit code, and the plan
// that it goes on with.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/cli/programs.h"

namespace tessera {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class OutOfMemoryRun : public ProgramTest {
 protected:
  /// A plan whose updates take far more memory than all else: 16,384 tokens in one micro-batch.
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    std::ofstream(at("grpo.yaml")) << "version: 1\nalgorithm: grpo\nprompts_per_step: 32\n"
                                      "samples_per_prompt: 64\nprompt_tokens: 8\n"
                                      "response_tokens: {mean: 24, cv: 0, max: 24}\n"
                                      "mini_batches: 1\nepochs: 1\nkl: none\n";
    ASSERT_EQ(
        run("plan --model " + at("model") + " --cluster local-cpu --workload " + at("grpo.yaml") +
            " --fix actor.tp=1 actor.pp=1 actor.zero=0 rollout.tp=1 rollout.dp=4 -o " +
            at("large.json")),
        0);
  }

  /// Exit code of a run of two steps under a limit; what it printed is in `messages()`.
  static int train_within(const std::string& name, const std::string& gib,
                          const std::string& more = "") {
    const std::string line =
        kTessera + " run " + at("large.json") + " --config grpo-digits --set 'data.train_files=[" +
        at("prompts.jsonl") + "]' --set trainer.total_training_steps=2 --memory-limit-gib " + gib +
        " " + more + " -o " + at(name) + " >" + at("messages") + " 2>&1";
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static std::string messages() { return text_of(at("messages")); }
  static json read(const std::string& file) { return json::parse(std::ifstream(folder_ / file)); }

  /// A limit that the update exceeds, and neither loading nor generating does.
  static constexpr const char* kTooLittleForUpdates = "0.08";
};

TEST_F(OutOfMemoryRun, EndsWith71AndTheAccountOfTheRankThatRanOut) {
  ASSERT_EQ(train_within("short", kTooLittleForUpdates), 71) << messages();
  const json report = read("short/oom.json");
  EXPECT_EQ(report.at("phase"), "update_actor");
  EXPECT_EQ(report.at("step"), 1);
  EXPECT_EQ(report.at("asked_by"), "torch");
  const json& use = report.at("in_use_bytes");
  const std::int64_t limit = report.at("limit_bytes");
  EXPECT_EQ(limit, 85899345);
  EXPECT_GT(use.at("arenas"), 0);
  EXPECT_GT(use.at("tensors"), use.at("arenas"));
  EXPECT_EQ(use.at("total"),
            use.at("tensors").get<std::int64_t>() + use.at("arenas").get<std::int64_t>());
  EXPECT_LE(use.at("total"), limit);
  EXPECT_GT(use.at("total").get<std::int64_t>() + report.at("requested_bytes").get<std::int64_t>(),
            limit);
  EXPECT_GE(report.at("largest_tensors").at(0).at("bytes"),
            report.at("largest_tensors").at(1).at("bytes"));
  // The plan's own figures of that rank and phase, as `explain --memory` prints them.
  EXPECT_GT(report.at("planned").at("bytes").at("activations"), 0);
  EXPECT_LT(report.at("memory_limit_gib").get<double>() * (1 << 30),
            report.at("planned").at("sum_bytes"));
  const std::string rank = std::to_string(report.at("rank").get<int>());
  for (const std::string& words :
       {"out of memory on rank " + rank + " (cpu) in phase update_actor of step 1",
        std::string("largest tensors: "), std::string("tessera plan --from "),
        std::string("--memory-limit-gib "),
        "rank " + rank + " ran out of memory in phase update_actor of step 1"}) {
    EXPECT_THAT(messages(), HasSubstr(words));
  }
  EXPECT_THAT(messages(), Not(HasSubstr("c10")));
  EXPECT_FALSE(fs::exists(folder_ / "short/hf"));

  // The plan that fits lies there, and the command that the report names makes the same.
  const json smaller = read("short/replanned.json");
  EXPECT_NE(smaller.at("roles"), read("large.json").at("roles"));
  char gib[32];
  std::snprintf(gib, sizeof gib, "%.4f", report.at("memory_limit_gib").get<double>());
  ASSERT_EQ(run("plan --from " + at("short/plan.json") + " --memory-limit-gib " + gib + " -o " +
                at("smaller.json")),
            0);
  EXPECT_EQ(read("smaller.json").at("roles"), smaller.at("roles"));
  EXPECT_LE(smaller.at("prediction").at("peak_bytes").get<double>(),
            report.at("memory_limit_gib").get<double>() * (1 << 30));
}

TEST_F(OutOfMemoryRun, ReplanGoesOnWithAPlanThatFitsAndKeepsTheAttempt) {
  ASSERT_EQ(train_within("again", kTooLittleForUpdates, "--on-oom replan"), 0) << messages();
  EXPECT_EQ(read("again/attempt-1/oom.json").at("phase"), "update_actor");
  EXPECT_EQ(read("again/attempt-1/plan.json").at("roles"), read("large.json").at("roles"));
  EXPECT_NE(read("again/plan.json").at("roles"), read("large.json").at("roles"));
  EXPECT_FALSE(fs::exists(folder_ / "again/oom.json"));
  EXPECT_EQ(rewards("again").size(), 2U);
  EXPECT_TRUE(fs::exists(folder_ / "again/hf/model.safetensors"));
  EXPECT_THAT(messages(), HasSubstr(" -> "));
  EXPECT_EQ(run("compare " + at("again/plan.json") + " " + at("again")), 0);
}

/// Two steps with room, then less of it: the plan that fits takes over what the first one trained,
/// in another layout if need be.
TEST_F(OutOfMemoryRun, ReplanGoesOnFromTheNewestCheckpoint) {
  ASSERT_EQ(train("on", 2, "--set trainer.save_freq=1", "large.json"), 0);
  const std::string more = "--on-oom replan --resume --set trainer.total_training_steps=3";
  ASSERT_EQ(train_within("on", kTooLittleForUpdates, more), 0) << messages();
  EXPECT_THAT(messages(), HasSubstr("run: attempt 2, from the newest checkpoint"));
  const std::string after = messages().substr(messages().find("run: attempt 2"));
  EXPECT_THAT(after, HasSubstr("[Resume] from step 2"));
  EXPECT_TRUE(fs::exists(folder_ / "on/attempt-1/oom.json"));
  EXPECT_TRUE(fs::exists(folder_ / "on/checkpoints/global_step_2"));
  EXPECT_EQ(rewards("on").size(), 1U) << "the third step alone";
}

TEST_F(OutOfMemoryRun, LoadingRunsOutTooAndNothingFits) {
  ASSERT_EQ(train_within("least", "0.0002", "--on-oom replan"), 71) << messages();
  EXPECT_EQ(read("least/oom.json").at("phase"), "load");
  EXPECT_THAT(messages(), HasSubstr("no plan fits by what was measured"));
  EXPECT_FALSE(fs::exists(folder_ / "least/attempt-1"));
}

/// The same bits as with the folder's weights, of a folder that has none.
TEST_F(OutOfMemoryRun, RanksThatDrawTheirWeightsTrainTheSameModel) {
  ASSERT_EQ(train("read", 2), 0);
  fs::create_directory(folder_ / "kept");
  fs::rename(folder_ / "model/model.safetensors", folder_ / "kept/model.safetensors");
  EXPECT_EQ(train("drawn", 2, "--set trainer.random_weights=true"), 0);
  EXPECT_NE(train("neither", 2), 0);
  fs::rename(folder_ / "kept/model.safetensors", folder_ / "model/model.safetensors");
  EXPECT_EQ(text_of(folder_ / "read/samples.jsonl"), text_of(folder_ / "drawn/samples.jsonl"));
  EXPECT_EQ(text_of(folder_ / "read/hf/model.safetensors"),
            text_of(folder_ / "drawn/hf/model.safetensors"));
}

}  // namespace
}  // namespace tessera
