// The prices of the candidates of a role's layouts, part by part as they are wanted.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "cost_models/documents/stopped.h"
#include "planner/plan/phase_seconds.h"
#include "planner/request/candidate.h"
#include "planner/search/fronts.h"
#include "planner/search/pareto.h"
#include "planner/search/token_limits.h"
#include "planner/space/layout_space.h"

namespace tessera {
namespace {

// True when a candidate with `batch` needs no fewer bytes than one with `other` that differs in
// nothing else: a multiple of its tokens (there are as many times fewer micro-batches, or more of
// them), or more slots.
bool needs_no_less(Role role, const BatchLimit& batch, const BatchLimit& other) {
  return role == Role::rollout ? batch.max_sequences >= other.max_sequences
                               : batch.tokens % other.tokens == 0;
}

}  // namespace

// What the options take that a query has found so far.
class Fronts::Found {
 public:
  /// What matters of an option in a query.
  struct Taken {
    PhaseSeconds seconds{};
    double share = 0;  // FrontPoint::share
    Bytes resident, transient;

    /// Whether it is no worse in anything, and takes less in a phase.
    bool beats(const Taken& other) const {
      return share <= other.share && resident <= other.resident && transient <= other.transient &&
             none_less(other.seconds, seconds) && seconds != other.seconds;
    }
  };

  explicit Found(const LayoutQuery& query) : query_(query) {}

  Taken taken(const PhaseSeconds& seconds, double share, Bytes resident, Bytes transient) const {
    if (query_.alone) return {.seconds = seconds, .share = share, .resident = {}, .transient = {}};
    return {seconds, share, resident, std::max(transient, query_.transient_beside)};
  }
  bool beat(const Taken& other) const {
    return !query_.beaten && std::any_of(all_.begin(), all_.end(),
                                         [&](const Taken& each) { return each.beats(other); });
  }
  void add(const Taken& taken) {
    if (!query_.beaten && !beat(taken)) all_.push_back(taken);
  }

