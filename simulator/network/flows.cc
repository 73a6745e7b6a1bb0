#include "simulator/network/flows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

constexpr double kForeverInSeconds = std::numeric_limits<double>::infinity();
// Ends that differ by less are one: of flows that were given equal rates, but for rounding.
constexpr double kSameTime = 1e-12;
constexpr double kSameRate = 1e-14, kFull = 1e-12;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

double weight_of(const Flow& flow, std::size_t link) {
  return flow.weights.empty() ? 1 : flow.weights[link];
}

}  // namespace

/// Which flows cross which links, and their max-min rates. A rate is right where the flow has a
/// bottleneck: a full link on which no other flow has more. What changes therefore need not reach
/// all that is connected: the rates of the flows on some links are worked out anew, those of all
/// others kept, until every bottleneck that was touched is one again.
class FairShares {
 public:
  explicit FairShares(std::span<const double> capacity) : links_(capacity.size()) {
    for (std::size_t i = 0; i < capacity.size(); ++i) {
      TESSERA_CHECK(capacity[i] > 0);
      links_[i].capacity = capacity[i];
    }
  }

  double rate(int flow) const { return state_[at(flow)].rate; }

  int add(Flow flow) {
    const auto number = static_cast<int>(flows_.size());
    State& state = state_.emplace_back();
    state.place.resize(flow.links.size());
    for (std::size_t i = 0; i < flow.links.size(); ++i) {
      std::vector<Crossing>& here = links_[at(flow.links[i])].crossing;
      state.place[i] = here.size();
      here.push_back({number, static_cast<int>(i)});
    }
    flows_.push_back(std::move(flow));
    return number;
  }

  /// What update() has seen of it is kept until the next one, as it may be asked to open its links.
  void forget(int flow) {
    flows_[at(flow)] = {};
    state_[at(flow)].place = {};
  }

  void remove(int flow) {
    State& leaving = state_[at(flow)];
    const std::vector<int>& links = flows_[at(flow)].links;
    for (std::size_t i = 0; i < links.size(); ++i) {
      Link& link = links_[at(links[i])];
      link.used -= weight_of(flows_[at(flow)], i) * leaving.rate;
      const std::size_t place = leaving.place[i];
      link.crossing[place] = link.crossing.back();
      state_[at(link.crossing[place].flow)].place[at(link.crossing[place].index)] = place;
      link.crossing.pop_back();
    }
    if (leaving.bottleneck >= 0) --links_[at(leaving.bottleneck)].limits;
    leaving.rate = 0;
    leaving.bottleneck = -1;
  }

  /// Sets the rates that follow from flows (at least one) which were added or removed. Returns the
  /// flows whose rates are others now, with the rates before.
  const std::vector<std::pair<int, double>>& update(std::span<const int> changed) {
    ++stamp_;
    open_.clear();
    solved_.clear();
    changes_.clear();
    for (const int flow : changed) {
      for (const int link : flows_[at(flow)].links) open(link);
    }
    std::size_t collected = 0;
    while (collected < open_.size()) {
      for (; collected < open_.size(); ++collected) collect(open_[collected]);
      fill();
      open_broken();
    }
    keep();
    return changes_;
  }

 private:
  struct Crossing {
    int flow = 0, index = 0;  // of the link among the flow's
  };
  struct Link {
    double capacity = 0, used = 0;
    double level = 0;  // rate of the flows that it limits
    int limits = 0;    // how many
    std::vector<Crossing> crossing;
    // While rates are worked out:
    std::uint64_t opened = 0, touched = 0;           // stamps
    double left = 0, before = 0, sum = 0, most = 0;  // of the flows that are solved
    double unsettled_weight = 0;
    int unsettled = 0, limited_before = 0, limited = 0;
    std::vector<int> solved;
  };
  struct State {
    double rate = 0, next = 0;
    int bottleneck = -1, next_bottleneck = -1;
    std::uint64_t solved = 0;  // stamp
    std::vector<std::size_t> place;
  };

  /// All flows of the link are worked out anew.
  void open(int link) {
    if (std::exchange(links_[at(link)].opened, stamp_) != stamp_) open_.push_back(link);
  }
  void collect(int link) {
    for (const Crossing& crossing : links_[at(link)].crossing) {
      if (std::exchange(state_[at(crossing.flow)].solved, stamp_) != stamp_) {
        solved_.push_back(crossing.flow);
      }
    }
  }

  static double share(const Link& link) { return std::max(0.0, link.left) / link.unsettled_weight; }

