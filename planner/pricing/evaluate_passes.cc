// Time of forward and training passes through a pipeline.
#include <algorithm>

#include "cost_models/linear_communication.h"
#include "planner/pricing/evaluate_state.h"
#include "planner/pricing/pipeline_time.h"
#include "planner/request/candidate.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// Megatron-LM's linear layers communicate beside products since flash attention's and sequence
// parallelism's time (16c90445, September 2021; 6658158b, March 2022). Latent attention's are not
// pairs of products.
double tensor_seconds(const RankModel& rank, double tokens, bool backward, GroupShape group,
                      const ClusterSpec& cluster, const Calibration& calibration) {
  const bool since = rank.traits.flash_attention || rank.sequence_parallel;
  if (megatron_core(rank.traits) && since && calibration.overlapped_dispatch && !rank.model.mla) {
    return linear_tp_seconds(rank, tokens, backward, group, cluster, calibration);
  }
  return layer_tp_seconds(rank, tokens, group, cluster, calibration);
}

// Whether this candidate's expert parallelism runs beside the layers of another micro-batch.
bool experts_overlap(const EngineTraits& traits, const Candidate& candidate, GroupShape group) {
  if (candidate.recompute == Recompute::full) return false;
  return traits.expert_overlap == ExpertOverlap::always ||
         (traits.expert_overlap == ExpertOverlap::across_nodes && group.nodes > 1 &&
          candidate.pp > 1);
}

}  // namespace

double exposed(double communication, double compute, bool overlapped, double slowdown) {
  if (!overlapped) return communication;
  return std::max(0.0, communication - compute) + (slowdown - 1) * std::min(communication, compute);
}

LayerRun layer_run(const Candidate& candidate) {
  LayerRun run{.tp = candidate.tp,
               .cp = candidate.cp,
               .sequence_parallel = candidate.sequence_parallel,
               .ulysses = candidate.ulysses,
               .recompute = candidate.recompute};
  // Groups that lie elsewhere cost something else.
  if (candidate.ep * candidate.etp > 1) {
    run.ep = candidate.ep;
    run.etp = candidate.etp;
    run.pp = candidate.pp;
  }
  if (candidate.zero == 3 || candidate.dp_shard > 1) {
    run.sharded = true;
    run.dp_shard = candidate.dp_shard;
    run.pp = candidate.pp;
  }
  if (candidate.zero == 2 && candidate.dp * candidate.cp > 1) {  // see shard_seconds
    run.reduces_layers = true;
    run.pp = candidate.pp;
    run.dp = candidate.dp;
  }
  if (run.pp > 1 || run.ep > 1) run.dp = candidate.dp;
  return run;
}

ParallelLayout degrees_of(const Candidate& candidate) {
  return {.tp = candidate.tp,
          .cp = candidate.cp,
          .pp = candidate.pp,
          .vpp = candidate.vpp,
          .dp_replicate = candidate.dp / candidate.dp_shard,
          .dp_shard = candidate.dp_shard,
          .ep = candidate.ep,
          .etp = candidate.etp,
          .zero = candidate.zero,
          .stages = {}};
}

const MicroBatchCost& CostEvaluator::State::micro_batch(RoleModel& model,
                                                        const Candidate& candidate,
                                                        double sequences, bool training) {
  const LayerRun run = layer_run(candidate);
  auto [entry, added] = model.micro_batches[training ? 1 : 0][run].try_emplace(sequences);
  if (!added) return entry->second;
  // Layouts that differ in what is sharded share everything else.
  Candidate whole = candidate;
  whole.dp_shard = 1;
  whole.zero = 0;
  if (layer_run(whole) != run) {
    entry->second = micro_batch(model, whole, sequences, training);
    add_shards(entry->second, model, candidate, groups(candidate), training);
    return entry->second;
  }
  const TokenBatch batch{sequences * sequence, sequences, sequences * squared};
  const TokenBatch scored{sequences * response, sequences, 0};  // only responses are scored
  return entry->second =
             price_micro_batch(model, candidate, groups(candidate), batch, scored, training);
}

