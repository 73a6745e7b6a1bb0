#include "simulator/network/fair_shares.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "cost_models/documents/check.h"
#include "simulator/network/flows.h"

namespace tessera {
namespace {

// Where more than one flow in so many comes or goes, all are worked out.
constexpr std::size_t kPart = 4;
constexpr std::size_t kFewFlows = 8;  // on a link: room that is made at once
constexpr double kNever = -std::numeric_limits<double>::infinity();

}  // namespace

FairShares::FairShares(std::span<const double> capacity)
    : links_(capacity.size()), crossing_(capacity.size()), effects_(capacity.size()) {
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
    before_.push_back(-1);
    moved_.push_back(0);
    place_.push_back(0);
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  std::vector<Edge>& edges = edges_[at(slot)];
  edges.reserve(flow.links.size());
  for (std::size_t i = 0; i < flow.links.size(); ++i) {
    const int index = flow.links[i];
    const double weight = flow.weights.empty() ? 1 : flow.weights[i];
    TESSERA_CHECK(weight > 0);
    std::vector<Crossing>& here = crossing_[at(index)];
    if (here.empty()) {
      here.reserve(kFewFlows);
      links_[at(index)].busy = static_cast<int>(busy_.size());
      busy_.push_back(index);
    }
    edges.push_back({index, static_cast<int>(here.size()), -1, weight, kNever});
    here.push_back({slot, static_cast<int>(i), weight});
  }
  place_[at(slot)] = running_.size();
  running_.push_back(slot);
  added_.push_back(slot);
  ++changed_;
  return slot;
}

void FairShares::remove(int slot) {
  const int limit = bottleneck_[at(slot)];
  const double rate = limit < 0 ? 0 : level(limit);
  if (limit >= 0) disown(slot);
  for (const Edge& edge : edges_[at(slot)]) {
    Link& link = links_[at(edge.link)];
    std::vector<Crossing>& here = crossing_[at(edge.link)];
    put(edge.link, here.size() - 1, at(edge.place));
    here.pop_back();
    if (edge.link != limit) link.others -= edge.weight * rate;
    if (at(link.own) == here.size()) link.others = 0;
    ++link.changes;
    if (link.place >= 0) touch(edge.link);
    if (!here.empty()) continue;
    links_[at(busy_.back())].busy = link.busy;
    busy_[at(link.busy)] = busy_.back();
    busy_.pop_back();
  }
  edges_[at(slot)].clear();
  free_slots_.push_back(slot);
  running_[place_[at(slot)]] = running_.back();
  place_[at(running_.back())] = place_[at(slot)];
  running_.pop_back();
  ++changed_;
}

void FairShares::settle() {
  moves_.clear();
  other_levels_.clear();
  if (changed_ == 0) return;
  if (changed_ * kPart > running_.size() || !sweep()) fill();
  changed_ = 0;
  report();
}

/// The link's level has to be worked out, or, where it limits no flow, whether it is full.
void FairShares::mark(int index) {
  Link& link = links_[at(index)];
  if (std::exchange(link.dirty, true)) return;
  if (link.place >= 0) {
    ++dirty_;
  } else {
    checks_.push_back(index);
  }
}

void FairShares::touch(int index) {
  mark(index);
  touched_.push_back(index);
}

/// Copies one of the link's crossing flows over another.
void FairShares::put(int link, std::size_t from, std::size_t to) {
  std::vector<Crossing>& here = crossing_[at(link)];
  here[to] = here[from];
  edges_[at(here[to].slot)][at(here[to].edge)].place = static_cast<int>(to);
}

void FairShares::swap(int link, std::size_t one, std::size_t other) {
  const Crossing crossing = crossing_[at(link)][one];
  put(link, other, one);
  crossing_[at(link)][other] = crossing;
  edges_[at(crossing.slot)][at(crossing.edge)].place = static_cast<int>(other);
}

const FairShares::Edge& FairShares::edge_over(int slot, int link) const {
  const auto& edges = edges_[at(slot)];
  return *std::find_if(edges.begin(), edges.end(),
                       [&](const Edge& edge) { return edge.link == link; });
}

/// The link limits the flow.
void FairShares::own(int slot, int index) {
  const Edge& edge = edge_over(slot, index);
  Link& link = links_[at(index)];
  link.weight += edge.weight;
  swap(index, at(edge.place), at(link.own++));
  bottleneck_[at(slot)] = index;
  add_effects(slot);
}

void FairShares::add_effects(int slot) {
  std::vector<Effect>& effects = effects_[at(bottleneck_[at(slot)])];
  std::vector<Edge>& edges = edges_[at(slot)];
  if (effects.empty()) effects.reserve(kFewFlows);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    edges[i].effect = -1;
    if (edges[i].link == bottleneck_[at(slot)]) continue;
    edges[i].effect = static_cast<int>(effects.size());
    effects.push_back({edges[i].link, slot, static_cast<int>(i), edges[i].weight, edges[i].until});
  }
}

