#include "planner/sweep/row_pricing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <tuple>
#include <utility>
#include <vector>

#include "cost_models/compute.h"
#include "cost_models/documents/problem.h"
#include "cost_models/lengths.h"
#include "cost_models/vision/tower.h"
#include "planner/pricing/fixed.h"
#include "planner/pricing/iteration.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/peak_memory.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_request.h"
#include "planner/request/plan_value.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"
#include "planner/sweep/completions.h"
#include "planner/sweep/row_request.h"

namespace tessera {
namespace {

std::string in_gib(double bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f GiB", bytes / (1LL << 30));
  return text.data();
}

// A completion with what it costs.
struct Priced {
  Candidate candidate;
  RoleCost cost;
  Seconds seconds;
  std::string chosen;
};

class RowPricing {
 public:
  RowPricing(CostEvaluator& costs, CostEvaluator& generating, const SweepRow& row,
             const RowSearch& search, std::string assumed)
      : costs_(costs),
        generating_(generating),
        request_(costs.request()),
        row_(row),
        search_(search),
        assumed_(std::move(assumed)) {}

  SweepResult run() {
    if (row_.kind == SweepKind::iteration && search_) {
      if (const auto solution = search_(costs_, generating_, row_)) {
        return result_of(*solution);
      }
    }
    const bool trains = row_.kind != SweepKind::rollout;
    const bool generates = row_.kind == SweepKind::rollout || row_.kind == SweepKind::iteration;
    std::vector<Priced> training, generation;
    if (trains) training = training_options();
    if (generates) generation = generation_options();
    if ((trains && training.empty()) || (generates && generation.empty())) {
      SweepResult result;
      result.why = impossible_;
      return result;
    }
    const bool together = trains && generates && !on_own_gpus(row_);
    const Priced *actor = nullptr, *rollout = nullptr;
    if (together) {
      std::tie(actor, rollout) = best_pair(training, generation);
    } else {
      if (trains) actor = best_alone(training);
      if (generates) rollout = best_alone(generation);
    }
    SweepResult result = result_of(actor, rollout, together);
    if (row_.kind == SweepKind::iteration && !row_.engine.empty() && result.feasible) {
      refuse(result, "beyond engine '" + row_.engine + "'");
    }
    return result;
  }

 private:
  Bytes limit() const { return memory_limit(request_); }
  const ModelSpec& model() const { return request_.models.at("actor").spec; }

  // The fastest that fits, else the leanest.
  const Priced* best_alone(const std::vector<Priced>& options) const {
    const Priced* best = nullptr;
    for (const Priced& option : options) {
      const bool fits = option.cost.peak <= limit();
      const bool fitted = best != nullptr && best->cost.peak <= limit();
      const bool better = best == nullptr || (fits && !fitted) ||
                          (fits == fitted && (fits ? option.seconds < best->seconds
                                                   : option.cost.peak < best->cost.peak));
      if (better) best = &option;
    }
    return best;
  }

  std::pair<const Priced*, const Priced*> best_pair(const std::vector<Priced>& training,
                                                    const std::vector<Priced>& generation) const {
    std::pair<const Priced*, const Priced*> best{nullptr, nullptr};
    Seconds best_seconds;
    Bytes best_peak;
    for (const Priced& actor : training) {
      for (const Priced& rollout : generation) {
        const Bytes peak = bytes_together({actor.cost, rollout.cost});
        const Seconds seconds = actor.seconds + rollout.seconds;
        const bool fits = peak <= limit(), fitted = best.first != nullptr && best_peak <= limit();
        const bool better = best.first == nullptr || (fits && !fitted) ||
                            (fits == fitted && (fits ? seconds < best_seconds : peak < best_peak));
        if (!better) continue;
        best = {&actor, &rollout};
        best_seconds = seconds;
        best_peak = peak;
      }
    }
    return best;
  }

  // Layouts that contradict themselves or the model are left out; the last reason is kept.
  void add(CostEvaluator& costs, std::vector<Priced>& options, const Candidate& candidate,
           std::string chosen) {
    Problems problems;
    validate(layout_of(candidate, model().layers), model().layers, candidate.gpus, "",
             std::string(name_of(candidate.role)), problems);
    if (!problems.empty()) {
      impossible_ = problems[0].place + ": " + problems[0].found + ", not " + problems[0].expected;
      return;
    }
    Priced priced{candidate, costs.cost(candidate), {}, std::move(chosen)};
    for (const Seconds seconds : priced.cost.seconds) priced.seconds += seconds;
    options.push_back(std::move(priced));
  }

