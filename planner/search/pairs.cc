#include "planner/search/pairs.h"

#include <algorithm>
#include <numeric>

#include "planner/pricing/iteration.h"

namespace tessera {
namespace {

constexpr std::size_t kMostPairs = 20'000;  // before those that are beaten are dropped

// A rollout's option in a block.
struct Generation {
  ChunkSeconds seconds{};
  Seconds total;
  std::size_t option = 0;
};

class Pairing {
 public:
  Pairing(const Iteration& iteration, Fronts& fronts, const PairQuery& query, std::int64_t& pruned)
      : iteration_(iteration),
        fronts_(fronts),
        query_(query),
        pruned_(pruned),
        used_(static_cast<int>(iteration.chunks().size())),
        reshard_chunk_(iteration.chunk_of(Phase::reshard)) {}

  std::vector<FrontPoint> run() {
    for (const int index : query_.rollouts.options) {
      rollouts_.push_back(&fronts_.option(Role::rollout, query_.gpus, index));
    }
    for (const int index : query_.actors.options) {
      actors_.push_back(&fronts_.option(Role::actor, query_.gpus, index));
    }
    order_generations();
    std::vector<Bound> bounds;
    for (std::size_t a = 0; a < actors_.size(); ++a) {
      if (const auto bound = bound_of(a); bound.step < query_.limit) bounds.push_back(bound);
    }
    if (bounds.size() > query_.most_actors) {
      std::stable_sort(bounds.begin(), bounds.end(),
                       [](const Bound& a, const Bound& b) { return a.step < b.step; });
      bounds.resize(query_.most_actors);
    }
    std::size_t most = kMostPairs;
    for (const Bound& bound : bounds) {
      pair(bound.actor);
      if (pairs_.size() <= most) continue;
      keep_front(pairs_, used_);
      most = std::max(kMostPairs, 2 * pairs_.size());
    }
    keep_front(pairs_, used_);
    return std::move(pairs_);
  }

 private:
  struct Bound {
    Seconds step;
    std::size_t actor = 0;
  };

  ChunkSeconds of_block(const PhaseSeconds& seconds) const {
    return iteration_.by_chunk(static_cast<int>(query_.block), seconds);
  }

  // By seconds.
  void order_generations() {
    for (std::size_t r = 0; r < rollouts_.size(); ++r) {
      Generation& generation = generations_.emplace_back();
      generation.seconds = of_block(rollouts_[r]->seconds);
      generation.total =
          std::accumulate(generation.seconds.begin(), generation.seconds.end(), Seconds{});
      generation.option = r;
    }
    std::stable_sort(generations_.begin(), generations_.end(),
                     [](const Generation& a, const Generation& b) { return a.total < b.total; });
    std::size_t chunks_with_time = 0;
    for (std::size_t c = 0; c < ChunkSeconds::size(); ++c) {
      chunks_with_time += std::any_of(generations_.begin(), generations_.end(),
                                      [&](const Generation& generation) {
                                        return generation.seconds[ChunkIndex{c}] > 0;
                                      })
                              ? 1
                              : 0;
    }
    ordered_ = chunks_with_time <= 1;
  }

  // Of the step with an actor's option and the quickest rollout that fits beside it.
  Bound bound_of(std::size_t a) {
    const Option& actor = *actors_[a];
    if (actor.resident + actor.transient > query_.bytes) return {kForever, a};
    const Bytes left = query_.bytes - actor.resident;
    const auto rollout = query_.within(left, left - actor.in_reshard);
    if (!rollout) return {kForever, a};
    ChunkSeconds seconds = of_block(actor.seconds);
    seconds += query_.rest;
    seconds += *rollout;
    const Seconds step = iteration_.step_seconds(seconds);
    if (step >= query_.limit) ++pruned_;
    return {step, a};
  }

