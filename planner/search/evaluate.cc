#include "planner/search/evaluate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "cost_models/collective.h"
#include "cost_models/compute.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/lengths.h"

namespace tessera {
namespace {

std::size_t at(Phase phase) { return static_cast<std::size_t>(phase); }

// Costs of one micro-batch on one tensor-parallel rank, per layer and at the model's two ends.
struct MicroBatchCost {
  Work layer_forward, layer_backward, embedding, head_forward, head_backward;
  double layer_tp = 0, embedding_tp = 0, head_tp = 0, head_backward_tp = 0;
};

// Overlaps of training and generation shards, in elements, by [training tp rank][generation rank].
struct ShardOverlap {
  std::vector<std::vector<std::int64_t>> layer, first, last, both;
};

struct RoleModel {
  ModelSpec spec;
  RoleDTypes dtypes;
  ParameterTable table;
  std::map<int, ShardElements> shards;  // by tp
  std::map<std::tuple<int, double, bool>, MicroBatchCost>
      micro_batches;                                                  // by tp, sequences, training
  std::map<std::pair<int, int>, std::vector<std::int64_t>> elements;  // by tp, pp; of stages
};

}  // namespace

struct CostEvaluator::State {
  PlanRequest request;
  std::map<Role, RoleModel> models;
  double response = 0, sequence = 0, squared = 0;  // expected tokens, tokens^2 of a sequence
  std::map<std::tuple<int, std::int64_t>, std::array<double, 2>> decode_tails;
  std::map<std::pair<int, int>, ShardOverlap> overlaps;
  std::map<std::tuple<int, int, int>, std::int64_t> reshard_volumes;

  explicit State(const PlanRequest& asked) : request(asked) {
    const Workload& workload = request.workload;
    const auto prompt = static_cast<double>(workload.prompt_tokens);
    response = mean_length(workload.response_tokens);
    sequence = prompt + response;
    squared =
        prompt * prompt + 2 * prompt * response + mean_square_length(workload.response_tokens);
    for (const Role role : roles_of(workload)) {
      const ModelSpec spec = model_of(request, role);
      models[role] = {spec, dtypes_of(request, role), parameter_table(spec), {}, {}, {}};
    }
  }

  const Calibration& calibration() const { return request.calibration; }
  const ClusterSpec& cluster() const { return request.cluster; }

  RankModel rank_model(const RoleModel& model, int tp) const {
    return {model.spec, tp, model.dtypes.param};
  }

  const ShardElements& shards(RoleModel& model, int tp) {
    auto [entry, added] = model.shards.try_emplace(tp);
    if (added) entry->second = shard_elements(model.table, tp);
    return entry->second;
  }

  const std::vector<std::int64_t>& elements(RoleModel& model, const Candidate& candidate) {
    auto [entry, added] = model.elements.try_emplace({candidate.tp, candidate.pp});
    if (added) {
      const ParallelLayout layout = layout_of(candidate, model.spec.layers);
      for (int stage = 0; stage < candidate.pp; ++stage) {
        entry->second.push_back(stage_elements(shards(model, candidate.tp), layout, stage));
      }
    }
    return entry->second;
  }

  // 1 / the speed of a rank while `used` GPUs of the candidate's block work `part` of the time.
  double slowdown(const Candidate& candidate, double part) const {
    const auto per_node = static_cast<double>(cluster().gpus_per_node);
    const double busy = std::min<double>(candidate.gpus, per_node) * part;
    return 1 / core_share(calibration(), busy, per_node - busy);
  }

  const MicroBatchCost& micro_batch(RoleModel& model, int tp, double sequences, bool training) {
    auto [entry, added] = model.micro_batches.try_emplace({tp, sequences, training});
    MicroBatchCost& cost = entry->second;
    if (!added) return cost;
    const RankModel rank = rank_model(model, tp);
    const TokenBatch batch{sequences * sequence, sequences, sequences * squared};
    const TokenBatch scored{sequences * response, sequences, 0};  // only responses are scored
    const GroupShape group{tp, 1};
    cost.layer_forward = layer_forward(rank, batch, calibration());
    cost.embedding = embedding_forward(rank, batch, calibration());
    cost.head_forward = head_forward(rank, scored, calibration());
    cost.layer_tp = layer_tp_seconds(rank, batch.tokens, group, cluster(), calibration());
    cost.embedding_tp = embedding_tp_seconds(rank, batch.tokens, group, cluster(), calibration());
    cost.head_tp = head_tp_seconds(rank, scored.tokens, group, cluster(), calibration());
    if (training) {
      cost.layer_backward = layer_backward(rank, batch, Recompute::none, calibration());
      cost.head_backward = head_backward(rank, scored, calibration());
      cost.head_backward_tp =
          head_backward_tp_seconds(rank, scored.tokens, group, cluster(), calibration());
    }
    return cost;
  }

