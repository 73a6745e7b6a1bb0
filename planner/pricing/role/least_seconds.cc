// The least that a layout's candidates take whatever their token limits are, and what of it is told
// at a glance.
#include <algorithm>
#include <cmath>

#include "planner/pricing/role/role_pricer.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

// By what part micro-batches between two sizes may be quicker, for each sequence, than those of
// both: kernels' rates do not rise evenly with their sizes.
constexpr double kUnevenRates = 0.03;

// Sums of the same seconds in another order differ by less.
constexpr double kRounding = 1e-9;

// The part of all layers that is on the stage with most of them, where they are alike; else 0.
double deepest_part(const RoleLayout& layout) {
  const RoleModel& model = *layout.model;
  if (std::count(model.layers.begin(), model.layers.end(), 0.0) + 1 < std::ssize(model.layers) ||
      std::count(model.mtp.begin(), model.mtp.end(), 0) < std::ssize(model.mtp)) {
    return 0;
  }
  std::int64_t most = 0, all = 0;
  for (const StageClass& stage : *layout.stages) {
    for (const std::int64_t layers : stage.layers) {
      most = std::max(most, layers);
      all += stage.count * layers;
    }
  }
  return as_double(most) / as_double(all);
}

}  // namespace

Seconds RolePricer::least_seconds(const Candidate& candidate, Phase phase, std::int64_t smallest) {
  const CallKind kind = model_.calls[phase].value_or(CallKind::compute);
  if (kind == CallKind::infer) return infer(in_call(candidate, false), smallest).whole.seconds;
  if (kind == CallKind::generate) {
    LayoutCosts& costs = of_layout(candidate);
    if (!costs.decoding) {
      costs.decoding = decode_place(costs.layout, candidate, cache_.decoding);
    }
    return least_generation(costs.layout, candidate, *costs.decoding, cache_.decoding);
  }
  if (kind != CallKind::train) return time(candidate, phase).seconds;
  const Candidate called = in_call(candidate, true);
  return update(called, std::min(smallest, called.tokens)).whole.seconds;
}

// Between two numbers a < b of micro-batches the slowest stage is busy for no less than with
// either, and filling and draining the pipeline take no less than with b, whose micro-batches are
// smaller. Few sequences are waited for as long or longer where they begin more micro-batches
// together. What micro-batches that differ add (spread) is left out: it never takes away.
PipelineTime RolePricer::least_passes(const Candidate& candidate, double sequences, bool training,
                                      std::int64_t smallest) {
  double most = micro_batches(candidate, smallest, sequences);
  double count = micro_batches(candidate, candidate.tokens, sequences);
  if (count == most) return expected_passes(candidate, count, sequences, training);
  if (packed_.few().are({sequences, candidate.dp})) {
    const double round = round_of(candidate);
    count = std::max(1.0, std::floor(count / round) * round);
    most = std::ceil(most / round) * round;
  }
  const SlowestShare share = slowest_share(candidate, count, sequences, training);
  PipelineTime few = passes(candidate, count, sequences, training, share).time;
  PipelineTime least = few;
  while (count < most) {
    // The slowest stage alone is busy for longer, with more of them no less.
    if (count * few.slowest >= (1 + kUnevenRates) * least.whole.seconds) break;
    const double next = std::min(2 * count, most);
    const PipelineTime many = passes(candidate, next, sequences, training, share).time;
    PipelineTime between = many;
    between.whole.seconds -=
        many.incomplete + std::max(Seconds{}, next * many.slowest - count * few.slowest);
    if (between.whole.seconds < least.whole.seconds) least = between;
    few = many;
    count = next;
  }
  least.whole.seconds *= 1 - kUnevenRates;
  return least;
}

Seconds RolePricer::glanced_seconds(const Candidate& candidate, Phase phase,
                                    std::int64_t smallest) {
  const CallKind kind = model_.calls[phase].value_or(CallKind::compute);
  if (kind != CallKind::train && kind != CallKind::infer) return {};
  const bool training = kind == CallKind::train;
  const Workload& workload = assumed_.workload();
  const Candidate called = in_call(candidate, training);
  const double sequences = as_double(workload.sequences()) / candidate.dp;
  const Seconds besides = call_seconds(assumed_, called),
                software = software_seconds(assumed_, kind);
  if (!training) return glanced_passes(called, sequences, false, smallest) + besides + software;
  const double parts = as_double(workload.mini_batches), epochs = as_double(workload.epochs);
  const Seconds passes =
      glanced_passes(called, sequences / parts, true, std::min(smallest, called.tokens));
  const Seconds step = optimizer_step(called, kForever).all;  // with all hidden that may be
  return (1 - kRounding) * (parts * epochs * (passes + step + besides) + software);
}

// Through the numbers of micro-batches that least_passes goes through. A replica that waits for
// means of whole rounds is left to it.
Seconds RolePricer::glanced_passes(const Candidate& candidate, double sequences, bool training,
                                   std::int64_t smallest) {
  const RoleLayout& layout = of_layout(candidate).layout;
  if (layout.cut != nullptr) return {};
  double most = micro_batches(candidate, smallest, sequences);
  double count = micro_batches(candidate, candidate.tokens, sequences);
  const bool one = count == most;
  if (packed_.few().are({sequences, candidate.dp})) {
    const double round = round_of(candidate);
    const double whole = std::floor(count / round) * round;
    if (one && whole != count && whole > 0) return {};
    if (!one) {
      count = std::max(1.0, whole);
      most = std::ceil(most / round) * round;
    }
  }
  const SlowestShare share = slowest_share(candidate, count, sequences, training);
  const Candidate asked = passing_as(candidate, training);
  const double slow = slowdown(assumed_, candidate, count / (count + candidate.pp - 1));
  const double deepest = deepest_part(layout);
  const auto of_one = [&](double number) {
    PricedMicroBatch& priced = micro_batch(layout, asked, {sequences / number, share}, training);
    if (priced.slow != slow) {
      priced.stages = of_all_stages(model_, priced.cost, slow, training, assumed_.calibration());
      priced.slow = slow;
    }
    return priced.stages;
  };
  const double tokens = sequences / most * assumed_.sequence * share.tokens;
  const Seconds hops =
      (candidate.pp - 1) * (training ? 2 : 1) * hop_seconds(layout, candidate, tokens);
  // Of 1F1B one micro-batch more is left out: its last stage may be shorter than the others.
  const double chunks = candidate.vpp;
  const double ends = candidate.pp == 1 ? 1 : training && chunks == 1 ? 2 : 1 / chunks;
  const auto slowest = [&](const StagesSeconds& seconds) {
    return std::max(seconds.all / candidate.pp, deepest * seconds.layers);
  };
  StagesSeconds few = of_one(count);
  Seconds least = (few.all + hops) / chunks + std::max(0.0, count - ends) * slowest(few);
  while (count < most) {
    const Seconds busy = count * slowest(few);
    if (busy >= (1 + kUnevenRates) * least) break;
    const double next = std::min(2 * count, most);
    const StagesSeconds many = of_one(next);
    const Seconds filled = (many.all + hops) / chunks;
    const Seconds left = slowest(few) + (ends == 2 ? hops / (candidate.pp - 1) : Seconds{});
    least = std::min(least, filled + std::min(busy, next * slowest(many)) - ends * left);
    few = many;
    count = next;
  }
  const bool sure = one || deepest > 0 || ends != 2;  // which stage is the slowest
  return least * ((one ? 1 : 1 - kUnevenRates) * (sure ? 1 - kRounding : 1 - kUnevenRates));
}

}  // namespace tessera
