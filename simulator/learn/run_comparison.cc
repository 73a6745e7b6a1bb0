#include "simulator/learn/run_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cost_models/documents/printed.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/lengths.h"
#include "cost_models/spec/device/device_kind.h"
#include "planner/engines/engine.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/pricing/solution_pricer.h"
#include "planner/pricing/uncertainty.h"
#include "planner/request/plan_request.h"
#include "simulator/learn/gap_causes.h"
#include "simulator/learn/measured_run.h"
#include "simulator/rules/plan_metrics.h"
#include "simulator/timeline/measured_phase.h"

namespace tessera {
namespace {

constexpr std::size_t kGaps = 3;
constexpr double kLeastOutside = 0.005;  // of the step

// What the cost models say of the run's layouts, beside the prediction that stands in the plan.
struct Priced {
  std::vector<PhaseSensitivity> sensitivities;
  PhaseSeconds communication{}, at_measured_lengths{};
  double handover_s = 0;
};

Priced price_of(const MeasuredRun& run, const Plan& planned, const Calibration& calibration) {
  Priced priced;
  const PlanRequest request = priced_request_of(planned, calibration);
  const Solution solution = solution_of(planned);
  const Deal deal = deal_of(planned, request);
  priced.sensitivities = phase_sensitivities(request, solution, deal);
  CostEvaluator costs(request, deal);
  for (const auto& [role, candidate] : solution.choice) {
    priced.communication += costs.cost(candidate).communication;
  }
  const PlanRequest measured = priced_request_of(run.plan, calibration);
  priced.at_measured_lengths = SolutionPricer(measured, solution, deal).price(calibration).seconds;
  Calibration without = calibration;
  without.handover.value = 0;
  SolutionPricer pricer(request, solution, deal);
  const Seconds whole = pricer.price(calibration).seconds[Phase::reshard];
  priced.handover_s = (whole - pricer.price(without).seconds[Phase::reshard]).value;
  return priced;
}

std::vector<Sensitivity> sensitivities_of(const Priced& priced, const std::string& phase) {
  if (const auto known = phase_from(phase)) return of_phase(priced.sensitivities, *known);
  std::vector<Sensitivity> step;
  for (const PhaseSensitivity& each : priced.sensitivities) step.push_back({each.of, each.step});
  return step;
}

CallKind kind_of(const Workload& workload, Phase phase) {
  for (const Call& call : workload.dataflow) {
    if (call.phase == phase) return call.kind;
  }
  return CallKind::compute;
}

GapFacts facts_of(const MeasuredRun& run, const PhaseComparison& row, const Priced& priced) {
  GapFacts facts{.what = row.phase, .predicted_s = row.predicted_s, .measured_s = row.measured_s};
  facts.phase = phase_from(row.phase).value_or(Phase::gen);
  facts.waited = std::count(run.waits.begin(), run.waits.end(), facts.phase) > 0;
  facts.by_programs = facts.phase == Phase::reward && run.has_reward_programs;
  if (run.on_other_devices) {
    facts.other_devices = why_times_are_not_judged(RoughTimes::other_device, run.plan);
  }
  facts.predicted_deviation_s = row.predicted_deviation_s;
  facts.measured_deviation_s = row.measured_deviation_s;
  facts.at_measured_lengths_s = priced.at_measured_lengths[facts.phase].value;
  if (run.lengths_measured) {
    facts.planned_tokens = mean_length(run.planned.response_tokens);
    facts.measured_tokens = mean_length(run.plan.workload.response_tokens);
  }
  facts.planned_prompt = static_cast<double>(run.planned.prompt_tokens);
  facts.measured_prompt = run.prompt_mean;
  facts.handover_s = priced.handover_s;
  facts.communication_s = row.predicted_communication_s;
  facts.kind = kind_of(run.plan.workload, facts.phase);
  const double device = gib(run.plan.cluster.device.memory);
  facts.on_processors = is_cpu(run.plan.cluster.device);
  if (device > 0) facts.reserved_part = run.memory.reserved_gib / device;
  facts.constant = "no constant";
  for (const Sensitivity& each : sensitivities_of(priced, row.phase)) {
    if (std::abs(each.seconds.value) / 100 <= std::abs(facts.constant_s)) continue;
    facts.constant = each.of;
    facts.constant_s = each.seconds.value / 100;
  }
  return facts;
}

// Phases without a time take part of what lies outside the others.
GapFacts outside_of(const Comparison& times, double step_s) {
  GapFacts facts{.what = "outside", .outside = true};
  for (const PhaseComparison& row : times.phases) {
    if (row.timed || row.predicted_s <= kLeastOutside * step_s) continue;
    facts.untimed += (facts.untimed.empty() ? "" : ", ") + row.phase;
    facts.untimed_s += row.predicted_s;
  }
  return facts;
}

std::vector<Gap> gaps_of(const MeasuredRun& run, const Comparison& times, const Priced& priced) {
  std::vector<Gap> gaps;
  double inside = 0;
  const bool apart = saves_apart(run.steps);  // the step's time is then one without saving
  for (const PhaseComparison& row : times.phases) {
    if (row.phase == "step" || (apart && row.phase == name_of(Phase::save_checkpoint))) continue;
    inside += row.measured_s;
    if (row.measured_s <= 0) continue;
    gaps.push_back(
        {row.phase, row.measured_s - row.predicted_s, cause_of(facts_of(run, row, priced))});
  }
  // Where calls run side by side their sum is more than the step, and says nothing.
  const double step = times.phases.back().measured_s;
  if (step - inside > kLeastOutside * step) {
    gaps.push_back({"outside", step - inside, cause_of(outside_of(times, step))});
  }
  std::stable_sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) {
    return std::abs(a.seconds) > std::abs(b.seconds);
  });
  gaps.resize(std::min(gaps.size(), kGaps));
  return gaps;
}

