// Tokens of micro-batches from verl's keys, and what padding adds to them.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cost_models/lengths.h"
#include "planner/interop/verl/verl_engines.h"
#include "planner/interop/verl/verl_import.h"

namespace tessera {
namespace {

constexpr Whole kSequences{.least = 1, .most = 1 << 24};  // of a micro-batch

std::int64_t parts_of(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }

// Sequences per replica of a micro-batch: verl 0.9.1 reads this key only. Its older form counts
// those of all `replicas`.
std::int64_t sequences_of(VerlImport& in, const std::string& prefix, int replicas) {
  const std::string key = prefix + "micro_batch_size_per_gpu", older = prefix + "micro_batch_size";
  if (in.config.find(key) != nullptr || in.config.complete) return in.integer(key, 1, kSequences);
  if (in.config.find(older) == nullptr) {
    in.note("verl 0.9.1 asks for " + key + " where use_dynamic_bsz is false; one is counted.");
    return 1;
  }
  in.note(older + " is deprecated; verl 0.9.1 asks for " + key + ".");
  return std::max<std::int64_t>(1, in.integer(older, 1, kSequences) / replicas);
}

// Tokens of so many sequences: all as long as the longest, or, where responses are known to be
// shorter, three standard deviations above the mean of their sum.
std::int64_t tokens_of(const VerlImport& in, std::int64_t sequences) {
  const Workload& work = in.out.plan.workload;
  const LengthSpec& lengths = work.response_tokens;
  const auto count = static_cast<double>(sequences);
  const double response = mean_length(lengths);
  const double variance = std::max(0.0, mean_square_length(lengths) - response * response);
  const double mean = static_cast<double>(work.prompt_tokens) + response;
  const double expected = std::ceil(count * mean + 3 * std::sqrt(variance * count));
  const std::int64_t most = sequences * in.longest();
  return std::max(in.longest(), std::min(most, static_cast<std::int64_t>(expected)));
}

// Sequences of a call that the largest micro-batch of a replica can hold: all of the replica's, but
// for virtual stages, whose micro-batches are as many as a multiple of the stages
// (rearrange_micro_batches, num_batches_divided_by).
std::int64_t most_of_replica(const VerlCall& call, const ParallelLayout& layout) {
  const std::int64_t present = parts_of(call.present, layout.dp);
  return std::max<std::int64_t>(1, parts_of(present, layout.vpp > 1 ? layout.pp : 1));
}

// E[the longest of `count` responses]: the integral of 1 - (1 - P(length > x))^count.
double longest_of(const LengthSpec& lengths, double count) {
  constexpr int kSteps = 4096;
  const double step = length_horizon(lengths, count) / kSteps;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) {
    sum += step * (1 - std::pow(1 - survival(lengths, (i + 0.5) * step), count));
  }
  return sum;
}

// Tokens that a padded micro-batch of `tokens` computes for each that a plan counts.
double padded_over_counted(const Workload& work, std::int64_t tokens) {
  const double mean = static_cast<double>(work.prompt_tokens) + mean_length(work.response_tokens);
  const double count = std::max(1.0, static_cast<double>(tokens) / mean);
  return (static_cast<double>(work.prompt_tokens) + longest_of(work.response_tokens, count)) / mean;
}

void note_padded(VerlImport& in, const std::string& key, const RolePlan& role,
                 std::int64_t forward_tokens, const char* forward) {
  if (in.flag(key, true)) return;
  const std::string begin =
      key + " = false: verl pads the sequences of a micro-batch to its longest";
  if (in.work().response_tokens.cv == 0) {
    return in.note(begin +
                   "; nothing is added for it, since all are counted as equally long "
                   "(--response-mean says otherwise).");
  }
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, "about %.2f in the update and %.2f in %s",
                padded_over_counted(in.work(), role.batching.update_tokens),
                padded_over_counted(in.work(), forward_tokens), forward);
  in.note(begin +
          ", which the prediction leaves out: of tokens computed for each that is counted " +
          numbers + "; their time and activations grow by as much.");
}

}  // namespace

VerlMicroBatch micro_batch_of(VerlImport& in, const VerlCall& call, const ParallelLayout& layout) {
  if (!call.dynamic) {
    const std::int64_t each = sequences_of(in, call.sequences, layout.dp);
    const std::int64_t present = call.present / layout.dp;
    if (present % each != 0) {
      in.note_stop(call.sequences + "micro_batch_size_per_gpu", std::to_string(each),
                   "a divisor of the " + std::to_string(present) + " sequences of a replica",
                   "an assertion of prepare_micro_batches");
    }
    return {.tokens = tokens_of(in, each), .sequences = each};
  }
  const std::int64_t own = in.integer(call.limit, call.otherwise, kVerlTokens);
  const int over = ranks_of_limit(in.config.engine, layout);
  const std::int64_t tokens = own * over;
  const bool told = call.inherits && in.config.find(call.limit) == nullptr;
  if (tokens < in.longest() && !told) {
    const std::string ranks =
        over > 1 ? " over the " + std::to_string(over) + " ranks that share a sequence" : "";
    in.note_stop(
        call.limit, std::to_string(own),
        "at least the longest sequence, " + std::to_string(in.longest()) + " tokens" + ranks,
        "an assertion of rearrange_micro_batches at the first sequence that is longer");
  }
  const bool lengths = in.options.response_mean || in.options.prompt_mean;
  if (!lengths) return {.tokens = tokens};
  return {.tokens = std::min(tokens, tokens_of(in, most_of_replica(call, layout)))};
}

void note_padding(VerlImport& in) {
  const Plan& plan = in.plan();
  const RolePlan& actor = *plan.find(Role::actor);
  note_padded(in, "actor_rollout_ref.model.use_remove_padding", actor,
              actor.batching.log_prob_tokens, "old_log_prob");
  if (const RolePlan* const critic = plan.find(Role::critic)) {
    note_padded(in, "critic.model.use_remove_padding", *critic, critic->batching.values_tokens,
                "values");
  }
}

}  // namespace tessera
