// Time of generation: prefills, and decoding until the slowest replica ends (decoding.h).
#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/pricing/evaluate_state.h"
#include "planner/request/candidate.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

// Prompts of the replica that has most: the step waits for it.
double most_prompts(const Workload& workload, const Candidate& candidate) {
  return as_double((workload.prompts_per_step + candidate.dp - 1) / candidate.dp);
}

double most_sequences(const Workload& workload, const Candidate& candidate) {
  return most_prompts(workload, candidate) * as_double(workload.samples_per_prompt);
}

constexpr double kRungsPerOctave = 2;

// A value between the rungs of a ladder whose rung i stands for `most` x 2^(-i / 2) sequences, the
// last one for one. `price(sequences, context)` is asked once for each point.
template <typename Price>
double on_ladder(DecodeLadder& ladder, double most, double sequences, std::size_t context,
                 const Price& price) {
  const auto last = static_cast<std::size_t>(std::ceil(kRungsPerOctave * std::log2(most)));
  if (ladder.rungs.empty()) {
    std::array<double, DecodeLadder::kContexts> unknown{};
    unknown.fill(std::numeric_limits<double>::quiet_NaN());
    ladder.rungs.assign(last + 1, unknown);
  }
  const auto sequences_at = [&](std::size_t rung) {
    return std::max(1.0, most * std::exp2(-static_cast<double>(rung) / kRungsPerOctave));
  };
  const auto at = [&](std::size_t rung) {
    double& known = ladder.rungs[rung][context];
    if (std::isnan(known)) known = price(sequences_at(rung), context);
    return known;
  };
  const double exact =
      std::clamp(kRungsPerOctave * std::log2(most / sequences), 0.0, static_cast<double>(last));
  const auto upper = static_cast<std::size_t>(exact + 1e-9);
  if (upper == last || exact - static_cast<double>(upper) < 1e-9) return at(upper);
  const double high = sequences_at(upper), low = sequences_at(upper + 1);
  const double part = (sequences - low) / (high - low);
  return at(upper + 1) + part * (at(upper) - at(upper + 1));
}

// What the device of a serving engine waits for between two replayed steps: drawn tokens come to
// the host, which schedules and prepares the next step. A 1B model's step of one sequence takes 2.7
// ms on a GPU that reads it in 0.75 (vllm-project/vllm#17866, V1); scheduling takes 12.7 us a
// sequence (openfabric-systems/simllm#204, vLLM 0.27). Together 4.8 ms at 256 sequences, where 5 to
// 6 were seen (vllm-project/vllm#10634) and 5 to 13 in 2024 (#6854).
constexpr double kStepWait = 1.5e-3, kSequenceWait = 12.7e-6;

}  // namespace

// Device and host time of one decode step of `alive` sequences. With p stages, p batches of alive /
// p sequences are under way at once, and each passes all layers (vLLM's virtual engines).
double CostEvaluator::State::decode_compute(RoleModel& model, const Candidate& candidate,
                                            double alive, double context) {
  const LayerRun run{.tp = candidate.tp, .ep = candidate.ep, .etp = candidate.etp};
  const double batch_size = alive / candidate.pp;
  const TokenBatch batch{batch_size, batch_size, batch_size};
  Work work;
  for (int kind = 0; kind < kLayerKinds; ++kind) {
    const double layers = model.layers[static_cast<std::size_t>(kind)];
    if (layers == 0) continue;
    const RankModel& rank = rank_model(model, run, static_cast<LayerKind>(kind));
    work += layers * layer_decode(rank, batch_size, context, calibration());
  }
  const RankModel& rank = rank_model(model, run, model.last_kind);
  work += embedding_forward(rank, batch, calibration());
  work += sample(rank, batch_size, calibration());
  const double wait = request.traits.graphed_decode && calibration().overlapped_dispatch
                          ? kStepWait + batch_size * kSequenceWait
                          : 0;
  return work.total(calibration()) + wait;
}

// What the same step communicates.
double CostEvaluator::State::decode_communication(RoleModel& model, const Candidate& candidate,
                                                  const CandidateGroups& groups, double alive) {
  const LayerRun run{.tp = candidate.tp, .ep = candidate.ep, .etp = candidate.etp};
  const double batch_size = alive / candidate.pp;
  double seconds = 0;
  for (int kind = 0; kind < kLayerKinds; ++kind) {
    const double layers = model.layers[static_cast<std::size_t>(kind)];
    if (layers == 0) continue;
    const RankModel& rank = rank_model(model, run, static_cast<LayerKind>(kind));
    seconds += layers * (layer_tp_seconds(rank, batch_size, groups.tp, cluster(), calibration()) +
                         layer_ep_seconds(rank, batch_size, groups.ep, cluster(), calibration()));
  }
  const RankModel& rank = rank_model(model, run, model.last_kind);
  seconds += embedding_tp_seconds(rank, batch_size, groups.tp, cluster(), calibration()) +
             sample_tp_seconds(rank, batch_size, groups.tp, cluster(), calibration());
  if (candidate.pp > 1) {
    const double hidden = batch_size * as_double(model.spec.hidden * size_of(model.dtypes.param));
    seconds += candidate.pp * collective_seconds(Collective::send_receive, hidden,
                                                 {2, groups.hop_nodes}, cluster(), calibration());
  }
  return seconds;
}