  struct Timed {
    double seconds = 0, communication = 0;
  };

  // All micro-batches of `sequences` sequences of one replica through the pipeline.
  Timed pipeline(RoleModel& model, const Candidate& candidate, double sequences, bool training) {
    const auto limit = static_cast<double>(candidate.tokens);
    const double micro_batches =
        std::clamp(std::ceil(sequences * sequence / limit), 1.0, sequences);
    const double each = sequences / micro_batches;
    const MicroBatchCost& cost = micro_batch(model, candidate.tp, each, training);
    const double slow = slowdown(candidate, micro_batches / (micro_batches + candidate.pp - 1));
    const double hidden_bytes =
        each * sequence * static_cast<double>(model.spec.hidden * size_of(model.dtypes.param));
    const int nodes = candidate.tp * candidate.pp > cluster().gpus_per_node ? 2 : 1;
    const double hop = candidate.pp == 1
                           ? 0
                           : collective_seconds(Collective::send_receive, hidden_bytes, {2, nodes},
                                                cluster(), calibration());
    Timed sum, slowest;
    for (int stage = 0; stage < candidate.pp; ++stage) {
      const auto layers = static_cast<double>(split(model.spec.layers, candidate.pp, stage).size());
      const bool first = stage == 0, last = stage == candidate.pp - 1;
      Work work = layers * cost.layer_forward;
      double communication = layers * cost.layer_tp + (first ? cost.embedding_tp : 0) +
                             (last ? cost.head_tp : 0) + (last ? 0 : hop);
      if (first) work += cost.embedding;
      if (last) work += cost.head_forward;
      double seconds = work.total(calibration());
      if (training) {
        Work backward = layers * cost.layer_backward;
        if (last) backward += cost.head_backward;
        seconds += backward.total(calibration());
        communication +=
            layers * cost.layer_tp + (last ? cost.head_backward_tp : 0) + (first ? 0 : hop);
      }
      seconds = seconds * slow + communication;
      sum.seconds += seconds;
      sum.communication += communication;
      if (seconds > slowest.seconds) slowest = {seconds, communication};
    }
    return {sum.seconds + (micro_batches - 1) * slowest.seconds,
            sum.communication + (micro_batches - 1) * slowest.communication};
  }

  // Gradients over the replicas, the update of this rank's part, parameters back under ZeRO-1.
  Timed optimizer(RoleModel& model, const Candidate& candidate) {
    const auto& by_stage = elements(model, candidate);
    const auto count = static_cast<double>(*std::max_element(by_stage.begin(), by_stage.end()));
    const GroupShape group = group_shape(cluster(), candidate.dp, candidate.tp * candidate.pp);
    const double gradient = count * static_cast<double>(size_of(model.dtypes.grad));
    const double parameter = count * static_cast<double>(size_of(model.dtypes.param));
    const bool sharded = candidate.zero >= 1;
    const auto collective = [&](Collective what, double bytes) {
      return tessera::collective_seconds(what, bytes, group, cluster(), calibration());
    };
    const double communication = sharded ? collective(Collective::reduce_scatter, gradient) +
                                               collective(Collective::all_gather, parameter)
                                         : collective(Collective::all_reduce, gradient);
    const auto tensors = static_cast<double>(model.table.rows.size()) / candidate.pp;
    const Work work =
        optimizer_step(count, sharded ? candidate.dp : 1, tensors, model.dtypes, calibration());
    return {work.total(calibration()) * slowdown(candidate, 1) + communication, communication};
  }

  Timed update(RoleModel& model, const Candidate& candidate) {
    const Workload& workload = request.workload;
    const double steps = static_cast<double>(workload.mini_batches * workload.epochs);
    const double sequences = static_cast<double>(workload.sequences()) /
                             static_cast<double>(workload.mini_batches) / candidate.dp;
    const Timed passes = pipeline(model, candidate, sequences, true);
    const Timed step = optimizer(model, candidate);
    const double host = calibration().call_s.value * slowdown(candidate, 1);
    return {steps * (passes.seconds + step.seconds + host),
            steps * (passes.communication + step.communication)};
  }