void FairShares::disown(int slot) {
  const int index = std::exchange(bottleneck_[at(slot)], -1);
  const Edge& edge = edge_over(slot, index);
  Link& link = links_[at(index)];
  --link.own;
  link.weight = link.own == 0 ? 0 : link.weight - edge.weight;
  swap(index, at(edge.place), at(link.own));
  std::vector<Effect>& effects = effects_[at(index)];
  for (const Edge& other : edges_[at(slot)]) {
    if (other.effect < 0) continue;
    Effect& effect = effects[at(other.effect)];
    effect = effects.back();
    edges_[at(effect.slot)][at(effect.edge)].effect = other.effect;
    effects.pop_back();
  }
}

void FairShares::note_level(int index) {
  Link& link = links_[at(index)];
  if (std::exchange(link.noted, true)) return;
  link.before = link.level;
  noted_links_.push_back(index);
}

void FairShares::note_move(int slot) {
  if (std::exchange(moved_[at(slot)], 1) != 0) return;
  before_[at(slot)] = bottleneck_[at(slot)];
  moved_slots_.push_back(slot);
}

void FairShares::report() {
  for (const int slot : moved_slots_) {
    moved_[at(slot)] = 0;
    if (before_[at(slot)] != bottleneck_[at(slot)]) moves_.push_back({slot, before_[at(slot)]});
  }
  for (const int index : noted_links_) {
    Link& link = links_[at(index)];
    link.noted = false;
    if (link.own > 0 && link.level != link.before) other_levels_.push_back(index);
  }
  moved_slots_.clear();
  noted_links_.clear();
}

/// All flows stop growing together, where a link is full: the narrowest is filled first.
void FairShares::fill() {
  for (const int index : order_) links_[at(index)].place = -1;
  for (const std::vector<int>* marked : {&order_, &checks_}) {
    for (const int index : *marked) links_[at(index)].dirty = false;
  }
  dirty_ = 0;
  order_.clear();
  checks_.clear();
  added_.clear();
  touched_.clear();
  narrowest_.clear();
  for (const int slot : running_) next_[at(slot)] = -1;
  for (const int index : busy_) {
    Link& link = links_[at(index)];
    link.others = link.weight = 0;
    link.unsettled = static_cast<int>(crossing_[at(index)].size());
    for (const Crossing& crossing : crossing_[at(index)]) link.weight += crossing.weight;
    narrowest_.emplace_back(link.capacity / link.weight, index);
  }
  std::make_heap(narrowest_.begin(), narrowest_.end(), std::greater<>());
  while (!narrowest_.empty()) {
    const auto [known, index] = narrowest_.front();
    const Link& link = links_[at(index)];
    if (link.unsettled == 0) {
      std::pop_heap(narrowest_.begin(), narrowest_.end(), std::greater<>());
      narrowest_.pop_back();
      continue;
    }
    const double share = std::max(0.0, link.capacity - link.others) / link.weight;
    if (share > known) {  // others of its flows have been settled since
      narrowest_.front().first = share;
      sink();
    } else {
      limit(index, known);
    }
  }
  keep();
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

/// The link's flows that have no rate yet have its level.
void FairShares::limit(int index, double level) {
  note_level(index);
  Link& narrow = links_[at(index)];
  // Rounding changes nothing.
  if (std::abs(level - narrow.level) > kSameRate * narrow.level) narrow.level = level;
  narrow.place = static_cast<int>(order_.size());
  order_.push_back(index);
  for (const Crossing& crossing : crossing_[at(index)]) {
    if (next_[at(crossing.slot)] >= 0) continue;
    next_[at(crossing.slot)] = index;
    for (const Edge& edge : edges_[at(crossing.slot)]) {
      Link& link = links_[at(edge.link)];
      link.others += edge.weight * narrow.level;
      link.weight -= edge.weight;
      --link.unsettled;
    }
  }
}

/// The order of what fill() has found.
void FairShares::keep() {
  for (const int slot : running_) {
    if (bottleneck_[at(slot)] == next_[at(slot)]) continue;
    note_move(slot);
    bottleneck_[at(slot)] = next_[at(slot)];
  }
  for (const int index : busy_) {
    Link& link = links_[at(index)];
    link.own = 0;
    effects_[at(index)].clear();
    for (std::size_t i = 0; i < crossing_[at(index)].size(); ++i) {
      if (bottleneck_[at(crossing_[at(index)][i].slot)] == index) swap(index, i, at(link.own++));
    }
  }
  for (const int slot : running_) add_effects(slot);
  for (const int index : busy_) {
    sum_up(index);
    watch(index);
  }
}

}  // namespace tessera
