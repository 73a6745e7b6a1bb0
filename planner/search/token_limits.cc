#include "planner/search/token_limits.h"

#include <algorithm>
#include <iterator>

#include "planner/plan/call_limits.h"
#include "planner/plan/phase_seconds.h"
#include "planner/request/candidate.h"

namespace tessera {
namespace {

// The calls that train, or the others, under one limit.
struct CallsCost {
  PhaseSeconds seconds{};
  Bytes bytes;
  std::int64_t tokens = 0;
};

bool no_slower(const CallsCost& a, const CallsCost& b) {
  return std::all_of(kEveryPhase.begin(), kEveryPhase.end(),
                     [&](Phase phase) { return a.seconds[phase] <= b.seconds[phase]; });
}

// By bytes, without those that need no less than another that is no slower. One without any where
// there are no such calls.
std::vector<CallsCost> calls_of(const std::vector<Limited>& all, bool training, Bytes limit) {
  std::vector<Phase> phases;
  std::copy_if(kEveryPhase.begin(), kEveryPhase.end(), std::back_inserter(phases),
               [&](Phase phase) { return updates(phase) == training; });
  std::vector<CallsCost> calls;
  bool none = true;
  for (const Limited& each : all) {
    CallsCost sum{.tokens = each.candidate.tokens};
    for (const Phase phase : phases) {
      sum.seconds[phase] = each.cost.seconds[phase];
      sum.bytes = std::max(sum.bytes, each.cost.bytes[phase]);
    }
    none = none && sum.bytes == 0;
    if (sum.bytes > 0 && sum.bytes <= limit) calls.push_back(sum);
  }
  if (none) return {{}};
  std::stable_sort(calls.begin(), calls.end(),
                   [](const CallsCost& a, const CallsCost& b) { return a.bytes < b.bytes; });
  std::vector<CallsCost> kept;
  for (const CallsCost& each : calls) {
    const bool beaten = std::any_of(kept.begin(), kept.end(),
                                    [&](const CallsCost& other) { return no_slower(other, each); });
    if (!beaten) kept.push_back(each);
  }
  return kept;
}

// True where another of the front that is no slower fits into `bytes`, too.
bool replaceable(const std::vector<CallsCost>& front, std::size_t index, Bytes bytes) {
  for (std::size_t other = index + 1; other < front.size() && front[other].bytes <= bytes;
       ++other) {
    if (no_slower(front[other], front[index])) return true;
  }
  return false;
}

}  // namespace

bool states_bytes(const RoleCost& cost) {
  return std::any_of(cost.bytes.begin(), cost.bytes.end(), [](Bytes bytes) { return bytes > 0; });
}

bool fits_somewhere(const RoleCost& cost, bool limits_apart, Bytes limit) {
  if (std::max(cost.resident, cost.in_reshard) > limit) return false;
  if (!limits_apart || !states_bytes(cost)) return cost.peak <= limit;
  return std::any_of(cost.bytes.begin(), cost.bytes.end(),
                     [&](Bytes bytes) { return bytes > 0 && bytes <= limit; });
}

std::vector<Limited> combine_limits(const std::vector<Limited>& alike, Bytes limit) {
  if (alike.empty()) return {};
  std::vector<Limited> pairs;
  const std::vector<CallsCost> infers = calls_of(alike, false, limit);
  const std::vector<CallsCost> updates = calls_of(alike, true, limit);
  for (std::size_t i = 0; i < infers.size(); ++i) {
    for (std::size_t u = 0; u < updates.size(); ++u) {
      const CallsCost &infer = infers[i], &update = updates[u];
      const Bytes bytes = std::max(infer.bytes, update.bytes);
      if (replaceable(infers, i, bytes) || replaceable(updates, u, bytes)) continue;
      Candidate candidate = alike.front().candidate;
      candidate.tokens = infer.bytes > 0 ? infer.tokens : update.tokens;
      if (update.bytes > 0 && update.tokens != candidate.tokens) {
        candidate.update_tokens = update.tokens;
      }
      RoleCost cost = alike.front().cost;
      cost.seconds = infer.seconds;
      cost.seconds += update.seconds;
      cost.peak = std::max(cost.resident, bytes);
      pairs.push_back({candidate, cost});
    }
  }
  return pairs;
}

}  // namespace tessera
