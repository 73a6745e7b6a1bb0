// FairShares: levels that follow from few changes, link after link in their order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "simulator/network/fair_shares.h"
#include "simulator/network/flows.h"

namespace tessera {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr double kSameLevel = 1e-13, kFull = 1e-12;
// Changes that a link's load is kept by, before it is summed up so that rounding does not add up.
constexpr int kChanges = 512;

}  // namespace

bool FairShares::sweep() {
  for (const int slot : added_) assign(slot);
  std::size_t first = order_.size();
  for (const int index : touched_) {
    const Link& link = links_[at(index)];
    if (link.place >= 0) first = std::min(first, at(link.place));
  }
  added_.clear();
  touched_.clear();
  inserted_ = 0;
  if (!sweep_from(first)) return false;
  while (!checks_.empty()) {
    const int index = checks_.back();
    checks_.pop_back();
    Link& link = links_[at(index)];
    if (link.place >= 0 || !std::exchange(link.dirty, false)) continue;
    sum_up(index);
    const bool full = link.others > (1 + kFull) * link.capacity;
    if (full) {
      link.place = static_cast<int>(order_.size());
      order_.push_back(index);
    }
    watch(index);
    if (full && !sweep_from(insert(index, -kForever) + 1)) return false;
  }
  return true;
}

/// Gives a new flow to the first of its links in order, or to its narrowest.
void FairShares::assign(int slot) {
  if (bottleneck_[at(slot)] >= 0 || edges_[at(slot)].empty()) return;
  int first = -1;
  for (const Edge& edge : edges_[at(slot)]) {
    const int place = links_[at(edge.link)].place;
    if (place >= 0 && (first < 0 || place < links_[at(first)].place)) first = edge.link;
  }
  if (first < 0) {
    double least = kForever;
    for (const Edge& edge : edges_[at(slot)]) {
      Link& link = links_[at(edge.link)];
      if (link.place < 0) sum_up(edge.link);
      const double share = (link.capacity - link.others) / edge.weight;
      if (share >= least) continue;
      least = share;
      first = edge.link;
    }
    note_level(first);
    Link& link = links_[at(first)];
    link.level = least;
    link.place = static_cast<int>(order_.size());
    order_.push_back(first);
    if (link.dirty) ++dirty_;
    watch(first);
  }
  note_move(slot);
  own(slot, first);
  for (const Edge& edge : edges_[at(slot)]) {
    if (edge.link != first) change_load(edge.link, edge.weight * level(first));
    touch(edge.link);
  }
}

void FairShares::sum_up(int index) {
  Link& link = links_[at(index)];
  const std::vector<Crossing>& here = crossing_[at(index)];
  link.others = link.weight = 0;
  for (std::size_t i = 0; i < at(link.own); ++i) link.weight += here[i].weight;
  for (std::size_t i = at(link.own); i < here.size(); ++i) {
    const int limit = bottleneck_[at(here[i].slot)];
    if (limit >= 0) link.others += here[i].weight * links_[at(limit)].level;
  }
  link.changes = 0;
}

/// Levels from a place on, until nothing is left that what precedes it has changed.
bool FairShares::sweep_from(std::size_t place) {
  for (std::size_t risen = place; place < order_.size();) {
    const Link& link = links_[at(order_[place])];
    if (link.dirty) {
      risen = std::max(risen, place + 1);  // what follows may have a lower level now
      place = visit(place);
      if (inserted_ > order_.size()) return false;
      continue;
    }
    const bool falls = place > 0 && link.level < (1 - kSameLevel) * level(order_[place - 1]);
    if (!falls && dirty_ == 0 && place >= risen) break;
    if (falls) shift(place);
    ++place;
  }
  return true;
}

/// A link that no flow shares with those before it, whose levels have come to be higher.
void FairShares::shift(std::size_t place) {
  const int index = order_[place];
  for (; place > 0 && level(index) < (1 - kSameLevel) * level(order_[place - 1]); --place) {
    order_[place] = order_[place - 1];
    links_[at(order_[place])].place = static_cast<int>(place);
  }
  order_[place] = index;
  links_[at(index)].place = static_cast<int>(place);
}