MicroBatchCost CostEvaluator::State::price_micro_batch(RoleModel& model, const Candidate& candidate,
                                                       const CandidateGroups& groups,
                                                       const TokenBatch& batch,
                                                       const TokenBatch& scored, bool training) {
  MicroBatchCost cost;
  RankModel rank = rank_model(model, layer_run(candidate));
  const EngineTraits& traits = request.traits;
  const bool beside_layers = training && experts_overlap(traits, candidate, groups.ep);
  for (int kind = 0; kind < kLayerKinds; ++kind) {
    const auto k = static_cast<std::size_t>(kind);
    if (model.layers[k] == 0) continue;
    rank.kind = static_cast<LayerKind>(kind);
    cost.forward[k] = layer_forward(rank, batch, calibration());
    const double dealt = layer_ep_seconds(rank, batch.tokens, groups.ep, cluster(), calibration());
    const double experts = beside_layers ? 0 : dealt;
    const double shared =
        tensor_seconds(rank, batch.tokens, false, groups.tp, cluster(), calibration()) + experts;
    cost.forward_comm[k] =
        shared + layer_cp_seconds(rank, batch, false, groups.cp, cluster(), calibration());
    if (!training) continue;
    cost.backward[k] = layer_backward(rank, batch, candidate.recompute, calibration());
    // Full recomputation runs the forward's collectives again.
    cost.backward_comm[k] =
        (candidate.recompute == Recompute::full ? shared : 0) + experts +
        tensor_seconds(rank, batch.tokens, true, groups.tp, cluster(), calibration()) +
        layer_cp_seconds(rank, batch, true, groups.cp, cluster(), calibration());
    if (beside_layers) {  // one micro-batch's way forward beside another's way back
      const Work both = cost.forward[k] + cost.backward[k];
      cost.backward_comm[k] +=
          exposed(2 * dealt, both.total(calibration()), true, kDispatchSlowdown);
    }
  }
  add_shards(cost, model, candidate, groups, training);
  cost.embedding = embedding_forward(rank, batch, calibration());
  cost.head_forward = head_forward(rank, scored, calibration());
  cost.embedding_tp = embedding_tp_seconds(rank, batch.tokens, groups.tp, cluster(), calibration());
  cost.head_tp = head_tp_seconds(rank, scored.tokens, groups.tp, cluster(), calibration());
  if (training) {
    cost.head_backward = head_backward(rank, scored, calibration());
    cost.head_backward_tp =
        head_backward_tp_seconds(rank, scored.tokens, groups.tp, cluster(), calibration());
  }
  return cost;
}

// What the layers' shards move beside their kernels.
void CostEvaluator::State::add_shards(MicroBatchCost& cost, RoleModel& model,
                                      const Candidate& candidate, const CandidateGroups& groups,
                                      bool training) {
  for (int kind = 0; kind < kLayerKinds; ++kind) {
    const auto k = static_cast<std::size_t>(kind);
    if (model.layers[k] == 0) continue;
    const ShardSeconds moved = layer_shards(model, candidate, groups, static_cast<LayerKind>(kind));
    cost.forward_shards[k] =
        beside_layer(moved, false, cost.forward[k].total(calibration()) + cost.forward_comm[k]);
    if (!training) continue;
    cost.backward_shards[k] =
        beside_layer(moved, true, cost.backward[k].total(calibration()) + cost.backward_comm[k]);
  }
}

double CostEvaluator::State::micro_batches(const Candidate& candidate, double sequences) {
  const auto [each, added] = packed_sequences.try_emplace(candidate.tokens, 0.0);
  if (added) each->second = packing->sequences(candidate.tokens);
  return std::clamp(std::ceil(sequences / each->second), 1.0, std::max(1.0, sequences));
}

// Hidden states of `tokens` that a rank hands to the next stage.
double CostEvaluator::State::hop_bytes(const RoleModel& model, const Candidate& candidate,
                                       double tokens) const {
  const double bytes =
      tokens / candidate.cp * as_double(model.spec.hidden * size_of(model.dtypes.param));
  return request.traits.scattered_hops ? bytes / candidate.tp : bytes;
}

