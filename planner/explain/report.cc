#include "planner/explain/report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cost_models/adapters.h"
#include "cost_models/documents/printed.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/lengths.h"
#include "cost_models/spec/node_groups.h"
#include "cost_models/spec/preset_algorithms.h"
#include "planner/engines/engine.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/memory_fit.h"
#include "planner/plan/amounts.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule.h"
#include "planner/plan/shared_weights.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/step_parts.h"
#include "planner/request/describe.h"
#include "planner/request/objective.h"
#include "planner/request/plan_value.h"
#include "planner/space/left_open.h"

namespace tessera {
namespace {

std::string ranks_text(const std::vector<int>& ranks) {
  const auto [first, last] = std::minmax_element(ranks.begin(), ranks.end());
  const bool run = *last - *first + 1 == static_cast<int>(ranks.size());
  if (ranks.size() == 1) return std::to_string(ranks.front());
  if (run) return std::to_string(*first) + "-" + std::to_string(*last);
  return std::to_string(ranks.size()) + " ranks";
}

std::string joined(const std::vector<std::string>& names, const char* between) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : between) + name;
  return text;
}

// As --fix placement= reads it, the rollout named where several blocks could have it.
std::string placement_text(const Plan& plan) {
  const Placement placement = placement_of(plan);
  if (placement.size() == 1) return describe(placement);
  std::string all;
  for (const std::vector<Role>& block : placement) {
    std::vector<std::string> roles;
    for (const Role role : block) roles.emplace_back(name_of(role));
    all += (all.empty() ? "" : " | ") + joined(roles, "+");
  }
  return all;
}

std::string layout_text(const Plan& plan, const RolePlan& role) {
  std::string layout = describe_layout(plan, role);
  if (role.role == Role::rollout) layout += " " + std::string(name_of(role.rank_order));
  if (!role.gpu_types.empty()) layout += " on " + joined(role.gpu_types, "+");
  return layout;
}

double percent_of(Bytes part, Bytes whole) {
  return (100.0 * part).value / static_cast<double>(std::max(Bytes{1}, whole).value);
}

// Bytes that a rank of a pool may fill.
Bytes limit_of(const Plan& plan, const Calibration* calibration, int view) {
  return calibration == nullptr ? seen_from(plan.cluster, view).device.memory
                                : usable_memory(plan, *calibration, view);
}

// The fullest rank of every pool, where their GPUs differ.
std::string pools_part(const Plan& plan, const Calibration* calibration) {
  std::string out;
  for (const std::vector<Role>& block : placement_of(plan)) {
    Bytes peak;
    for (const ScheduledCall& call : plan.schedule) {
      Bytes sum;
      for (const Role role : block) {
        const auto use = plan.find(role)->memory.find(call.phase);
        if (use != plan.find(role)->memory.end()) sum += use->second.total();
      }
      peak = std::max(peak, sum);
    }
    const RolePlan& first = *plan.find(block.front());
    const Bytes limit = limit_of(plan, calibration, view_of(plan.cluster, first.ranks));
    out += printed("  fullest rank on %s %s of %s (%.1f %%)\n",
                   joined(first.gpu_types, "+").c_str(), in_binary_units(peak).c_str(),
                   in_binary_units(limit).c_str(), percent_of(peak, limit));
  }
  return out;
}

std::string batching_text(const Batching& batching) {
  const std::int64_t update = batching.update_tokens;
  const std::int64_t tokens =
      std::max({batching.log_prob_tokens, batching.values_tokens, batching.reward_tokens});
  if (batching.max_sequences > 0) {
    return printed("%lld sequences at once", static_cast<long long>(batching.max_sequences));
  }
  const std::string each =
      printed("%lld tokens per micro-batch", static_cast<long long>(update > 0 ? update : tokens));
  if (update == 0 || tokens == 0 || tokens == update) return each;
  return each + printed(", %lld where it does not train", static_cast<long long>(tokens));
}

// Whether servers tell the log-probs of what they draw, where an engine's do.
std::string log_probs_text(const Plan& plan, const RolePlan& role) {
  if (role.role != Role::rollout || !engine_named(plan.engine).log_prob_served) return {};
  if (role.log_probs != ToldLogProbs::untold) return ", log-probs told";
  const bool computed = computes_old_log_probs(plan.workload.dataflow);
  return computed ? ", log-probs computed again" : ", log-probs not told";
}

