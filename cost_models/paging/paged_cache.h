// The KV cache of an engine that pages it: blocks of a few tokens, of which each sequence holds as
// many as it has tokens so far (Kwon et al. 2023, arXiv:2309.06180).
//
// A step's response lengths decide what the slots of a replica hold at each time (decoding.h). A
// cache is sized for the largest mean of that with some to spare (kSpareDeviations), and for
// one sequence of the longest length that is allowed, without which a server does not start.
// While more is needed the newest sequences give up their blocks and compute their tokens again
// later, as vLLM does (v1/core/sched/scheduler.py, 0.24): a sequence enters where the free blocks
// hold what it has (watermark 0), and every token that running sequences grow by beyond them is
// taken from the newest. Blocks of prompts are counted for every sample. Tokens; values that
// nothing changes, any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/decoding.h"
#include "cost_models/spec/workload.h"

namespace tessera {

class PagedCache {
 public:
  /// Standard deviations of what a replica's sequences hold that its cache has beside their mean.
  static constexpr double kSpareDeviations = 2;
  /// The same of one sequence, besides: a few sequences spread further than a normal variable, and
  /// one that waits for another to end makes the replica twice as slow.
  static constexpr double kSpareSequences = 4;

  /// `block`: tokens of a block.
  PagedCache(const Workload& workload, std::int64_t block);

  /// Tokens of the cache of a replica of so many sequences that decodes up to `slots` at once.
  /// Never fewer for more slots.
  double tokens(double sequences, double slots) const;

  /// Of these, tokens that preempted sequences compute again in a step.
  double recomputed(double sequences, double slots) const;

 private:
  // Largest over time, of one slot.
  struct Held {
    double mean = 0, variance = 0;
  };
  Held held(const SlotMoments& moments) const;
  Held largest(double waves) const;

  LengthSpec responses_;
  DecodeLengths lengths_;
  double start_ = 0;      // tokens of a sequence that has decoded none, and the rest of its block
  double longest_ = 0;    // of the longest that is likely, in whole blocks
  double least_ = 0;      // of the longest that is allowed
  double deviation_ = 0;  // standard deviation of what one sequence holds, at its largest
  // At 2^(i / kPerOctave) times as many sequences as slots: what a sequence's share of them holds.
  std::vector<Held> by_waves_;
};

}  // namespace tessera
