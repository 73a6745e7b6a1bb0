#include "planner/pricing/role/role_pricer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cost_models/packing.h"
#include "planner/pricing/role/offload.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

// Index into LayoutCosts::passes; zero: 2 where layers are reduced one by one, 3 where they are
// sharded, else 0.
std::size_t passes_class(const Candidate& candidate, bool training) {
  return (static_cast<std::size_t>(candidate.recompute) * 4 +
          static_cast<std::size_t>(candidate.zero)) *
             2 +
         (training ? 1 : 0);
}

}  // namespace

Seconds call_seconds(const Assumptions& assumed, const Candidate& candidate) {
  return Seconds{assumed.calibration().call_s.value} * slowdown(assumed, candidate, 1);
}

RolePricer::RolePricer(const Assumptions& assumed, RoleModel model, PackedSequences& packed,
                       std::optional<DealtLayout> dealt)
    : assumed_(assumed),
      model_(std::move(model)),
      packed_(packed),
      dealt_(std::move(dealt)),
      parts_(model_, assumed.traits(), dealt_ ? &*dealt_ : nullptr) {}

void RolePricer::forget_seconds() {
  cache_.latest.reset();
  for (auto& priced : cache_.micro_batches) priced.clear();
  for (auto& priced : cache_.kernels) priced.clear();
  cache_.decoding.forget_seconds();
}

LayoutCosts& RolePricer::of_layout(const Candidate& candidate) {
  std::optional<LayoutCosts>& known = cache_.latest;
  if (known && same_degrees(known->degrees, candidate)) return *known;
  if (!known) known.emplace();
  known->degrees = candidate;
  const CandidateGroups& groups = cache_.groups.of(candidate, assumed_.request);
  const bool dealt = dealt_ && same_degrees(dealt_->layout, candidate);
  known->layout =
      role_layout(assumed_, parts_, candidate, dealt ? with_nodes(groups, dealt_->nodes) : groups);
  for (auto& passes : known->passes) passes.clear();
  for (auto& calls : known->calls) calls.clear();
  for (auto& bytes : known->working) bytes.clear();
  known->device.clear();
  known->ends.fill({});
  known->optimizer.fill({});
  for (auto& bytes : known->resident) bytes.clear();
  known->offload.fill({});
  known->decoding.reset();
  return *known;
}

RoleCost RolePricer::cost(const Candidate& candidate, Bytes limit) {
  RoleCost cost = bytes(candidate, limit);
  if (cost.resident > limit || cost.in_reshard > limit) return cost;
  for (const Phase phase : model_.phases) {
    if (cost.bytes[phase] > limit) continue;
    const OperationTime timed = time(candidate, phase);
    cost.seconds[phase] = timed.seconds;
    cost.communication[phase] = timed.communication;
  }
  return cost;
}

CallTime RolePricer::call_time(const Candidate& candidate, Phase phase) {
  switch (model_.calls[phase].value_or(CallKind::compute)) {
    case CallKind::generate: {
      const RoleLayout& layout = of_layout(candidate).layout;
      CallTime time{.whole = generate(layout, candidate, cache_.decoding),
                    .bubble = {},
                    .host = mapping_seconds(layout, candidate) +
                            software_seconds(assumed_, CallKind::generate)};
      time.whole.seconds += time.host;
      return time;
    }
    case CallKind::infer: {
      const Candidate called = in_call(candidate, false);
      return infer(called, called.tokens);
    }
    case CallKind::train: {
      const Candidate called = in_call(candidate, true);
      return update(called, called.tokens);
    }
    case CallKind::compute:
      break;
  }
  return {};
}