  std::vector<Priced> training_options() {
    const auto completions = train_completions(row_, model(), request_.cluster);
    impossible_ = completions.why;
    const std::int64_t longest = longest_sequence(request_.workload);
    std::vector<Priced> options;
    for (const TrainLayout& layout : completions.layouts) {
      Candidate candidate = candidate_of(layout, longest);
      candidate.offload.optimizer = row_.offload_optimizer;
      const std::string chosen = chosen_text(row_, layout);
      add(costs_, options, candidate, chosen);
      if (row_.kind != SweepKind::iteration) continue;
      candidate.offload = {.parameters = true, .gradients = true, .optimizer = true};
      add(costs_, options, candidate,
          chosen + (chosen.empty() ? "" : " ") + "offloaded while generating");
    }
    return options;
  }

  std::vector<Priced> generation_options() {
    const auto completions = gen_completions(row_, model(), request_.cluster);
    if (completions.layouts.empty()) impossible_ = completions.why;
    std::vector<Priced> options;
    for (const GenLayout& layout : completions.layouts) {
      Candidate candidate = candidate_of(layout);
      constexpr std::int64_t kPrefillTokens = 16384;
      candidate.tokens = std::max(request_.workload.prompt_tokens, kPrefillTokens);
      // What does not fit is leanest unmapped while training.
      candidate.offload.parameters =
          row_.kind == SweepKind::iteration && row_.rollout_weights != RolloutWeights::keep;
      const Workload& workload = generating_.request().workload;
      const std::int64_t sequences = (workload.sequences() + layout.dp - 1) / layout.dp;
      for (std::int64_t slots = sequences; slots >= 1; slots = slots == 1 ? 0 : (slots + 1) / 2) {
        candidate.max_sequences = slots;
        add(generating_, options, candidate, chosen_text(row_, layout));
        if (options.back().cost.peak <= limit()) break;  // fewer slots are only slower
      }
    }
    for (Priced& option : options) {
      option.seconds /= static_cast<double>(batches_under_way(row_));
      option.cost.seconds[Phase::gen] /= static_cast<double>(batches_under_way(row_));
    }
    return options;
  }

  SweepResult result_of(const Priced* actor, const Priced* rollout, bool together) const {
    SweepResult result;
    std::string chosen;
    double train_gpus = 0, gpus = 0;
    if (actor != nullptr) {
      if (row_.kind != SweepKind::train) {
        result.log_prob_s = actor->cost.seconds[Phase::old_log_prob];
      }
      if (row_.kind != SweepKind::logprob) {
        result.update_s = actor->cost.seconds[Phase::update_actor];
      }
      append(chosen, actor->chosen);
      gpus = train_gpus = actor->candidate.gpus;
    }
    if (rollout != nullptr) {
      result.gen_s = rollout->cost.seconds[Phase::gen];
      append(chosen, rollout->chosen);
      gpus = together ? std::max<double>(gpus, rollout->candidate.gpus)
                      : gpus + rollout->candidate.gpus;
    }
    if (actor != nullptr && rollout != nullptr) {
      result.reshard_s = costs_.reshard_seconds(actor->candidate, rollout->candidate, together);
    }
    if (actor != nullptr && row_.reference.value_or(false)) {
      result.log_prob_s =
          with_reference(actor->candidate, actor->cost.seconds[Phase::old_log_prob]);
    }
    result.step_s = step_of(result, actor != nullptr && rollout != nullptr && !together &&
                                        row_.policy_lag.value_or(1) > 0);
    result.gpus = static_cast<std::int64_t>(gpus);
    set_rates(result, gpus, train_gpus);
    const Bytes peak = together ? bytes_together({actor->cost, rollout->cost})
                                : std::max(actor != nullptr ? actor->cost.peak : Bytes{},
                                           rollout != nullptr ? rollout->cost.peak : Bytes{});
    result.peak_gib = with_reserve(peak) / (1LL << 30);
    result.fits = fit_probability(request_, peak);
    result.feasible = peak <= limit();
    if (!result.feasible) result.why = shortage(actor, rollout, peak);
    append(result.why, chosen);
    add_assumptions(result, actor != nullptr ? std::optional(actor->candidate.dp) : std::nullopt);
    return result;
  }

  // Of an iteration that fits, as `tessera plan` prices it.
  SweepResult result_of(const Solution& solution) const {
    const Candidate& actor = solution.choice.at(Role::actor);
    SweepResult result;
    result.gen_s = solution.seconds[Phase::gen];
    result.reshard_s = solution.seconds[Phase::reshard];
    result.log_prob_s = solution.seconds[Phase::old_log_prob];
    result.update_s = solution.seconds[Phase::update_actor];
    result.step_s = solution.step_s;
    if (row_.reference.value_or(false)) {
      result.log_prob_s = with_reference(actor, solution.seconds[Phase::old_log_prob]);
      result.step_s = step_of(result, solution.policy_lag > 0);
    }
    result.gpus = solution.gpus();
    set_rates(result, solution.gpus(), actor.gpus);
    const auto schedule =
        schedule_of(default_schedule(request_.workload), solution.placement, solution.policy_lag);
    const Bytes peak = peak_bytes(schedule, solution, costs_, generating_);
    result.peak_gib = gib(peak);
    result.fits = fit_probability(request_, peak - reserve_of(request_));
    result.feasible = true;
    result.why = chosen_text(row_, solution, longest_sequence(request_.workload));
    add_assumptions(result, actor.dp);
    return result;
  }

