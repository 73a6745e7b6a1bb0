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

/// A replica as vLLM schedules it (v1/core/sched/scheduler.py, 0.24): running sequences take blocks
/// one after the other, the newest gives up its blocks where none is free and goes back to the
/// front of the queue; in a step without preemption sequences enter while there is a slot and the
/// free blocks hold what they have.
inline Followed follow(const std::vector<std::int64_t>& lengths, std::int64_t prompt,
                       std::int64_t slots, std::int64_t block, std::int64_t blocks,
                       const FollowedCosts& costs) {
  struct Sequence {
    std::int64_t length = 0, decoded = 0, blocks = 0;
    bool entered = false;
  };
  std::vector<Sequence> all;
  std::deque<std::size_t> waiting;
  for (const std::int64_t length : lengths) {
    waiting.push_back(all.size());
    all.push_back({.length = length});
  }
  std::vector<std::size_t> running;
  std::int64_t free = blocks;
  Followed followed;
  while (!waiting.empty() || !running.empty()) {
    bool preempted = false;
    for (std::size_t at = 0; at < running.size(); ++at) {
      Sequence& one = all[running[at]];
      const std::int64_t needed = (prompt + one.decoded + 1 + block - 1) / block - one.blocks;
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
    double computed = 0;
    std::vector<std::size_t> entering;
    while (!preempted && !waiting.empty() && std::ssize(running) + std::ssize(entering) < slots) {
      Sequence& one = all[waiting.front()];
      const std::int64_t tokens = prompt + one.decoded;
      const std::int64_t needed = (tokens + block - 1) / block;
      if (needed > free) break;
      free -= needed;
      one.blocks = needed;
      computed += static_cast<double>(tokens);
      if (one.entered) followed.recomputed += static_cast<double>(tokens);
      one.entered = true;
      entering.push_back(waiting.front());
      waiting.pop_front();
    }
    followed.most = std::max(followed.most, static_cast<double>((blocks - free) * block));
    double cached = 0;
    for (const std::size_t index : running) {
      cached += static_cast<double>(prompt + all[index].decoded);
    }
    followed.seconds += computed * costs.computed;
    if (!running.empty()) {
      followed.seconds +=
          costs.step + static_cast<double>(running.size()) * costs.sequence + cached * costs.token;
    }
    running.insert(running.end(), entering.begin(), entering.end());
    for (const std::size_t index : running) {  // a prefill draws a token as a decode step does
      Sequence& one = all[index];
      if (++one.decoded < one.length) continue;
      free += one.blocks;
    }
    std::erase_if(running,
                  [&](std::size_t index) { return all[index].decoded >= all[index].length; });
  }
  return followed;
}

}  // namespace tessera