CallTime RolePricer::update(const Candidate& candidate, std::int64_t smallest) {
  const Workload& workload = assumed_.workload();
  const double steps = as_double(workload.mini_batches * workload.epochs);
  const double sequences =
      as_double(workload.sequences()) / as_double(workload.mini_batches) / candidate.dp;
  const CallPasses& call = call_passes(candidate, sequences, true, smallest);
  const PipelineTime& passes = call.time;
  const OperationTime& passed = passes.whole;
  // Two thirds of a micro-batch's time are its backward pass.
  const auto [step, communication] = optimizer_step(candidate, call.largest * 2 / 3);
  const Seconds started = call_seconds(assumed_, candidate);
  const Seconds besides =
      offloaded_seconds(candidate, true, steps) + software_seconds(assumed_, CallKind::train);
  return {.whole = {steps * (passed.seconds + step + started) + besides,
                    steps * (passed.communication + communication)},
          .bubble = steps * passes.bubble,
          .host = steps * (started + passed.host) + besides};
}

RolePricer::StepTime RolePricer::optimizer_step(const Candidate& candidate, Seconds last) {
  const OptimizerCost& optimizer = fullest_optimizer(candidate);
  const StepExposed shown = exposed_of(assumed_, optimizer, candidate, last);
  const Seconds communication = shown.reduce + shown.gather;
  return {optimizer.update.total(assumed_.calibration()) * slowdown(assumed_, candidate, 1) +
              communication,
          communication};
}

CallTime RolePricer::infer(const Candidate& candidate, std::int64_t smallest) {
  const double sequences = as_double(assumed_.workload().sequences()) / candidate.dp;
  const PipelineTime& passes = call_passes(candidate, sequences, false, smallest).time;
  const Seconds besides = call_seconds(assumed_, candidate) +
                          software_seconds(assumed_, CallKind::infer) +
                          offloaded_seconds(candidate, false, 0);
  CallTime time{
      .whole = passes.whole, .bubble = passes.bubble, .host = besides + passes.whole.host};
  time.whole.seconds += besides;
  return time;
}

double RolePricer::micro_batches(const Candidate& candidate, std::int64_t tokens,
                                 double sequences) {
  if (candidate.sequences > 0) {
    return std::max(1.0, std::ceil(sequences / as_double(candidate.sequences) - 1e-9));
  }
  const double count = packed_.micro_batches(tokens, {sequences, candidate.dp});
  const double below = std::floor(count), rest = count - below;
  const int round = round_of(candidate);
  if (rest == 0 || !packed_.few().are({sequences, candidate.dp})) {
    return whole_rounds(count, sequences, round);
  }
  const double fewer = whole_rounds(below, sequences, round);
  return fewer + rest * (whole_rounds(below + 1, sequences, round) - fewer);
}

int RolePricer::round_of(const Candidate& candidate) const {
  return batches_of_round(assumed_.traits().pipeline.interleaved, candidate.pp, candidate.vpp);
}

SlowestShare RolePricer::slowest_share(const Candidate& candidate, double count, double sequences,
                                       bool training) {
  const DealtSequences dealt{sequences, candidate.dp};
  if (!packed_.few().are(dealt)) return {};
  return packed_.few().slowest(dealt, sharing_replicas(candidate, assumed_.traits(), training),
                               static_cast<int>(count));
}

// The schedule is of loads; what each micro-batch costs however little it holds evens out its
// times. Twice the sequences say how far times follow loads, and all paths through the schedule are
// linear in that part.
double RolePricer::spread(const Candidate& candidate, double count, double sequences, bool training,
                          const SlowestShare& share) {
  if (candidate.pp == 1) return 1;
  const double of_loads = packed_.few().spread(
      {sequences, candidate.dp}, sharing_replicas(candidate, assumed_.traits(), training),
      static_cast<int>(count), staged_pass(candidate, {sequences / count, share}, training));
  if (of_loads == 1) return 1;
  const Seconds once = passes(candidate, count, sequences, training, share).time.slowest;
  const Seconds twice = passes(candidate, count / 2, sequences, training, share).time.slowest;
  return 1 + std::clamp(twice / once - 1, 0.0, 1.0) * (of_loads - 1);
}

StagedPass RolePricer::staged_pass(const Candidate& candidate, const LoadedSequences& sequences,
                                   bool training) {
  StagedPass pass{candidate.pp, candidate.vpp, training};
  const RoleLayout& layout = of_layout(candidate).layout;
  if (layout.cut == nullptr) return pass;
  pass.shares = chunk_shares(layout, micro_batch(layout, candidate, sequences, training).cost);
  return pass;
}

