// Exported configurations before verl 0.9.1 itself: Hydra composes them, validate_config accepts
// them, its dataclasses take them (verl_oracle.py).
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "cost_models/documents/document.h"
#include "cost_models/documents/strict_json.h"
#include "planner/interop/export.h"
#include "planner/interop/verl/verl_engines.h"
#include "planner/interop/verl/verl_settings.h"
#include "tests/planner/interop/random_plans.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::string verl_python() {
  if (const char* given = getenv("TESSERA_VERL_VENV")) return std::string(given) + "/bin/python3";
  return std::string(TESSERA_SOURCE_DIR) + "/.venv-verl/bin/python3";
}

// The overrides as the script passes them on: bash itself reads the array.
std::string overrides_of(const fs::path& script) {
  const std::string command =
      "bash -c " + shell_word("exec() { shift 3; printf '%s\\n' \"$@\"; }; source " +
                              shell_word(script.string()));
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t size = fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), size);
  }
  EXPECT_EQ(pclose(pipe), 0);
  return text;
}

/// Weights of the plan's models in `folder`, where the plan then finds them: verl opens the
/// critic's.
void put_weights(const fs::path& folder, Plan& plan) {
  for (auto& [key, model] : plan.models) {
    const fs::path weights = folder / model.path;
    if (!fs::exists(weights)) {
      fs::copy(fs::path(TESSERA_SOURCE_DIR) / "configs/models" / model.path, weights);
      write_text_file(weights / "model.safetensors", "");
    }
    model.path = weights.string();
  }
}

/// verl understood the plan: its own values, one verdict of the oracle's.
void expect_values_of(const Plan& plan, const Node& values) {
  const RolePlan& actor = *plan.find(Role::actor);
  // sp_size, by which workers/engine/utils.py multiplies a limit per GPU.
  const bool titan = plan.engine == "verl-torchtitan";
  const auto shared = [&](const RolePlan& role) { return titan ? role.layout.tp : role.layout.cp; };
  EXPECT_EQ(values.find("strategy")->text, strategy_of(keys_of_plan(plan.engine), actor.fsdp));
  EXPECT_EQ(values.find("mini_batch")->integer, actor.batching.mini_batch);
  EXPECT_EQ(values.find("update_tokens")->integer * shared(actor), actor.batching.update_tokens);
  EXPECT_EQ(values.find("world")->integer, static_cast<std::int64_t>(actor.ranks.size()));
  EXPECT_EQ(values.find("pool")->integer,
            static_cast<std::int64_t>(plan.find(Role::rollout)->ranks.size()));
  EXPECT_EQ(values.find("rollout_tp")->integer, plan.find(Role::rollout)->layout.tp);
  if (const RolePlan* critic = plan.find(Role::critic)) {
    EXPECT_EQ(values.find("critic_tokens")->integer * shared(*critic),
              critic->batching.update_tokens);
  }
  if (const RolePlan* reference = plan.find(Role::reference)) {
    EXPECT_EQ(values.find("reference_tokens")->integer * shared(*reference),
              reference->batching.log_prob_tokens);
  }
}

TEST(Verl, AcceptsWhatIsExported) {
  const std::string python = verl_python();
  if (!fs::exists(python)) GTEST_SKIP() << "no verl: scripts/setup_verl.sh makes " << python;
  std::string pattern = (fs::temp_directory_path() / "tessera-verl-XXXXXX").string();
  const fs::path folder = mkdtemp(pattern.data());
  std::vector<Plan> plans;
  std::string command =
      shell_word(python) + " " + TESSERA_SOURCE_DIR + "/tests/planner/interop/verl_oracle.py";
  ExportOptions options;
  options.train_files = "/data/it's a \"file\" = {x: [1, 2]} #, \\ \\' $HOME/a.parquet\\";
  setenv("VAL_FILES", "/data/asked.parquet", 1);
  RandomPlans fsdp("verl", 9), megatron("verl-megatron", 9), veomni("verl-veomni", 9),
      torchtitan("verl-torchtitan", 9);
  for (int i = 0; i < 18; ++i) {
    plans.push_back(i >= 12      ? (i % 2 == 0 ? veomni.next() : torchtitan.next())
                    : i % 2 == 0 ? fsdp.next()
                                 : megatron.next());
    if (i >= 8 && i < 12) plans.back() = with_rollout_apart(std::move(plans.back()));
    put_weights(folder, plans.back());
    options.val_files = i == 3 ? "" : "/data/validation.parquet";  // else of the environment
    options.rollout = i % 4 < 2 ? "vllm" : "sglang";
    Problems problems;
    const auto made = export_plan(plans.back(), target_of(plans.back().engine), options, problems);
    ASSERT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
    const fs::path one = folder / std::to_string(i);
    fs::create_directory(one);
    for (const ExportedFile& file : made->files) write_text_file(one / file.name, file.text);
    write_text_file(one / "overrides.txt", overrides_of(one / "run.sh"));
    command += " " + one.string();
  }
  FILE* pipe = popen((command + " 2>" + (folder / "log").string()).c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t size = fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), size);
  }
  Problems none;
  EXPECT_EQ(pclose(pipe), 0) << read_text_file(folder / "log", 1 << 20, none).value_or("");
  std::istringstream lines(output);
  std::size_t judged = 0;
  for (std::string line; std::getline(lines, line); ++judged) {
    ASSERT_LT(judged, plans.size());
    const auto verdict = parse_json(line, "verdict", none);
    ASSERT_TRUE(verdict.has_value()) << line;
    const Node* const values = verdict->root.find("values");
    ASSERT_NE(values, nullptr) << line;
    expect_values_of(plans[judged], *values);
    EXPECT_EQ(values->find("mode")->text, judged < 8 || judged >= 12 ? "sync" : "separate_async");
    EXPECT_EQ(values->find("train_files")->text, options.train_files);
    EXPECT_EQ(values->find("val_files")->text,
              judged == 3 ? "/data/asked.parquet" : "/data/validation.parquet");
  }
  EXPECT_EQ(judged, plans.size());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tessera