  static Seconds step_of(const SweepResult& result, bool overlapped) {
    const Seconds trained =
        result.log_prob_s.value_or(Seconds{}) + result.update_s.value_or(Seconds{});
    const Seconds generated = result.gen_s.value_or(Seconds{});
    return result.reshard_s.value_or(Seconds{}) +
           (overlapped ? std::max(trained, generated) : trained + generated);
  }

  void add_assumptions(SweepResult& result, std::optional<int> train_dp) const {
    append(result.why, assumed_);
    if (batches_under_way(row_) > 1) {
      append(result.why, std::to_string(batches_under_way(row_)) + " batches generated at once");
    }
    if (train_dp) append(result.why, uneven_batch(*train_dp));
    append(result.why, grown_cluster(result.gpus));
    append(result.why, row_.notes);
  }

  // The reference is scored where and as the actor is. Its weights wait in host memory: the actor's
  // go there, the reference's come, the actor's come back (NeMo RL's use_reference_model).
  Seconds with_reference(const Candidate& actor, Seconds scored) const {
    constexpr double kCopies = 3;
    const Bytes weights{costs_.memory(actor, Phase::old_log_prob).weights};
    return 2 * scored + kCopies * host_copy_seconds(weights, request_.calibration);
  }

  // What a device holds: the roles' bytes with context and libraries.
  double with_reserve(Bytes bytes) const {
    return static_cast<double>(bytes.value) + request_.calibration.reserve_bytes.value;
  }

  // Frameworks pad or balance what dp does not divide: the step waits for the fullest replica.
  std::string uneven_batch(int dp) const {
    const Workload& work = request_.workload;
    const std::int64_t batch = work.sequences() / work.mini_batches;
    if (batch % dp == 0) return {};
    return "dp " + std::to_string(dp) + " does not divide the batch of " + std::to_string(batch) +
           ": priced as " + std::to_string((batch + dp - 1) / dp) + " sequences on every replica";
  }

  // A row may name a cluster of its kind of node that is smaller than the run.
  std::string grown_cluster(std::int64_t gpus) const {
    const ClusterSpec& cluster = request_.cluster;
    if (gpus <= cluster.gpus()) return {};
    const std::int64_t nodes = (gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
    return "the cluster has " + std::to_string(cluster.gpus()) + " GPUs: priced as " +
           std::to_string(nodes) + " of its nodes";
  }

  void set_rates(SweepResult& result, double gpus, double train_gpus) const {
    const Workload& workload = request_.workload;
    const double sequence =
        static_cast<double>(workload.prompt_tokens) + mean_length(workload.response_tokens);
    const double tokens = static_cast<double>(workload.sequences()) * sequence;
    result.tokens_per_s_per_gpu = tokens / result.step_s->value / gpus;
    if (!result.update_s) return;
    result.mfu = 3 * forward_flops_per_sequence(model(), workload, sequence) *
                 static_cast<double>(workload.sequences()) /
                 (result.update_s->value * train_gpus * request_.cluster.device.peak_bf16.value);
  }

  // "rank in phase update_actor needs 91.2 GiB of 74.0 GiB; largest part activations, 50.1 GiB".
  std::string shortage(const Priced* actor, const Priced* rollout, Bytes peak) const {
    const Priced* worst =
        actor == nullptr || (rollout != nullptr && rollout->cost.peak - rollout->cost.resident >
                                                       actor->cost.peak - actor->cost.resident)
            ? rollout
            : actor;
    Phase phase = Phase::gen;
    std::int64_t most = -1;
    for (const Phase each : phases_of(request_.workload, worst->candidate.role)) {
      const std::int64_t total = costs_.memory(worst->candidate, each).total();
      if (total > most) {
        most = total;
        phase = each;
      }
    }
    const auto [name, bytes] = largest_class(costs_.memory(worst->candidate, phase));
    return "phase " + std::string(name_of(phase)) + " needs " + in_gib(with_reserve(peak)) +
           " of " + in_gib(with_reserve(limit())) + "; largest part " + name + ", " +
           in_gib(static_cast<double>(bytes.value));
  }

  CostEvaluator& costs_;
  CostEvaluator& generating_;
  const PlanRequest& request_;
  const SweepRow& row_;
  const RowSearch& search_;
  std::string assumed_, impossible_;
};

}  // namespace

SweepResult price_row(CostEvaluator& costs, CostEvaluator& generating, const SweepRow& row,
                      const RowSearch& search, const std::string& assumed) {
  return RowPricing(costs, generating, row, search, assumed).run();
}

}  // namespace tessera
