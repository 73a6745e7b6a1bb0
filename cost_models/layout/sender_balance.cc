#include "cost_models/layout/sender_balance.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/layout/sender_flow.h"

namespace tessera {
namespace {

/// Levels below the busiest senders that are evened out.
constexpr int kLevels = 8;

Bytes ceil_div(Bytes a, std::int64_t b) { return (a + Bytes{b - 1}) / b; }

/// One level: the least cap under which the active classes fit, and what is tight at that cap.
struct Level {
  Bytes cap;
  std::vector<char> tight_class, tight_holder;  // empty when every active holder is level
};

/// Newton's method from below on cap = bytes(X) / |holders(X)|, X the violated cut of the flow.
Level find_cap(const std::vector<DemandClass>& classes, const std::vector<int>& active,
               const std::vector<char>& closed) {
  SenderFlow flow(classes, active, closed);
  const size_t holders = closed.size();
  Bytes total;
  std::vector<char> used(holders, 0);
  for (size_t i = 0; i < active.size(); ++i) {
    total += flow.left[i];
    for (const SenderFlow::Link& link : flow.links[i]) used[static_cast<size_t>(link.holder)] = 1;
  }
  Level level{.cap = ceil_div(total, std::count(used.begin(), used.end(), 1))};
  for (Bytes& room : flow.room) room = level.cap;
  for (flow.augment(true); !flow.satisfied(); flow.augment(true)) {
    Bytes bytes;
    std::int64_t members = 0;
    level.tight_class.assign(active.size(), 0);
    level.tight_holder.assign(holders, 0);
    for (size_t i = 0; i < active.size(); ++i) {
      if (!flow.reached(static_cast<int>(i))) continue;
      level.tight_class[i] = 1;
      bytes += classes[static_cast<size_t>(active[i])].bytes;
    }
    for (size_t h = 0; h < holders; ++h) {
      if (!flow.reached(static_cast<int>(active.size() + h))) continue;
      level.tight_holder[h] = 1;
      ++members;
    }
    const Bytes cap = ceil_div(bytes, members);
    TESSERA_CHECK(cap > level.cap);
    for (Bytes& room : flow.room) room += cap - level.cap;
    level.cap = cap;
  }
  // A class that only tight holders can send belongs to them (it fits into the cap's rounding).
  for (size_t i = 0; i < level.tight_class.size(); ++i) {
    level.tight_class[i] |=
        std::all_of(flow.links[i].begin(), flow.links[i].end(), [&](const SenderFlow::Link& link) {
          return level.tight_holder[static_cast<size_t>(link.holder)] != 0;
        });
  }
  return level;
}

SenderBalance levelled(const std::vector<DemandClass>& classes, int holders) {
  SenderBalance balance{.shares = std::vector<std::vector<SenderShare>>(classes.size())};
  std::vector<int> active;
  for (size_t c = 0; c < classes.size(); ++c) {
    if (classes[c].bytes > 0) active.push_back(static_cast<int>(c));
  }
  std::vector<char> closed(static_cast<size_t>(holders), 0);
  for (int round = 0; !active.empty(); ++round) {
    const Level level = find_cap(classes, active, closed);
    balance.min_max = std::max(balance.min_max, level.cap);
    const bool last = level.tight_class.empty() || round + 1 == kLevels;
    SenderFlow flow(classes, active, closed);
    for (Bytes& room : flow.room) room = level.cap;
    flow.augment(false);
    flow.augment(true);
    const auto shares = forest_shares(flow);
    std::vector<int> rest;
    for (size_t i = 0; i < active.size(); ++i) {
      const auto c = static_cast<size_t>(active[i]);
      if (last || level.tight_class[i]) {
        balance.shares[c] = shares[i];
      } else {
        rest.push_back(active[i]);
      }
    }
    if (last) break;
    active = std::move(rest);
    for (size_t h = 0; h < closed.size(); ++h) closed[h] |= level.tight_holder[h];
  }
  return balance;
}

/// Classes that holders on the destination's node can serve, with those holders alone.
std::vector<DemandClass> near_only(const std::vector<DemandClass>& classes) {
  std::vector<DemandClass> restricted;
  for (const DemandClass& demand : classes) {
    DemandClass& kept = restricted.emplace_back();
    kept.bytes = demand.bytes;
    if (std::find(demand.near.begin(), demand.near.end(), true) == demand.near.end()) {
      kept.holders = demand.holders;
      kept.near = demand.near;
      continue;
    }
    for (size_t i = 0; i < demand.holders.size(); ++i) {
      if (demand.near[i]) kept.holders.push_back(demand.holders[i]);
    }
    kept.near.assign(kept.holders.size(), true);
  }
  return restricted;
}

/// No cap below this is possible: bytes over holders of any part of the problem that shares no
/// holder with the rest.
Bytes least_cap(const std::vector<DemandClass>& classes, int holders) {
  std::vector<size_t> joined(static_cast<size_t>(holders));
  std::iota(joined.begin(), joined.end(), size_t{0});
  const auto find = [&](int holder) {
    auto at = static_cast<size_t>(holder);
    while (joined[at] != at) at = joined[at] = joined[joined[at]];
    return at;
  };
  std::vector<char> used(joined.size(), 0);
  for (const DemandClass& demand : classes) {
    if (demand.bytes == 0) continue;
    for (const int holder : demand.holders) {
      joined[find(holder)] = find(demand.holders.front());
      used[static_cast<size_t>(holder)] = 1;
    }
  }
  std::vector<Bytes> bytes(joined.size());
  std::vector<std::int64_t> members(joined.size(), 0);
  for (int holder = 0; holder < holders; ++holder) {
    members[find(holder)] += used[static_cast<size_t>(holder)];
  }
  for (const DemandClass& demand : classes) {
    if (demand.bytes > 0) bytes[find(demand.holders.front())] += demand.bytes;
  }
  Bytes cap;
  for (size_t i = 0; i < joined.size(); ++i) {
    if (members[i] > 0) cap = std::max(cap, ceil_div(bytes[i], members[i]));
  }
  return cap;
}

}  // namespace

SenderBalance balance_senders(const std::vector<DemandClass>& classes, int holders) {
  const bool by_node = std::any_of(classes.begin(), classes.end(),
                                   [](const DemandClass& demand) { return !demand.near.empty(); });
  if (by_node) {
    // Where it costs nobody more, nothing leaves a node that need not: a far smaller problem.
    SenderBalance local = levelled(near_only(classes), holders);
    if (local.min_max <= least_cap(classes, holders)) return local;
  }
  return levelled(classes, holders);
}

}  // namespace tessera
