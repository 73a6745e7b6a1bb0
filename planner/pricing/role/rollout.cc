#include "planner/pricing/role/rollout.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cost_models/compute.h"
#include "cost_models/spec/expert_parallel.h"
#include "planner/pricing/role/micro_batch.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

// Of the replica that has most: the step waits for it.
double most_sequences(const Assumptions& assumed, const Candidate& candidate) {
  return as_double(tessera::most_sequences(assumed.workload(), assumed.prompts, candidate.dp));
}

constexpr double kRungsPerOctave = 2;

// Sequences at the rungs of every ladder: rung i stands for `most` x 2^(-i / 2), the last one for
// one.
std::vector<double> rungs_of(double most) {
  std::vector<double> rungs;
  const auto last = static_cast<std::size_t>(std::ceil(kRungsPerOctave * std::log2(most)));
  for (std::size_t rung = 0; rung <= last; ++rung) {
    rungs.push_back(std::max(1.0, most * std::exp2(-static_cast<double>(rung) / kRungsPerOctave)));
  }
  return rungs;
}

// Where so many sequences lie between two rungs: at `upper`, or by `part` of the way up from the
// next one.
struct RungPlace {
  std::size_t upper = 0;
  double part = 1;
};

RungPlace place_of(const std::vector<double>& rungs, double sequences) {
  const std::size_t last = rungs.size() - 1;
  const double exact = std::clamp(kRungsPerOctave * std::log2(rungs.front() / sequences), 0.0,
                                  static_cast<double>(last));
  const auto upper = static_cast<std::size_t>(exact + 1e-9);
  if (upper == last || exact - static_cast<double>(upper) < 1e-9) return {upper};
  const double high = rungs[upper], low = rungs[upper + 1];
  return {upper, (sequences - low) / (high - low)};
}

// The value at a place of a ladder; `price(sequences, context)` is asked once for each point.
template <typename Price>
Seconds on_ladder(DecodeLadder& ladder, const std::vector<double>& rungs, RungPlace place,
                  std::size_t context, const Price& price) {
  if (ladder.rungs.empty()) {
    std::array<Seconds, DecodeLadder::kContexts> unknown;
    unknown.fill(Seconds{std::numeric_limits<double>::quiet_NaN()});
    ladder.rungs.assign(rungs.size(), unknown);
  }
  const auto at = [&](std::size_t rung) {
    Seconds& known = ladder.rungs[rung][context];
    if (std::isnan(known.value)) known = price(rungs[rung], context);
    return known;
  };
  if (place.part == 1) return at(place.upper);
  const Seconds below = at(place.upper + 1);
  return below + place.part * (at(place.upper) - below);
}

// What the device of a serving engine waits for between two replayed steps: drawn tokens come to
// the host, which schedules and prepares the next step. A 1B model's step of one sequence takes 2.7
// ms on a GPU that reads it in 0.75 (vllm-project/vllm#17866, V1); scheduling takes 12.7 us a
// sequence (openfabric-systems/simllm#204, vLLM 0.27). Together 4.8 ms at 256 sequences, where 5 to
// 6 were seen (vllm-project/vllm#10634) and 5 to 13 in 2024 (#6854).
constexpr Seconds kStepWait{1.5e-3}, kSequenceWait{12.7e-6};

// What a fixed order costs a layer besides, in a decode step of so many sequences at a context.
Seconds fixed_order_decode_seconds(const Assumptions& assumed, const RankModel& rank,
                                   double sequences, double context) {
  if (!assumed.order) return {};
  const LayerShape shape = rank.layer();
  if (shape.window > 0) context = std::min(context, static_cast<double>(shape.window));
  const double pairs = sequences * static_cast<double>(rank.kv_heads());
  const Traffic bytes{static_cast<double>(size_of(rank.dtype)) *
                      static_cast<double>(shape.key_dim + shape.value_dim) * pairs * context};
  return assumed.order->start +
         assumed.order->reads *
             (bytes / BytesPerSecond{assumed.calibration().memory_bandwidth.value});
}

}  // namespace

void DecodeCache::forget_seconds() {
  decodings.clear();
  computes.clear();
}

