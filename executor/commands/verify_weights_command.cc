// tessera verify-weights: whether two folders, or a folder and a running vLLM server, or two
// servers, hold the same weights, and where they do not.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cost_models/documents/command_line.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/model_spec.h"
#include "executor/certificate/compare_weights.h"
#include "executor/certificate/stored_weights.h"
#include "executor/commands/commands.h"
#include "executor/vllm/verify/compare_holders.h"
#include "planner/engines/read_plan.h"
#include "planner/engines/vllm_weights.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct VerifyOptions {
  std::string a, b, role = "actor", as;
  double timeout_s = 600;
  bool json = false;
};

bool is_address(const std::string& where) {
  return where.starts_with("http://") || where.starts_with("https://");
}

/// Empty, or what is wrong with an argument.
std::string wrong_with(const std::string& where) {
  if (!is_address(where) || is_server_address(where)) return {};
  return where + ": a server is http://HOST:PORT";
}

Role trained_role(const std::string& role) {
  return role == name_of(Role::critic) ? Role::critic : Role::actor;
}

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

/// "RUN/hf" of "RUN/hf/".
fs::path without_end(const fs::path& folder) {
  return folder.has_filename() ? folder : folder.parent_path();
}

/// `model` is asked for a checkpoint, whose tensors lie as it says.
std::optional<StoredWeights> open_weights(const fs::path& folder, const std::string& role,
                                          const std::function<std::optional<ModelSpec>()>& model,
                                          Problems& problems) {
  if (!is_checkpoint(folder)) return open_model_weights(folder, problems);
  const auto trained = model();
  if (!trained) return std::nullopt;
  return open_checkpoint_weights(folder, role, parameter_table(*trained), problems);
}

/// A server, with what it says of itself; or a folder, for which it is not there.
struct Served {
  std::unique_ptr<VllmServer> server;
  ServerDescription description;
};

Served reach(const std::string& where, double timeout_s) {
  Served made;
  if (!is_address(where)) return made;
  made.server = std::make_unique<VllmServer>(where);
  made.description = describe_server(*made.server, timeout_s);
  return made;
}

/// The model of a folder beside a server: what a folder does not say the server does.
std::optional<ModelSpec> model_beside(const fs::path& folder, const std::string& role,
                                      const ServerDescription& server, Problems& problems) {
  if (!is_checkpoint(folder)) return read_model_spec(folder, problems);
  Problems unknown;  // it lies outside its run
  const auto model = model_of(folder, folder, trained_role(role), unknown);
  return model ? model : parse_model_spec(server.config, "the server's config.json", problems);
}

/// Why the server cannot hold the model, whose name is that of a folder or a server.
void refuse_wrong_model(const std::string& name, const ModelSpec& model, const Served& served,
                        Problems& problems) {
  if (served.server == nullptr) return;
  for (const std::string& reason : vllm_refusals(model, served.description.layout)) {
    problems.push_back({.file = name,
                        .place = "the model, on vLLM at " + served.server->address(),
                        .found = reason,
                        .expected = "a model and workers that are compared",
                        .hint = {}});
  }
}

/// With a server at one side or at both.
WeightComparison compare_served(const VerifyOptions& options, std::optional<DType> as) {
  const Served a = reach(options.a, options.timeout_s), b = reach(options.b, options.timeout_s);
  const bool both = a.server != nullptr && b.server != nullptr;
  const fs::path folder = without_end(a.server == nullptr ? options.a : options.b);
  const ServerDescription& described = a.server == nullptr ? b.description : a.description;
  Problems problems;
  const auto model =
      both ? parse_model_spec(described.config, options.a + "'s config.json", problems)
           : model_beside(folder, options.role, described, problems);
  if (!model) throw Error(ExitCode::bad_input, std::move(problems));
  for (const Served* each : {&a, &b}) {
    refuse_wrong_model(both ? options.a : folder.string(), *model, *each, problems);
  }
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  const ParameterTable table = parameter_table(*model);
  std::optional<StoredWeights> stored;
  if (!both)
    stored = open_weights(
        folder, options.role, [&] { return model; }, problems);
  if (!both && !stored) throw Error(ExitCode::bad_input, std::move(problems));
  const auto holder = [&](const Served& each) {
    return each.server == nullptr
               ? stored_holder(*stored, table, as)
               : served_holder(*each.server, each.description, table, options.timeout_s);
  };
  return compare_holders(table, holder(a), holder(b));
}

WeightComparison compare_folders(const VerifyOptions& options, std::optional<DType> as) {
  Problems problems;
  const auto opened = [&](const fs::path& folder, const fs::path& other) {
    const auto model = [&] {
      return model_of(folder, other, trained_role(options.role), problems);
    };
    return open_weights(folder, options.role, model, problems);
  };
  const fs::path left = without_end(options.a), right = without_end(options.b);
  const auto a = opened(left, right), b = opened(right, left);
  if (!a || !b) throw Error(ExitCode::bad_input, std::move(problems));
  return compare_weights(*a, *b, as);
}

/// The exit code: ok or check_failed.
ExitCode verify(const VerifyOptions& options) {
  const auto as = options.as.empty() ? std::nullopt : dtype_from(options.as);
  const WeightComparison comparison = is_address(options.a) || is_address(options.b)
                                          ? compare_served(options, as)
                                          : compare_folders(options, as);
  const std::string text = options.json ? to_json(comparison) : to_text(comparison);
  std::fputs(text.c_str(), stdout);
  return comparison.differences.empty() ? ExitCode::ok : ExitCode::check_failed;
}

}  // namespace

void add_verify_weights(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "verify-weights",
      "Whether two folders or vLLM servers hold the same weights; exit code 1 where not");
  auto options = std::make_shared<VerifyOptions>();
  command
      ->add_option("a", options->a,
                   "A Hugging Face folder of safetensors, RUN/checkpoints/global_step_N, or a "
                   "running vLLM server as http://HOST:PORT")
      ->required()
      ->check(CLI::Validator(wrong_with, ""));
  command->add_option("b", options->b, "Another one")
      ->required()
      ->check(CLI::Validator(wrong_with, ""));
  command->add_option("--role", options->role, "Of a checkpoint: actor or critic")
      ->check(CLI::IsMember({"actor", "critic"}));
  command
      ->add_option("--as", options->as, "Round the weights of folders to fp32, bf16 or fp16 before")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  command->add_option("--timeout", options->timeout_s, "Seconds that a server has for a reply")
      ->check(above_zero());
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] {
    const ExitCode code = verify(*options);
    if (code != ExitCode::ok) throw CLI::RuntimeError(static_cast<int>(code));
  });
}

}  // namespace tessera
