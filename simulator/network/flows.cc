#include "simulator/network/flows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

constexpr double kForeverInSeconds = std::numeric_limits<double>::infinity();
// Ends that differ by less are one: of flows that were given equal rates, but for rounding.
constexpr double kSameTime = 1e-12;
constexpr double kSameRate = 1e-14, kFull = 1e-12;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Which flows cross which links, and their max-min rates. A rate is right where the flow has a
/// bottleneck: a full link on which no other flow has more. What changes therefore need not reach
/// all that is connected: the rates of the flows on some links are worked out anew, those of all
/// others kept, until every bottleneck that was touched is one again.
class Links {
 public:
  Links(std::span<const double> capacity, std::span<const Flow> flows)
      : flows_(flows), links_(capacity.size()), state_(flows.size()) {
    for (std::size_t i = 0; i < capacity.size(); ++i) links_[i].capacity = capacity[i];
    for (std::size_t i = 0; i < flows.size(); ++i) state_[i].place.resize(flows[i].links.size());
  }

  double rate(int flow) const { return state_[at(flow)].rate; }

  void add(int flow) {
    const std::vector<int>& links = flows_[at(flow)].links;
    for (std::size_t i = 0; i < links.size(); ++i) {
      std::vector<Crossing>& here = links_[at(links[i])].crossing;
      state_[at(flow)].place[i] = here.size();
      here.push_back({flow, static_cast<int>(i)});
    }
  }

  void remove(int flow) {
    State& leaving = state_[at(flow)];
    const std::vector<int>& links = flows_[at(flow)].links;
    for (std::size_t i = 0; i < links.size(); ++i) {
      Link& link = links_[at(links[i])];
      link.used -= leaving.rate;
      const std::size_t place = leaving.place[i];
      link.crossing[place] = link.crossing.back();
      state_[at(link.crossing[place].flow)].place[at(link.crossing[place].index)] = place;
      link.crossing.pop_back();
    }
    if (leaving.bottleneck >= 0) --links_[at(leaving.bottleneck)].limits;
    leaving.rate = 0;
    leaving.bottleneck = -1;
  }

  /// Sets the rates that follow from flows which were added or removed. Returns the flows whose
  /// rates are others now, with the rates before.
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

  static double share(const Link& link) { return std::max(0.0, link.left) / link.unsettled; }

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
    while (!narrowest_.empty()) {
      std::pop_heap(narrowest_.begin(), narrowest_.end(), std::greater<>());
      const auto [known, index] = narrowest_.back();
      narrowest_.pop_back();
      const Link& link = links_[at(index)];
      if (link.unsettled == 0) continue;
      const double now = share(link);
      if (now > known) {  // others of its flows have been settled since
        narrowest_.emplace_back(now, index);
        std::push_heap(narrowest_.begin(), narrowest_.end(), std::greater<>());
        continue;
      }
      settle(index, known);
    }
  }

  // Links of the solved flows, with what these had of them.
  void touch() {
    touched_.clear();
    ++touch_;
    for (const int flow : solved_) {
      State& state = state_[at(flow)];
      state.next = -1;
      for (const int index : flows_[at(flow)].links) {
        Link& link = links_[at(index)];
        if (std::exchange(link.touched, touch_) != touch_) {
          touched_.push_back(index);
          link.before = link.sum = link.most = 0;
          link.unsettled = link.limited_before = link.limited = 0;
          link.solved.clear();
        }
        link.before += state.rate;
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
      ++links_[at(full)].limited;
      for (const int index : flows_[at(flow)].links) {
        Link& link = links_[at(index)];
        link.left -= state.next;
        link.sum += state.next;
        link.most = std::max(link.most, state.next);
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

  std::span<const Flow> flows_;
  std::vector<Link> links_;
  std::vector<State> state_;                       // by flow
  std::vector<std::pair<double, int>> narrowest_;  // heap of shares that were right once
  std::vector<int> open_, solved_, touched_;       // links, flows, links
  std::vector<std::pair<int, double>> changes_;
  std::uint64_t stamp_ = 0, touch_ = 0;
};

/// The flows in time.
class Events {
 public:
  Events(std::span<const double> capacity, std::span<const Flow> flows)
      : flows_(flows),
        links_(capacity, flows),
        left_(flows.size()),
        since_(flows.size(), 0),
        ends_(flows.size(), kForeverInSeconds),
        state_(flows.size(), State::waiting) {
    for (std::size_t i = 0; i < flows.size(); ++i) {
      left_[i] = flows[i].bytes;
      times_.push({flows[i].start_s, static_cast<int>(i)});
    }
  }

  std::vector<double> run(std::int64_t& changes) {
    while (!times_.empty()) {
      const double now = times_.top().first;
      changed_.clear();
      while (!times_.empty() && times_.top().first <= now + kSameTime * now) {
        const auto [time, flow] = times_.top();
        times_.pop();
        change(flow, time, now);
      }
      if (changed_.empty()) continue;
      changes += static_cast<std::int64_t>(changed_.size());
      spread(now);
    }
    return std::move(ends_);
  }

 private:
  enum class State : std::uint8_t { waiting, running, ended };

  // Begins or ends the flow; a time that is no longer that of its end says nothing.
  void change(int flow, double time, double now) {
    State& state = state_[at(flow)];
    if (state == State::ended || (state == State::running && time != ends_[at(flow)])) return;
    const bool begins =
        state == State::waiting && left_[at(flow)] > 0 && !flows_[at(flow)].links.empty();
    changed_.push_back(flow);
    if (begins) {
      state = State::running;
      since_[at(flow)] = now;
      links_.add(flow);
      return;
    }
    if (state == State::running) links_.remove(flow);
    state = State::ended;
    ends_[at(flow)] = now;
  }

  // Ends that follow from the new rates.
  void spread(double now) {
    for (const auto& [flow, before] : links_.update(changed_)) {
      double& left = left_[at(flow)];
      left = std::max(0.0, left - before * (now - since_[at(flow)]));
      since_[at(flow)] = now;
      ends_[at(flow)] = now + left / links_.rate(flow);
      times_.push({ends_[at(flow)], flow});
    }
  }

  using Time = std::pair<double, int>;
  std::span<const Flow> flows_;
  Links links_;
  std::vector<double> left_, since_, ends_;  // by flow
  std::vector<State> state_;
  std::vector<int> changed_;
  std::priority_queue<Time, std::vector<Time>, std::greater<>> times_;
};

}  // namespace

std::vector<double> fair_rates(std::span<const double> capacity, std::span<const Flow> flows) {
  Links links(capacity, flows);
  std::vector<int> all;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    all.push_back(static_cast<int>(i));
    links.add(static_cast<int>(i));
  }
  links.update(all);
  std::vector<double> rates;
  for (const int flow : all) {
    rates.push_back(flows[at(flow)].links.empty() ? kForeverInSeconds : links.rate(flow));
  }
  return rates;
}

std::vector<double> finish_times(std::span<const double> capacity, std::span<const Flow> flows,
                                 std::int64_t* changes) {
  for (const double rate : capacity) TESSERA_CHECK(rate > 0);
  std::int64_t counted = 0;
  std::vector<double> ends = Events(capacity, flows).run(counted);
  if (changes != nullptr) *changes = counted;
  return ends;
}

}  // namespace tessera
