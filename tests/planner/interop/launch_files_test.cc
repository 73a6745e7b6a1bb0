// Exported launch files before those who read them: Slurm's directives before the options of its
// own manual pages (fixtures/slurm_options.json), a TrainJob before Kubeflow's models, torchrun's
// and Ray's words before their own parsers (launch_oracle.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "cost_models/documents/document.h"
#include "cost_models/documents/strict_json.h"
#include "planner/interop/export.h"
#include "planner/interop/files/setting.h"
#include "planner/interop/shell/shell_words.h"
#include "tests/planner/interop/random_plans.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kTests = std::string(TESSERA_SOURCE_DIR) + "/tests/planner/interop/";

/// A plan that Tessera itself runs, on `gpus` GPUs.
Plan tessera_plan(int gpus) {
  RandomPlans plans("verl-megatron", 3);
  Plan plan = plans.next();
  while (static_cast<int>(plan.roles[0].ranks.size()) != gpus) plan = plans.next();
  plan.engine = "tessera";
  for (RolePlan& role : plan.roles) {
    role.layout = {.tp = 1, .dp_replicate = gpus};
    role.layout.stages = even_stages(plan.models.at(role.model).spec.layers, 1, 1);
    role.rank_order = RankOrder::contiguous;
    role.recompute = Recompute::none;
    role.offload = {};
  }
  plan.reshard[0].keep = true;
  plan.environment = {{"NCCL_NVLS_ENABLE", "0", "a number that has to stay a string"},
                      {"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", "a colon"}};
  return plan;
}

std::string text_of(const Plan& plan, const ExportTarget& target, std::string_view name,
                    const ExportOptions& options = {}) {
  Problems problems;
  const auto made = export_plan(plan, target, options, problems);
  EXPECT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
  for (const ExportedFile& file : made.value_or(Export{}).files) {
    if (file.name == name) return file.text;
  }
  ADD_FAILURE() << "no file " << name;
  return {};
}

class SlurmOptions {
 public:
  SlurmOptions() {
    Problems problems;
    const auto text = read_text_file(kTests + "fixtures/slurm_options.json", 1 << 20, problems);
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

/// A plan for verl on `gpus` GPUs.
Plan verl_plan(const char* engine, int gpus) {
  RandomPlans plans(engine, 3);
  Plan plan = plans.next();
  while (static_cast<int>(plan.roles[0].ranks.size()) != gpus) plan = plans.next();
  return plan;
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

// --- launch_oracle.py -------------------------------------------------------------------------

std::string oracle_python() {
  if (const char* given = getenv("TESSERA_VERL_VENV")) return std::string(given) + "/bin/python3";
  return std::string(TESSERA_SOURCE_DIR) + "/.venv-verl/bin/python3";
}

class Oracle : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(oracle_python())) {
      GTEST_SKIP() << "no launchers' packages: scripts/setup_verl.sh makes " << oracle_python();
    }
    std::string pattern = (fs::temp_directory_path() / "tessera-launch-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  /// A folder with the files; returns its name.
  std::string add(const std::vector<ExportedFile>& files) {
    const fs::path one = folder_ / std::to_string(added_++);
    fs::create_directory(one);
    for (const ExportedFile& file : files) write_text_file(one / file.name, file.text);
    command_ += " " + one.string();
    return one.string();
  }

  std::string add(const Plan& plan, const ExportTarget& target, const ExportOptions& options) {
    Problems problems;
    const auto made = export_plan(plan, target, options, problems);
    EXPECT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
    return add(made.value_or(Export{}).files);
  }

  /// One verdict per folder, in the order of add(); what the oracle says beside goes to a log.
  std::vector<Node> verdicts() {
    const std::string command = shell_word(oracle_python()) + " " + kTests + "launch_oracle.py" +
                                command_ + " 2>" + (folder_ / "log").string();
    FILE* pipe = popen(command.c_str(), "r");
    std::string output;
    std::array<char, 4096> buffer{};
    while (const std::size_t size = fread(buffer.data(), 1, buffer.size(), pipe)) {
      output.append(buffer.data(), size);
    }
    pclose(pipe);
    std::vector<Node> all;
    Problems problems;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
      all.push_back(parse_json(line, "verdict", problems)->root);
    }
    EXPECT_EQ(all.size(), static_cast<std::size_t>(added_))
        << read_text_file(folder_ / "log", 1 << 20, problems).value_or("");
    return all;
  }

  static const Node* values_of(const Node& verdict) {
    const Node* const values = verdict.find("values");
    EXPECT_NE(values, nullptr) << (values == nullptr ? verdict.find("error")->text : "");
    return values;
  }

  static std::vector<std::string> words_of(const Node& values) {
    std::vector<std::string> words;
    for (const Node& word : values.find("command")->items) words.push_back(word.text);
    return words;
  }

  // verl's trainer with these training files; its words.
  static std::vector<std::string> verl_words_of(const Node& job, const std::string& files) {
    std::vector<std::string> words = words_of(job);
    EXPECT_GT(words.size(), 40U);
    EXPECT_EQ(words.at(0), "-m");
    EXPECT_EQ(words.at(1), "verl.trainer.main_ppo");
    EXPECT_THAT(words, ::testing::Contains(files));
    return words;
  }

 private:
  fs::path folder_;
  std::string command_;
  int added_ = 0;
};

/// Where no variable is known: "$$" stands for "$", "$(NAME)" and other "$" for themselves
/// (kubernetes/third_party/forked/golang/expansion).
std::string expanded_by_kubernetes(const std::string& word) {
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    text += word[i];
    if (word.compare(i, 2, "$$") == 0) ++i;
  }
  return text;
}

