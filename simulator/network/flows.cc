#include "simulator/network/flows.h"

#include <algorithm>
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

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Which flows cross which links, and the max-min rates of those that are connected.
class Links {
 public:
  Links(std::span<const double> capacity, std::span<const Flow> flows)
      : capacity_(capacity),
        flows_(flows),
        crossing_(capacity.size()),
        place_(flows.size()),
        left_(capacity.size()),
        open_(capacity.size()),
        link_seen_(capacity.size()),
        flow_seen_(flows.size()) {
    for (std::size_t i = 0; i < flows.size(); ++i) place_[i].resize(flows[i].links.size());
  }

  void add(int flow) {
    const std::vector<int>& links = flows_[at(flow)].links;
    for (std::size_t i = 0; i < links.size(); ++i) {
      std::vector<Crossing>& here = crossing_[at(links[i])];
      place_[at(flow)][i] = here.size();
      here.push_back({flow, static_cast<int>(i)});
    }
  }

  void remove(int flow) {
    const std::vector<int>& links = flows_[at(flow)].links;
    for (std::size_t i = 0; i < links.size(); ++i) {
      std::vector<Crossing>& here = crossing_[at(links[i])];
      const std::size_t place = place_[at(flow)][i];
      here[place] = here.back();
      place_[at(here[place].flow)][at(here[place].index)] = place;
      here.pop_back();
    }
  }

  /// Flows that share links with one of `changed`, directly or by others.
  const std::vector<int>& connected(std::span<const int> changed) {
    ++stamp_;
    links_.clear();
    reached_.clear();
    for (const int flow : changed) {
      for (const int link : flows_[at(flow)].links) see(link);
    }
    for (std::size_t next = 0; next < links_.size(); ++next) {
      for (const Crossing& crossing : crossing_[at(links_[next])]) {
        if (std::exchange(flow_seen_[at(crossing.flow)], stamp_) == stamp_) continue;
        reached_.push_back(crossing.flow);
        for (const int link : flows_[at(crossing.flow)].links) see(link);
      }
    }
    return reached_;
  }

  /// Rates of the flows that `connected` found: the narrowest link is filled first.
  void fill(std::vector<double>& rates) {
    narrowest_.clear();
    for (const int link : links_) {
      left_[at(link)] = capacity_[at(link)];
      open_[at(link)] = crossing_[at(link)].size();
      if (open_[at(link)] > 0) narrowest_.push_back({share(link), link});
    }
    std::make_heap(narrowest_.begin(), narrowest_.end(), std::greater<>());
    for (const int flow : reached_) rates[at(flow)] = -1;
    while (!narrowest_.empty()) {
      std::pop_heap(narrowest_.begin(), narrowest_.end(), std::greater<>());
      const auto [known, link] = narrowest_.back();
      narrowest_.pop_back();
      if (open_[at(link)] == 0) continue;
      const double now = share(link);
      if (now > known) {  // others of its flows have been filled since
        narrowest_.emplace_back(now, link);
        std::push_heap(narrowest_.begin(), narrowest_.end(), std::greater<>());
        continue;
      }
      settle(link, known, rates);
    }
  }

 private:
  struct Crossing {
    int flow = 0, index = 0;  // of the link among the flow's
  };

  void see(int link) {
    if (std::exchange(link_seen_[at(link)], stamp_) != stamp_) links_.push_back(link);
  }
  double share(int link) const {
    return std::max(0.0, left_[at(link)]) / static_cast<double>(open_[at(link)]);
  }
  void settle(int full, double rate, std::vector<double>& rates) {
    for (const Crossing& crossing : crossing_[at(full)]) {
      if (rates[at(crossing.flow)] >= 0) continue;
      rates[at(crossing.flow)] = rate;
      for (const int link : flows_[at(crossing.flow)].links) {
        left_[at(link)] -= rate;
        --open_[at(link)];
      }
    }
  }

  std::span<const double> capacity_;
  std::span<const Flow> flows_;
  std::vector<std::vector<Crossing>> crossing_;    // by link, of flows that run
  std::vector<std::vector<std::size_t>> place_;    // by flow and its link: where in crossing_
  std::vector<double> left_;                       // by link, while it is filled
  std::vector<std::size_t> open_;                  // by link: flows without a rate yet
  std::vector<std::pair<double, int>> narrowest_;  // heap of shares that were right once
  std::vector<int> links_, reached_;               // of what is connected
  std::vector<std::uint64_t> link_seen_, flow_seen_;
  std::uint64_t stamp_ = 0;
};

/// The flows in time.
class Events {
 public:
  Events(std::span<const double> capacity, std::span<const Flow> flows)
      : flows_(flows),
        links_(capacity, flows),
        rates_(flows.size(), 0),
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

  // New rates for what is connected with what changed.
  void spread(double now) {
    const std::vector<int>& reached = links_.connected(changed_);
    before_.clear();
    for (const int flow : reached) before_.push_back(rates_[at(flow)]);
    links_.fill(rates_);
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const std::size_t flow = at(reached[i]);
      if (rates_[flow] == before_[i]) continue;
      left_[flow] = std::max(0.0, left_[flow] - before_[i] * (now - since_[flow]));
      since_[flow] = now;
      ends_[flow] = now + left_[flow] / rates_[flow];
      times_.push({ends_[flow], reached[i]});
    }
  }

  using Time = std::pair<double, int>;
  std::span<const Flow> flows_;
  Links links_;
  std::vector<double> rates_, left_, since_, ends_;  // by flow
  std::vector<State> state_;
  std::vector<int> changed_;
  std::vector<double> before_;
  std::priority_queue<Time, std::vector<Time>, std::greater<>> times_;
};

}  // namespace

std::vector<double> fair_rates(std::span<const double> capacity, std::span<const Flow> flows) {
  Links links(capacity, flows);
  std::vector<double> rates(flows.size(), kForeverInSeconds);
  std::vector<int> all;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    all.push_back(static_cast<int>(i));
    links.add(static_cast<int>(i));
  }
  links.connected(all);
  links.fill(rates);
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