// Roles that the engine does not run.
std::string others_part(const Plan& plan) {
  const Engine& engine = engine_named(plan.engine);
  std::vector<std::string> others;
  for (const RolePlan& role : plan.roles) {
    if (!runs(engine, role.role)) others.emplace_back(name_of(role.role));
  }
  if (others.empty()) return {};
  return "  engine " + plan.engine + " does not run " + joined(others, ", ") +
         ": priced under its rules, and for another engine to run\n";
}

std::string roles_part(const Plan& plan, const Calibration* calibration) {
  std::size_t width = 28;
  for (const RolePlan& role : plan.roles) width = std::max(width, layout_text(plan, role).size());
  const auto columns = static_cast<int>(width);
  std::string out = printed("  %-10s %-12s %-*s %12s  %s\n", "role", "ranks", columns, "layout",
                            "peak", "batches");
  for (const RolePlan& role : plan.roles) {
    Bytes peak;
    for (const auto& [phase, use] : role.memory) peak = std::max(peak, use.total());
    out += printed("  %-10s %-12s %-*s %12s  %s\n", std::string(name_of(role.role)).c_str(),
                   ranks_text(role.ranks).c_str(), columns, layout_text(plan, role).c_str(),
                   in_binary_units(peak).c_str(),
                   (batching_text(role.batching) + log_probs_text(plan, role)).c_str());
  }
  out += others_part(plan);
  if (!plan.cluster.groups.empty()) {
    out += pools_part(plan, calibration);
    return calibration == nullptr ? out : out + describe_fit(plan, *calibration);
  }
  const Bytes limit = limit_of(plan, calibration, 0);
  out += printed("  fullest rank %s of %s (%.1f %%)\n",
                 in_binary_units(plan.prediction.peak_bytes).c_str(),
                 in_binary_units(limit).c_str(), percent_of(plan.prediction.peak_bytes, limit));
  if (calibration != nullptr) out += describe_fit(plan, *calibration);
  const Bytes shared =
      engine_named(plan.engine).weights.shares_memory ? least_shared_weight_bytes(plan) : Bytes{};
  if (shared > 0) {
    out += printed(
        "  less %s where training weights are views of the rollout's: the search counts "
        "both\n",
        in_binary_units(shared).c_str());
  }
  return out;
}

// What the workload's mean becomes where lengths end at their cap.
std::string lengths_part(const Plan& plan) {
  const LengthSpec& lengths = plan.workload.response_tokens;
  const double mean = mean_length(lengths);
  if (std::abs(mean - lengths.mean) < 0.5) return "";
  return printed("responses of %.0f tokens on average: %.0f before they are cut at %lld\n", mean,
                 lengths.mean, static_cast<long long>(lengths.max));
}

std::string phases_part(const Plan& plan) {
  const Prediction& prediction = plan.prediction;
  std::string out = printed("step %s", in_seconds(prediction.step_s).c_str());
  if (prediction.step_error_s > 0) {
    out += printed(" +- %s (one standard deviation, from the covariance of the constants)",
                   in_seconds(prediction.step_error_s).c_str());
  }
  out += printed(", %.0f tokens/s/GPU, update at %.1f %% of peak, %s of communication\n",
                 prediction.tokens_per_s_per_gpu, 100 * prediction.mfu,
                 in_seconds(prediction.exposed_comm_s).c_str());
  for (const ScheduledCall& call : plan.schedule) {
    const auto found = prediction.phases_s.find(call.phase);
    if (found == prediction.phases_s.end()) continue;
    const double share = found->second / prediction.step_s;
    const auto bar = static_cast<std::size_t>(std::clamp(std::lround(share * 40), 0L, 40L));
    out += printed("  %-14s %-10s %12s %5.1f %%  %s\n", std::string(name_of(call.phase)).c_str(),
                   std::string(name_of(call.role)).c_str(), in_seconds(found->second).c_str(),
                   100 * share, std::string(bar, '#').c_str());
  }
  return out;
}

// "minimal", and how it travels where that is stated.
std::string way_text(const PlannedReshard& pair) {
  std::string way(name_of(pair.mode));
  if (pair.transport != ReshardTransport::automatic) {
    way += " by " + std::string(name_of(pair.transport));
  }
  if (pair.mode == ReshardMode::minimal && pair.bucket_bytes > 0) {
    way += " in buckets of " + in_binary_units(pair.bucket_bytes);
  }
  return way;
}

