#include "planner/sweep/price.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <utility>

#include "cost_models/compute.h"
#include "planner/search/evaluate.h"
#include "planner/sweep/completions.h"

namespace tessera {
namespace {

std::size_t at(Phase phase) { return static_cast<std::size_t>(phase); }

std::string in_gib(double bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f GiB", bytes / (1LL << 30));
  return text.data();
}

void append(std::string& text, const std::string& more) {
  if (more.empty()) return;
  text += (text.empty() ? "" : "; ") + more;
}

Dataflow dataflow_of(SweepKind kind) {
  const Call gen{Phase::gen, Role::actor, CallKind::generate, {"prompts"}, {"responses"}};
  const Call score{Phase::old_log_prob, Role::actor, CallKind::infer, {"prompts"}, {"old"}};
  const Call update{Phase::update_actor, Role::actor, CallKind::train, {"prompts"}, {}};
  switch (kind) {
    case SweepKind::train:
      return {update};
    case SweepKind::logprob:
      return {score};
    case SweepKind::rollout:
      return {gen};
    case SweepKind::iteration:
      break;
  }
  return {gen, score, update};
}

// Lengths that the row leaves open, and how they were filled.
struct Lengths {
  double prompt = 0, response = 0;
  std::int64_t max = 0;
  std::string assumed;
};

Lengths lengths_of(const SweepRow& row) {
  Lengths lengths;
  lengths.prompt = row.prompt_tokens.value_or(0);
  const bool trains = row.kind == SweepKind::train || row.kind == SweepKind::logprob;
  if (row.response_tokens) {
    lengths.response = *row.response_tokens;
  } else if (row.max_response_tokens) {
    lengths.response = 0.5 * static_cast<double>(*row.max_response_tokens);
    lengths.assumed = "response_tokens assumed half of max_response_tokens";
  }
  if (!row.prompt_tokens && !(trains && lengths.response > 0 && row.response_tokens)) {
    constexpr double kPrompt = 512;
    lengths.prompt = kPrompt;
    append(lengths.assumed, "prompt_tokens assumed 512");
  }
  // Without a response every position is scored: pre-training.
  if (lengths.response <= 0) {
    lengths.response = lengths.prompt;
    lengths.prompt = 0;
  }
  lengths.max = std::max(row.max_response_tokens.value_or(0),
                         static_cast<std::int64_t>(std::llround(lengths.response)));
  return lengths;
}

// One part of a row under one completion.
struct Priced {
  double seconds = 0;
  std::int64_t peak = 0;
  std::string chosen;
};

}  // namespace

struct SweepPricer::State {
  const SweepInputs& inputs;
  explicit State(const SweepInputs& all) : inputs(all) {}
};

namespace {

// Everything about one row that its completions share.
class RowPricing {
 public:
  RowPricing(const SweepInputs& inputs, const SweepRow& row)
      : row_(row), cluster_(inputs.clusters.find(row.cluster)->second) {
    const Lengths lengths = lengths_of(row);
    assumed_ = lengths.assumed;
    request_.models["actor"] = inputs.models.find(row.model)->second;
    request_.cluster = cluster_.spec;
    request_.calibration = cluster_.calibration;
    Workload& workload = request_.workload;
    workload.algorithm = "custom";
    workload.dataflow = dataflow_of(row.kind);
    workload.prompts_per_step = row.global_batch.value_or(1);
    workload.prompt_tokens = std::llround(lengths.prompt);
    workload.response_tokens = {lengths.response, 0, lengths.max};
    workload.mini_batches = std::max<std::int64_t>(
        1, row.global_batch.value_or(1) / row.mini_batch.value_or(row.global_batch.value_or(1)));
    costs_ = std::make_unique<CostEvaluator>(request_);
  }

  SweepResult run() {
    SweepResult result;
    result.feasible = true;
    std::int64_t peak = 0;
    for (const Call& call : request_.workload.dataflow) {
      const bool generates = call.kind == CallKind::generate;
      const auto part = generates ? best_generation() : best_training(call.phase);
      if (!part) {
        result.feasible = false;
        result.why = impossible_;
        return result;
      }
      auto& seconds = generates                           ? result.gen_s
                      : call.phase == Phase::update_actor ? result.update_s
                                                          : result.log_prob_s;
      seconds = part->seconds;
      peak = std::max(peak, part->peak);
      append(chosen_, part->chosen);
    }
    if (row_.kind == SweepKind::iteration) result.reshard_s = 0;
    finish(result, peak);
    return result;
  }

