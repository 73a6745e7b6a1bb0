// Exported launch files before those who read them: a TrainJob before Kubeflow's models, torchrun's
// and Ray's words before their own parsers (launch_oracle.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "planner/interop/export.h"
#include "planner/interop/files/setting.h"
#include "tests/planner/interop/launch_plans.h"
#include "tests/planner/interop/random_plans.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
    const std::string command = shell_word(oracle_python()) + " " + kInteropTests +
                                "launch_oracle.py" + command_ + " 2>" + (folder_ / "log").string();
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