  Timed infer(RoleModel& model, const Candidate& candidate) {
    const double sequences = static_cast<double>(request.workload.sequences()) / candidate.dp;
    Timed pass = pipeline(model, candidate, sequences, false);
    pass.seconds += calibration().call_s.value * slowdown(candidate, 1);
    return pass;
  }

  // One decode step of `alive` sequences: {compute, communication}.
  std::array<double, 2> decode_step(const RoleModel& model, int tp, double alive, double context) {
    const RankModel rank = rank_model(model, tp);
    const auto layers = static_cast<double>(model.spec.layers);
    const GroupShape group{tp, 1};
    const TokenBatch batch{alive, alive, alive};
    Work work = layers * layer_decode(rank, alive, context, calibration());
    work += embedding_forward(rank, batch, calibration());
    work += sample(rank, alive, calibration());
    const double communication =
        layers * layer_tp_seconds(rank, alive, group, cluster(), calibration()) +
        embedding_tp_seconds(rank, alive, group, cluster(), calibration()) +
        sample_tp_seconds(rank, alive, group, cluster(), calibration());
    return {work.total(calibration()), communication};
  }

  // Decoding of `slots` sequences that start together, until the last one ends.
  std::array<double, 2> decode_tail(const RoleModel& model, int tp, std::int64_t slots) {
    auto [entry, added] = decode_tails.try_emplace({tp, slots});
    if (!added) return entry->second;
    const Workload& workload = request.workload;
    const auto part = [&](std::size_t which) {
      return decode_seconds(
          workload.response_tokens, static_cast<double>(workload.prompt_tokens),
          static_cast<double>(slots),
          [&](double alive, double context) {
            return decode_step(model, tp, alive, context)[which];
          },
          workload.response_tokens.cv > 0 ? 24 : 4);
    };
    return entry->second = {part(0), part(1)};
  }

  Timed generate(RoleModel& model, const Candidate& candidate) {
    const Workload& workload = request.workload;
    const double sequences = static_cast<double>(workload.sequences()) / candidate.dp;
    const double prompts = static_cast<double>(workload.prompts_per_step) / candidate.dp;
    const auto prompt = static_cast<double>(workload.prompt_tokens);
    // Prompts are prefilled once and shared by their samples.
    const double batches = std::ceil(prompts * prompt / static_cast<double>(candidate.tokens));
    const double each = prompts / batches;
    const RankModel rank = rank_model(model, candidate.tp);
    const TokenBatch batch{each * prompt, each, each * prompt * prompt};
    const GroupShape group{candidate.tp, 1};
    const auto layers = static_cast<double>(model.spec.layers);
    Work prefill = layers * layer_forward(rank, batch, calibration());
    prefill += embedding_forward(rank, batch, calibration());
    const double prefill_tp =
        layers * layer_tp_seconds(rank, batch.tokens, group, cluster(), calibration());
    // Full waves decode at the mean context; the last one runs into the tail.
    const double slots = std::min(static_cast<double>(candidate.max_sequences), sequences);
    const double waves = sequences / slots;
    const auto tail = decode_tail(model, candidate.tp, static_cast<std::int64_t>(slots));
    const auto full = waves > 1 ? decode_step(model, candidate.tp, slots, prompt + response / 2)
                                : std::array<double, 2>{};
    const double compute = batches * prefill.total(calibration()) + tail[0] +
                           (waves - 1) * response * full[0] + calibration().call_s.value;
    const double communication = batches * prefill_tp + tail[1] + (waves - 1) * response * full[1];
    return {compute * slowdown(candidate, 1) + communication, communication};
  }

  Timed phase_time(RoleModel& model, const Candidate& candidate, Phase phase) {
    for (const Call& call : request.workload.dataflow) {
      if (call.phase != phase) continue;
      switch (call.kind) {
        case CallKind::generate:
          return generate(model, candidate);
        case CallKind::infer:
          return infer(model, candidate);
        case CallKind::train:
          return update(model, candidate);
        case CallKind::compute:
          break;
      }
    }
    return {};
  }

