#include "simulator/network/flows.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

constexpr double kForeverInSeconds = std::numeric_limits<double>::infinity();
// Ends that differ by less are one: of flows that were given equal rates, but for rounding.
constexpr double kSameTime = 1e-12;

}  // namespace

bool FlowRun::End::operator>(const End& other) const {
  return std::tie(through, flow) > std::tie(other.through, other.flow);
}

FlowRun::FlowRun(std::span<const double> capacity)
    : shares_(capacity), bottlenecks_(capacity.size()) {}

int FlowRun::begin(double now, const Flow& flow) {
  TESSERA_CHECK(!flow.links.empty() && flow.bytes > 0 && now >= 0);
  const auto number = static_cast<int>(progress_.size());
  const int slot = shares_.add(flow);
  if (at(slot) >= flow_in_.size()) flow_in_.resize(at(slot) + 1);
  flow_in_[at(slot)] = number;
  progress_.push_back({.end_through = flow.bytes, .slot = slot});
  changed_ = true;
  return number;
}

void FlowRun::settle(double now) {
  if (!std::exchange(changed_, false)) return;
  shares_.settle();
  for (const int link : shares_.other_levels()) {
    Bottleneck& bottleneck = bottlenecks_[at(link)];
    advance(bottleneck, now);
    bottleneck.level = shares_.level(link);
    touched_.push_back(link);
  }
  for (const FairShares::Move& move : shares_.moves()) {
    const int flow = flow_in_[at(move.slot)];
    Progress& progress = progress_[at(flow)];
    double left = progress.end_through;
    if (move.before >= 0) {
      leave(flow, now);
      left = std::max(0.0, left - bottlenecks_[at(move.before)].through);
      touched_.push_back(move.before);
    }
    join(flow, shares_.bottleneck(move.slot), left, now);
  }
  moved_.clear();
  for (const int link : touched_) {
    if (const int place = bottlenecks_[at(link)].place; place >= 0) {
      moved_.emplace_back(place, end_of(link));
    }
  }
  ends_.set(moved_);
  touched_.clear();
}

std::vector<int> FlowRun::take_ended(double now, double until) {
  std::vector<int> ended;
  while (next_end() <= until) {
    const int place = ends_.first(), link = link_at_[at(place)];
    const int flow = bottlenecks_[at(link)].ends.front().flow;  // has not left: end_of
    leave(flow, now);
    ends_.set(place, end_of(link));
    ended.push_back(flow);
  }
  std::sort(ended.begin(), ended.end());
  for (const int flow : ended) shares_.remove(progress_[at(flow)].slot);
  changed_ = changed_ || !ended.empty();
  return ended;
}

void FlowRun::advance(Bottleneck& bottleneck, double now) {
  const double since = std::exchange(bottleneck.since, now);
  if (bottleneck.flows == 0 || now <= since) return;
  bottleneck.through += bottleneck.level * (now - since);
  if (keeps_segments_) bottleneck.levels.push_back({since, now, bottleneck.level});
}

void FlowRun::join(int flow, int link, double bytes, double now) {
  Bottleneck& bottleneck = bottlenecks_[at(link)];
  if (bottleneck.flows == 0) {
    bottleneck = {.since = now,
                  .level = shares_.level(link),
                  .place = bottleneck.place,
                  .ends = std::move(bottleneck.ends),
                  .levels = std::move(bottleneck.levels)};
    bottleneck.ends.clear();
    bottleneck.levels.clear();
    if (bottleneck.place < 0 && free_places_.empty()) {
      bottleneck.place = static_cast<int>(link_at_.size());
      link_at_.push_back(link);
    } else if (bottleneck.place < 0) {
      bottleneck.place = free_places_.back();
      free_places_.pop_back();
      link_at_[at(bottleneck.place)] = link;
    }
  }
  advance(bottleneck, now);
  ++bottleneck.flows;
  Progress& progress = progress_[at(flow)];
  progress.bottleneck = link;
  progress.end_through = bottleneck.through + bytes;
  progress.joined = bottleneck.levels.size();
  bottleneck.ends.push_back({progress.end_through, flow});
  std::push_heap(bottleneck.ends.begin(), bottleneck.ends.end(), std::greater<>());
  touched_.push_back(link);
}

void FlowRun::leave(int flow, double now) {
  Progress& progress = progress_[at(flow)];
  Bottleneck& bottleneck = bottlenecks_[at(progress.bottleneck)];
  advance(bottleneck, now);
  --bottleneck.flows;
  for (std::size_t i = progress.joined; i < bottleneck.levels.size(); ++i) {
    const Level& level = bottleneck.levels[i];
    segments_.push_back({flow, level.start_s, level.end_s, level.rate});
  }
  progress.bottleneck = -1;
}

bool FlowRun::has_left(const End& end, int link) const {
  const Progress& progress = progress_[at(end.flow)];
  return progress.bottleneck != link || progress.end_through != end.through;
}

/// When the next of a link's flows ends; where there are none it has no place among the ends.
double FlowRun::end_of(int link) {
  Bottleneck& bottleneck = bottlenecks_[at(link)];
  if (bottleneck.flows == 0) {
    free_places_.push_back(std::exchange(bottleneck.place, -1));
    return kForeverInSeconds;
  }
  while (has_left(bottleneck.ends.front(), link)) {
    std::pop_heap(bottleneck.ends.begin(), bottleneck.ends.end(), std::greater<>());
    bottleneck.ends.pop_back();
  }
  const double left = bottleneck.ends.front().through - bottleneck.through;
  return bottleneck.since + std::max(0.0, left) / bottleneck.level;
}

std::vector<double> fair_rates(std::span<const double> capacity, std::span<const Flow> flows) {
  FairShares shares(capacity);
  std::vector<int> slots;
  for (const Flow& flow : flows) slots.push_back(flow.links.empty() ? -1 : shares.add(flow));
  shares.settle();
  std::vector<double> rates;
  for (const int slot : slots) rates.push_back(slot < 0 ? kForeverInSeconds : shares.rate(slot));
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
      ends[begun[static_cast<std::size_t>(flow)]] = now;
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
