#include "simulator/run_end/stalls.h"

namespace tessera {
namespace {

constexpr double kSilent = 2;  // seconds without any of the ten beats that belong there
constexpr std::chrono::seconds kOwnStop{5};  // between two looks: this process stood still itself

double seconds_between(StallWatch::Clock::time_point begin, StallWatch::Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

void StallWatch::look(const std::vector<RankStatus>& ranks, Clock::time_point now) {
  const Clock::duration missed = now - now_;
  for (auto& [rank, seen] : ranks_) {
    if (missed <= kOwnStop) continue;
    seen.beat += missed;
    seen.waited += missed;
  }
  now_ = now;
  for (const RankStatus& rank : ranks) {
    const auto [entry, is_new] = ranks_.try_emplace(rank.rank);
    Seen& seen = entry->second;
    if (is_new) seen.waited = now;
    if (rank.beats != seen.beats) seen.beat = now;
    if (rank.waiting && rank.state == RankState::running) {
      seen.waited = now;
      some_wait_ = true;
    }
    seen.beats = rank.beats;
    seen.limit_s = rank.stall_limit_s;
    // Whoever is ended by a launcher because of others was running when they gave up.
    seen.running = rank.state != RankState::finished;
  }
}

std::optional<Stall> StallWatch::over_limit() const {
  std::optional<Stall> found;
  for (const auto& [rank, seen] : ranks_) {
    const double silent_s = seconds_between(seen.beat, now_);
    if (!seen.running || seen.limit_s <= 0 || silent_s <= seen.limit_s) continue;
    if (!found || silent_s > found->seconds) found = Stall{rank, silent_s, true};
  }
  return found;
}

std::optional<Stall> StallWatch::waited_for() const {
  std::optional<Stall> silent, busy;
  for (const auto& [rank, seen] : ranks_) {
    if (!seen.running) continue;
    const double silent_s = seconds_between(seen.beat, now_),
                 busy_s = seconds_between(seen.waited, now_);
    if (silent_s > kSilent && (!silent || silent_s > silent->seconds)) {
      silent = Stall{rank, silent_s, true};
    }
    const bool still = some_wait_ && busy_s > seen.limit_s / 2;
    if (still && (!busy || busy_s > busy->seconds)) busy = Stall{rank, busy_s, false};
  }
  return silent ? silent : busy;
}

}  // namespace tessera
