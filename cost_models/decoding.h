// Decoding of rollout replicas under continuous batching, in expectation over response lengths.
//
// A sequence takes a slot, its prefill draws the first token, decode steps the others, and a freed
// slot takes the next waiting sequence: each slot is a renewal process (Cox 1962, Renewal Theory,
// ch. 2 to 4) until nothing waits, then it runs out. The step waits for the slowest replica, whose
// longest sequence is the longest of all replicas. Decode steps and tokens; pure functions.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "cost_models/spec/units.h"
#include "cost_models/spec/workload.h"

namespace tessera {

/// A part of a replica's end, while no sequence waits.
struct DecodeTail {
  double steps = 0;
  double alive = 0;  // P(a slot is taken), mean over the part
  double ended = 0;  // P(a slot is free for good) at its end
  double last = 0;   // steps from its start to the mean end of those that end in it
  double age = 0;    // tokens decoded, mean of the slots that are taken
};

/// Cumulants of what a sequence takes: its decode steps L and half their square (the sum of its
/// ages). `v` of second order, `k` of third, by how often the square is a factor.
struct DecodeCumulants {
  std::array<double, 3> v{};
  std::array<double, 4> k{};
};

/// How a replica's slots fill and empty.
struct DecodeProfile {
  double slots = 0;
  double full_steps = 0;  // with every slot taken
  double full_age = 0;    // tokens decoded, mean of the slots in these steps
  double refills = 0;     // times that freed slots are filled: those of one step together
  double completed = 0;   // sequences whose lengths decide full_steps
  DecodeCumulants cumulants;
  double last_slots = 0;  // of the tail; fewer than `slots` where lengths are fixed
  double last_steps = 0;  // of the tail, until the last sequence ends
  std::vector<DecodeTail> tail;

  /// No sequence of the tail ends before the others.
  bool ends_together() const { return !tail.empty() && tail.back().alive == 1; }
};

/// Of a replica's slots at some time: how many are taken, and the sums over these of the tokens
/// that their sequences have decoded and of the squares of that; all as parts of one slot.
struct SlotMoments {
  double taken = 0, age = 0, squared = 0;
};

/// Slots from the first entry until the last sequence ends.
struct SlotHistory {
  std::vector<SlotMoments> cells;  // one after the other, of `width` steps each
  double width = 0;
  std::size_t full = 0;  // cells before the last sequence enters
  double beyond = 0;     // steps besides, in which slots are as in the last of these cells
};

class DecodeLengths {
 public:
  /// `sequences`: of all replicas. Measured lengths or the clipped log-normal.
  DecodeLengths(const LengthSpec& lengths, double sequences);

  /// The profile of a replica of so many sequences. Precondition: 1 <= slots <= sequences.
  DecodeProfile profile(double sequences, double slots) const;
  /// Of a replica that has `waves` times as many sequences as slots, at least once as many.
  SlotHistory history(double waves) const;
  /// Steps of the longest sequence that is counted.
  double most_steps() const { return width_ * static_cast<double>(ending_.size() - 1); }

 private:
  /// Where the last sequences enter: the cell, how many do so there, and what waves are skipped.
  struct LastEntry {
    std::size_t cell = 0;
    double entering = 0, skipped = 0;
  };
  LastEntry last_entry(double waves) const;
  void enter(const std::vector<double>& squares, std::size_t cells);
  DecodeProfile fixed_profile(double sequences, double slots) const;
  double refills(std::size_t last, double entering, double slots) const;
  SlotMoments after_last(std::size_t last, double entering, std::size_t cells) const;
  std::vector<DecodeTail> tail(std::size_t last, double entering) const;

  double width_ = 0;               // steps of a cell
  double mean_ = 0, squared_ = 0;  // decode steps of a sequence
  double at_cap_ = 0;              // P(as long as the longest)
  bool fixed_ = false;
  DecodeCumulants cumulants_;
  // By cells: P(a sequence takes so many), P(more), entries per slot, their sum, the ages' sum.
  std::vector<double> ending_, lasting_, entries_, entered_, ages_;
  std::vector<SlotMoments> held_;  // while sequences wait
  std::vector<double> instants_;   // at which the entries of a cell may be made
};

struct DecodeTime {
  Seconds seconds, communication;
};

/// One decode step of `alive` sequences that have decoded `age` tokens on average.
using DecodeStep = std::function<DecodeTime(double alive, double age)>;

/// E[largest of so many draws of a standard normal], within 5 % (Blom 1958, Statistical Estimates
/// and Transformed Beta-Variables).
double highest_normal(double draws);

/// E[time of the slowest of `replicas`], each with this profile. `together` of them decode in
/// lockstep: a step of one has as many sequences as the fullest of these.
DecodeTime slowest_decoding(const DecodeProfile& profile, double replicas, const DecodeStep& step,
                            double together = 1);

}  // namespace tessera