// What a GPU's process that trains allocates in a phase: verl has the actor and the roles on its
// GPUs in one, and the rollout in its own. What lies outside the allocator is no part of it.
Bytes allocated_by_trainer(const Plan& plan, const RolePlan& actor, Phase phase) {
  Bytes sum;
  for (const RolePlan& role : plan.roles) {
    const auto use = role.memory.find(phase);
    if (role.role == Role::rollout || role.ranks != actor.ranks || use == role.memory.end()) {
      continue;
    }
    sum += Bytes{use->second.total() - use->second.reserve};
  }
  return sum;
}

// What the actor's process allocates; the whole device, as the plan's fit counts it.
std::vector<MemoryComparison> memory_of(const MeasuredRun& run, const Plan& planned,
                                        const Calibration& calibration) {
  std::vector<MemoryComparison> rows;
  const PlanRequest request = priced_request_of(planned, calibration);
  const RolePlan* actor = planned.find(Role::actor);
  // Tessera's own runs share weights outside the allocator: their whole device is compared.
  if (run.memory.allocated_gib > 0 && run.memory.device_gib <= 0 && actor != nullptr) {
    double most = 0;
    for (const auto& [phase, use] : actor->memory) {
      most = std::max(most, gib(allocated_by_trainer(planned, *actor, phase)));
    }
    const MemoryError error = memory_error(
        planned.cluster, calibration, request.memory.value_or(engine_named(planned.engine).memory));
    rows.push_back({"allocated by the actor", error.growth * most, error.deviation * most,
                    run.memory.allocated_gib});
  }
  if (run.memory.device_gib > 0 && planned.prediction.peak_bytes > 0) {
    const PlanFit fit = fit_of(planned, calibration);
    rows.push_back({"device", gib(fit.held), gib(fit.deviation), run.memory.device_gib});
  }
  return rows;
}

std::vector<LengthComparison> lengths_of(const MeasuredRun& run) {
  std::vector<LengthComparison> rows;
  if (run.lengths_measured) {
    rows.push_back({"response", mean_length(run.planned.response_tokens),
                    mean_length(run.plan.workload.response_tokens)});
  }
  if (run.prompt_mean > 0) {
    rows.push_back({"prompt", static_cast<double>(run.planned.prompt_tokens), run.prompt_mean});
  }
  return rows;
}

}  // namespace