std::string adapters_part(const Plan& plan) {
  const RolePlan* const actor = plan.find(Role::actor);
  if (actor == nullptr || !actor->lora.used()) return {};
  const std::int64_t count =
      adapter_count(parameter_table(plan.model_of(Role::actor)), actor->lora);
  return printed("adapters of rank %lld beside frozen weights: %.2f million parameters trained\n",
                 static_cast<long long>(actor->lora.rank), static_cast<double>(count) / 1e6);
}

std::string reshard_part(const Plan& plan) {
  std::string out = adapters_part(plan);
  for (const PlannedReshard& pair : plan.reshard) {
    const std::int64_t whole =
        parameter_count(plan.models.at("actor").spec) * size_of(plan.find(pair.from)->dtypes.wire);
    out += printed("reshard %s -> %s, %s: busiest rank receives %s (lower bound %s",
                   std::string(name_of(pair.from)).c_str(), std::string(name_of(pair.to)).c_str(),
                   way_text(pair).c_str(), in_binary_units(pair.bytes_received).c_str(),
                   in_binary_units(pair.lower_bound_bytes).c_str());
    if (moves_adapters_alone(plan, pair)) {
      out += "; adapters alone";
      if (has_exact_reshard(pair)) {
        out += ", once before " + in_binary_units(first_bytes(plan, pair)) +
               " of the weights beside them";
      }
    } else if (pair.mode == ReshardMode::minimal && pair.bytes_received > 0) {
      out += printed("; gathering everything: %.2fx",
                     static_cast<double>(whole) / static_cast<double>(pair.bytes_received.value));
    }
    out += ")\n";
  }
  return out;
}

// How much worse a plan is, in percent of the chosen plan's value; GPUs are told by their number.
std::string behind_text(const Plan& plan, const Priced& other) {
  const int more = other.gpus - gpus_of(plan);
  if (objective_of(plan) == Objective::fewest_gpus && more > 0) return printed("+%d GPUs", more);
  return printed("+%.1f %%", 100 * worse_by(plan, other));
}

std::string margin_text(const Plan& plan) {
  const Certificate& certificate = plan.certificate;
  if (certificate.margin >= 1) {
    return "  margin: no plan on as few GPUs; errors of the predicted times do not change that\n";
  }
  std::string out = printed(
      "  margin: another plan wins if the predictions of the two plans err by %.1f %% in opposite "
      "directions",
      100 * certificate.margin);
  const double deviations = certificate.margin_deviations;
  if (certificate.margin == 0) {
    out += "; a tie: the nearest is predicted to be as good";
  } else if (deviations > 0 && deviations < 1) {
    out += printed("; a tie: the nearest is behind by %.2f standard deviations of the difference",
                   deviations);
  } else if (deviations > 1000) {
    out += "; the nearest is behind by more than 1000 standard deviations of the difference";
  } else if (deviations > 0) {
    out += printed("; the nearest is behind by %.1f standard deviations of the difference",
                   deviations);
  }
  return out + "\n";
}

// What the search was given, and the plan that won without it.
std::string fixed_part(const Plan& plan) {
  const Certificate& certificate = plan.certificate;
  if (certificate.fixed.empty()) return {};
  std::string out = "  fixed: " + joined(certificate.fixed, " ") + "\n";
  if (!certificate.better.used()) return out + "  without that another plan may be better\n";
  return out + printed("  without that: %s, %s; this plan is %.1f %% behind\n",
                       certificate.better.placement.c_str(),
                       value_text(plan, priced(plan, certificate.better)).c_str(),
                       100 * behind(plan, certificate.better));
}