 private:
  void finish(SweepResult& result, std::int64_t peak) {
    const double trained = result.log_prob_s.value_or(0) + result.update_s.value_or(0);
    const double generated = result.gen_s.value_or(0) + result.reshard_s.value_or(0);
    const bool apart = split() && row_.kind == SweepKind::iteration;
    const bool overlapped = apart && row_.policy_lag.value_or(0) > 0;
    result.step_s = overlapped ? std::max(trained, generated) : trained + generated;
    const Workload& workload = request_.workload;
    const double tokens =
        static_cast<double>(workload.sequences()) *
        (static_cast<double>(workload.prompt_tokens) + workload.response_tokens.mean);
    const double sequence = tokens / static_cast<double>(workload.sequences());
    result.tokens_per_s_per_gpu = tokens / *result.step_s / gpus();
    if (result.update_s) {
      const ModelSpec& model = request_.models.at("actor").spec;
      result.mfu = 3 * forward_flops_per_token(model, sequence) * tokens /
                   (*result.update_s * train_gpus_ * cluster_.spec.device.peak_bf16.value);
    }
    const double reserve = request_.calibration.reserve_bytes.value;
    result.peak_gib = (static_cast<double>(peak) + reserve) / (1LL << 30);
    if (peak > memory_limit(request_)) {
      result.feasible = false;
      result.why = "needs " + in_gib(static_cast<double>(peak)) + " of " +
                   in_gib(static_cast<double>(memory_limit(request_)));
    }
    append(result.why, chosen_);
    append(result.why, assumed_);
    append(result.why, row_.notes);
  }

  bool split() const {
    if (row_.placement != SweepPlacement::by_gpus) return row_.placement == SweepPlacement::split;
    return row_.train_gpus && row_.gen_gpus && row_.gpus &&
           *row_.train_gpus + *row_.gen_gpus <= *row_.gpus;
  }

  double gpus() const {
    return static_cast<double>(row_.gpus.value_or(std::max(train_gpus_, gen_gpus_)));
  }

  // Of several priced completions: the fastest that fits, else the leanest.
  void keep_better(std::optional<Priced>& best, Priced candidate) const {
    const std::int64_t limit = memory_limit(request_);
    const bool fits = candidate.peak <= limit, fitted = best && best->peak <= limit;
    const bool better = !best || (fits && !fitted) ||
                        (fits == fitted &&
                         (fits ? candidate.seconds < best->seconds : candidate.peak < best->peak));
    if (better) best = std::move(candidate);
  }

  std::optional<Priced> best_training(Phase phase) {
    const auto completions = train_completions(row_, model(), cluster_.spec);
    impossible_ = completions.why;
    std::optional<Priced> best;
    for (const TrainLayout& layout : completions.layouts) {
      const double sequence = static_cast<double>(longest_sequence(request_.workload));
      Candidate candidate{Role::actor, layout.gpus(),         layout.tp,
                          layout.pp,   layout.dp * layout.cp, layout.zero};
      candidate.tokens =
          std::llround(static_cast<double>(layout.micro_batch) * sequence / layout.cp);
      const RoleCost cost = costs_->cost(candidate);
      train_gpus_ = layout.gpus();
      keep_better(best, {cost.seconds[at(phase)], cost.peak, chosen_text(row_, layout)});
    }
    return best;
  }

  std::optional<Priced> best_generation() {
    const auto completions = gen_completions(row_, model(), cluster_.spec);
    impossible_ = completions.why;
    std::optional<Priced> best;
    for (const GenLayout& layout : completions.layouts) {
      Candidate candidate{Role::rollout, layout.gpus(), layout.tp, layout.pp, layout.dp};
      gen_gpus_ = layout.gpus();
      const std::int64_t sequences =
          std::max<std::int64_t>(1, request_.workload.sequences() / layout.dp);
      for (std::int64_t slots = sequences; slots >= 1; slots = slots == 1 ? 0 : (slots + 1) / 2) {
        candidate.max_sequences = slots;
        candidate.tokens = std::max<std::int64_t>(request_.workload.prompt_tokens, 16384);
        const RoleCost cost = costs_->cost(candidate);
        keep_better(best, {cost.seconds[at(Phase::gen)], cost.peak, chosen_text(row_, layout)});
      }
    }
    return best;
  }

  const ModelSpec& model() const { return request_.models.at("actor").spec; }

  const SweepRow& row_;
  const SweepCluster& cluster_;
  PlanRequest request_;
  std::unique_ptr<CostEvaluator> costs_;
  std::string assumed_, chosen_, impossible_;
  std::int64_t train_gpus_ = 1, gen_gpus_ = 1;
};

}  // namespace

SweepPricer::SweepPricer(const SweepInputs& inputs) : state_(std::make_unique<State>(inputs)) {}
SweepPricer::~SweepPricer() = default;

SweepResult SweepPricer::price(const SweepRow& row) {
  return RowPricing(state_->inputs, row).run();
}

}  // namespace tessera
