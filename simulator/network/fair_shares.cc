#include "simulator/network/fair_shares.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "cost_models/documents/check.h"
#include "simulator/network/flows.h"

namespace tessera {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr double kSameRate = 1e-14, kFull = 1e-12;
// Where more than one flow in so many would be worked out anew, all are, in one go; and so they are
// for so many calls, before a part is tried again.
constexpr std::size_t kPart = 4;
constexpr int kWholeCalls = 16;
// Links whose share is larger than so many times the narrowest are looked at only once those are
// full.
constexpr double kWider = 3;

}  // namespace

FairShares::FairShares(std::span<const double> capacity)
    : links_(capacity.size()), crossing_(capacity.size()) {
  for (std::size_t i = 0; i < capacity.size(); ++i) {
    TESSERA_CHECK(capacity[i] > 0);
    links_[i].capacity = capacity[i];
  }
}

int FairShares::add(const Flow& flow) {
  TESSERA_CHECK(!flow.links.empty());
  int slot = static_cast<int>(edges_.size());
  if (free_slots_.empty()) {
    edges_.emplace_back();
    bottleneck_.push_back(-1);
    next_.push_back(-1);
    unsettled_.push_back(0);
    worked_out_.push_back(0);
    place_.push_back(0);
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  std::vector<Edge>& edges = edges_[at(slot)];
  for (std::size_t i = 0; i < flow.links.size(); ++i) {
    const int index = flow.links[i];
    const double weight = flow.weights.empty() ? 1 : flow.weights[i];
    Link& link = links_[at(index)];
    std::vector<Crossing>& here = crossing_[at(index)];
    if (here.empty()) {
      link.busy = static_cast<int>(busy_.size());
      busy_.push_back(index);
    }
    edges.push_back({index, static_cast<int>(here.size()), weight});
    here.push_back({slot, static_cast<int>(i), weight});
    link.weight += weight;
    open(index);
  }
  place_[at(slot)] = running_.size();
  running_.push_back(slot);
  return slot;
}

void FairShares::remove(int slot) {
  for (const Edge& edge : edges_[at(slot)]) {
    Link& link = links_[at(edge.link)];
    std::vector<Crossing>& here = crossing_[at(edge.link)];
    here[at(edge.place)] = here.back();
    edges_[at(here.back().slot)][at(here.back().edge)].place = edge.place;
    here.pop_back();
    link.weight = 0;  // anew, so that rounding does not add up
    for (const Crossing& crossing : here) link.weight += crossing.weight;
    if (here.empty()) {
      links_[at(busy_.back())].busy = link.busy;
      busy_[at(link.busy)] = busy_.back();
      busy_.pop_back();
    }
    open(edge.link);
  }
  edges_[at(slot)].clear();
  bottleneck_[at(slot)] = -1;
  free_slots_.push_back(slot);
  running_[place_[at(slot)]] = running_.back();
  place_[at(running_.back())] = place_[at(slot)];
  running_.pop_back();
}

void FairShares::settle() {
  moves_.clear();
  other_levels_.clear();
  bool whole = whole_calls_ > 0;
  if (whole) --whole_calls_;
  for (std::size_t collected = 0; collected < open_.size() && !whole;) {
    for (; collected < open_.size(); ++collected) collect(open_[collected]);
    whole = solved_.size() * kPart > running_.size();
    if (whole) {
      whole_calls_ = kWholeCalls;
    } else {
      count_part();
      fill();
      open_broken();
    }
  }
  if (whole) {
    count_all();
    fill();
  }
  keep();
}

/// The flows of the link are worked out anew.
void FairShares::open(int link) {
  if (links_[at(link)].opened) return;
  links_[at(link)].opened = true;
  open_.push_back(link);
}

void FairShares::collect(int link) {
  for (const Crossing& crossing : crossing_[at(link)]) {
    if (worked_out_[at(crossing.slot)] != 0) continue;
    worked_out_[at(crossing.slot)] = 1;
    solved_.push_back(crossing.slot);
  }
}

/// The links of the solved flows, with what the others leave of them.
void FairShares::count_part() {
  widest_ = kForever;
  for (const int slot : solved_) unsettled_[at(slot)] = 1;
  for (const int link : counted_) links_[at(link)].counted = false;
  counted_.clear();
  for (const int slot : solved_) {
    for (const Edge& edge : edges_[at(slot)]) {
      if (!links_[at(edge.link)].counted) count(edge.link);
    }
  }
}

/// All flows are solved: the links that may be the narrowest.
void FairShares::count_all() {
  widest_ = kWider * bottom_level_;
  solved_.assign(running_.begin(), running_.end());
  for (const int slot : solved_) unsettled_[at(slot)] = worked_out_[at(slot)] = 1;
  for (const int link : counted_) links_[at(link)].counted = false;
  counted_.clear();
  for (const int index : busy_) {
    Link& link = links_[at(index)];
    if (link.capacity > widest_ * link.weight) continue;
    link.left = link.capacity;
    link.unsettled_weight = link.weight;
    link.unsettled = static_cast<std::int64_t>(crossing_[at(index)].size());
    link.limited = link.kept = 0;
    link.counted = true;
    counted_.push_back(index);
  }
}

/// What the flows that are not solved, or have been settled by now, leave of a link.
void FairShares::count(int index) {
  Link& link = links_[at(index)];
  link.left = link.capacity;
  link.unsettled_weight = 0;
  link.unsettled = link.limited = link.kept = 0;
  for (const Crossing& crossing : crossing_[at(index)]) {
    if (unsettled_[at(crossing.slot)] != 0) {
      link.unsettled_weight += crossing.weight;
      ++link.unsettled;
    } else if (worked_out_[at(crossing.slot)] != 0) {
      link.left -= crossing.weight * links_[at(next_[at(crossing.slot)])].next_level;
    } else {
      link.left -= crossing.weight * rate(crossing.slot);
      link.kept += bottleneck_[at(crossing.slot)] == index ? 1 : 0;
    }
  }
  link.counted = true;
  counted_.push_back(index);
}

/// Rates of the solved flows in what the others leave: the narrowest link is filled first.
void FairShares::fill() {
  settled_ = 0;
  narrowest_.clear();
  for (const int index : counted_) narrowest_.emplace_back(share(links_[at(index)]), index);
  std::make_heap(narrowest_.begin(), narrowest_.end(), std::greater<>());
  while (settled_ < solved_.size()) {
    if (narrowest_.empty() || narrowest_.front().first > widest_) {
      count_wider();
      continue;
    }
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
    limit(index, known);
  }
}

/// A link's share grows as its flows settle, so that those left out so far have more than widest_.
void FairShares::count_wider() {
  widest_ *= kWider;
  double least = kForever;
  for (const int index : busy_) {
    const Link& link = links_[at(index)];
    if (link.counted) continue;
    if (link.capacity > widest_ * link.weight) {
      least = std::min(least, link.capacity / link.weight);
      continue;
    }
    count(index);
    if (link.unsettled == 0) continue;
    narrowest_.emplace_back(share(link), index);
    std::push_heap(narrowest_.begin(), narrowest_.end(), std::greater<>());
  }
  if (narrowest_.empty()) widest_ = least;
}

// The heap's front, whose share has grown, to its place.
void FairShares::sink() {
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

/// The flows of a link that are left have its share.
void FairShares::limit(int full, double rate) {
  Link& narrow = links_[at(full)];
  // Rounding changes nothing, and flows of one bottleneck have one rate.
  const double same = narrow.kept > 0 ? kFull : kSameRate;
  if (std::abs(rate - narrow.level) <= same * narrow.level) rate = narrow.level;
  narrow.next_level = rate;
  narrow.limited = narrow.unsettled;
  settled_ += static_cast<std::size_t>(narrow.unsettled);
  for (const Crossing& crossing : crossing_[at(full)]) {
    if (unsettled_[at(crossing.slot)] == 0) continue;
    unsettled_[at(crossing.slot)] = 0;
    next_[at(crossing.slot)] = full;
    for (const Edge& edge : edges_[at(crossing.slot)]) {
      Link& link = links_[at(edge.link)];
      link.left -= edge.weight * rate;  // of a link that is not counted nobody reads them
      link.unsettled_weight -= edge.weight;
      --link.unsettled;
    }
  }
}

/// Opens links whose other flows cannot keep their rates.
void FairShares::open_broken() {
  for (const int index : counted_) {
    const Link& link = links_[at(index)];
    if (!link.opened && (link.kept > 0 || link.limited > 0) && broken(index)) open(index);
  }
}

/// Whether a counted link is no bottleneck of the flows that it limits, kept or solved.
bool FairShares::broken(int index) const {
  const Link& link = links_[at(index)];
  if (link.kept > 0 && link.left > kFull * link.capacity) return true;
  const double most =
      (link.kept > 0 ? std::min(link.level, link.limited > 0 ? link.next_level : kForever)
                     : link.next_level) *
      (1 + kFull);
  return std::any_of(
      crossing_[at(index)].begin(), crossing_[at(index)].end(), [&](const Crossing& crossing) {
        const bool solved = worked_out_[at(crossing.slot)] != 0;
        return (solved ? links_[at(next_[at(crossing.slot)])].next_level : rate(crossing.slot)) >
               most;
      });
}

void FairShares::keep() {
  const bool all = solved_.size() == running_.size();
  if (all) bottom_level_ = kForever;
  for (const int slot : solved_) {
    const int before = bottleneck_[at(slot)], now = next_[at(slot)];
    worked_out_[at(slot)] = 0;
    if (before == now) continue;
    bottleneck_[at(slot)] = now;
    moves_.push_back({slot, before});
  }
  for (const int index : counted_) {
    Link& link = links_[at(index)];
    link.counted = false;
    if (link.limited == 0) continue;
    if (link.next_level != link.level) {
      other_levels_.push_back(index);
      link.level = link.next_level;
    }
    if (all) bottom_level_ = std::min(bottom_level_, link.level);
  }
  for (const int index : open_) links_[at(index)].opened = false;
  open_.clear();
  solved_.clear();
  counted_.clear();
}

}  // namespace tessera