// All micro-batches of `sequences` sequences of one replica through the pipeline.
CostEvaluator::State::Timed CostEvaluator::State::pipeline(RoleModel& model,
                                                           const Candidate& candidate,
                                                           double sequences, bool training) {
  const double count = micro_batches(candidate, sequences);
  const double each = sequences / count;
  const MicroBatchCost& cost = micro_batch(model, candidate, each, training);
  const double slow = slowdown(candidate, count / (count + candidate.pp - 1));
  const double hidden_bytes = hop_bytes(model, candidate, each * sequence);
  const CandidateGroups& groups = of_layout(model, candidate).groups;
  const int hop_nodes = candidate.pp == 1 ? 1 : groups.hop_nodes;
  const double hop =
      candidate.pp == 1
          ? 0
          : candidate.vpp * collective_seconds(Collective::send_receive, hidden_bytes,
                                               {2, hop_nodes}, cluster(), calibration());
  // Interleaved stages send what the next one needs while they compute (Megatron-LM's
  // overlap_p2p_comm); only filling and draining the pipeline waits for messages.
  const bool hidden_hops = request.traits.overlapped_hops && candidate.vpp > 1;
  Timed sum, slowest;
  std::vector<double> forward(at(candidate.pp)), backward(at(candidate.pp));
  for (const StageClass& stage : stages(model, candidate)) {
    Work work, back;
    double there = (stage.first ? cost.embedding_tp : 0) + (stage.last ? cost.head_tp : 0);
    double returned = stage.last ? cost.head_backward_tp : 0;
    for (std::size_t kind = 0; kind < stage.layers.size(); ++kind) {
      const double layers = as_double(stage.layers[kind]);
      if (layers == 0) continue;
      work += layers * cost.forward[kind];
      there += layers * (cost.forward_comm[kind] + cost.forward_shards[kind]);
      if (!training) continue;
      back += layers * cost.backward[kind];
      returned += layers * (cost.backward_comm[kind] + cost.backward_shards[kind]);
    }
    if (stage.first) work += cost.embedding;
    if (stage.last) work += cost.head_forward;
    if (stage.last && training) back += cost.head_backward;
    const double hop_on = stage.last ? 0 : hop, hop_back = training && !stage.first ? hop : 0;
    const Timed one = {(work.total(calibration()) + back.total(calibration())) * slow + there +
                           returned + hop_on + hop_back,
                       there + returned + hop_on + hop_back};
    sum.seconds += stage.count * one.seconds;
    sum.communication += stage.count * one.communication;
    const double hidden = hidden_hops ? hop_on + hop_back : 0;
    if (one.seconds - hidden > slowest.seconds) {
      slowest = {one.seconds - hidden, one.communication - hidden};
    }
    for (const int index : stage.indices) {
      forward[at(index)] = work.total(calibration()) * slow + there + hop_on;
      backward[at(index)] = back.total(calibration()) * slow + returned + hop_back;
    }
  }
  const ExposedEnds ends = exposed_ends(model, candidate, groups, 0);
  const double shown = ends.before + (training ? ends.after : 0);
  if (candidate.vpp == 1) {
    const double seconds = training ? one_f_one_b_seconds(forward, backward, count)
                                    : sum.seconds + (count - 1) * slowest.seconds;
    return {shown + seconds, shown + sum.communication + (count - 1) * slowest.communication};
  }
  // The bubble is v times shorter with v chunks (Narayanan et al. 2021, sec. 2.2.2); micro-batches
  // that do not fill the last round of p leave (v - 1) (p - m mod p) chunks empty (Calculon).
  const double chunks = candidate.vpp;
  double rounds = count - 1 / chunks;
  const double rest = std::fmod(count, candidate.pp);
  if (rest != 0) rounds += (chunks - 1) * (candidate.pp - rest) / chunks;
  return {shown + sum.seconds / chunks + rounds * slowest.seconds,
          shown + sum.communication / chunks + rounds * slowest.communication};
}

CostEvaluator::State::Timed CostEvaluator::State::update(RoleModel& model,
                                                         const Candidate& candidate) {
  const Workload& workload = request.workload;
  const double steps = as_double(workload.mini_batches * workload.epochs);
  const double sequences =
      as_double(workload.sequences()) / as_double(workload.mini_batches) / candidate.dp;
  const Timed passes = this->passes(model, candidate, sequences, true);
  // Two thirds of a micro-batch's time are its backward pass.
  const double last = passes.seconds / micro_batches(candidate, sequences) * 2 / 3;
  const Timed step = optimizer(model, candidate, last);
  const double host = calibration().call_s.value * slowdown(candidate, 1);
  return {steps * (passes.seconds + step.seconds + host) +
              offloaded_seconds(model, candidate, true, steps),
          steps * (passes.communication + step.communication)};
}

CostEvaluator::State::Timed CostEvaluator::State::infer(RoleModel& model,
                                                        const Candidate& candidate) {
  const double sequences = as_double(request.workload.sequences()) / candidate.dp;
  Timed pass = passes(model, candidate, sequences, false);
  pass.seconds += calibration().call_s.value * slowdown(candidate, 1) +
                  offloaded_seconds(model, candidate, false, 0);
  return pass;
}

}  // namespace tessera