Seconds decode_compute(const RoleLayout& layout, const Candidate& candidate, double alive,
                       double context) {
  const Assumptions& assumed = *layout.assumed;
  const Calibration& calibration = assumed.calibration();
  const LayerRanks& ranks = *layout.decoding_ranks;
  const Workload& workload = assumed.workload();
  const double batch_size = alive / candidate.pp;
  // Samples of a prompt lie on one replica and start together: as many as there are read its pages.
  const double siblings =
      std::clamp(as_double(workload.samples_per_prompt), 1.0, std::max(1.0, batch_size));
  const CacheReads reads{context, as_double(workload.prompt_tokens) * (1 - 1 / siblings)};
  Work work;
  for (std::size_t kind = 0; kind < ranks.size(); ++kind) {
    const double layers = layout.model->layers[kind];
    if (layers == 0) continue;
    work += layers * layer_decode(ranks[kind], batch_size, reads, calibration);
    work.device += layers * fixed_order_decode_seconds(assumed, ranks[kind], batch_size, context);
  }
  const RankModel& rank = ranks[static_cast<std::size_t>(layout.model->last_kind)];
  work += embedding_decode(rank, batch_size, calibration);
  work += sample(rank, batch_size, calibration);
  const DecodeTraits& decode = assumed.traits().decode;
  if (!decode.graphed || !calibration.overlapped_dispatch) return work.total(calibration);
  return work.total(calibration) +
         calibration.serving.value *
             (decode.launched_ahead ? decode.step_gap : kStepWait + batch_size * kSequenceWait);
}

Seconds decode_communication(const RoleLayout& layout, const Candidate& candidate, double alive) {
  const ClusterSpec& cluster = layout.assumed->cluster();
  const Calibration& calibration = layout.assumed->calibration();
  const RoleModel& model = *layout.model;
  const LayerRanks& ranks = *layout.decoding_ranks;
  const CandidateGroups& groups = layout.groups;
  const double batch_size = alive / candidate.pp;
  Seconds seconds;
  for (std::size_t kind = 0; kind < ranks.size(); ++kind) {
    const double layers = model.layers[kind];
    if (layers == 0) continue;
    seconds +=
        layers * (layer_tp_seconds(ranks[kind], batch_size, groups.tp, cluster, calibration) +
                  layer_ep_seconds(ranks[kind], batch_size, groups.ep, cluster, calibration));
  }
  const RankModel& rank = ranks[static_cast<std::size_t>(model.last_kind)];
  seconds += embedding_tp_seconds(rank, batch_size, groups.tp, cluster, calibration) +
             sample_tp_seconds(rank, batch_size, groups.tp, cluster, calibration);
  if (candidate.pp > 1) {
    const Traffic hidden{batch_size *
                         as_double(stream_width(model.spec) * size_of(model.dtypes.param))};
    seconds += candidate.pp * collective_seconds(Collective::send_receive, hidden, groups.hop,
                                                 cluster, calibration);
  }
  return seconds;
}

Seconds served(const Assumptions& assumed, const Candidate& candidate, double alive, Seconds step) {
  const DecodeTraits& decode = assumed.traits().decode;
  constexpr double kFewRequests = 128;
  const double doublings =
      std::log2(std::max(1.0, most_sequences(assumed, candidate) / kFewRequests));
  const Seconds front = alive * (decode.token_served + doublings * decode.token_crowded);
  return std::max(step, assumed.calibration().serving.value * front);
}

PrefillSeconds prefill(const RoleLayout& layout, double prompts, double sequences) {
  const ClusterSpec& cluster = layout.assumed->cluster();
  const Calibration& calibration = layout.assumed->calibration();
  const CandidateGroups& groups = layout.groups;
  const auto prompt = as_double(layout.assumed->workload().prompt_tokens);
  const TokenBatch batch{prompts * prompt, prompts, prompts * prompt * prompt};
  Work work;
  Seconds communication;
  const RankModel* ends = &layout.ranks->front();  // of the model's ends: a rank of any kind
  for (std::size_t kind = 0; kind < layout.ranks->size(); ++kind) {
    const double layers = layout.model->layers[kind];
    if (layers == 0) continue;
    const RankModel& rank = (*layout.ranks)[kind];
    ends = &rank;
    work += layers * layer_forward(rank, batch, calibration);
    work.device += layers * fixed_order_pass_seconds(*layout.assumed, rank, batch);
    communication +=
        layers * (layer_tp_seconds(rank, batch.tokens, groups.tp, cluster, calibration) +
                  layer_ep_seconds(rank, batch.tokens, groups.ep, cluster, calibration));
  }
  work += embedding_forward(*ends, batch, calibration);
  if (const auto& tower = layout.model->tower) {
    const ImageBatch images = images_of(layout.assumed->workload(), prompts);
    work += tower_forward(*tower, images, calibration);
  }
  work += sample(*ends, sequences, calibration);
  communication += embedding_tp_seconds(*ends, batch.tokens, groups.tp, cluster, calibration) +
                   sample_tp_seconds(*ends, sequences, groups.tp, cluster, calibration);
  return {work.total(calibration), communication};
}