  /// Rates of the solved flows in what the others leave: the narrowest link is filled first.
  void fill() {
    touch();
    narrowest_.clear();
    for (const int index : touched_) {
      Link& link = links_[at(index)];
      link.left = link.capacity - (link.used - link.before);
      narrowest_.emplace_back(share(link), index);
    }
    std::make_heap(narrowest_.begin(), narrowest_.end(), std::greater<>());
    settled_ = 0;
    while (settled_ < solved_.size()) {
      const auto [known, index] = narrowest_.front();
      const Link& link = links_[at(index)];
      if (link.unsettled == 0) {
        std::pop_heap(narrowest_.begin(), narrowest_.end(), std::greater<>());
        narrowest_.pop_back();
        continue;
      }
      const double now = share(link);
      if (now > known) {  // others of its flows have been settled since
        narrowest_.front().first = now;
        sink();
        continue;
      }
      settle(index, known);
    }
  }

  // The heap's front, whose share has grown, to its place.
  void sink() {
    const auto front = narrowest_.front();
    std::size_t place = 0;
    while (2 * place + 1 < narrowest_.size()) {
      std::size_t child = 2 * place + 1;
      const bool right = child + 1 < narrowest_.size() && narrowest_[child + 1] < narrowest_[child];
      child += right ? 1 : 0;
      if (front <= narrowest_[child]) break;
      narrowest_[place] = narrowest_[child];
      place = child;
    }
    narrowest_[place] = front;
  }

  // Links of the solved flows, with what these had of them.
  void touch() {
    touched_.clear();
    ++touch_;
    for (const int flow : solved_) {
      State& state = state_[at(flow)];
      const Flow& its = flows_[at(flow)];
      state.next = -1;
      for (std::size_t i = 0; i < its.links.size(); ++i) {
        const int index = its.links[i];
        Link& link = links_[at(index)];
        if (std::exchange(link.touched, touch_) != touch_) {
          touched_.push_back(index);
          link.before = link.sum = link.most = link.unsettled_weight = 0;
          link.unsettled = link.limited_before = link.limited = 0;
          link.solved.clear();
        }
        const double weight = weight_of(its, i);
        link.before += weight * state.rate;
        link.unsettled_weight += weight;
        ++link.unsettled;
        link.limited_before += state.bottleneck == index ? 1 : 0;
        link.solved.push_back(flow);
      }
    }
  }

  void settle(int full, double rate) {
    for (const int flow : links_[at(full)].solved) {
      State& state = state_[at(flow)];
      if (state.next >= 0) continue;
      const bool same = std::abs(rate - state.rate) <= kSameRate * state.rate;
      state.next = same ? state.rate : rate;  // rounding changes nothing
      state.next_bottleneck = full;
      ++settled_;
      ++links_[at(full)].limited;
      const Flow& its = flows_[at(flow)];
      for (std::size_t i = 0; i < its.links.size(); ++i) {
        Link& link = links_[at(its.links[i])];
        const double weight = weight_of(its, i);
        link.left -= weight * state.next;
        link.sum += weight * state.next;
        link.most = std::max(link.most, state.next);
        link.unsettled_weight -= weight;
        --link.unsettled;
      }
    }
  }

  /// Opens links whose other flows cannot keep their rates.
  void open_broken() {
    for (const int index : touched_) {
      const Link& link = links_[at(index)];
      if (link.opened == stamp_) continue;
      const double used = link.used - link.before + link.sum;
      const bool limits_others = link.limits > link.limited_before;
      const bool full = used >= link.capacity * (1 - kFull);
      const bool lost = limits_others && (!full || link.most > link.level * (1 + kFull));
      if (lost || (link.limited > 0 && exceeded(link, limits_others))) open(index);
    }
  }
  // Whether a flow that keeps its rate has more than those that the link limits now.
  bool exceeded(const Link& link, bool limits_others) const {
    const double most = link.most * (1 + kFull);
    if (limits_others) return link.level > most;
    return std::any_of(link.crossing.begin(), link.crossing.end(), [&](const Crossing& crossing) {
      const State& state = state_[at(crossing.flow)];
      return state.solved != stamp_ && state.rate > most;
    });
  }

  void keep() {
    for (const int flow : solved_) {
      State& state = state_[at(flow)];
      if (state.bottleneck >= 0) --links_[at(state.bottleneck)].limits;
      state.bottleneck = state.next_bottleneck;
      Link& link = links_[at(state.bottleneck)];
      ++link.limits;
      link.level = state.next;
      const double before = std::exchange(state.rate, state.next);
      if (before != state.rate) changes_.emplace_back(flow, before);
    }
    for (const int index : touched_) {
      Link& link = links_[at(index)];
      link.used += link.sum - link.before;
    }
  }

