#include "cost_models/paging/paged_cache.h"

#include <algorithm>
#include <cmath>

#include "cost_models/lengths.h"

namespace tessera {
namespace {

constexpr int kPerOctave = 8;
constexpr double kSlots = 64;  // for which the time is found at which most is held
constexpr int kOctaves = 3;    // beyond, slots are in a steady state for nearly all of the time

double as_double(std::int64_t value) { return static_cast<double>(value); }

double in_blocks(double tokens, std::int64_t block) {
  return std::ceil(tokens / as_double(block)) * as_double(block);
}

double waves_at(std::size_t index) { return std::exp2(static_cast<double>(index) / kPerOctave); }

// P(a normal variable is more than so many standard deviations above its mean).
double normal_tail(double deviations) { return 0.5 * std::erfc(deviations / std::sqrt(2.0)); }

}  // namespace

PagedCache::PagedCache(const Workload& workload, std::int64_t block)
    : responses_(workload.response_tokens),
      lengths_(responses_, as_double(workload.sequences())),
      // A first token has been drawn; a sequence's last block is half empty on average.
      start_(as_double(workload.prompt_tokens) + 1 + as_double(block - 1) / 2),
      longest_(in_blocks(as_double(workload.prompt_tokens) +
                             length_horizon(responses_, as_double(workload.sequences())),
                         block)),
      least_(in_blocks(as_double(longest_sequence(workload)), block)) {
  if (responses_.cv <= 0) return;
  constexpr std::size_t kPoints = kPerOctave * kOctaves + 1;
  by_waves_.resize(kPoints);
  // More slots never need less in all: from the fewest up.
  Held least;
  for (std::size_t i = kPoints; i-- > 0;) {
    const Held most = largest(waves_at(i));
    least.mean = std::max(least.mean, most.mean / waves_at(i));
    least.variance = std::max(least.variance, most.variance / waves_at(i));
    by_waves_[i] = least;
    deviation_ = std::max(deviation_, std::sqrt(most.variance));
  }
}

PagedCache::Held PagedCache::held(const SlotMoments& moments) const {
  const double mean = moments.taken * start_ + moments.age;
  const double squared =
      moments.taken * start_ * start_ + 2 * start_ * moments.age + moments.squared;
  return {mean, std::max(0.0, squared - mean * mean)};
}

PagedCache::Held PagedCache::largest(double waves) const {
  Held largest;
  double most = 0;
  for (const SlotMoments& moments : lengths_.history(waves).cells) {
    const Held now = held(moments);
    const double needed = now.mean + kSpareDeviations * std::sqrt(now.variance / kSlots);
    if (needed < most) continue;
    most = needed;
    largest = now;
  }
  return largest;
}

double PagedCache::tokens(double sequences, double slots) const {
  slots = std::min(slots, sequences);
  if (by_waves_.empty()) return std::max(least_, slots * longest_);
  const double at = std::log2(sequences / slots) * kPerOctave;
  const auto below =
      static_cast<std::size_t>(std::clamp(at, 0.0, static_cast<double>(by_waves_.size() - 1)));
  const Held& low = by_waves_[below];
  Held each = low;  // of a sequence's share of the slots
  if (below + 1 < by_waves_.size()) {
    const Held& high = by_waves_[below + 1];
    const double part = at - static_cast<double>(below);
    each.mean += part * (high.mean - low.mean);
    each.variance += part * (high.variance - low.variance);
  } else {  // a slot holds the same with however many sequences
    const double fewer = std::exp2((static_cast<double>(below) - at) / kPerOctave);
    each = {low.mean * fewer, low.variance * fewer};
  }
  const double needed = sequences * each.mean +
                        kSpareDeviations * std::sqrt(sequences * each.variance) +
                        kSpareSequences * deviation_;
  return std::max(least_, std::min(needed, slots * longest_));
}

double PagedCache::recomputed(double sequences, double slots) const {
  slots = std::min(slots, sequences);
  const double cache = tokens(sequences, slots);
  if (cache >= slots * longest_) return 0;
  const SlotHistory history = lengths_.history(sequences / slots);
  const auto grown = [&](const SlotMoments& moments, double steps) {
    const Held now = held(moments);
    const double above = cache - slots * now.mean;
    return steps * slots * moments.taken *
           normal_tail(above / std::max(1.0, std::sqrt(slots * now.variance)));
  };
  double tokens = 0;
  for (const SlotMoments& moments : history.cells) tokens += grown(moments, history.width);
  if (history.full > 0) tokens += grown(history.cells[history.full - 1], history.beyond);
  return tokens;
}

}  // namespace tessera