namespace {

const DecodeProfile& decode_profile(const Workload& workload, double sequences, std::int64_t slots,
                                    DecodeCache& cache) {
  const auto [entry, added] = cache.profiles.try_emplace({sequences, slots});
  if (added) {
    if (!cache.lengths) {
      cache.lengths.emplace(workload.response_tokens, as_double(workload.sequences()));
    }
    entry->second = cache.lengths->profile(sequences, as_double(slots));
  }
  return entry->second;
}

DecodeRun decode_run(const RoleLayout& layout, const Candidate& candidate) {
  return {layer_run(candidate, layout.groups, layout.assumed->traits()), candidate.pp,
          layout.groups.hop};
}

// One decode step. Steps are looked up: of the context they are nearly linear, and computation does
// not depend on where the ranks lie.
class DecodeSteps {
 public:
  DecodeSteps(const RoleLayout& layout, const Candidate& candidate, const DecodePlace& place,
              DecodeCache& cache)
      : layout_(layout),
        candidate_(candidate),
        cache_(cache),
        slow_(place.slow),
        communication_(&place.run->communication),
        compute_(place.computes) {
    const Workload& workload = layout.assumed->workload();
    if (cache.rungs.empty()) cache.rungs = rungs_of(as_double(workload.sequences()));
    const double last = cache.lengths->most_steps();
    ages_ = {0, last / 4, last};
    first_context_ = as_double(workload.prompt_tokens) + 1;
  }

  DecodeTime operator()(double alive, double age) const {
    const auto computed = [&](double sequences, std::size_t context) {
      return decode_compute(layout_, candidate_, sequences, first_context_ + ages_[context]);
    };
    const auto communicated = [&](double sequences, std::size_t) {
      return decode_communication(layout_, candidate_, sequences);
    };
    const std::size_t upper = age > ages_[1] ? 2 : 1;
    const double part = (age - ages_[upper - 1]) / (ages_[upper] - ages_[upper - 1]);
    const RungPlace place = place_of(cache_.rungs, alive);
    const Seconds low = on_ladder(*compute_, cache_.rungs, place, upper - 1, computed);
    const Seconds high = on_ladder(*compute_, cache_.rungs, place, upper, computed);
    const Seconds moved = on_ladder(*communication_, cache_.rungs, place, 0, communicated);
    const Seconds step = slow_ * (low + part * (high - low)) + moved;
    return DecodeTime{served(*layout_.assumed, candidate_, alive, step), moved};
  }

 private:
  const RoleLayout& layout_;
  const Candidate& candidate_;
  DecodeCache& cache_;
  double slow_;
  DecodeLadder *communication_, *compute_;
  std::array<double, DecodeLadder::kContexts> ages_;
  double first_context_;
};

// Decoding of the slowest replica.
OperationTime decoding(const RoleLayout& layout, const Candidate& candidate,
                       const DecodeProfile& profile, const DecodePlace& place, DecodeCache& cache) {
  const Workload& workload = layout.assumed->workload();
  const double most_replicas =
      as_double(layout.assumed->prompts == PromptDealing::requests ? workload.sequences()
                                                                   : workload.prompts_per_step);
  const double replicas = std::min(as_double(candidate.dp), most_replicas);
  const DecodeTime time =
      slowest_decoding(profile, replicas, DecodeSteps(layout, candidate, place, cache),
                       std::min<double>(replicas, replicas_in_lockstep(candidate)));
  return {time.seconds, time.communication};
}

// By what factor the prefills of a replica of so many sequences and prompts take longer where
// others wait for them and it for theirs: prompts that enter freed slots do so in passes of decode
// steps, at some of which several replicas have one, and the pass takes as long as the one with
// most.
double refill_waits(const Candidate& candidate, const DecodeProfile& profile, double sequences,
                    double prompts) {
  const int together = std::min(replicas_in_lockstep(candidate), candidate.dp);
  const double later = 1 - profile.slots / sequences;
  if (together <= 1 || later <= 0 || profile.full_steps <= 0) return 1;
  const double each = later * prompts / profile.full_steps;  // a pass
  const double most = std::min<double>(together, 1 + highest_normal(together) / std::sqrt(each));
  return 1 + later * (most - 1);
}

// Prefills of a replica's prompts. Prompts are prefilled once and shared by their samples, in
// batches up to the token limit. Where an engine refills slots in passes of their own, those that
// free up during one decode step are prefilled together, and samples that enter later bring their
// prompt again. `recomputed`: tokens of preempted sequences.
PrefillSeconds prefills(const RoleLayout& layout, const Candidate& candidate,
                        const DecodeProfile& profile, double recomputed) {
  const Workload& workload = layout.assumed->workload();
  const double sequences = most_sequences(*layout.assumed, candidate);
  const double samples = as_double(workload.samples_per_prompt);
  const double limit = as_double(candidate.tokens), prompt = as_double(workload.prompt_tokens);
  if (prompt == 0) return {};
  const auto in_batches = [&](double prompts, double entering) -> PrefillSeconds {
    const double most = std::max(1.0, std::floor(limit / prompt));
    const double batches = std::ceil(prompts / most - 1e-9);
    const PrefillSeconds batch = prefill(layout, prompts / batches, entering / batches);
    // Batches follow one another through p stages: (m + p - 1) / p of a whole pass.
    const double passes = (batches + candidate.pp - 1) / candidate.pp;
    return {passes * batch.compute, passes * batch.communication};
  };
  const double later =
      layout.assumed->traits().decode.refills_alone ? sequences - profile.slots : 0;
  const double first = sequences - later;
  PrefillSeconds seconds = in_batches(std::ceil(first / samples), first);
  if (later == 0) {
    const double waits = refill_waits(candidate, profile, sequences, sequences / samples);
    seconds.compute *= waits;
    seconds.communication *= waits;
  }
  if (recomputed > 0) {  // fills up batches, in chunks
    const double most = std::clamp(std::floor(limit / prompt), 1.0, sequences);
    const PrefillSeconds batch = prefill(layout, most, most);
    const double parts = recomputed / (most * prompt * candidate.pp);
    seconds.compute += parts * batch.compute;
    seconds.communication += parts * batch.communication;
  }
  if (later <= 0 || profile.refills <= 0) return seconds;
  const double freed = std::max(1.0, later / profile.refills);
  const PrefillSeconds refill = in_batches(1 + (freed - 1) / samples, freed);
  seconds.compute += later / freed * refill.compute;
  seconds.communication += later / freed * refill.communication;
  return seconds;
}

}  // namespace

