#include "planner/pricing/role/passes.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cmath>
#include <numeric>

#include "cost_models/pipeline/pipeline_time.h"
#include "cost_models/pipeline/uneven_batches.h"
#include "planner/pricing/role/shards.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// One micro-batch on one stage. What a stage sends counts as part of its pass.
struct StagePass {
  OperationTime both;  // forward, and backward where it trains
  Seconds forward, backward;
  Seconds hops;  // the part that hands it to other stages
};

// `hop`: of all chunks to another stage, of the first and last stage one less; `slow`: of kernels,
// 1 / their share of a core.
StagePass stage_pass(const MicroBatchCost& cost, const StageClass& stage, Seconds hop, int chunks,
                     double slow, bool training, const Calibration& calibration) {
  Work work, back;
  Seconds there =
      (stage.first ? cost.embedding_tp : Seconds{}) + (stage.last ? cost.head_tp : Seconds{});
  Seconds returned = stage.last ? cost.head_backward_tp : Seconds{};
  Seconds host = stage.first ? cost.software : Seconds{};
  const auto add_end = [&](const ShownShards& end) {
    there += end.all - end.fetched;
    host += end.fetched;
  };
  if (stage.first) add_end(cost.ends.embedding);
  if (stage.last) add_end(cost.ends.head);
  const Seconds host_back = stage.last && training ? cost.software_backward : Seconds{};
  for (std::size_t kind = 0; kind < stage.layers.size(); ++kind) {
    const double layers = as_double(stage.layers[kind]);
    if (layers == 0) continue;
    work += layers * cost.forward[kind];
    there +=
        layers * (cost.forward_comm[kind] + cost.forward_shards[kind] - cost.forward_fetched[kind]);
    host += layers * cost.forward_fetched[kind];
    if (!training) continue;
    back += layers * cost.backward[kind];
    returned += layers * (cost.backward_comm[kind] + cost.backward_shards[kind]);
  }
  if (stage.first) work += cost.embedding + cost.tower_forward;
  if (stage.first && training) back += cost.tower_backward;
  if (stage.last) work += cost.head_forward;
  if (stage.last && training) back += cost.head_backward;
  const Seconds hop_of_end = hop - hop / chunks;
  const Seconds hop_on = stage.last ? hop_of_end : hop;
  const Seconds hop_back = !training ? Seconds{} : stage.first ? hop_of_end : hop;
  const Seconds forward = work.total(calibration) * slow + there + hop_on + host;
  const Seconds backward = back.total(calibration) * slow + returned + hop_back + host_back;
  return {.both = {forward + backward, there + returned + hop_on + hop_back, host + host_back},
          .forward = forward,
          .backward = backward,
          .hops = hop_on + hop_back};
}

// What of all passes is neither communication, the host's, nor what the slowest stage computes
// itself.
Seconds bubble_of(const OperationTime& whole, const OperationTime& slowest, double count) {
  const auto computed = [](const OperationTime& time) {
    return time.seconds - time.communication - time.host;
  };
  return std::max(Seconds{}, computed(whole) - count * computed(slowest));
}

// A chunk of a plan's own cut, by its place in the model.
StageClass chunk_at(const RoleLayout& layout, std::size_t place) {
  const bool last = place + 1 == layout.cut->size();
  return {.layers = run_layers(layout.model->spec, (*layout.cut)[place], last),
          .first = place == 0,
          .last = last,
          .count = 1};
}

// One micro-batch on each chunk of a plan's own cut. `hop`: of one message; `beside`: it travels
// while its sender computes.
PassSeconds chunk_seconds(const RoleLayout& layout, const MicroBatchCost& cost, Seconds hop,
                          bool beside, double slow, bool training) {
  PassSeconds each;
  if (beside) each.hop = hop;
  const Seconds sent = beside ? Seconds{} : hop;
  for (std::size_t place = 0; place < layout.cut->size(); ++place) {
    const StageClass chunk = chunk_at(layout, place);
    const StagePass pass =
        stage_pass(cost, chunk, {}, 1, slow, training, layout.assumed->calibration());
    each.forward.push_back(pass.forward + (chunk.last ? Seconds{} : sent));
    each.backward.push_back(pass.backward + (chunk.first ? Seconds{} : sent));
  }
  return each;
}

// Between two whole numbers of micro-batches in proportion.
Seconds own_schedule_seconds(const StagedPass& pass, const PassSeconds& each, double count) {
  const double below = std::max(1.0, std::floor(count)), rest = std::max(0.0, count - below);
  const Seconds fewer = schedule_seconds(pass, each, static_cast<int>(below));
  if (rest == 0) return fewer;
  return fewer + rest * (schedule_seconds(pass, each, static_cast<int>(below) + 1) - fewer);
}

}  // namespace

Seconds hop_seconds(const RoleLayout& layout, const Candidate& candidate, double tokens) {
  if (candidate.pp == 1) return {};
  const Assumptions& assumed = *layout.assumed;
  return candidate.vpp * collective_seconds(Collective::send_receive,
                                            hop_bytes(layout, candidate, tokens), layout.groups.hop,
                                            assumed.cluster(), assumed.calibration());
}

