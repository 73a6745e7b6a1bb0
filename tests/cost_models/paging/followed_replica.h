// A replica with a paged KV cache, followed token by token and block by block: what closed forms
// and the simulator are held to.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "cost_models/spec/workload.h"

namespace tessera {

inline std::vector<std::int64_t> drawn_lengths(const LengthSpec& lengths, std::int64_t count,
                                               unsigned seed) {
  std::mt19937_64 engine(seed);
  const double variance = std::log1p(lengths.cv * lengths.cv);
  std::lognormal_distribution<double> draw(std::log(lengths.mean) - variance / 2,
                                           std::sqrt(variance));
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  for (std::int64_t& one : all) {
    one = std::clamp<std::int64_t>(std::llround(draw(engine)), 1, lengths.max);
  }
  return all;
}

/// Seconds of what a replica does.
struct FollowedCosts {
  double step = 5e-3, sequence = 12e-6, token = 2e-8;  // s of a decode step; by cached token
  double computed = 30e-6;                             // s of a token of a prefill
};

/// What came of it.
struct Followed {
  double seconds = 0;
  double recomputed = 0;  // tokens
  double most = 0;        // tokens held at once, blocks counted whole
};

/// A replica as vLLM schedules it (v1/core/sched/scheduler.py, 0.24), between two steps.
struct FollowedReplica {
  struct Sequence {
    std::int64_t length = 0, decoded = 0, blocks = 0;
    bool entered = false;
  };

  std::int64_t prompt = 0, block = 0, free = 0;  // tokens; tokens; blocks
  std::vector<Sequence> all = {};
  std::deque<std::size_t> waiting = {};
  std::vector<std::size_t> running = {};

  std::int64_t blocks_of(std::int64_t tokens) const { return (tokens + block - 1) / block; }

  /// Running sequences take the blocks of their next token one after the other; the newest gives up
  /// its blocks where none is free and goes back to the front of the queue. True when one did.
  bool take_blocks() {
    bool preempted = false;
    for (std::size_t at = 0; at < running.size(); ++at) {
      Sequence& one = all[running[at]];
      const std::int64_t needed = blocks_of(prompt + one.decoded + 1) - one.blocks;
      bool own = false;
      while (free < needed && !own) {
        Sequence& newest = all[running.back()];
        own = running.back() == running[at];
        free += newest.blocks;
        newest.blocks = 0;
        waiting.push_front(running.back());
        running.pop_back();
        preempted = true;
      }
      if (own) break;
      free -= needed;
      one.blocks += needed;
    }
    return preempted;
  }

  /// Those that enter while there is a slot and the free blocks hold what they have. Adds the
  /// tokens of their prefill to `computed`, and to `recomputed` where they had entered before.
  std::vector<std::size_t> enter(std::int64_t slots, double& computed, double& recomputed) {
    std::vector<std::size_t> entering;
    while (!waiting.empty() && std::ssize(running) + std::ssize(entering) < slots) {
      Sequence& one = all[waiting.front()];
      const std::int64_t tokens = prompt + one.decoded;
      const std::int64_t needed = blocks_of(tokens);
      if (needed > free) break;
      free -= needed;
      one.blocks = needed;
      computed += static_cast<double>(tokens);
      if (one.entered) recomputed += static_cast<double>(tokens);
      one.entered = true;
      entering.push_back(waiting.front());
      waiting.pop_front();
    }
    return entering;
  }

  /// Every running sequence has a further token (a prefill draws one as a decode step does); those
  /// that are at their end leave.
  void draw_tokens() {
    for (const std::size_t index : running) {
      Sequence& one = all[index];
      if (++one.decoded < one.length) continue;
      free += one.blocks;
    }
    std::erase_if(running,
                  [&](std::size_t index) { return all[index].decoded >= all[index].length; });
  }
};

/// The replica's steps until every sequence is at its end. In a step with a preemption nobody
/// enters.
inline Followed follow(const std::vector<std::int64_t>& lengths, std::int64_t prompt,
                       std::int64_t slots, std::int64_t block, std::int64_t blocks,
                       const FollowedCosts& costs) {
  FollowedReplica replica{.prompt = prompt, .block = block, .free = blocks};
  for (const std::int64_t length : lengths) {
    replica.waiting.push_back(replica.all.size());
    replica.all.push_back({.length = length});
  }
  Followed followed;
  while (!replica.waiting.empty() || !replica.running.empty()) {
    double computed = 0;
    std::vector<std::size_t> entering;
    if (!replica.take_blocks()) entering = replica.enter(slots, computed, followed.recomputed);
    followed.most = std::max(followed.most, static_cast<double>((blocks - replica.free) * block));
    double cached = 0;
    for (const std::size_t index : replica.running) {
      cached += static_cast<double>(prompt + replica.all[index].decoded);
    }
    followed.seconds += computed * costs.computed;
    if (!replica.running.empty()) {
      followed.seconds += costs.step +
                          static_cast<double>(replica.running.size()) * costs.sequence +
                          cached * costs.token;
    }
    replica.running.insert(replica.running.end(), entering.begin(), entering.end());
    replica.draw_tokens();
  }
  return followed;
}

}  // namespace tessera