namespace {

// What a replica of a candidate decodes: its sequences, and how many of them at once.
struct Decoded {
  double sequences = 0;
  std::int64_t slots = 0;
};

Decoded decoded_by(const Assumptions& assumed, const Candidate& candidate) {
  const double sequences = most_sequences(assumed, candidate);
  return {sequences, std::min(candidate.max_sequences, static_cast<std::int64_t>(sequences))};
}

}  // namespace

DecodePlace decode_place(const RoleLayout& layout, const Candidate& candidate, DecodeCache& cache) {
  return {&cache.decodings[decode_run(layout, candidate)],
          &cache.computes[{candidate.tp, candidate.ep, candidate.etp, candidate.pp}],
          slowdown(*layout.assumed, candidate, 1)};
}

Seconds least_generation(const RoleLayout& layout, const Candidate& candidate,
                         const DecodePlace& place, DecodeCache& cache) {
  const auto [sequences, slots] = decoded_by(*layout.assumed, candidate);
  const DecodeProfile& profile =
      decode_profile(layout.assumed->workload(), sequences, slots, cache);
  if (profile.tail.empty()) return {};
  const DecodeSteps step(layout, candidate, place, cache);
  const double left = profile.ends_together() ? profile.last_slots : 1;
  const Seconds last = profile.last_steps * step(left, profile.tail.front().age).seconds;
  if (profile.full_steps <= 0) return last;
  return profile.full_steps * step(profile.slots, profile.full_age).seconds + last;
}

OperationTime generate(const RoleLayout& layout, const Candidate& candidate, DecodeCache& cache) {
  const Assumptions& assumed = *layout.assumed;
  const auto [sequences, slots] = decoded_by(assumed, candidate);
  const DecodePlace place = decode_place(layout, candidate, cache);
  const auto [entry, unknown] =
      place.run->times.try_emplace({candidate.dp, slots, candidate.tokens});
  if (!unknown) return entry->second;
  const DecodeProfile& profile = decode_profile(assumed.workload(), sequences, slots, cache);
  const auto [known, added] = cache.recomputed.try_emplace({sequences, slots});
  if (added && assumed.cache) {
    known->second = assumed.cache->recomputed(sequences, as_double(slots));
  }
  const double recomputed = known->second;
  const auto [compute, communication] = prefills(layout, candidate, profile, recomputed);
  const OperationTime decoded = decoding(layout, candidate, profile, place, cache);
  const Seconds computed = compute + Seconds{assumed.calibration().call_s.value};
  entry->second = {computed * slowdown(assumed, candidate, 1) + communication + decoded.seconds,
                   communication + decoded.communication};
  return entry->second;
}

}  // namespace tessera