 private:
  const LayoutQuery& query_;
  std::vector<Taken> all_;  // without what others beat
};

namespace {

// The part of a layout that has candidates of this choice.
std::optional<int> part_with(const LayoutOptions::Prices& prices, const MemoryChoice& choice) {
  for (std::size_t p = 0; p < prices.parts.size(); ++p) {
    if (holds_alike(prices.parts[p].choice, choice)) return static_cast<int>(p);
  }
  return std::nullopt;
}

}  // namespace

// What is not known of a layout keeps none of its candidates out.
LayoutOptions::Prices& Fronts::prices_of(LayoutOptions& layout) const {
  if (layout.prices != nullptr) return *layout.prices;
  layout.prices = std::make_unique<LayoutOptions::Prices>();
  std::vector<LayoutOptions::Part>& parts = layout.prices->parts;
  const SharedSpace& space = layout.space;
  for (const MemoryChoice& choice : space.choices) {
    const bool listed = std::any_of(parts.begin(), parts.end(), [&](const auto& other) {
      return holds_alike(other.choice, choice);
    });
    if (listed) continue;
    const MemoryChoice quickest{.zero = choice.zero, .offload = choice.offload};
    LayoutOptions::Part part{.choice = quickest, .known = problem_.held && hopes()};
    if (part.known) {
      part.held = problem_.held(space.at(choice, space.batches.front()));
      if (part.held.between_calls > priced_limit()) continue;
      part.least = problem_.evaluator.least_seconds(space.at(quickest, space.batches.back()),
                                                    space.batches.front().tokens);
    }
    parts.push_back(part);
  }
  return *layout.prices;
}

// Prices the parts of these layouts that are wanted; ascending. Where options that others beat are
// not, the layouts that may be quickest come first. Of equals none beats the other, so that the
// options of the first layout stay the first.
std::vector<PartNumber> Fronts::priced_parts(RoleOptions& all, const LayoutQuery& query,
                                             std::vector<int> layouts) const {
  const auto layout_at = [&](int number) -> LayoutOptions& {
    return all.layouts[static_cast<std::size_t>(number)];
  };
  if (!query.beaten) {
    const auto least_sum = [&](int number) {
      const PhaseSeconds& least = layout_at(number).least;
      return std::accumulate(least.begin(), least.end(), Seconds{});
    };
    std::stable_sort(layouts.begin(), layouts.end(),
                     [&](int a, int b) { return least_sum(a) < least_sum(b); });
  }
  std::vector<PartNumber> wanted;
  Found found(query);
  for (const int number : layouts) {
    add_wanted(all, query, number, share_in(query, layout_at(number)), found, wanted);
  }
  std::sort(wanted.begin(), wanted.end());
  return wanted;
}

// The same of all layouts, whatever they hold. What others beat before it is priced is not worked
// out any further.
std::vector<PartNumber> Fronts::unbeaten_parts(RoleOptions& all, const LayoutQuery& query) {
  std::vector<std::pair<Seconds, int>> ordered;
  for (const int number : allowed(all, query.role, query.groups)) {
    const PhaseSeconds& glanced = glanced_in(all, static_cast<std::size_t>(number));
    if (query.step(glanced) >= query.limit) continue;
    ordered.emplace_back(std::accumulate(glanced.begin(), glanced.end(), Seconds{}), number);
  }
  std::sort(ordered.begin(), ordered.end());
  std::vector<PartNumber> wanted;
  Found found(query);
  for (const auto& [sum, number] : ordered) {
    const auto at = static_cast<std::size_t>(number);
    const double share = share_in(query, all.layouts[at]);
    const auto out = [&](const PhaseSeconds& least) {
      return query.step(least) >= query.limit || found.beat(found.taken(least, share, {}, {}));
    };
    if (out(glanced_in(all, at)) || out(hoped_in(all, at)) || out(least_in(all, at))) continue;
    add_wanted(all, query, number, share, found, wanted);
  }
  std::sort(wanted.begin(), wanted.end());
  return wanted;
}

double Fronts::share_in(const LayoutQuery& query, const LayoutOptions& layout) const {
  return query.sends ? problem_.evaluator.share_of(layout.space.layout) : 0;
}

// Prices the parts of a layout that are wanted beside what has been found.
void Fronts::add_wanted(RoleOptions& all, const LayoutQuery& query, int number, double share,
                        Found& found, std::vector<PartNumber>& wanted) const {
  end_if_stopped(problem_.stop);  // between layouts whose prices are whole
  LayoutOptions::Prices& prices = prices_of(all.layouts[static_cast<std::size_t>(number)]);
  std::vector<bool> own;
  for (const LayoutOptions::Part& part : prices.parts) {
    const bool slow =
        part.known && query.step_beside && query.step_beside(part.least, part.held) >= query.limit;
    own.push_back(!slow &&
                  !found.beat(found.taken(part.least, share, part.held.between_calls, {})));
    if (own.back()) wanted.push_back({number, static_cast<int>(own.size()) - 1});
  }
  price(all, number, own);
  for (const int index : prices.options) {
    const Option& option = all.options[static_cast<std::size_t>(index)];
    if (!own[static_cast<std::size_t>(option.place.part)] || !fits(option)) continue;
    found.add(found.taken(option.seconds, share, option.resident, option.transient));
  }
}

// Prices all candidates of these parts of a layout that have no prices yet.
void Fronts::price(RoleOptions& all, int number, const std::vector<bool>& parts) const {
  const LayoutOptions& layout = all.layouts[static_cast<std::size_t>(number)];
  std::vector<Option> options;
  for (const MemoryChoice& choice : layout.space.choices) {
    const std::optional<int> its = part_with(*layout.prices, choice);
    if (!its) continue;
    const auto at = static_cast<std::size_t>(*its);
    if (parts[at] && !layout.prices->parts[at].priced) {
      price(layout.space, choice, {number, *its}, options);
    }
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    LayoutOptions::Part& part = layout.prices->parts[p];
    part.priced = part.priced || parts[p];
  }
  if (!options.empty()) take_up(all, *layout.prices, options);
}

// Of a layout's options and new ones the undominated ones, which also differ in what they need
// while weights move.
void Fronts::take_up(RoleOptions& all, LayoutOptions::Prices& prices,
                     const std::vector<Option>& fresh) const {
  std::vector<const Option*> options;
  for (const int index : prices.options) {
    options.push_back(&all.options[static_cast<std::size_t>(index)]);
  }
  for (const Option& option : fresh) options.push_back(&option);
  const std::vector<std::size_t> best = undominated(options);
  const std::vector<int> known = std::exchange(prices.options, {});
  for (const std::size_t i : best) {
    if (i < known.size()) {
      prices.options.push_back(known[i]);
    } else {
      prices.options.push_back(static_cast<int>(all.options.size()));
      all.options.push_back(fresh[i - known.size()]);
    }
  }
}

void Fronts::add_option(const Candidate& candidate, const RoleCost& cost, const PartNumber& number,
                        std::vector<Option>& options) const {
  if (std::max(cost.peak, cost.in_reshard) > priced_limit()) return;
  options.push_back({candidate, cost.seconds, cost.resident, cost.peak - cost.resident,
                     cost.in_reshard - cost.resident, number});
}

void Fronts::price(const SharedSpace& space, const MemoryChoice& choice, const PartNumber& number,
                   std::vector<Option>& options) const {
  const Bytes limit = priced_limit();
  std::vector<Limited> priced;
  std::vector<BatchLimit> refused;
  for (const BatchLimit& batch : space.batches) {
    if (std::any_of(refused.begin(), refused.end(), [&](const BatchLimit& other) {
          return needs_no_less(space.layout.role, batch, other);
        })) {
      continue;
    }
    const Candidate candidate = space.at(choice, batch);
    const RoleCost cost = problem_.evaluator.role(candidate);
    if (!fits_somewhere(cost, space.limits_apart, limit)) {
      if (!cost.may_shrink) refused.push_back(batch);
    } else if (space.limits_apart && states_bytes(cost)) {
      priced.push_back({candidate, cost});
    } else {
      add_option(candidate, cost, number, options);
    }
  }
  for (const Limited& each : combine_limits(priced, limit)) {
    add_option(each.candidate, each.cost, number, options);
  }
}

// Indices of those that none of them beats in everything, by their seconds in all.
std::vector<std::size_t> Fronts::undominated(const std::vector<const Option*>& options) const {
  std::vector<Phase> used;
  for (const Phase phase : phases_) {
    const bool any = std::any_of(options.begin(), options.end(),
                                 [&](const Option* option) { return option->seconds[phase] != 0; });
    if (any) used.push_back(phase);
  }
  std::vector<FrontPoint> points;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const Option& option = *options[i];
    FrontPoint& point = points.emplace_back();
    for (std::size_t p = 0; p < used.size(); ++p) {
      point.seconds[ChunkIndex{p}] = option.seconds[used[p]];
    }
    point.resident = option.resident;
    point.transient = option.transient;
    point.in_reshard = option.in_reshard;
    point.option[0] = static_cast<int>(i);
  }
  keep_front(points, static_cast<int>(used.size()));
  std::vector<std::size_t> kept;
  for (const FrontPoint& point : points) kept.push_back(static_cast<std::size_t>(point.option[0]));
  return kept;
}

}  // namespace tessera