  MemoryUse stage_memory(RoleModel& model, const Candidate& candidate, int stage, Phase phase) {
    const Workload& workload = request.workload;
    const bool trained = is_trained(workload, candidate.role);
    const ParallelLayout layout{.tp = candidate.tp,
                                .pp = candidate.pp,
                                .dp_replicate = candidate.dp,
                                .zero = candidate.zero,
                                .stages = {}};
    const MemoryUse resident = resident_memory(
        elements(model, candidate)[static_cast<std::size_t>(stage)], layout, model.dtypes, trained);
    const auto phases = phases_of(workload, candidate.role);
    if (std::find(phases.begin(), phases.end(), phase) == phases.end()) return resident;
    const RankModel rank = rank_model(model, candidate.tp);
    const bool last = stage == candidate.pp - 1;
    const std::int64_t layers = split(model.spec.layers, candidate.pp, stage).size();
    // A sequence that is alone in its micro-batch may be longer than the limit.
    const auto tokens = static_cast<double>(std::max(candidate.tokens, longest_sequence(workload)));
    for (const Call& call : workload.dataflow) {
      if (call.phase != phase) continue;
      if (call.kind == CallKind::generate) {
        return resident + rollout_memory(rank, model.dtypes.kv, candidate.max_sequences,
                                         longest_sequence(workload),
                                         static_cast<double>(candidate.tokens));
      }
      if (call.kind == CallKind::infer) return resident + inference_memory(rank, last, tokens);
      const double sequences =
          static_cast<double>(workload.sequences() / workload.mini_batches) / candidate.dp;
      const auto micro_batches = static_cast<int>(
          std::clamp(std::ceil(sequences * sequence / static_cast<double>(candidate.tokens)), 1.0,
                     std::max(1.0, sequences)));
      const int in_flight = micro_batches_in_flight(micro_batches, candidate.pp, stage);
      return resident + training_memory(rank, layers, last, tokens, in_flight, Recompute::none);
    }
    return resident;
  }

  // The stage whose ranks hold most in a phase. Only the ends and one stage of most layers can.
  int fullest(RoleModel& model, const Candidate& candidate, Phase phase) {
    int best = 0;
    std::int64_t most = -1;
    for (int stage = 0; stage < candidate.pp; ++stage) {
      const std::int64_t total = stage_memory(model, candidate, stage, phase).total();
      if (total > most) {
        most = total;
        best = stage;
      }
    }
    return best;
  }

  const ShardOverlap& overlap(int training_tp, int rollout_tp) {
    auto [entry, added] = overlaps.try_emplace({training_tp, rollout_tp});
    ShardOverlap& result = entry->second;
    if (!added) return result;
    const ParameterTable& table = models.at(Role::actor).table;
    const auto layers = table.model.layers;
    const ParallelLayout from{.tp = training_tp, .stages = even_stages(layers, 1)};
    const ParallelLayout to{.tp = rollout_tp, .stages = even_stages(layers, 1)};
    const std::vector<std::vector<std::int64_t>> zeros(
        static_cast<std::size_t>(training_tp),
        std::vector<std::int64_t>(static_cast<std::size_t>(rollout_tp), 0));
    result = {zeros, zeros, zeros, zeros};
    for (const Parameter& parameter : table.rows) {
      if (parameter.layer > 0) continue;
      auto& sums = parameter.place == StagePlace::layer       ? result.layer
                   : parameter.place == StagePlace::embedding ? result.first
                   : parameter.place == StagePlace::head      ? result.last
                                                              : result.both;
      for (int i = 0; i < training_tp; ++i) {
        const auto held = compute_box(parameter, from, {.tp = i});
        for (int j = 0; j < rollout_tp; ++j) {
          const auto wanted = compute_box(parameter, to, {.tp = j});
          if (held && wanted) {
            sums[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] +=
                volume(intersect(*held, *wanted));
          }
        }
      }
    }
    return result;
  }

