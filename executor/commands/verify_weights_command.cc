// tessera verify-weights: whether two folders hold the same weights, and where they do not.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/model_spec.h"
#include "executor/certificate/compare_weights.h"
#include "executor/certificate/stored_weights.h"
#include "executor/commands/commands.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct VerifyOptions {
  std::string a, b, role = "actor", as;
  bool json = false;
};

/// The model that a checkpoint's role trains: by the plan of the run whose folder it lies in, or by
/// the config.json of the folder that it is compared with.
std::optional<ModelSpec> model_of(const fs::path& checkpoint, const fs::path& other, Role role,
                                  Problems& problems) {
  const fs::path kept_in = fs::absolute(checkpoint).lexically_normal().parent_path();
  const fs::path plan_file = kept_in.parent_path() / "plan.json";
  if (kept_in.filename() == "checkpoints" && fs::exists(plan_file)) {
    const auto plan = read_plan(plan_file, problems);
    if (plan && plan->find(role) != nullptr) return plan->model_of(role);
    if (plan) {
      problems.push_back({.file = plan_file.string(),
                          .place = "roles",
                          .found = "no " + std::string(name_of(role)),
                          .expected = "a role that the run trained"});
    }
    return std::nullopt;
  }
  if (!is_checkpoint(other)) return read_model_spec(other, problems);
  problems.push_back({.file = checkpoint.string(),
                      .place = "",
                      .found = "no plan.json above a folder checkpoints",
                      .expected = "a checkpoint in the folder of its run",
                      .hint = "the plan says how the tensors of a checkpoint lie"});
  return std::nullopt;
}

std::optional<StoredWeights> open_weights(fs::path folder, const fs::path& other,
                                          const std::string& role, Problems& problems) {
  if (!folder.has_filename()) folder = folder.parent_path();
  if (!is_checkpoint(folder)) return open_model_weights(folder, problems);
  const Role trained = role == name_of(Role::critic) ? Role::critic : Role::actor;
  const auto model = model_of(folder, other, trained, problems);
  if (!model) return std::nullopt;
  return open_checkpoint_weights(folder, role, parameter_table(*model), problems);
}

/// The exit code: ok or check_failed.
ExitCode verify(const VerifyOptions& options) {
  Problems problems;
  const auto a = open_weights(options.a, options.b, options.role, problems);
  const auto b = open_weights(options.b, options.a, options.role, problems);
  if (!a || !b) throw Error(ExitCode::bad_input, std::move(problems));
  const WeightComparison comparison =
      compare_weights(*a, *b, options.as.empty() ? std::nullopt : dtype_from(options.as));
  const std::string text = options.json ? to_json(comparison) : to_text(comparison);
  std::fputs(text.c_str(), stdout);
  return comparison.differences.empty() ? ExitCode::ok : ExitCode::check_failed;
}

}  // namespace

void add_verify_weights(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "verify-weights", "Whether two folders hold the same weights; exit code 1 where not");
  auto options = std::make_shared<VerifyOptions>();
  command
      ->add_option("a", options->a,
                   "A Hugging Face folder of safetensors, or RUN/checkpoints/global_step_N")
      ->required();
  command->add_option("b", options->b, "Another one")->required();
  command->add_option("--role", options->role, "Of a checkpoint: actor or critic")
      ->check(CLI::IsMember({"actor", "critic"}));
  command->add_option("--as", options->as, "Round both to fp32, bf16 or fp16 before")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] {
    const ExitCode code = verify(*options);
    if (code != ExitCode::ok) throw CLI::RuntimeError(static_cast<int>(code));
  });
}

}  // namespace tessera