  std::vector<Flow> flows_;
  std::vector<Link> links_;
  std::vector<State> state_;                       // by flow
  std::vector<std::pair<double, int>> narrowest_;  // heap of shares that were right once
  std::vector<int> open_, solved_, touched_;       // links, flows, links
  std::vector<std::pair<int, double>> changes_;
  std::uint64_t stamp_ = 0, touch_ = 0;
  std::size_t settled_ = 0;  // of the solved flows
};

FlowRun::FlowRun(std::span<const double> capacity)
    : links_(std::make_unique<FairShares>(capacity)) {}
FlowRun::~FlowRun() = default;

int FlowRun::begin(double now, Flow flow) {
  TESSERA_CHECK(!flow.links.empty() && flow.bytes > 0);
  const double bytes = flow.bytes;
  const int number = links_->add(std::move(flow));
  int place = static_cast<int>(flow_at_.size());
  if (free_places_.empty()) {
    flow_at_.push_back(number);
  } else {
    place = free_places_.back();
    free_places_.pop_back();
    flow_at_[at(place)] = number;
  }
  progress_.push_back({.left = bytes, .since = now, .place = place, .running = true});
  changed_.push_back(number);
  return number;
}

void FlowRun::settle(double now) {
  if (changed_.empty()) return;
  moved_.clear();
  for (const auto& [flow, before] : links_->update(changed_)) {
    Progress& progress = progress_[at(flow)];
    progress.left = std::max(0.0, progress.left - before * (now - progress.since));
    note(flow, now, before);
    progress.since = now;
    moved_.emplace_back(progress.place, now + progress.left / links_->rate(flow));
  }
  ends_.set(moved_);
  for (const int flow : changed_) {
    if (!progress_[at(flow)].running) links_->forget(flow);
  }
  changed_.clear();
}

std::vector<int> FlowRun::take_ended(double now, double until) {
  std::vector<int> ended;
  while (next_end() <= until) {
    const int place = ends_.first(), flow = flow_at_[at(place)];
    ends_.set(place, kForeverInSeconds);
    free_places_.push_back(place);
    note(flow, now, links_->rate(flow));
    progress_[at(flow)].running = false;
    ended.push_back(flow);
  }
  std::sort(ended.begin(), ended.end());
  for (const int flow : ended) {
    links_->remove(flow);
    changed_.push_back(flow);
  }
  return ended;
}

void FlowRun::note(int flow, double until, double rate) {
  const double since = progress_[at(flow)].since;
  if (keeps_segments_ && rate > 0 && until > since) segments_.push_back({flow, since, until, rate});
}

std::vector<double> fair_rates(std::span<const double> capacity, std::span<const Flow> flows) {
  FairShares links(capacity);
  std::vector<int> all;
  for (const Flow& flow : flows) all.push_back(links.add(flow));
  links.update(all);
  std::vector<double> rates;
  for (const int flow : all) {
    rates.push_back(flows[at(flow)].links.empty() ? kForeverInSeconds : links.rate(flow));
  }
  return rates;
}

std::vector<double> finish_times(std::span<const double> capacity, std::span<const Flow> flows,
                                 std::int64_t* changes) {
  std::vector<std::size_t> order(flows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    return flows[one].start_s < flows[other].start_s;
  });
  FlowRun run(capacity);
  std::vector<double> ends(flows.size(), kForeverInSeconds);
  std::vector<std::size_t> begun;  // by the run's numbers
  std::int64_t counted = 0;
  for (std::size_t next = 0; next < order.size() || run.next_end() < kForeverInSeconds;) {
    const double start = next < order.size() ? flows[order[next]].start_s : kForeverInSeconds;
    const double now = std::min(start, run.next_end()), until = now + kSameTime * now;
    for (const int flow : run.take_ended(now, until)) {
      ends[begun[at(flow)]] = now;
      ++counted;
    }
    for (; next < order.size() && flows[order[next]].start_s <= until; ++next, ++counted) {
      const Flow& flow = flows[order[next]];
      if (flow.bytes > 0 && !flow.links.empty()) {
        run.begin(now, flow);
        begun.push_back(order[next]);
      } else {
        ends[order[next]] = now;
      }
    }
    run.settle(now);
  }
  if (changes != nullptr) *changes = counted;
  return ends;
}

}  // namespace tessera
