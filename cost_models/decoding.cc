#include "cost_models/decoding.h"

#include <algorithm>
#include <cmath>

#include "cost_models/lengths.h"

namespace tessera {
namespace {

constexpr std::size_t kCells = 96;     // of the longest sequence
constexpr std::size_t kTailCells = 4;  // of a part of the tail
constexpr double kWaves = 6;           // after which entries are taken as spread evenly

// Different lengths above `low` and up to `high` tokens.
double different_lengths(const LengthSpec& lengths, double low, double high) {
  if (lengths.cv <= 0) return 1;
  if (lengths.quantiles.empty()) return std::max(1.0, high - low);
  double count = 0;
  std::int64_t previous = -1;
  for (const std::int64_t length : lengths.quantiles) {
    const auto tokens = static_cast<double>(length);
    if (length != previous && tokens > low && tokens <= high) ++count;
    previous = length;
  }
  return std::max(1.0, count);
}

double normal_cdf(double z) {
  if (z > 6) return 1;
  if (z < -6) return 0;
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

// Seconds of a replica whose last sequence ends in some part of the tail.
struct LastEnd {
  double probability = 0;
  Seconds seconds, communication;
  Seconds spread;   // standard deviation
  double skew = 0;  // third cumulant / the spread's cube
};

// A last end for P(seconds <= at): the quantile z lies at seconds + spread (z + skew (z^2 - 1) / 6)
// (Cornish and Fisher 1937).
struct EndQuantiles {
  double probability = 0;
  Seconds seconds, spread;
  double bend = 0;  // skew / 6

  EndQuantiles(const LastEnd& end, Seconds least_spread)
      : probability(end.probability),
        seconds(end.seconds),
        spread{std::hypot(end.spread, least_spread)},
        bend(end.skew * end.spread / spread / 6) {}

  double below(Seconds at) const {
    const double offset = (at - seconds) / spread;
    if (bend < 1e-6) return normal_cdf(offset);
    const double root = 1 + 4 * bend * (bend + offset);
    return root <= 0 ? 0 : normal_cdf((std::sqrt(root) - 1) / (2 * bend));
  }
};

// E[largest of `draws`] from a mixture. The step from one part of the tail to the next is no step
// of the seconds: nothing is narrower than the grid. `early`: probability of less than all of them.
Seconds expected_largest(const std::vector<LastEnd>& ends, double early, double draws) {
  constexpr int kParts = 64;
  Seconds low{HUGE_VAL}, high{-HUGE_VAL};
  for (const LastEnd& end : ends) {
    low = std::min(low, end.seconds - 4 * end.spread);
    high = std::max(high, end.seconds + (5 + 4 * end.skew) * end.spread);
  }
  if (high <= low) return high;
  const Seconds width = (high - low) / kParts;
  std::vector<EndQuantiles> quantiles;
  for (const LastEnd& end : ends) quantiles.emplace_back(end, width / 2);
  Seconds expected = high;
  for (int i = kParts - 1; i >= 0; --i) {
    const Seconds at = low + (i + 0.5) * width;
    double below = early;
    for (const EndQuantiles& end : quantiles) below += end.probability * end.below(at);
    const double all = std::pow(std::min(1.0, below), draws);
    if (all < 1e-5) break;
    expected -= width * all;
  }
  return expected;
}

Seconds mean_of(const std::vector<LastEnd>& ends) {
  Seconds mean;
  for (const LastEnd& end : ends) mean += end.probability * end.seconds;
  return mean;
}

// The other slots end by then as well. What they decode varies, and with it the step's load.
// `highest`: of the replicas in lockstep, in standard deviations above the mean one.
LastEnd last_end(const DecodeProfile& profile, std::size_t part, const DecodeStep& step,
                 Seconds per_sequence, double highest) {
  const double others = profile.last_slots - 1;
  const double ended = profile.tail[part].ended;
  LastEnd end;
  double mean = 0, squared = 0, position = 0;
  for (std::size_t i = 0; i <= part; ++i) {
    const DecodeTail& tail = profile.tail[i];
    const double steps = i == part ? tail.last : tail.steps;
    const double taken = std::max(0.0, 1 - (1 - tail.alive) / ended);
    const double fullest = 1 + others * taken + highest * std::sqrt(others * taken * (1 - taken));
    const DecodeTime one = step(std::min(profile.last_slots, fullest), tail.age);
    end.seconds += steps * one.seconds;
    end.communication += steps * one.communication;
    mean += steps * taken;
    squared += steps * 2 * (position + steps / 2) * taken;
    position += steps;
  }
  end.spread = per_sequence * std::sqrt(others * std::max(0.0, squared - mean * mean));
  return end;
}

// Seconds of a sequence's step: at age 0, and by which they grow with each token.
struct Growth {
  double flat = 0, slope = 0;
};

// The replicas that are waited for have the older sequences: where steps grow faster from the mean
// age on (a server's front end takes as long until then), these count.
Growth growth_of(const DecodeProfile& profile, const DecodeStep& step) {
  const auto at = [&](double age) {
    return step(profile.slots, age).seconds.value / profile.slots;
  };
  const double age = profile.full_age, young = at(0), mean = at(age);
  const double slope = (mean - young) / age, later = (at(3 * age) - mean) / (2 * age);
  return later > slope ? Growth{mean - later * age, later} : Growth{young, slope};
}

// Adds the completed sequences: each its share of the steps and of its growing context.
void add_completed(const DecodeProfile& profile, const Growth& growth, LastEnd& end) {
  if (profile.completed <= 0) return;
  const auto& [flat, slope] = growth;
  const auto& [v, k] = profile.cumulants;
  const double variance = flat * flat * v[0] + 2 * flat * slope * v[1] + slope * slope * v[2];
  const double third = flat * flat * flat * k[0] + 3 * flat * flat * slope * k[1] +
                       3 * flat * slope * slope * k[2] + slope * slope * slope * k[3];
  end.spread =
      Seconds{std::hypot(end.spread, std::sqrt(std::max(0.0, profile.completed * variance)))};
  if (end.spread > 0) {
    end.skew = std::max(0.0, profile.completed * third / std::pow(end.spread.value, 3));
  }
}

void add_at_age(SlotMoments& moments, double share, double age) {
  moments.taken += share;
  moments.age += share * age;
  moments.squared += share * age * age;
}

}  // namespace

DecodeLengths::DecodeLengths(const LengthSpec& lengths, double sequences)
    : fixed_(lengths.cv <= 0) {
  // One token less than the response.
  const double most = std::max(0.0, std::round(length_horizon(lengths, sequences)) - 1);
  width_ = most / static_cast<double>(kCells);
  ending_.assign(kCells + 1, 0);
  lasting_.assign(kCells + 1, 0);
  std::vector<double> squares(kCells + 1, 0);
  double before = 1;
  for (std::size_t cell = 0; cell <= kCells; ++cell) {
    const double edge = (static_cast<double>(cell) + 0.5) * width_ + 1;
    const double after = cell == kCells ? 0 : survival(lengths, edge);
    ending_[std::max<std::size_t>(cell, 1)] += before - after;
    const double different = different_lengths(lengths, edge - width_, edge);
    squares[cell] = (before - after) * (before - after) / different;
    before = after;
  }
  at_cap_ = fixed_ || !lengths.quantiles.empty() ? 0 : survival(lengths, most + 0.5);
  double left = 1;
  for (std::size_t cell = 0; cell <= kCells; ++cell) {
    left -= ending_[cell];
    lasting_[cell] = std::max(0.0, left);
    const double steps = static_cast<double>(cell) * width_;
    mean_ += ending_[cell] * steps;
    squared_ += ending_[cell] * steps * steps;
  }
  for (std::size_t cell = 0; cell <= kCells; ++cell) {
    const double steps = static_cast<double>(cell) * width_;
    const double x = steps - mean_, y = (steps * steps - squared_) / 2, p = ending_[cell];
    cumulants_.v[0] += p * x * x;
    cumulants_.v[1] += p * x * y;
    cumulants_.v[2] += p * y * y;
    cumulants_.k[0] += p * x * x * x;
    cumulants_.k[1] += p * x * x * y;
    cumulants_.k[2] += p * x * y * y;
    cumulants_.k[3] += p * y * y * y;
  }
  if (width_ > 0)
    enter(squares, static_cast<std::size_t>(std::ceil((kWaves + 1) * mean_ / width_)) + kCells);
}

void DecodeLengths::enter(const std::vector<double>& squares, std::size_t cells) {
  entries_.assign(cells, 0);
  entered_.assign(cells, 0);
  ages_.assign(cells, 0);
  instants_.assign(cells, 1);
  held_.assign(cells, {});
  std::vector<double> together(cells, 0);  // sum of the squares of what enters at one instant
  double entered = 0, ages = 0;
  for (std::size_t at = 0; at < cells; ++at) {
    double entries = at == 0 ? 1 : 0;
    together[at] = entries;
    const std::size_t longest = std::min(at, kCells);
    for (std::size_t cell = 1; cell <= longest; ++cell) {
      entries += entries_[at - cell] * ending_[cell];
      together[at] += together[at - cell] * squares[cell];
    }
    entries_[at] = entries;
    const double instants = together[at] > 0 ? entries * entries / together[at] : 1;
    instants_[at] = std::clamp(instants, 1.0, std::max(1.0, width_));
    SlotMoments& held = held_[at];
    for (std::size_t cell = 0; cell <= longest; ++cell) {
      add_at_age(held, entries_[at - cell] * lasting_[cell],
                 (static_cast<double>(cell) + 0.5) * width_);
    }
    entered_[at] = entered += entries;
    ages_[at] = ages += held.age;
  }
}

namespace {

// In expectation, of so many slots.
double steps_until_last(const std::vector<DecodeTail>& tail, double slots) {
  double steps = 0, before = 0;
  for (const DecodeTail& part : tail) {
    const double all = std::pow(part.ended, slots);
    steps += (all - before) * part.last + (1 - all) * part.steps;
    before = all;
  }
  return steps;
}

}  // namespace

// Waves of equal sequences; the last one may have free slots.
DecodeProfile DecodeLengths::fixed_profile(double sequences, double slots) const {
  const double refills = std::max(0.0, std::ceil(sequences / slots - 1e-9) - 1);
  DecodeProfile profile;
  profile.slots = slots;
  profile.full_steps = refills * mean_;
  profile.full_age = mean_ / 2;
  profile.refills = refills;
  profile.last_slots = sequences - refills * slots;
  profile.last_steps = mean_;
  constexpr int kParts = 8;
  for (int part = 0; part < kParts; ++part) {
    const double steps = mean_ / kParts;
    profile.tail.push_back({.steps = steps,
                            .alive = 1,
                            .ended = part + 1 == kParts ? 1.0 : 0.0,
                            .last = steps,
                            .age = (part + 0.5) * steps});
  }
  return profile;
}

double DecodeLengths::refills(std::size_t last, double entering, double slots) const {
  double refills = 0;
  for (std::size_t cell = 1; cell <= last; ++cell) {
    double made = slots * (cell == last ? entering : entries_[cell]);
    if (made <= 0) continue;
    if (cell == kCells && at_cap_ > 0) {
      const double together = std::min(made, slots * at_cap_);
      made -= together;
      refills += 1 - std::exp(-together);
    }
    refills += instants_[cell] * (1 - std::exp(-made / instants_[cell]));
  }
  return refills;
}

SlotMoments DecodeLengths::after_last(std::size_t last, double entering, std::size_t cells) const {
  SlotMoments taken;
  for (std::size_t cell = cells; cell < kCells && cell <= last + cells; ++cell) {
    const std::size_t at = last + cells - cell;
    add_at_age(taken, (at == last ? entering : entries_[at]) * lasting_[cell],
               (static_cast<double>(cell) + 0.5) * width_);
  }
  return taken;
}

std::vector<DecodeTail> DecodeLengths::tail(std::size_t last, double entering) const {
  const auto taken_at = [&](std::size_t cells) { return after_last(last, entering, cells); };
  std::vector<DecodeTail> parts;
  SlotMoments now = taken_at(0);
  for (std::size_t first = 0; first < kCells; first += kTailCells) {
    DecodeTail part{.steps = kTailCells * width_};
    double ends = 0, moments = 0;
    for (std::size_t cell = 1; cell <= kTailCells; ++cell) {
      part.alive += now.taken / kTailCells;
      part.age += now.age / kTailCells;
      const SlotMoments next = taken_at(first + cell);
      ends += now.taken - next.taken;
      moments += (now.taken - next.taken) * static_cast<double>(cell) * width_;
      now = next;
    }
    part.ended = first + kTailCells < kCells ? 1 - now.taken : 1;
    part.last = ends > 0 ? moments / ends : part.steps;
    part.age = part.alive > 0 ? part.age / part.alive : 0;
    parts.push_back(part);
  }
  return parts;
}

// Waves beyond those that are followed enter evenly.
DecodeLengths::LastEntry DecodeLengths::last_entry(double waves) const {
  LastEntry last;
  last.skipped = std::max(0.0, std::ceil(waves - kWaves));
  waves -= last.skipped;
  while (last.cell + 1 < entered_.size() && entered_[last.cell] < waves - 1e-9) ++last.cell;
  last.entering = last.cell == 0 ? 1 : waves - entered_[last.cell - 1];
  return last;
}

SlotHistory DecodeLengths::history(double waves) const {
  SlotHistory history{.width = width_};
  if (width_ <= 0) return history;
  const auto [last, entering, skipped] = last_entry(waves);
  history.full = last;
  history.beyond = skipped * mean_;
  history.cells.assign(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(last));
  for (std::size_t cells = 0; cells < kCells; ++cells) {
    history.cells.push_back(after_last(last, entering, cells));
  }
  return history;
}

DecodeProfile DecodeLengths::profile(double sequences, double slots) const {
  DecodeProfile profile;
  profile.slots = profile.last_slots = slots;
  if (width_ <= 0) return profile;  // prefills draw all
  if (fixed_) return fixed_profile(sequences, slots);
  const auto [last, entering, skipped] = last_entry(sequences / slots);
  const double followed = static_cast<double>(last) * width_, beyond = skipped * mean_;
  profile.full_steps = followed + beyond;
  profile.refills = refills(last, entering, slots);
  profile.cumulants = cumulants_;
  profile.tail = tail(last, entering);
  profile.last_steps = steps_until_last(profile.tail, profile.last_slots);
  if (last == 0) return profile;
  profile.refills += beyond * (1 - std::exp(-slots / mean_));
  const double ages = ages_[last - 1] * width_ + beyond * squared_ / (2 * mean_);
  profile.full_age = ages / profile.full_steps;
  profile.completed = profile.full_steps * slots / mean_;
  return profile;
}

double highest_normal(double draws) {
  return draws <= 1 ? 0 : normal_quantile((draws - 0.375) / (draws + 0.25));
}

DecodeTime slowest_decoding(const DecodeProfile& profile, double replicas, const DecodeStep& step,
                            double together) {
  DecodeTime time;
  const double highest = highest_normal(together);
  if (profile.tail.empty()) return time;
  if (profile.full_steps > 0) {
    const DecodeTime full = step(profile.slots, profile.full_age);
    time = {profile.full_steps * full.seconds, profile.full_steps * full.communication};
  }
  Seconds per_sequence;
  if (profile.last_slots > 1) {
    const double age = profile.tail[profile.tail.size() / 4].age;
    const double half = std::max(1.0, profile.last_slots / 2);
    per_sequence =
        std::max(Seconds{}, (step(profile.last_slots, age).seconds - step(half, age).seconds) /
                                (profile.last_slots - half));
  }
  const Growth growth = profile.completed > 0 ? growth_of(profile, step) : Growth{};
  std::vector<LastEnd> ends;
  double below = 0, early = 0;
  for (std::size_t part = 0; part < profile.tail.size(); ++part) {
    const double all = std::pow(profile.tail[part].ended, profile.last_slots);
    const double probability = all - below;
    below = all;
    // Where nothing else varies, some other replica ends later.
    if (profile.completed == 0 && std::pow(all, replicas) < 1e-5) early = all;
    if (early == all || probability * replicas < 1e-5) continue;
    ends.push_back(last_end(profile, part, step, per_sequence, highest));
    ends.back().probability = probability;
    add_completed(profile, growth, ends.back());
  }
  const Seconds tail = replicas > 1 ? expected_largest(ends, early, replicas) : mean_of(ends);
  const auto nearest =
      std::min_element(ends.begin(), ends.end(), [&](const LastEnd& one, const LastEnd& other) {
        return std::abs((one.seconds - tail).value) < std::abs((other.seconds - tail).value);
      });
  const double share = nearest->seconds > 0 ? tail / nearest->seconds : 1;
  return {time.seconds + tail, time.communication + share * nearest->communication};
}

}  // namespace tessera