  std::int64_t reshard_bytes(const Candidate& actor, const Candidate& rollout) {
    RoleModel& model = models.at(Role::actor);
    auto [entry, added] = reshard_volumes.try_emplace({actor.tp, actor.pp, rollout.tp}, 0);
    if (!added) return entry->second;
    const ShardOverlap& common = overlap(actor.tp, rollout.tp);
    const ShardElements& wanted = shards(model, rollout.tp);
    const bool strided = rollout_order(actor, rollout) == RankOrder::strided;
    const int period = std::lcm(actor.tp * actor.pp, rollout.tp);
    std::int64_t most = 0;
    for (int rank = 0; rank < period; ++rank) {
      const int i = rank % actor.tp, stage = rank / actor.tp % actor.pp;
      const int j = strided ? i / (actor.tp / rollout.tp) : rank % rollout.tp;
      const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j);
      const std::int64_t all =
          model.spec.layers * wanted.layer[b] + wanted.first[b] + wanted.last[b] + wanted.both[b];
      const bool first = stage == 0, last = stage == actor.pp - 1;
      const std::int64_t kept =
          split(model.spec.layers, actor.pp, stage).size() * common.layer[a][b] +
          (first ? common.first[a][b] : 0) + (last ? common.last[a][b] : 0) +
          (first || last ? common.both[a][b] : 0);
      most = std::max(most, all - kept);
    }
    return entry->second = most * size_of(model.dtypes.wire);
  }
};

CostEvaluator::CostEvaluator(const PlanRequest& request)
    : state_(std::make_unique<State>(request)) {}
CostEvaluator::~CostEvaluator() = default;

RoleCost CostEvaluator::cost(const Candidate& candidate) const {
  RoleModel& model = state_->models.at(candidate.role);
  RoleCost cost;
  const Phase idle = Phase::save_checkpoint;  // no role computes in it
  for (int stage = 0; stage < candidate.pp; ++stage) {
    cost.resident =
        std::max(cost.resident, state_->stage_memory(model, candidate, stage, idle).total());
  }
  cost.peak = cost.resident;
  for (const Phase phase : phases_of(state_->request.workload, candidate.role)) {
    const auto timed = state_->phase_time(model, candidate, phase);
    cost.seconds[at(phase)] = timed.seconds;
    cost.communication[at(phase)] = timed.communication;
    cost.peak = std::max(cost.peak, memory(candidate, phase).total());
  }
  return cost;
}

double CostEvaluator::reshard_seconds(const Candidate& actor, const Candidate& rollout) const {
  const ClusterSpec& cluster = state_->request.cluster;
  const auto received = static_cast<double>(state_->reshard_bytes(actor, rollout));
  if (received <= 0) return 0;
  // Stages on other nodes come over the network: p - U / t of p.
  const double stages_on_node = std::clamp(static_cast<double>(cluster.gpus_per_node) / actor.tp,
                                           1.0, static_cast<double>(actor.pp));
  const double inter = received * (1 - stages_on_node / actor.pp);
  const int peers = std::max(1, actor.tp * actor.pp / std::gcd(actor.tp, rollout.tp) - 1);
  return tessera::reshard_seconds(received - inter, inter, peers, cluster,
                                  state_->request.calibration);
}

int CostEvaluator::fullest_stage(const Candidate& candidate, Phase phase) const {
  return state_->fullest(state_->models.at(candidate.role), candidate, phase);
}

MemoryUse CostEvaluator::memory(const Candidate& candidate, Phase phase, int stage) const {
  return state_->stage_memory(state_->models.at(candidate.role), candidate, stage, phase);
}

MemoryUse CostEvaluator::memory(const Candidate& candidate, Phase phase) const {
  return memory(candidate, phase, fullest_stage(candidate, phase));
}

std::int64_t CostEvaluator::reshard_bytes(const Candidate& actor, const Candidate& rollout) const {
  return state_->reshard_bytes(actor, rollout);
}

Evaluator CostEvaluator::evaluator() const {
  return {[this](const Candidate& candidate) { return cost(candidate); },
          [this](const Candidate& actor, const Candidate& rollout) {
            return reshard_seconds(actor, rollout);
          }};
}

std::int64_t memory_limit(const PlanRequest& request) {
  const auto memory = static_cast<double>(request.cluster.device.memory.value);
  return static_cast<std::int64_t>(memory * (1 - request.calibration.fragmentation.value) -
                                   request.calibration.reserve_bytes.value);
}

std::array<double, kPhaseCount> compute_call_seconds(const PlanRequest& request) {
  std::array<double, kPhaseCount> seconds{};
  for (const Call& call : request.workload.dataflow) {
    if (call.kind == CallKind::compute) {
      seconds[at(call.phase)] = request.calibration.call_s.value;
    }
  }
  return seconds;
}

}  // namespace tessera