RunComparison compare_run(const MeasuredRun& run, const Calibration& calibration,
                          const WireOptions& options) {
  Plan planned = run.plan;
  planned.workload = run.planned;
  RunComparison result{.times = compare(planned, run.steps, 0, options)};
  result.warm_up = run.warm_up;
  result.of_other_plans = run.of_other_plans;
  const Priced priced = price_of(run, planned, calibration);
  for (PhaseComparison& row : result.times.phases) {
    row.predicted_deviation_s =
        step_deviation(sensitivities_of(priced, row.phase), calibration).value;
    const auto phase = phase_from(row.phase);
    if (phase) {
      row.predicted_communication_s = priced.communication[*phase].value;
    } else {
      for (const Seconds seconds : priced.communication) {
        row.predicted_communication_s += seconds.value;
      }
    }
  }
  result.memory = memory_of(run, planned, calibration);
  result.lengths = lengths_of(run);
  result.gaps = gaps_of(run, result.times, priced);
  return result;
}

std::string other_plans_line(std::size_t steps) {
  return steps == 0 ? ""
                    : printed("steps that other plans of the folder ran, left out: %zu\n", steps);
}

std::string to_text(const RunComparison& comparison) {
  std::string text = to_text(comparison.times);
  text += printed("%zu step%s left out as warm-up\n", comparison.warm_up,
                  comparison.warm_up == 1 ? "" : "s");
  text += other_plans_line(comparison.of_other_plans);
  const PhaseComparison& step = comparison.times.phases.back();
  if (step.predicted_communication_s > 0) {
    text += printed("exposed communication predicted: %.2fms of all calls, most in ",
                    step.predicted_communication_s * 1e3);
    const auto most =
        std::max_element(comparison.times.phases.begin(), comparison.times.phases.end() - 1,
                         [](const auto& a, const auto& b) {
                           return a.predicted_communication_s < b.predicted_communication_s;
                         });
    text += most->phase + printed(" (%.2fms)\n", most->predicted_communication_s * 1e3);
  }
  for (const MemoryComparison& row : comparison.memory) {
    text += printed("memory, %-24s %8.2f +- %.2f GiB predicted, %.2f measured (%+.1f%%)\n",
                    row.what.c_str(), row.predicted_gib, row.deviation_gib, row.measured_gib,
                    (row.predicted_gib / row.measured_gib - 1) * 100);
  }
  for (const LengthComparison& row : comparison.lengths) {
    text += printed("%-8s %.1f tokens planned, %.1f measured\n", row.what.c_str(), row.planned,
                    row.measured);
  }
  if (!comparison.gaps.empty()) text += "largest differences, measured less predicted\n";
  for (const Gap& gap : comparison.gaps) {
    text += printed("  %-16s %+10.2fms  ", gap.what.c_str(), gap.seconds * 1e3) + gap.cause + "\n";
  }
  return text;
}

namespace {

Node node_of(const MemoryComparison& row) {
  Node node = map_node();
  add(node, "what", tessera::node_of(std::string_view(row.what)));
  add(node, "predicted_gib", tessera::node_of(row.predicted_gib));
  add(node, "deviation_gib", tessera::node_of(row.deviation_gib));
  add(node, "measured_gib", tessera::node_of(row.measured_gib));
  return node;
}

Node node_of(const LengthComparison& row) {
  Node node = map_node();
  add(node, "what", tessera::node_of(std::string_view(row.what)));
  add(node, "planned", tessera::node_of(row.planned));
  add(node, "measured", tessera::node_of(row.measured));
  return node;
}

Node node_of(const Gap& row) {
  Node node = map_node();
  add(node, "what", tessera::node_of(std::string_view(row.what)));
  add(node, "seconds", tessera::node_of(row.seconds));
  add(node, "cause", tessera::node_of(std::string_view(row.cause)));
  return node;
}

template <class Row>
std::string json_of(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    std::string one = json_line(node_of(row));
    while (!one.empty() && one.back() == '\n') one.pop_back();
    text += (text.empty() ? "\n    " : ",\n    ") + one;
  }
  return "[" + text + (text.empty() ? "]" : "\n  ]");
}

}  // namespace

std::string to_json(const RunComparison& comparison) {
  std::string text = to_json(comparison.times);
  text.erase(text.rfind('}'));  // the document goes on
  while (text.back() == '\n') text.pop_back();
  return text + ",\n  \"warm_up\": " + std::to_string(comparison.warm_up) +
         ",\n  \"of_other_plans\": " + std::to_string(comparison.of_other_plans) +
         ",\n  \"memory\": " + json_of(comparison.memory) +
         ",\n  \"lengths\": " + json_of(comparison.lengths) +
         ",\n  \"gaps\": " + json_of(comparison.gaps) + "\n}\n";
}

}  // namespace tessera