TEST_F(Oracle, KubeflowTorchrunAndRayTakeWhatIsExported) {
  const std::string nasty = "/data/it's $HOME `id` \"q\" \\ ; {x: [1, 2]} *&|<>() #~ \xc3\xa9.yaml";
  ExportOptions options;
  options.run_config = options.run_folder = nasty;
  options.image = "registry/x: y";
  const Plan one = tessera_plan(4), four = tessera_plan(32);
  for (const Plan* plan : {&one, &four}) {
    add(*plan, target_of("kubernetes"), options);
    add(*plan, target_of("torchrun"), options);
  }
  options.train_files = options.val_files = nasty;
  add(RandomPlans("verl", 51).next(), target_of("ray"), options);
  add(RandomPlans("verl-megatron", 52).next(), target_of("ray"), options);
  const std::vector<Node> verdicts = this->verdicts();
  ASSERT_EQ(verdicts.size(), 6U);
  for (const int i : {0, 2}) {
    const int nodes = i == 0 ? 1 : 4, per_node = i == 0 ? 4 : 8;
    const Node* const job = values_of(verdicts[i]);
    ASSERT_NE(job, nullptr);
    EXPECT_EQ(job->find("nodes")->integer, nodes);
    EXPECT_EQ(job->find("per_node")->integer, per_node);
    std::vector<std::string> started = words_of(*job);
    for (std::string& word : started) word = expanded_by_kubernetes(word);
    EXPECT_THAT(started, ElementsAre("torchrun", "--no-python", "tessera-run", "train",
                                     "/plan/plan.json", "--config", "/plan/run.yaml", "-o", nasty));
    EXPECT_EQ(job->find("environment")->find("NCCL_NVLS_ENABLE")->text, "0");
    const Node* const script = values_of(verdicts[i + 1]);
    ASSERT_NE(script, nullptr);
    EXPECT_EQ(script->find("nodes")->integer, nodes);
    EXPECT_EQ(script->find("per_node")->integer, per_node);
    EXPECT_EQ(script->find("meets")->text, nodes == 1 ? "here" : "first as 1");
    EXPECT_THAT(words_of(*script),
                ElementsAre("tessera-run", "train", "plan.json", "--config", nasty, "-o", nasty));
  }
  const std::string files =
      hydra_override({"data.train_files", node_of(std::string_view(nasty)), "", false});
  for (const int i : {4, 5}) {
    const Node* const job = values_of(verdicts[i]);
    ASSERT_NE(job, nullptr);
    const std::vector<std::string> words = verl_words_of(*job, files);
    EXPECT_EQ(words.back(), "trainer.last='a b'");
    EXPECT_EQ(job->find("environment")->find("NCCL_CUMEM_ENABLE")->text, "0");
  }
}

