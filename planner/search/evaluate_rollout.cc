// Time of generation: prefill, and decoding until the last of the waiting sequences ends.
#include <algorithm>
#include <cmath>

#include "planner/search/evaluate_state.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

// Sequences of the replica that has most: the step waits for it.
double of_fullest_replica(const Workload& workload, const Candidate& candidate) {
  return as_double((workload.sequences() + candidate.dp - 1) / candidate.dp);
}

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
  return work.total(calibration());
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

// One batch of whole prompts through all layers: {compute, communication}.
std::array<double, 2> CostEvaluator::State::prefill(RoleModel& model, const Candidate& candidate,
                                                    const CandidateGroups& groups, double prompts) {
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
  return {work.total(calibration()), communication};
}

// Decoding of a replica's sequences in `slots`: {compute, communication}. Computation does not
// depend on where the ranks lie.
std::array<double, 2> CostEvaluator::State::decode(RoleModel& model, const Candidate& candidate,
                                                   const CandidateGroups& groups, double sequences,
                                                   std::int64_t slots) {
  LayerRun run = layer_run(candidate);
  run.pp = candidate.pp;
  auto [entry, added] = decodes.try_emplace({run, slots, sequences});
  if (!added) return entry->second;
  const LengthSpec& lengths = request.workload.response_tokens;
  const auto integral = [&](const std::function<double(double, double)>& step) {
    return queue_seconds(lengths, as_double(request.workload.prompt_tokens), sequences,
                         as_double(slots), step, lengths.cv > 0 ? 24 : 4);
  };
  auto [compute, fresh] = decode_computes.try_emplace(
      {candidate.tp, candidate.ep, candidate.etp, candidate.pp, slots, sequences});
  if (fresh) {
    compute->second = integral([&](double alive, double context) {
      return decode_compute(model, candidate, alive, context);
    });
  }
  const double communication = integral(
      [&](double alive, double) { return decode_communication(model, candidate, groups, alive); });
  return entry->second = {compute->second, communication};
}

// Prefills of a replica's prompts: {compute, communication}. Prompts are prefilled once and shared
// by their samples, in batches up to the token limit. Where an engine refills slots in passes of
// their own, those that free up during one decode step are prefilled together, as many as r / (1 -
// e^-r) at a rate of r = slots / mean length per step, and samples that enter later bring their
// prompt again.
std::array<double, 2> CostEvaluator::State::prefills(RoleModel& model, const Candidate& candidate,
                                                     const CandidateGroups& groups, double slots) {
  const Workload& workload = request.workload;
  const double sequences = of_fullest_replica(workload, candidate);
  const double samples = as_double(workload.samples_per_prompt);
  const double limit = as_double(candidate.tokens), prompt = as_double(workload.prompt_tokens);
  if (prompt == 0) return {0, 0};
  const double later =
      request.traits.refills_alone && workload.response_tokens.cv > 0 ? sequences - slots : 0;
  const double prompts = std::ceil((sequences - later) / samples);
  const double batches = std::ceil(prompts * prompt / limit);
  const auto first = prefill(model, candidate, groups, prompts / batches);
  // Batches follow one another through p stages: (m + p - 1) / p of a whole pass.
  const double passes = (batches + candidate.pp - 1) / candidate.pp;
  if (later <= 0) return {passes * first[0], passes * first[1]};
  const double rate = slots / response;
  const double freed = std::max(1.0, rate / (1 - std::exp(-rate)));
  const auto refill = prefill(model, candidate, groups, 1 + (freed - 1) / samples);
  const double refills = later / freed;
  return {passes * first[0] + refills * refill[0], passes * first[1] + refills * refill[1]};
}

CostEvaluator::State::Timed CostEvaluator::State::generate(RoleModel& model,
                                                           const Candidate& candidate) {
  const Workload& workload = request.workload;
  const double sequences = of_fullest_replica(workload, candidate);
  const CandidateGroups groups = groups_of(candidate, cluster());
  const double slots = std::min(as_double(candidate.max_sequences), sequences);
  const auto [prefill_compute, prefill_comm] = prefills(model, candidate, groups, slots);
  const auto steps = decode(model, candidate, groups, sequences, static_cast<std::int64_t>(slots));
  const double compute = prefill_compute + steps[0] + calibration().call_s.value;
  const double communication = prefill_comm + steps[1];
  return {compute * slowdown(candidate, 1) + communication, communication};
}

}  // namespace tessera