// Gradients that are reduced once a mini-batch (no_sync) are left out. Work in all takes no more
// than its parts.
StagesSeconds of_all_stages(const RoleModel& model, const MicroBatchCost& cost, double slow,
                            bool training, const Calibration& calibration) {
  Work work, back;
  Seconds besides;
  for (std::size_t kind = 0; kind < model.layers.size(); ++kind) {
    const double layers = model.layers[kind] + as_double(model.mtp[kind]);
    if (layers == 0) continue;
    work += layers * cost.forward[kind];
    besides += layers * (cost.forward_comm[kind] + cost.forward_shards[kind]);
    if (!training) continue;
    back += layers * cost.backward[kind];
    besides += layers * cost.backward_comm[kind];
    if (!model.no_sync) besides += layers * cost.backward_shards[kind];
  }
  const auto sum = [&] {
    return slow * (work.total(calibration) + back.total(calibration)) + besides;
  };
  const Seconds of_layers = sum();
  work += cost.embedding + cost.tower_forward + cost.head_forward;
  besides += cost.embedding_tp + cost.head_tp + cost.software + cost.ends.embedding.all +
             cost.ends.head.all;
  if (training) {
    back += cost.tower_backward + cost.head_backward;
    besides += cost.head_backward_tp + cost.software_backward;
  }
  return {sum(), of_layers};
}

std::vector<double> chunk_shares(const RoleLayout& layout, const MicroBatchCost& cost) {
  const std::vector<Seconds> forward = chunk_seconds(layout, cost, {}, false, 1, false).forward;
  const Seconds all = std::accumulate(forward.begin(), forward.end(), Seconds{});
  std::vector<double> shares;
  for (const Seconds each : forward)
    shares.push_back(as_double(std::ssize(forward)) * (each / all));
  return shares;
}

Traffic hop_bytes(const RoleLayout& layout, const Candidate& candidate, double tokens) {
  const RoleModel& model = *layout.model;
  const Traffic bytes{tokens / candidate.cp *
                      as_double(stream_width(model.spec) * size_of(model.dtypes.param))};
  return layout.assumed->traits().pipeline.cut_by_tp ? bytes / candidate.tp : bytes;
}

PipelineTime pipeline_time(const RoleLayout& layout, const Candidate& candidate,
                           const MicroBatchCost& cost, const ExposedEnds& ends, double count,
                           double tokens, bool training) {
  const Assumptions& assumed = *layout.assumed;
  const double slow = slowdown(assumed, candidate, count / (count + candidate.pp - 1));
  const Seconds hop = hop_seconds(layout, candidate, tokens);
  // Interleaved stages send what the next one needs while they compute (Megatron-LM's
  // overlap_p2p_comm); only filling and draining the pipeline waits for messages.
  const bool hidden_hops = assumed.traits().pipeline.overlapped && candidate.vpp > 1;
  OperationTime sum, slowest;
  const bool one_by_one = training && candidate.vpp == 1;  // 1F1B, which asks for every stage's
  const std::size_t stages = one_by_one ? at(candidate.pp) : 0;
  boost::container::small_vector<Seconds, 32> forward(stages), backward(stages);
  for (const StageClass& stage : *layout.stages) {
    const StagePass pass =
        stage_pass(cost, stage, hop, candidate.vpp, slow, training, assumed.calibration());
    const OperationTime one = pass.both;
    sum = sum + stage.count * one;
    const Seconds hidden = hidden_hops ? pass.hops : Seconds{};
    if (one.seconds - hidden > slowest.seconds) {
      slowest = {one.seconds - hidden, one.communication - hidden, one.host};
    }
    if (!one_by_one) continue;
    for (const int index : stage.indices) {
      forward[at(index)] = pass.forward;
      backward[at(index)] = pass.backward;
    }
  }
  const Seconds moved = ends.before + (training ? ends.after : Seconds{});
  const OperationTime shown{moved, moved - ends.fetched, ends.fetched};
  if (candidate.vpp == 1) {
    OperationTime whole = shown + sum + (count - 1) * slowest;
    if (one_by_one) {
      whole.seconds = moved + one_f_one_b_seconds({forward.data(), forward.size()},
                                                  {backward.data(), backward.size()}, count);
    }
    return {.whole = whole,
            .slowest = slowest.seconds,
            .incomplete = {},
            .bubble = candidate.pp == 1 ? Seconds{} : bubble_of(whole, slowest, count)};
  }
  // The bubble is v times shorter with v chunks (Narayanan et al. 2021, sec. 2.2.2); micro-batches
  // that do not fill the last round of p leave (v - 1) (p - m mod p) chunks empty (Calculon).
  const double chunks = candidate.vpp;
  const double rest = std::fmod(count, candidate.pp);
  const double empty = rest != 0 ? (chunks - 1) * (candidate.pp - rest) / chunks : 0;
  OperationTime whole = shown + 1 / chunks * sum + (count - 1 / chunks + empty) * slowest;
  if (layout.cut != nullptr) {
    const PassSeconds each = chunk_seconds(layout, cost, hop / chunks, hidden_hops, slow, training);
    whole.seconds =
        moved + own_schedule_seconds({candidate.pp, candidate.vpp, training}, each, count);
    whole.communication = std::min(whole.communication, whole.seconds - whole.host);
  }
  return {.whole = whole,
          .slowest = slowest.seconds,
          .incomplete = empty * slowest.seconds,
          .bubble = bubble_of(whole, slowest, count)};
}

}  // namespace tessera
