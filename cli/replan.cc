#include "cli/replan.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "cli/inputs.h"
#include "cli/progress.h"
#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/utc_now.h"
#include "cost_models/spec/node_groups.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/memory_cap.h"
#include "planner/explain/planner.h"
#include "planner/explain/report.h"
#include "planner/plan/amounts.h"
#include "planner/request/plan_request.h"
#include "planner/request/settings_of_candidate.h"
#include "simulator/timeline/run_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// GiB that a plan may fill; nullopt where the report does not say.
std::optional<double> stated_limit(const fs::path& report) {
  Problems ignored;
  const auto text = read_text_file(report, std::size_t{1} << 20, ignored);
  if (!text) return std::nullopt;
  const auto read = nlohmann::json::parse(*text, nullptr, false);
  if (!read.is_object() || !read.contains("memory_limit_gib")) return std::nullopt;
  const auto& limit = read["memory_limit_gib"];
  return limit.is_number() && limit.get<double>() > 0 ? std::optional(limit.get<double>())
                                                      : std::nullopt;
}

/// What fixes a plan, one word a setting: "actor.tp" -> "2".
std::map<std::string, std::string> settings_of(const Plan& plan) {
  FixedSettings settings;
  for (const RolePlan& role : plan.roles) {
    const Candidate candidate = candidate_of(plan, role);
    for (const Field field : fields_of(candidate)) {
      settings.values[{role.role, field}] = value_of(candidate, field);
    }
  }
  std::map<std::string, std::string> words;
  for (const std::string& word : words_of(settings)) {
    const std::size_t equals = word.find('=');
    words.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  return words;
}

/// The plan that answers the request, or why there is none.
PlanOutcome searched(PlanRequest request) {
  request.tessera_version = TESSERA_VERSION;
  request.created = utc_now();
  Problems problems;
  std::optional<PlanOutcome> outcome = [&] {
    const Progress progress("planning again");
    return make_plan(request, problems);
  }();
  if (!outcome) throw Error(std::move(problems));
  return *std::move(outcome);
}

/// Of a run's folder: what the next attempt goes on from, its locks, and earlier attempts.
bool stays(const std::string& name) {
  return name.starts_with("attempt-") || name == kCheckpointsFolder || name == kExportsFolder ||
         name.ends_with("lock");
}

std::string changes(const Plan& before, const Plan& after) {
  const auto old_words = settings_of(before), new_words = settings_of(after);
  std::string out;
  for (const auto& [key, value] : new_words) {
    const auto old_word = old_words.find(key);
    if (old_word != old_words.end() && old_word->second == value) continue;
    out += "  " + key + ": " + (old_word == old_words.end() ? "unset" : old_word->second) + " -> " +
           value + "\n";
  }
  for (const auto& [key, value] : old_words) {
    if (!new_words.contains(key)) out += "  " + key + ": " + value + " -> unset\n";
  }
  return out;
}

/// One GPU less, or one node less where there are several.
std::optional<ClusterSpec> one_less(const ClusterSpec& cluster) {
  const int last[] = {static_cast<int>(cluster.gpus()) - 1};
  return cluster_without(cluster, last);
}

std::string described(const ClusterSpec& cluster) {
  return std::to_string(cluster.nodes) + " x " + std::to_string(cluster.gpus_per_node) + " GPUs";
}

/// The best plan of what `failed` plans, with nothing fixed, on another cluster of the same GPUs;
/// nullopt where nothing fits.
std::optional<Plan> plan_on(const Plan& failed, const ClusterSpec& cluster) {
  PlanRequest request = request_of(failed, calibration_of(failed, ""));
  request.cluster = cluster;
  PlanOutcome outcome = searched(std::move(request));
  Plan* const plan = std::get_if<Plan>(&outcome);
  return plan == nullptr ? std::nullopt : std::optional(std::move(*plan));
}

}  // namespace

std::optional<Plan> plan_again(const Plan& failed, const fs::path& run, std::ostream& log) {
  const std::optional<double> limit = stated_limit(run / "oom.json");
  if (!limit) {
    log << "no other plan: " << (run / "oom.json").string() << " states no limit\n";
    return std::nullopt;
  }
  PlanRequest request = request_of(failed, calibration_of(failed, ""));
  cap_memory(request, from_gib(*limit));
  const PlanOutcome outcome = searched(std::move(request));
  if (const auto* infeasible = std::get_if<Infeasible>(&outcome)) {
    log << "no plan fits by what was measured:\n" << describe(*infeasible) << "\n";
    return std::nullopt;
  }
  const Plan& plan = std::get<Plan>(outcome);
  char text[160];
  std::snprintf(text, sizeof text,
                "by what was measured this fits: %s of %.4f GiB, %.3f s a step (%.3f)\n",
                in_gib(plan.prediction.peak_bytes, 4).c_str(), *limit, plan.prediction.step_s.value,
                failed.prediction.step_s.value);
  log << text << changes(failed, plan);
  return plan;
}

std::optional<Plan> plan_without(const Plan& failed, std::span<const int> lost, std::ostream& log) {
  for (std::optional<ClusterSpec> left = cluster_without(failed.cluster, lost); left;
       left = one_less(*left)) {
    std::optional<Plan> plan = plan_on(failed, *left);
    if (!plan) {
      log << "no plan fits " << described(*left) << "\n";
      continue;
    }
    log << "planned again for " << described(*left) << ":\n" << changes(failed, *plan);
    return plan;
  }
  log << "no plan fits the ranks that are left\n";
  return std::nullopt;
}

void keep_attempt(const fs::path& run, int number) {
  const fs::path kept = run / ("attempt-" + std::to_string(number));
  std::error_code error;
  fs::create_directory(kept, error);
  std::vector<fs::path> left;
  for (const fs::directory_entry& entry : fs::directory_iterator(run, error)) {
    if (!stays(entry.path().filename().string())) left.push_back(entry.path());
  }
  for (const fs::path& path : left) {
    if (!error) fs::rename(path, kept / path.filename(), error);
  }
  if (error) {
    throw Error(ExitCode::io, {Problem{.file = kept.string(), .found = error.message()}});
  }
}

}  // namespace tessera