/// The level of the link at a place; returns the place from which on levels may not be right.
std::size_t FairShares::visit(std::size_t place) {
  const int index = order_[place];
  Link& link = links_[at(index)];
  link.dirty = false;
  --dirty_;
  if (link.own == 0) {
    order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(place));
    for (std::size_t i = place; i < order_.size(); ++i) {
      links_[at(order_[i])].place = static_cast<int>(i);
    }
    link.place = -1;
    mark(index);
    return place;
  }
  if (link.changes > kChanges) sum_up(index);
  const double share = (link.capacity - link.others) / link.weight;
  if (place > 0 && share < (1 - kSameLevel) * level(order_[place - 1])) {
    return insert(index, share) + 1;
  }
  set_level(index, share);
  return place + 1;
}

/// Moves a link to where its level belongs, together with those flows of links behind that place
/// which cross it: with each its level rises, as much as others have had more.
std::size_t FairShares::insert(int index, double share) {
  ++inserted_;
  Link& link = links_[at(index)];
  const std::vector<Crossing>& here = crossing_[at(index)];
  takeable_.clear();
  for (std::size_t i = at(link.own); i < here.size(); ++i) {
    const Link& limit = links_[at(bottleneck_[at(here[i].slot)])];
    if (limit.level > share) takeable_.push_back({limit.place, here[i].slot, here[i].weight});
  }
  std::sort(takeable_.begin(), takeable_.end(), [](const Taken& one, const Taken& other) {
    return std::pair(other.place, other.slot) < std::pair(one.place, one.slot);
  });
  double others = link.others, weight = link.weight;
  std::size_t taken = 0, place = at(link.place);
  for (; place > 0 && (1 - kSameLevel) * level(order_[place - 1]) > share; --place) {
    const int behind = order_[place - 1];
    const std::size_t before = taken;
    for (; taken < takeable_.size() && at(takeable_[taken].place) == place - 1; ++taken) {
      others -= takeable_[taken].weight * level(behind);
      weight += takeable_[taken].weight;
    }
    if (taken > before) share = (link.capacity - others) / weight;
    order_[place] = behind;
    links_[at(behind)].place = static_cast<int>(place);
  }
  order_[place] = index;
  link.place = static_cast<int>(place);
  set_level(index, share);
  for (std::size_t i = 0; i < taken; ++i) take(takeable_[i].slot, index);
  return place;
}

/// A flow of another link's is this one's from now on.
void FairShares::take(int slot, int index) {
  note_move(slot);
  const int before = bottleneck_[at(slot)];
  const double rate = level(index), change = rate - level(before);
  disown(slot);
  own(slot, index);
  for (const Edge& edge : edges_[at(slot)]) {
    Link& link = links_[at(edge.link)];
    if (edge.link == index) {
      link.others -= edge.weight * level(before);
      if (at(link.own) == crossing_[at(index)].size()) link.others = 0;
      ++link.changes;
    } else if (link.place >= 0) {
      change_load(edge.link, edge.weight * (edge.link == before ? rate : change));
    }
  }
}

void FairShares::set_level(int index, double level) {
  Link& link = links_[at(index)];
  const double change = level - link.level;
  if (std::abs(change) <= kSameRate * link.level) return;  // rounding changes nothing
  note_level(index);
  link.level = level;
  for (const Effect& effect : effects_[at(index)]) {
    if (level > effect.until) change_load(effect.link, effect.weight * change);
  }
}

/// What flows that others limit carry over a link has changed.
void FairShares::change_load(int index, double change) {
  Link& link = links_[at(index)];
  link.others += change;
  ++link.changes;
  if (!link.dirty) mark(index);
}

/// How far the flows of a link outside of the order may grow before it has to be looked at: all by
/// the same factor. It was summed up before. Those in the order always have to be.
void FairShares::watch(int index) {
  const Link& link = links_[at(index)];
  const double room = link.capacity / link.others;
  for (const Crossing& crossing : crossing_[at(index)]) {
    const int limit = bottleneck_[at(crossing.slot)];
    Edge& edge = edges_[at(crossing.slot)][at(crossing.edge)];
    edge.until = link.place >= 0 || limit < 0 ? -kForever : room * level(limit);
    if (edge.effect >= 0) effects_[at(limit)][at(edge.effect)].until = edge.until;
  }
}

}  // namespace tessera
