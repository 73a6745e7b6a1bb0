// Time of generation: prefill, full waves of decoding, and the tail of the last one.
#include <algorithm>

#include "planner/search/evaluate_state.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

std::array<double, kLayerKinds> layers_by_kind(const ModelSpec& model) {
  std::array<double, kLayerKinds> counts{};
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    counts[static_cast<std::size_t>(kind_of_layer(model, layer))] += 1;
  }
  return counts;
}

}  // namespace

// One decode step of `alive` sequences: {compute, communication}. With p stages, p batches of
// alive / p sequences are under way at once, and each passes all layers (vLLM's virtual engines).
std::array<double, 2> CostEvaluator::State::decode_step(const RoleModel& model,
                                                        const Candidate& candidate, double alive,
                                                        double context) {
  RankModel rank = rank_model(model, layer_run(candidate));
  const CandidateGroups groups = groups_of(candidate, cluster());
  const double batch_size = alive / candidate.pp;
  const TokenBatch batch{batch_size, batch_size, batch_size};
  Work work;
  double communication = 0;
  const auto counts = layers_by_kind(model.spec);
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind] == 0) continue;
    rank.kind = static_cast<LayerKind>(kind);
    work += counts[kind] * layer_decode(rank, batch_size, context, calibration());
    communication +=
        counts[kind] * (layer_tp_seconds(rank, batch_size, groups.tp, cluster(), calibration()) +
                        layer_ep_seconds(rank, batch_size, groups.ep, cluster(), calibration()));
  }
  work += embedding_forward(rank, batch, calibration());
  work += sample(rank, batch_size, calibration());
  communication += embedding_tp_seconds(rank, batch_size, groups.tp, cluster(), calibration()) +
                   sample_tp_seconds(rank, batch_size, groups.tp, cluster(), calibration());
  if (candidate.pp > 1) {
    const double hidden = batch_size * as_double(model.spec.hidden * size_of(model.dtypes.param));
    communication +=
        candidate.pp * collective_seconds(Collective::send_receive, hidden, {2, groups.hop_nodes},
                                          cluster(), calibration());
  }
  return {work.total(calibration()), communication};
}

// Decoding of `slots` sequences that start together, until the last one ends.
std::array<double, 2> CostEvaluator::State::decode_tail(const RoleModel& model,
                                                        const Candidate& candidate,
                                                        std::int64_t slots) {
  LayerRun run = layer_run(candidate);
  run.pp = candidate.pp;
  auto [entry, added] = decode_tails.try_emplace({run, slots});
  if (!added) return entry->second;
  const Workload& workload = request.workload;
  std::vector<std::array<double, 2>> steps;  // both parts are integrated over the same ones
  std::size_t next = 0;
  const auto integral = [&](const std::function<double(double, double)>& step) {
    return decode_seconds(workload.response_tokens, as_double(workload.prompt_tokens),
                          as_double(slots), step, workload.response_tokens.cv > 0 ? 24 : 4);
  };
  const double compute = integral([&](double alive, double context) {
    return steps.emplace_back(decode_step(model, candidate, alive, context))[0];
  });
  const double communication = integral([&](double, double) { return steps[next++][1]; });
  return entry->second = {compute, communication};
}

CostEvaluator::State::Timed CostEvaluator::State::generate(RoleModel& model,
                                                           const Candidate& candidate) {
  const Workload& workload = request.workload;
  const double sequences = as_double(workload.sequences()) / candidate.dp;
  const double prompts = as_double(workload.prompts_per_step) / candidate.dp;
  const auto prompt = as_double(workload.prompt_tokens);
  // Prompts are prefilled once and shared by their samples.
  const double batches = std::ceil(prompts * prompt / as_double(candidate.tokens));
  const double each = prompts / batches;
  RankModel rank = rank_model(model, layer_run(candidate));
  const TokenBatch batch{each * prompt, each, each * prompt * prompt};
  const CandidateGroups groups = groups_of(candidate, cluster());
  Work prefill;
  double prefill_comm = 0;
  const auto counts = layers_by_kind(model.spec);
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind] == 0) continue;
    rank.kind = static_cast<LayerKind>(kind);
    prefill += counts[kind] * layer_forward(rank, batch, calibration());
    prefill_comm +=
        counts[kind] * (layer_tp_seconds(rank, batch.tokens, groups.tp, cluster(), calibration()) +
                        layer_ep_seconds(rank, batch.tokens, groups.ep, cluster(), calibration()));
  }
  prefill += embedding_forward(rank, batch, calibration());
  // Batches follow one another through p stages: (m + p - 1) / p of a whole pass.
  const double passes = (batches + candidate.pp - 1) / candidate.pp;
  // Full waves decode at the mean context; the last one runs into the tail.
  const double slots = std::min(as_double(candidate.max_sequences), sequences);
  const double waves = sequences / slots;
  const auto tail = decode_tail(model, candidate, static_cast<std::int64_t>(slots));
  const auto full = waves > 1 ? decode_step(model, candidate, slots, prompt + response / 2)
                              : std::array<double, 2>{};
  const double compute = passes * prefill.total(calibration()) + tail[0] +
                         (waves - 1) * response * full[0] + calibration().call_s.value;
  const double communication = passes * prefill_comm + tail[1] + (waves - 1) * response * full[1];
  return {compute * slowdown(candidate, 1) + communication, communication};
}

}  // namespace tessera