std::array<double, 2> CostEvaluator::State::prefill(RoleModel& model, const Candidate& candidate,
                                                    const CandidateGroups& groups, double prompts,
                                                    double sequences) {
  const auto prompt = as_double(request.workload.prompt_tokens);
  RankModel rank = rank_model(model, layer_run(candidate));
  const TokenBatch batch{prompts * prompt, prompts, prompts * prompt * prompt};
  Work work;
  double communication = 0;
  for (std::size_t kind = 0; kind < model.layers.size(); ++kind) {
    const double layers = model.layers[kind];
    if (layers == 0) continue;
    rank.kind = static_cast<LayerKind>(kind);
    work += layers * layer_forward(rank, batch, calibration());
    communication +=
        layers * (layer_tp_seconds(rank, batch.tokens, groups.tp, cluster(), calibration()) +
                  layer_ep_seconds(rank, batch.tokens, groups.ep, cluster(), calibration()));
  }
  work += embedding_forward(rank, batch, calibration());
  work += sample(rank, sequences, calibration());
  communication += embedding_tp_seconds(rank, batch.tokens, groups.tp, cluster(), calibration()) +
                   sample_tp_seconds(rank, sequences, groups.tp, cluster(), calibration());
  return {work.total(calibration()), communication};
}

const DecodeProfile& CostEvaluator::State::decode_profile(double sequences, std::int64_t slots) {
  const auto [entry, added] = decode_profiles.try_emplace({sequences, slots});
  if (added) {
    const Workload& workload = request.workload;
    if (!decode_lengths) {
      decode_lengths.emplace(workload.response_tokens, as_double(workload.sequences()));
    }
    entry->second = decode_lengths->profile(sequences, as_double(slots));
  }
  return entry->second;
}

// Decoding of the slowest replica. Steps are looked up: of the context they are nearly linear, and
// computation does not depend on where the ranks lie.
Timed CostEvaluator::State::decode(RoleModel& model, const Candidate& candidate,
                                   const CandidateGroups& groups, const DecodeProfile& profile) {
  LayerRun run = layer_run(candidate);
  run.pp = candidate.pp;
  DecodeLadder& communication = decode_communications[run];
  DecodeLadder& compute =
      decode_computes[{candidate.tp, candidate.ep, candidate.etp, candidate.pp}];
  run.dp = candidate.dp;
  const auto [entry, added] = decodes.try_emplace({run, std::llround(profile.slots)});
  if (!added) return entry->second;
  const auto most = as_double(request.workload.sequences());
  const std::array<double, DecodeLadder::kContexts> ages{0, decode_lengths->most_steps() / 4,
                                                         decode_lengths->most_steps()};
  const auto first_context = as_double(request.workload.prompt_tokens) + 1;
  const auto computed = [&](double sequences, std::size_t context) {
    return decode_compute(model, candidate, sequences, first_context + ages[context]);
  };
  const auto communicated = [&](double sequences, std::size_t) {
    return decode_communication(model, candidate, groups, sequences);
  };
  const double slow = slowdown(candidate, 1);
  const double replicas =
      std::min(as_double(candidate.dp), as_double(request.workload.prompts_per_step));
  const DecodeTime time = slowest_decoding(profile, replicas, [&](double alive, double age) {
    const std::size_t upper = age > ages[1] ? 2 : 1;
    const double part = (age - ages[upper - 1]) / (ages[upper] - ages[upper - 1]);
    const double low = on_ladder(compute, most, alive, upper - 1, computed);
    const double high = on_ladder(compute, most, alive, upper, computed);
    const double moved = on_ladder(communication, most, alive, 0, communicated);
    return DecodeTime{slow * (low + part * (high - low)) + moved, moved};
  });
  return entry->second = {time.seconds, time.communication_s};
}

// Prefills of a replica's prompts: {compute, communication}. Prompts are prefilled once and shared
// by their samples, in batches up to the token limit. Where an engine refills slots in passes of
// their own, those that free up during one decode step are prefilled together, and samples that
// enter later bring their prompt again.
std::array<double, 2> CostEvaluator::State::prefills(RoleModel& model, const Candidate& candidate,
                                                     const CandidateGroups& groups,
                                                     const DecodeProfile& profile) {
  const Workload& workload = request.workload;
  const double sequences = most_sequences(workload, candidate);
  const double samples = as_double(workload.samples_per_prompt);
  const double limit = as_double(candidate.tokens), prompt = as_double(workload.prompt_tokens);
  if (prompt == 0) return {0, 0};
  const auto in_batches = [&](double prompts, double entering) -> std::array<double, 2> {
    const double most = std::max(1.0, std::floor(limit / prompt));
    const double batches = std::ceil(prompts / most - 1e-9);
    const auto batch = prefill(model, candidate, groups, prompts / batches, entering / batches);
    // Batches follow one another through p stages: (m + p - 1) / p of a whole pass.
    const double passes = (batches + candidate.pp - 1) / candidate.pp;
    return {passes * batch[0], passes * batch[1]};
  };
  const double later = request.traits.refills_alone ? sequences - profile.slots : 0;
  const double first = sequences - later;
  auto seconds = in_batches(std::ceil(first / samples), first);
  if (later <= 0 || profile.refills <= 0) return seconds;
  const double freed = std::max(1.0, later / profile.refills);
  const auto refill = in_batches(1 + (freed - 1) / samples, freed);
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] += later / freed * refill[i];
  return seconds;
}

Timed CostEvaluator::State::generate(RoleModel& model, const Candidate& candidate) {
  const double sequences = most_sequences(request.workload, candidate);
  const auto slots = std::min(candidate.max_sequences, static_cast<std::int64_t>(sequences));
  const CandidateGroups groups = this->groups(candidate);
  const DecodeProfile& profile = decode_profile(sequences, slots);
  const auto [compute, communication] = prefills(model, candidate, groups, profile);
  const Timed decoded = decode(model, candidate, groups, profile);
  return {(compute + calibration().call_s.value) * slowdown(candidate, 1) + communication +
              decoded.seconds,
          communication + decoded.communication};
}

}  // namespace tessera
