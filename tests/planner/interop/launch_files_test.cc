// Exported launch files of Slurm before the options of its own manual pages
// (fixtures/slurm_options.json), and what holds for all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <sstream>

#include "cost_models/documents/document.h"
#include "cost_models/documents/strict_json.h"
#include "planner/interop/export.h"
#include "planner/interop/files/setting.h"
#include "planner/interop/shell/shell_words.h"
#include "tests/planner/interop/launch_plans.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SlurmOptions {
 public:
  SlurmOptions() {
    Problems problems;
    const auto text =
        read_text_file(kInteropTests + "fixtures/slurm_options.json", 1 << 20, problems);
    root_ = parse_json(text.value_or(""), "slurm_options.json", problems)->root;
  }

  /// What is wrong with --name or --name=value of `program`; empty = nothing.
  std::string wrong(const char* program, const std::string& word) const {
    const auto equals = word.find('=');
    const Node* const kind = root_.find(program)->find(word.substr(0, equals));
    if (kind == nullptr) return std::string(program) + " has no " + word.substr(0, equals);
    if (kind->text == "value" && equals == word.npos) return word + " without a value";
    if (kind->text == "flag" && equals != word.npos) return word + ": it takes no value";
    return {};
  }

  /// All that is wrong with a batch script: its directives, where they stand, and srun's options.
  std::vector<std::string> wrong(const std::string& script, int expected = 1) const {
    std::vector<std::string> found;
    const auto note = [&](const std::string& what) {
      if (!what.empty()) found.push_back(what);
    };
    std::istringstream lines(script);
    bool commands = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("#SBATCH ", 0) == 0) {
        if (commands) note(line + " behind a command, where sbatch no longer reads");
        note(wrong("sbatch", line.substr(8)));
      }
      commands = commands || (!line.empty() && line[0] != '#');
    }
    Problems problems;
    int steps = 0;
    for (const ShellCommand& command : shell_commands(script, "job.sbatch", problems)) {
      if (command.empty() || command[0].text != "srun") continue;
      ++steps;
      for (std::size_t i = 1; i < command.size() && command[i].text.rfind("--", 0) == 0; ++i) {
        note(wrong("srun", command[i].text));
      }
    }
    if (steps != expected) note(std::to_string(steps) + " job steps");
    return found;
  }

 private:
  Node root_;
};

TEST(LaunchFiles, SlurmHasEveryOptionThatIsWritten) {
  const SlurmOptions options;
  for (const int gpus : {4, 8, 32}) {
    const std::string script = text_of(tessera_plan(gpus), target_of("slurm"), "job.sbatch");
    EXPECT_THAT(options.wrong(script), ElementsAre());
    EXPECT_THAT(script,
                HasSubstr("\n#SBATCH --nodes=" + std::to_string((gpus + 7) / 8) +
                          "\n#SBATCH --ntasks-per-node=" + std::to_string(std::min(gpus, 8)) +
                          "\n#SBATCH --gpus-per-node=" + std::to_string(std::min(gpus, 8)) + "\n"));
  }
}

// One node needs no Ray before the trainer; on several the head, the others, the count of nodes and
// the trainer are steps of their own.
TEST(LaunchFiles, SlurmHasEveryOptionOfAVerlJob) {
  const SlurmOptions options;
  for (const char* engine : {"verl", "verl-megatron"}) {
    for (const int gpus : {4, 8, 32}) {
      const std::string script = text_of(verl_plan(engine, gpus), target_of("slurm"), "job.sbatch");
      EXPECT_THAT(options.wrong(script, gpus == 32 ? 4 : 1), ElementsAre());
      EXPECT_THAT(script, HasSubstr("\n#SBATCH --nodes=" + std::to_string((gpus + 7) / 8) +
                                    "\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=" +
                                    std::to_string(std::min(gpus, 8)) + "\n"));
    }
  }
}

TEST(LaunchFiles, WhatSlurmDoesNotHaveIsFound) {
  const SlurmOptions options;
  EXPECT_THAT(options.wrong("#SBATCH --gpu-per-node=8\n#SBATCH --exclusive\n#SBATCH --nodes\n"
                            "set -e\n#SBATCH --mem=0\nsrun --kill-on-exit=1 tessera-run\n"),
              ElementsAre("sbatch has no --gpu-per-node", "--nodes without a value",
                          "#SBATCH --mem=0 behind a command, where sbatch no longer reads",
                          "srun has no --kill-on-exit"));
  EXPECT_THAT(options.wrong("#SBATCH --hold=1\n"),
              ElementsAre("--hold=1: it takes no value", "0 job steps"));
}

TEST(LaunchFiles, SlurmRanksMeetOnTheFirstHost) {
  // What stands between the directives and srun, with a scontrol that lists two hosts.
  std::string script = text_of(tessera_plan(32), target_of("slurm"), "job.sbatch");
  script = script.substr(0, script.find("srun "));
  const std::string command =
      "scontrol() { printf 'node-7\\nnode-8\\n'; }\nSLURM_JOB_NODELIST='node-[7-8]'\n"
      "SLURM_JOB_ID=1234567\n" +
      script + "\nprintf '%s %s' \"$MASTER_ADDR\" \"$MASTER_PORT\"\n";
  FILE* pipe = popen(("bash -c " + shell_word(command)).c_str(), "r");
  std::array<char, 256> text{};
  const std::size_t size = fread(text.data(), 1, text.size(), pipe);
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_EQ(std::string(text.data(), size), "node-7 24567");
}

TEST(LaunchFiles, SeveralNodesAskForTheirPlace) {
  const std::string several = text_of(tessera_plan(32), target_of("torchrun"), "launch.sh");
  FILE* pipe = popen(("env -u NODE_RANK bash -c " + shell_word(several) + " 2>&1").c_str(), "r");
  std::array<char, 1024> text{};
  const std::size_t size = fread(text.data(), 1, text.size(), pipe);
  EXPECT_NE(pclose(pipe), 0);
  EXPECT_THAT(std::string(text.data(), size),
              HasSubstr("NODE_RANK: set it to the place of this node, 0 to 3\n"));
  EXPECT_THAT(text_of(tessera_plan(8), target_of("torchrun"), "launch.sh"),
              ::testing::Not(HasSubstr("NODE_RANK")));
}

TEST(LaunchFiles, ATrainJobsNameBeginsWithALetter) {
  Problems problems;
  ExportOptions options;
  options.name = "7b-grpo";
  EXPECT_FALSE(export_plan(tessera_plan(8), target_of("kubernetes"), options, problems));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].expected, HasSubstr("a letter first"));
}

}  // namespace
}  // namespace tessera