PipelineTime RolePricer::expected_passes(const Candidate& candidate, double count, double sequences,
                                         bool training) {
  const auto whole = [&](double whole_count) {
    const SlowestShare share = slowest_share(candidate, whole_count, sequences, training);
    PipelinePasses* equal = &passes(candidate, whole_count, sequences, training, share);
    if (equal->spread == 0) {
      const double longer = spread(candidate, whole_count, sequences, training, share);
      equal = &passes(candidate, whole_count, sequences, training, share);
      equal->spread = longer;
    }
    PipelineTime time = equal->time;
    const OperationTime& even = equal->time.whole;
    time.whole = equal->spread * even;
    // Stages wait where micro-batches differ, too.
    time.bubble += (equal->spread - 1) * (even.seconds - even.communication - even.host);
    return time;
  };
  const double round = round_of(candidate);
  const double below = std::floor(count / round) * round, rest = (count - below) / round;
  const bool few = packed_.few().are({sequences, candidate.dp});
  if (!few || rest == 0 || below == 0) return whole(count);
  PipelineTime time = whole(below);
  const PipelineTime above = whole(below + round);
  const auto between = [&](Seconds& a, Seconds b) { a += rest * (b - a); };
  between(time.whole.seconds, above.whole.seconds);
  between(time.whole.communication, above.whole.communication);
  between(time.whole.host, above.whole.host);
  between(time.slowest, above.slowest);
  between(time.incomplete, above.incomplete);
  between(time.bubble, above.bubble);
  return time;
}

// Candidates that differ in their ZeRO stage or in what is offloaded have the same.
const CallPasses& RolePricer::call_passes(const Candidate& candidate, double sequences,
                                          bool training, std::int64_t smallest) {
  std::vector<CallPasses>& alike =
      of_layout(candidate).calls[passes_class(passing_as(candidate, training), training)];
  const auto known = std::find_if(alike.begin(), alike.end(), [&](const CallPasses& call) {
    return call.tokens == candidate.tokens && call.sequences == candidate.sequences &&
           call.smallest == smallest;
  });
  if (known != alike.end()) return *known;
  CallPasses call{candidate.tokens, candidate.sequences, smallest, {}, {}};
  call.time = least_passes(candidate, sequences, training, smallest);
  if (training) {
    const double fewest = micro_batches(candidate, candidate.tokens, sequences);
    call.largest = expected_passes(candidate, fewest, sequences, true).whole.seconds / fewest;
  }
  return alike.emplace_back(call);
}

Candidate RolePricer::passing_as(Candidate candidate, bool training) const {
  const bool reduces = training && reduces_layers(candidate, assumed_.traits());
  if (!training) candidate.recompute = Recompute::none;
  if (!reduces && shard_ranks(candidate, assumed_.traits()) == 1) candidate.zero = 0;
  return candidate;
}

PipelinePasses& RolePricer::passes(const Candidate& candidate, double count, double sequences,
                                   bool training, const SlowestShare& share) {
  LayoutCosts& costs = of_layout(candidate);
  const Candidate asked = passing_as(candidate, training);
  std::vector<PipelinePasses>& alike = costs.passes[passes_class(asked, training)];
  const auto place = std::lower_bound(alike.begin(), alike.end(), std::pair(count, share),
                                      [](const PipelinePasses& passes, const auto& wanted) {
                                        return std::pair(passes.count, passes.share) < wanted;
                                      });
  if (place != alike.end() && place->count == count && place->share == share) return *place;
  const double each = sequences / count;
  const MicroBatchCost& cost = micro_batch(costs.layout, asked, {each, share}, training).cost;
  std::optional<MicroBatchCost> mean;
  if (training && model_.no_sync) reduce_last_alone(mean.emplace(cost), costs.layout, asked, count);
  const double tokens = each * assumed_.sequence * share.tokens;
  std::optional<ExposedEnds>& ends = costs.ends[static_cast<std::size_t>(asked.zero)];
  if (!ends) ends = exposed_ends(costs.layout, asked, 0);
  const PipelineTime time =
      pipeline_time(costs.layout, asked, mean ? *mean : cost, *ends, count, tokens, training);
  return *alike.insert(place, {count, share, time});
}