std::string certificate_part(const Plan& plan) {
  const Certificate& certificate = plan.certificate;
  const std::string none = why_not_certified(plan);
  if (!none.empty()) return "certificate: none; the plan is " + none + "\n";
  const char* const space = certificate.fixed.empty() ? "the space" : "what is fixed";
  std::string out = printed(
      "certificate: %s = %s, proven best of %s (gap %.2f %%); %lld candidates priced, %lld "
      "branches cut\n",
      certificate.objective.c_str(), value_text(plan, priced(plan)).c_str(), space,
      100 * certificate.gap, static_cast<long long>(certificate.evaluated),
      static_cast<long long>(certificate.pruned));
  out += fixed_part(plan);
  out += "  left open: " + std::string(kLeftOpen) + "\n";
  if (certificate.runner_up.empty()) return out + "  no other plan fits within the settings\n";
  constexpr std::size_t kShown = 6;
  const auto shown = std::min(kShown, certificate.runner_up.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const RunnerUp& other = certificate.runner_up[i];
    const Priced with = priced(plan, other);
    out += printed("  %-34s %12s  %s  ", other.placement.c_str(), value_text(plan, with).c_str(),
                   behind_text(plan, with).c_str()) +
           other.description + "\n";
  }
  if (shown < certificate.runner_up.size()) {
    out += printed("  and %zu more in the plan file\n", certificate.runner_up.size() - shown);
  }
  return out + margin_text(plan);
}

std::string constants_part(const Plan& plan) {
  const auto measured = plan.prediction.measured_constants.size();
  const auto assumed = plan.prediction.assumed_constants.size();
  return printed("constants: %zu measured, %zu shipped (calibration %s)\n", measured, assumed,
                 plan.provenance.calibration.c_str());
}

}  // namespace

std::string describe_certificate(const Plan& plan) { return certificate_part(plan); }

std::string describe_front_end(const Plan& plan, const Calibration& calibration) {
  constexpr double kWorthALine = 0.005;
  const auto generation = plan.prediction.phases_s.find(Phase::gen);
  const Seconds waited = waited_for_front_end(plan, calibration);
  if (generation == plan.prediction.phases_s.end() || waited <= kWorthALine * generation->second) {
    return {};
  }
  return printed(
      "gen waits for the server's front end, which hands every token over: %s of its %s\n",
      in_seconds(waited).c_str(), in_seconds(generation->second).c_str());
}

namespace {

std::string front_end_part(const Plan& plan, const Calibration* calibration) {
  const std::string waits = calibration ? describe_front_end(plan, *calibration) : std::string();
  return waits.empty() ? waits : "  " + waits;
}

// "7.62 billion", "494.03 million".
std::string count_text(std::int64_t parameters) {
  const double count = static_cast<double>(parameters);
  return count < 1e9 ? printed("%.2f million", count / 1e6) : printed("%.2f billion", count / 1e9);
}

// Every model with its parameters, and those that a token uses where it has experts.
std::string models_part(const Plan& plan) {
  std::string out;
  for (const auto& [name, source] : plan.models) {
    const ModelSpec& spec = source.spec;
    out += "  model " + name + ", " + source.path + ": " + count_text(parameter_count(spec)) +
           " parameters";
    if (spec.moe) out += ", " + count_text(active_parameter_count(spec)) + " of them per token";
    const RolePlan* const actor = plan.find(Role::actor);
    const bool held = actor != nullptr && actor->model == name && actor->mtp != MtpUse::left_out;
    if (held && spec.mtp_layers > 0) {
      out += ", and " + count_text(mtp_parameter_count(spec)) +
             " of multi-token prediction, which the actor " +
             (actor->mtp == MtpUse::trained ? "trains" : "holds");
    }
    out += "\n";
  }
  return out;
}

}  // namespace

std::string describe(const Plan& plan, const Calibration* calibration) {
  std::string out =
      printed("plan for %s on %s: %d of %lld GPUs, engine %s, placement ",
              plan.workload.algorithm.c_str(), plan.cluster.name.c_str(), gpus_of(plan),
              static_cast<long long>(plan.cluster.gpus()), plan.engine.c_str());
  out += placement_text(plan) + (is_one_step_off(plan.schedule) ? ", one step off\n" : "\n");
  return out + models_part(plan) + roles_part(plan, calibration) + lengths_part(plan) +
         phases_part(plan) + front_end_part(plan, calibration) + reshard_part(plan) +
         certificate_part(plan) + constants_part(plan);
}

std::string describe(const Infeasible& infeasible) {
  std::string out = "no feasible plan\n";
  for (const std::string& reason : infeasible.reasons) out += "  " + reason + "\n";
  if (!infeasible.nearest_fix.empty()) out += "nearest fix: " + infeasible.nearest_fix + "\n";
  return out;
}

}  // namespace tessera