// The command of run.sh is that of the verl target, whoever starts Ray.
TEST_F(Oracle, RayAndKubernetesTakeVerlJobs) {
  const std::string nasty = "/data/it's $HOME `id` \"q\" \\ ; {x: [1, 2]} *&|<>() #~ \xc3\xa9.yaml";
  ExportOptions options;
  options.model = options.train_files = options.val_files = options.run_folder = nasty;
  options.image = "registry/x: y";
  for (const char* engine : {"verl", "verl-megatron"}) {
    for (const int gpus : {4, 32}) {
      add(verl_plan(engine, gpus), target_of("slurm"), options);
      add(verl_plan(engine, gpus), target_of("kubernetes"), options);
    }
  }
  const std::vector<Node> verdicts = this->verdicts();
  ASSERT_EQ(verdicts.size(), 8U);
  const std::string files =
      hydra_override({"data.train_files", node_of(std::string_view(nasty)), "", false});
  const std::string folder =
      hydra_override({"trainer.default_local_dir", node_of(std::string_view(nasty)), "", false});
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const Node* const job = values_of(verdicts[i]);
    ASSERT_NE(job, nullptr);
    const std::vector<std::string> words = verl_words_of(*job, files);
    const bool several = i % 4 >= 2;
    if (i % 2 == 0) {
      EXPECT_EQ(job->find("heads")->integer, several ? 1 : 0);
      EXPECT_EQ(job->find("others")->integer, several ? 1 : 0);  // one step on all other nodes
      EXPECT_EQ(job->find("steps")->integer, several ? 5 : 1);
      if (!several) continue;
      EXPECT_EQ(job->find("head")->text, "10.0.0.7:24567");
      EXPECT_EQ(job->find("joins")->text, "10.0.0.7:24567");
      EXPECT_EQ(job->find("per_node")->integer, 8);
    } else {
      EXPECT_EQ(job->find("nodes")->integer, several ? 4 : 1);
      EXPECT_EQ(job->find("per_node")->integer, several ? 8 : 4);
      EXPECT_THAT(words, ::testing::Contains(folder));
    }
  }
}

TEST_F(Oracle, RefusesWhatAVerlJobMayNotHave) {
  const ExportOptions options{.model = "/m", .train_files = "/t", .val_files = "/v"};
  const auto broken = [&](const char* target, const char* name, const std::string& before,
                          const std::string& after) {
    Problems problems;
    auto made = export_plan(verl_plan("verl", 32), target_of(target), options, problems);
    ASSERT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
    for (ExportedFile& file : made->files) {
      if (file.name != name) continue;
      const auto at = file.text.find(before);
      ASSERT_NE(at, file.text.npos) << before;
      file.text.replace(at, before.size(), after);
    }
    add(made->files);
  };
  broken("kubernetes", "rayjob.yaml", "shutdownAfterJobFinishes", "shutDownAfterJobFinishes");
  broken("kubernetes", "rayjob.yaml", "minReplicas: 3", "minReplicas: \"3\"");
  broken("kubernetes", "rayjob.yaml", "mountPath: /dev/shm", "path: /dev/shm");
  broken("kubernetes", "rayjob.yaml", "num-gpus: \"8\"", "num-gpus: 8");
  broken("slurm", "job.sbatch", "--node-ip-address", "--node-address");
  const std::vector<Node> verdicts = this->verdicts();
  ASSERT_EQ(verdicts.size(), 5U);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    EXPECT_NE(verdicts[i].find("error"), nullptr) << i;
  }
}

TEST_F(Oracle, RefusesWhatTheyDoNotHave) {
  const std::string job = text_of(tessera_plan(8), target_of("kubernetes"), "trainjob.yaml");
  const auto with = [](std::string text, const std::string& before, const std::string& after) {
    const auto at = text.find(before);
    EXPECT_NE(at, text.npos) << before;
    return at == text.npos ? text : text.replace(at, before.size(), after);
  };
  const auto add_job = [&](const char* before, const char* after) {
    add({{"trainjob.yaml", with(job, before, after)}});
  };
  add_job("runtimePatches:", "podTemplateOverrides:");  // of Trainer 2.1
  add_job("numNodes: 1", "numNodes: one");
  add_job("value: \"0\"", "value: 0");
  add_job("mountPath: /dev/shm", "path: /dev/shm");
  const std::string launch = text_of(tessera_plan(8), target_of("torchrun"), "launch.sh");
  add({{"launch.sh", with(launch, "--nproc-per-node", "--nprocs-per-node")}});
  Problems problems;
  const auto made = export_plan(RandomPlans("verl", 51).next(), target_of("ray"),
                                {.train_files = "/t", .val_files = "/v"}, problems);
  ASSERT_TRUE(made.has_value());
  for (const auto& [name, before, after] : {std::tuple{"runtime_env.yaml", "env_vars:", "env_var:"},
                                            std::tuple{"runtime_env.yaml", "\"0\"", "0"},
                                            std::tuple{"submit.sh", "--no-wait", "--nowait"}}) {
    std::vector<ExportedFile> files = made->files;
    for (ExportedFile& file : files) {
      if (file.name == name) file.text = with(file.text, before, after);
    }
    add(files);
  }
  const std::vector<Node> verdicts = this->verdicts();
  ASSERT_EQ(verdicts.size(), 8U);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    EXPECT_NE(verdicts[i].find("error"), nullptr) << i;
  }
  EXPECT_THAT(verdicts[0].find("error")->text, HasSubstr("podTemplateOverrides"));
}

}  // namespace
}  // namespace tessera