const MicroBatchKernels& RolePricer::kernels(const RoleLayout& layout, const LayerCut& cut,
                                             const LoadedSequences& sequences, bool training) {
  auto& alike = cache_.kernels[training ? 1 : 0];
  const auto [priced, added] = alike[cut].of(sequences);
  if (!added) return *priced;
  const MicroBatchKernels* plain = nullptr;
  if (training && cut.recompute != Recompute::none) {
    LayerCut whole = cut;
    whole.recompute = Recompute::none;
    plain = &kernels(layout, whole, sequences, training);
  }
  const Assumptions& given = assumed_;
  const auto& [count, share] = sequences;
  const TokenBatch batch{count * given.sequence * share.tokens, count,
                         count * given.squared * share.squared};
  const TokenBatch scored{count * given.response * share.responses, count, 0};  // responses alone
  return *priced = micro_batch_kernels(layout, cut.recompute, batch, scored, training, plain);
}

PricedMicroBatch& RolePricer::micro_batch(const RoleLayout& layout, const Candidate& candidate,
                                          const LoadedSequences& sequences, bool training) {
  const LayerRun run = layer_run(candidate, layout.groups, assumed_.traits());
  const auto [priced, added] = cache_.micro_batches[training ? 1 : 0][run].of(sequences);
  if (!added) return *priced;
  MicroBatchCost& cost = priced->cost;
  // Layouts that differ in what is sharded share everything else.
  Candidate whole = candidate;
  whole.dp_shard = 1;
  whole.zero = 0;
  if (layer_run(whole, layout.groups, assumed_.traits()) != run) {
    cost = micro_batch(layout, whole, sequences, training).cost;
    set_shards(cost, layout, candidate, training);
    return *priced;
  }
  const Assumptions& given = assumed_;
  const auto& [count, share] = sequences;
  const TokenBatch batch{count * given.sequence * share.tokens, count,
                         count * given.squared * share.squared};
  const TokenBatch scored{count * given.response * share.responses, count, 0};  // responses alone
  cost = price_micro_batch(layout, candidate, kernels(layout, run, sequences, training), batch,
                           scored, training);
  return *priced;
}

const OptimizerCost& RolePricer::fullest_optimizer(const Candidate& candidate) {
  LayoutCosts& costs = of_layout(candidate);
  auto& known = costs.optimizer[index_of(candidate.zero, candidate.offload.optimizer)];
  if (known) return *known;
  Elements most;
  for (const StageClass& stage : *costs.layout.stages) {
    const Elements trained = trained_elements(costs.layout, stage);
    if (trained.total() > most.total()) most = trained;
  }
  return known.emplace(optimizer_cost(costs.layout, candidate, most));
}

Seconds RolePricer::offloaded_seconds(const Candidate& candidate, bool training, double steps) {
  if (candidate.offload == Offload{}) return {};
  const std::size_t moved = index_of(candidate.zero, candidate.offload.parameters) * 4 +
                            index_of(candidate.offload.optimizer ? 1 : 0, training);
  LayoutCosts& costs = of_layout(candidate);
  auto& known = costs.offload[moved];
  if (!known) known = offload_seconds(costs.layout, candidate, training, steps);
  return *known;
}

double RolePricer::mini_batch_parts(const Candidate& candidate) {
  const double sequences = mini_batch_sequences(assumed_.workload(), candidate);
  const Candidate called = in_call(candidate, true);
  const double count = micro_batches(called, called.tokens, sequences);
  return packed_.few().are({sequences, candidate.dp}) ? std::ceil(count) : count;
}

TrainedBatches RolePricer::batches(const Candidate& candidate, std::optional<CallKind> call) {
  if (call != CallKind::train) return {};
  return {.count = mini_batch_parts(candidate), .in_flight = {}};
}

}  // namespace tessera