  void pair(std::size_t a) {
    const Option& actor = *actors_[a];
    const ChunkSeconds training = of_block(actor.seconds);
    ChunkSeconds base = query_.rest;
    base += training;
    const std::size_t begin = pairs_.size();
    for (const Generation& generation : generations_) {
      const Option& rollout = *rollouts_[generation.option];
      if (query_.equal_tp && rollout.candidate.tp != actor.candidate.tp) continue;
      const Bytes resident = actor.resident + rollout.resident;
      const Bytes transient =
          std::max({actor.transient, rollout.transient, actor.in_reshard + rollout.in_reshard});
      if (resident + transient > query_.bytes) continue;
      ChunkSeconds step = base;
      step += generation.seconds;
      if (iteration_.step_seconds(step) >= query_.limit) {
        ++pruned_;
        if (ordered_) break;  // and so are all that follow
        continue;
      }
      FrontPoint point;
      point.seconds = training;
      point.seconds += generation.seconds;
      const Seconds reshard = fronts_.reshard_seconds(query_.gpus, actor, rollout);
      point.seconds[reshard_chunk_] += reshard;
      step[reshard_chunk_] += reshard;
      if (iteration_.step_seconds(step) >= query_.limit) {
        ++pruned_;
        continue;
      }
      if (!query_.alone) {
        point.resident = resident;
        point.transient = transient;
      }
      const bool beaten =
          std::any_of(pairs_.begin() + static_cast<std::ptrdiff_t>(begin), pairs_.end(),
                      [&](const FrontPoint& other) { return dominates(other, point, used_); });
      if (beaten) continue;
      point.option[0] = query_.actors.options[a];
      point.rollout = query_.rollouts.options[generation.option];
      pairs_.push_back(point);
      if (pairs_.size() - begin >= query_.most_pairs_each) break;
    }
  }

  const Iteration& iteration_;
  Fronts& fronts_;
  const PairQuery& query_;
  std::int64_t& pruned_;
  std::vector<const Option*> actors_, rollouts_;
  int used_;
  ChunkIndex reshard_chunk_;
  std::vector<Generation> generations_;  // ascending by seconds
  bool ordered_ = false;  // one chunk has all their time: the order is that of any step
  std::vector<FrontPoint> pairs_;
};

}  // namespace

void RolloutWithin::ByNeed::add(Bytes need, const ChunkSeconds& seconds) {
  ChunkSeconds sum = seconds;
  if (!least.empty()) {
    lower(sum, least.back());
    if (std::equal(sum.begin(), sum.end(), least.back().begin())) return;
  }
  needs.push_back(need);
  least.push_back(sum);
}

const ChunkSeconds* RolloutWithin::ByNeed::within(Bytes bytes) const {
  const auto fit = std::upper_bound(needs.begin(), needs.end(), bytes);
  if (fit == needs.begin()) return nullptr;
  return &least[static_cast<std::size_t>(fit - needs.begin()) - 1];
}

RolloutWithin::RolloutWithin(const Iteration& iteration, std::size_t block, Fronts& fronts,
                             int gpus, const Selection& selection) {
  std::vector<const Option*> options;
  for (const int index : selection.options) {
    options.push_back(&fronts.option(Role::rollout, gpus, index));
  }
  const auto collect = [&](Bytes Option::*more, ByNeed& by_need) {
    const auto need = [&](const Option* option) { return option->resident + option->*more; };
    std::sort(options.begin(), options.end(),
              [&](const Option* a, const Option* b) { return need(a) < need(b); });
    for (const Option* option : options) {
      by_need.add(need(option), iteration.by_chunk(static_cast<int>(block), option->seconds));
    }
  };
  collect(&Option::transient, in_calls_);
  collect(&Option::in_reshard, in_reshard_);
}

std::optional<ChunkSeconds> RolloutWithin::operator()(Bytes left, Bytes in_reshard) const {
  const ChunkSeconds* const calls = in_calls_.within(left);
  const ChunkSeconds* const moved = in_reshard_.within(in_reshard);
  if (calls == nullptr || moved == nullptr) return std::nullopt;
  ChunkSeconds least = *calls;
  for (std::size_t c = 0; c < least.size(); ++c) {
    least[ChunkIndex{c}] = std::max(least[ChunkIndex{c}], (*moved)[ChunkIndex{c}]);
  }
  return least;
}

std::vector<FrontPoint> pairs_of(const Iteration& iteration, Fronts& fronts, const PairQuery& query,
                                 std::int64_t& pruned) {
  return Pairing(iteration, fronts, query, pruned).run();
}

}  // namespace tessera
