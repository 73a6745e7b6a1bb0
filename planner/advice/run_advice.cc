#include "planner/advice/run_advice.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/stopped.h"
#include "planner/advice/changed_keys.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/pricing/solution_pricer.h"
#include "planner/pricing/uncertainty.h"
#include "planner/request/describe.h"
#include "planner/request/plan_request.h"
#include "planner/request/settings.h"

namespace tessera {
namespace {

constexpr double kLeastGain = 0.002;  // of the step
constexpr std::size_t kMostChanges = 8;

using Key = std::pair<Role, Field>;

/// Fields that say where a role's model lies; they change together.
bool is_degree(Field field) {
  static const std::set<Field> degrees = {
      Field::gpus,       Field::tp,   Field::pp,      Field::dp,
      Field::cp,         Field::vpp,  Field::ep,      Field::etp,
      Field::dp_shard,   Field::zero, Field::context, Field::sequence_parallel,
      Field::head_layers};
  return degrees.contains(field);
}

// Sets of settings that are free while all others stay as they ran.
std::vector<std::set<Key>> free_sets(const FixedSettings& base) {
  std::vector<std::set<Key>> sets;
  std::map<Role, std::set<Key>> degrees, whole;
  std::set<Key> trained_degrees, trained, all;
  for (const auto& [key, unused] : base.values) {
    const auto [role, field] = key;
    all.insert(key);
    whole[role].insert(key);
    if (role != Role::rollout) trained.insert(key);
    if (!is_degree(field)) {
      sets.push_back({key});
      continue;
    }
    degrees[role].insert(key);
    if (role != Role::rollout) trained_degrees.insert(key);
  }
  for (const auto& [role, keys] : degrees) sets.push_back(keys);
  for (const auto& [role, keys] : whole) sets.push_back(keys);
  sets.push_back(std::move(trained_degrees));
  sets.push_back(std::move(trained));
  sets.push_back(std::move(all));
  return sets;
}

std::map<std::string, std::string> by_key(const std::vector<std::string>& words) {
  std::map<std::string, std::string> values;
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    values[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return values;
}

std::string difference_of(const std::vector<std::string>& before,
                          const std::vector<std::string>& after) {
  const auto old_values = by_key(before), new_values = by_key(after);
  std::string text;
  for (const auto& [key, value] : new_values) {
    auto old = old_values.find(key);
    // Without a limit of its own an update has that of all its role's calls.
    constexpr std::string_view kUpdate = ".update_tokens";
    if (old == old_values.end() && key.ends_with(kUpdate)) {
      old = old_values.find(key.substr(0, key.size() - kUpdate.size()) + ".tokens");
    }
    if (old != old_values.end() && old->second == value) continue;
    text += (text.empty() ? "" : ", ") + key + " " +
            (old == old_values.end() ? "(free)" : old->second) + " -> " + value;
  }
  return text;
}

// Tokens of a prefill batch are no setting: the planner's are its own.
void add_prefill_difference(const Plan& before, const Plan& after, std::string& text) {
  const RolePlan* const ran = before.find(Role::rollout);
  const RolePlan* const found = after.find(Role::rollout);
  if (ran == nullptr || found == nullptr) return;
  const std::int64_t old = ran->batching.prefill_tokens, now = found->batching.prefill_tokens;
  if (old == now) return;
  text += (text.empty() ? "" : ", ") + std::string("prefill batches of ") + std::to_string(old) +
          " -> " + std::to_string(now) + " tokens";
}

// Sequences of micro-batches are no setting: the planner's hold tokens.
void add_counted_difference(const Plan& before, const Plan& after, std::string& text) {
  for (const RolePlan& ran : before.roles) {
    const RolePlan* const found = after.find(ran.role);
    if (found == nullptr) continue;
    const auto add = [&](const char* name, std::int64_t old, std::int64_t now) {
      if (old == now) return;
      text += (text.empty() ? "" : ", ") + std::string(name_of(ran.role)) + "." + name + " " +
              std::to_string(old) + " -> " + (now == 0 ? "(not set)" : std::to_string(now));
    };
    const Batching &old = ran.batching, &now = found->batching;
    add("update_sequences", old.update_sequences, now.update_sequences);
    add("log_prob_sequences", old.log_prob_sequences, now.log_prob_sequences);
  }
}

// The run's plan, and what becomes of it where some settings are free.
class Adviser {
 public:
  Adviser(const Plan& ran, const Calibration& learned, const ConfigValues* script)
      : plan_(ran),
        calibration_(learned),
        script_(script),
        asked_(request_of(ran, learned)),
        planner_(asked_),
        solution_(solution_of(ran)) {
    const PlanRequest priced = priced_request_of(plan_, learned);
    const Deal deal = deal_of(plan_, priced);
    step_s_ = SolutionPricer(priced, solution_, deal).price(learned).step_s;
    sensitivities_ = step_sensitivities(priced, solution_, deal);
    words_ = settings_of(solution_);
    Problems problems;
    base_ = with_longest(parse_settings(words_, problems));
  }

  Seconds step_s() const { return step_s_; }
  const FixedSettings& base() const { return base_; }

  /// nullopt where nothing better fits.
  std::optional<AdvisedChange> with_free(const std::set<Key>& free, bool placement_free) {
    FixedSettings fixed = base_;
    for (const Key& key : free) fixed.values.erase(key);
    if (placement_free) fixed.placement.clear();
    const std::optional<Plan> plan = plan_with(fixed);
    if (!plan) return std::nullopt;
    const Plan& found = *plan;
    if (found.prediction.step_s > step_s_ * (1 - kLeastGain)) return std::nullopt;
    const Solution solution = solution_of(found);
    AdvisedChange change{.settings = settings_of(solution), .step_s = found.prediction.step_s};
    change.what = difference_of(words_, change.settings);
    add_counted_difference(plan_, found, change.what);
    add_prefill_difference(plan_, found, change.what);
    change.gain_s = step_s_ - change.step_s;
    const PlanRequest priced = priced_request_of(found, calibration_);
    const auto other = step_sensitivities(priced, solution, deal_of(found, priced));
    change.gain_deviation_s = step_deviation(difference(sensitivities_, other), calibration_);
    change.fits = found.prediction.fits;
    change.keys = changed_keys(plan_, found, script_);
    return change;
  }

 private:
  std::optional<Plan> plan_with(const FixedSettings& fixed) {
    Problems problems;
    auto outcome = planner_.plan(fixed, Objective::step_time, problems);
    if (!outcome || !std::holds_alternative<Plan>(*outcome)) return std::nullopt;
    return std::get<Plan>(*std::move(outcome));
  }

  // The settings with limits that hold the run's longest sequence.
  FixedSettings with_longest(FixedSettings settings) const {
    for (auto& [key, value] : settings.values) {
      const auto [role, field] = key;
      const bool limit = field == Field::tokens || field == Field::update_tokens;
      if (limit && role != Role::rollout) value = std::max(value, longest_sequence(plan_.workload));
    }
    return settings;
  }

  const Plan& plan_;
  const Calibration& calibration_;
  const ConfigValues* script_;
  PlanRequest asked_;
  Planner planner_;
  Solution solution_;
  Seconds step_s_;
  std::vector<Sensitivity> sensitivities_;
  std::vector<std::string> words_;
  FixedSettings base_;
};

}  // namespace

RunAdvice advise(const Plan& ran, Seconds measured_s, const Calibration& learned,
                 const ConfigValues* script, const std::stop_token& stop) {
  end_if_stopped(stop);
  Adviser adviser(ran, learned, script);
  RunAdvice advice{.measured_s = measured_s, .step_s = adviser.step_s()};
  std::set<std::string> seen;
  const auto sets = free_sets(adviser.base());
  for (std::size_t i = 0; i < sets.size(); ++i) {
    end_if_stopped(stop);
    const bool all = i + 1 == sets.size();
    auto change = adviser.with_free(sets[i], all);
    if (!change || !seen.insert(change->what).second) continue;
    advice.changes.push_back(*std::move(change));
  }
  std::stable_sort(advice.changes.begin(), advice.changes.end(),
                   [](const auto& a, const auto& b) { return a.step_s < b.step_s; });
  advice.changes.resize(std::min(advice.changes.size(), kMostChanges));
  return advice;
}

}  // namespace tessera
