// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/run_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"
#include "simulator/run_end/end_cause.h"
#include "simulator/timeline/run_folder.h"
#include "simulator/timeline/run_lock.h"

namespace tessera::gui {
namespace {

constexpr std::string_view kProcess = "process ", kOn = " on ";  // "process 17 on host"
// A step or a phase of ten times the usual length is no step any more; what "usual" is nobody
// knows before the first one has ended.
constexpr double kLongSteps = 10, kLeastStallS = 60, kFirstStallS = 900;

QString placeText(const RankStatus& rank) {
  return Words::tr("%1 of step %2").arg(QString::fromStdString(rank.phase)).arg(rank.step);
}

std::int64_t lastSign(const std::vector<RankStatus>& ranks, std::int64_t last_sign_ns) {
  for (const RankStatus& rank : ranks) last_sign_ns = std::max(last_sign_ns, rank.phase_since_ns);
  return last_sign_ns;
}

RunSummary running_summary(const std::vector<RankStatus>& ranks, bool stop_asked, double step_s,
                           double silent_s) {
  const auto all_in = [&](std::string_view phase) {
    return std::all_of(ranks.begin(), ranks.end(),
                       [&](const RankStatus& rank) { return rank.phase == phase; });
  };
  const bool loading = all_in("load");
  if (all_in("paused") && !stop_asked) {
    return {RunState::paused, Words::tr("paused after step %1").arg(ranks.front().step)};
  }
  const double patience = step_s > 0 ? std::max(kLeastStallS, kLongSteps * step_s) : kFirstStallS;
  if (silent_s > patience) {
    const RankStatus& slowest = *std::min_element(
        ranks.begin(), ranks.end(),
        [](const auto& a, const auto& b) { return a.phase_since_ns < b.phase_since_ns; });
    return {RunState::stalled,
            Words::tr("stalled: nothing has moved for %1 (told after %2), "
                      "rank %3 is in %4")
                .arg(secondsText(silent_s), secondsText(patience))
                .arg(slowest.rank)
                .arg(placeText(slowest)),
            slowest.rank};
  }
  const auto words = [&](const QString& text) { return text.arg(ranks.size()); };
  if (loading) return {RunState::loading, words(Words::tr("%1 ranks are loading"))};
  return {RunState::running, words(stop_asked ? Words::tr("%1 ranks are stopping")
                                              : Words::tr("%1 ranks are running"))};
}

// Of a run that cannot go on, whatever ranks of it do.
std::optional<RunSummary> broken_summary(const RunCause& end, bool silent) {
  switch (end.cause) {
    case EndCause::failed:
      return RunSummary{RunState::failed, Words::tr("rank %1 failed with code %2 in %3")
                                              .arg(end.rank->rank)
                                              .arg(end.rank->exit_code)
                                              .arg(placeText(*end.rank))};
    case EndCause::lost:
      return RunSummary{RunState::lost,
                        (silent ? Words::tr("rank %1 has no heartbeat any more, its last was in %2")
                                : Words::tr("rank %1 was lost in %2"))
                            .arg(end.rank->rank)
                            .arg(placeText(*end.rank))};
    case EndCause::lost_peer:
      return RunSummary{RunState::lost, Words::tr("rank %1 waited for another in vain in %2")
                                            .arg(end.rank->rank)
                                            .arg(placeText(*end.rank))};
    default:
      return std::nullopt;
  }
}

// Of a run whose ranks have all ended, and none of them by an error.
RunSummary ended_summary(const std::vector<RankStatus>& ranks, EndCause cause) {
  switch (cause) {
    case EndCause::killed:
      return {RunState::stopped, Words::tr("stopped: its ranks were killed when it was to end")};
    case EndCause::requeued:
      return {RunState::stopped, Words::tr("saved, to be queued again")};
    case EndCause::by_rule:
      return {RunState::stopped, Words::tr("stopped by a rule")};
    default:
      break;
  }
  const auto terminated = std::ranges::find(ranks, RankState::terminated, &RankStatus::state);
  if (terminated != ranks.end()) {
    return {RunState::stopped, Words::tr("stopped: its ranks were told to end")};
  }
  if (cause == EndCause::asked) {
    return {RunState::stopped, Words::tr("stopped as it was asked to")};
  }
  return {RunState::finished, Words::tr("finished: all %1 ranks ended well").arg(ranks.size())};
}

// What became of those ranks nobody knows, so that no more is said than of the others.
RunSummary with_unread(RunSummary known, std::size_t ranks, const std::vector<UnreadRank>& unread) {
  if (known.state == RunState::finished) {
    known = {RunState::unseen,
             Words::tr("%1 of %2 ranks ended well").arg(ranks).arg(ranks + unread.size())};
  }
  const UnreadRank& first = unread.front();
  const QString others =
      unread.size() == 1 ? QString() : Words::tr(" (and of %1 others)").arg(unread.size() - 1);
  known.text = Words::tr("%1; of rank %2 nothing is known: %3%4")
                   .arg(known.text)
                   .arg(first.rank)
                   .arg(faultOf(first), others);
  return known;
}

int open_lock(const std::filesystem::path& file) {
  return ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

/// Whom a lock's file names, whether it holds the lock or once did.
struct Named {
  int pid = 0;       // 0 = it names none
  std::string host;  // empty likewise
};
Named named_in(int lock) {
  std::array<char, 256> text{};
  const ssize_t size = ::read(lock, text.data(), text.size());
  const std::string name(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  Named named;
  if (name.starts_with(kProcess)) {
    std::from_chars(name.data() + kProcess.size(), name.data() + name.size(), named.pid);
  }
  if (const std::size_t on = name.find(kOn); on != std::string::npos) {
    const std::size_t begin = on + kOn.size();
    named.host = name.substr(begin, name.find('\n', begin) - begin);
  }
  return named;
}
Named named_in(const std::filesystem::path& file) {
  const int fd = open_lock(file);
  if (fd < 0) return {};
  Named named = named_in(fd);
  ::close(fd);
  return named;
}

}  // namespace

Tone toneOf(RunState state) {
  switch (state) {
    case RunState::lost:
    case RunState::failed:
      return Tone::bad;
    case RunState::paused:
    case RunState::stalled:
    case RunState::stopped:
    case RunState::unseen:
    case RunState::unreached:
      return Tone::warning;
    case RunState::none:
    case RunState::loading:
    case RunState::running:
    case RunState::finished:
      break;
  }
  return Tone::calm;
}

RunHolder read_holder(const std::filesystem::path& run) {
  RunHolder holder;
  const int fd = open_lock(run / "lock");
  if (fd < 0) return holder;
  holder.host = named_in(fd).host;
  holder.locked = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return holder;
}

std::string own_host() {
  std::array<char, 128> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

std::vector<Life> lives_of(const std::vector<RankStatus>& ranks, const std::vector<bool>& alive,
                           const RunHolder& holder, const std::string& own_host,
                           int ranks_per_host) {
  const bool other_host = !holder.host.empty() && holder.host != own_host;
  const bool any_here = std::find(alive.begin(), alive.end(), true) != alive.end();
  const bool unseen = other_host || (holder.locked && !any_here);
  std::vector<Life> lives;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const bool first_host = ranks_per_host <= 0 || ranks[i].rank < ranks_per_host;
    const bool here = !other_host && alive[i] && first_host;
    lives.push_back(here ? Life::here : unseen || !first_host ? Life::elsewhere : Life::gone);
  }
  return lives;
}

std::vector<Life> lives_by(const std::vector<Pulse>& pulses) {
  std::vector<Life> lives;
  for (const Pulse pulse : pulses) {
    lives.push_back(pulse == Pulse::beating  ? Life::beating
                    : pulse == Pulse::silent ? Life::silent
                                             : Life::elsewhere);
  }
  return lives;
}

// Only complete checkpoints have their name. A lock is tried only where its holder may live: who
// tries a free one may be in the way of a run that starts.
LeftRun left_of(const std::filesystem::path& run) {
  LeftRun left;
  const std::string host = named_in(run / "lock").host;
  if (host != own_host()) left.other_host = host;
  const int command = named_in(run / "run.lock").pid;
  left.held = command > 0 && is_alive(command) && !holder_of_lock(run / "run.lock").empty();
  std::error_code error;
  left.plan = std::filesystem::is_regular_file(run / "plan.json", error);
  left.config = std::filesystem::is_regular_file(run / "run.yaml", error);
  left.checkpoint = newest_step(run / kCheckpointsFolder);
  return left;
}

QString whyNotResumed(RunState state, bool copied, const std::optional<LeftRun>& left) {
  if (copied) return Words::tr("the run is on another host");
  switch (state) {
    case RunState::none:
      return Words::tr("nothing shows that the run has begun");
    case RunState::loading:
    case RunState::running:
    case RunState::paused:
    case RunState::stalled:
      return Words::tr("the run has not ended");
    case RunState::unseen:
    case RunState::unreached:
      return Words::tr("nothing shows that all of its ranks have ended");
    case RunState::finished:
      return Words::tr("the run is finished");
    case RunState::lost:
    case RunState::failed:
    case RunState::stopped:
      break;
  }
  if (!left) return Words::tr("the run has not ended");
  if (!left->other_host.empty()) {
    return Words::tr("the run was on the host %1").arg(toText(left->other_host));
  }
  if (left->held) return Words::tr("the command that started the run has not ended");
  if (!left->plan) return Words::tr("its folder has no plan.json");
  if (!left->config) return Words::tr("its folder has no run.yaml");
  if (!left->checkpoint) return Words::tr("it has no checkpoint");
  return {};
}

std::vector<UnreadRank> faulty_ranks(const RankFiles& files) {
  std::vector<UnreadRank> faulty = files.unread;
  const bool loading = std::ranges::all_of(files.ranks, [](const RankStatus& rank) {
    return rank.state == RankState::running && rank.phase == "load";
  });
  if (loading) std::erase_if(faulty, [](const UnreadRank& rank) { return rank.missing; });
  return faulty;
}

QString faultOf(const UnreadRank& rank) {
  return rank.missing ? Words::tr("its file is missing")
                      : Words::tr("its file cannot be read: %1").arg(said(rank.fault));
}

RunSummary summary_of(const std::vector<RankStatus>& ranks, const std::vector<Life>& lives,
                      StopReason stopped, double step_s, std::int64_t last_sign_ns,
                      std::int64_t now_ns, const std::vector<UnreadRank>& unread) {
  if (!unread.empty()) {
    RunSummary known = summary_of(ranks, lives, stopped, step_s, last_sign_ns, now_ns);
    return with_unread(std::move(known), ranks.size(), unread);
  }
  if (ranks.empty()) return {RunState::none, Words::tr("no rank has started")};
  std::vector<RankStatus> open;
  std::vector<int> dead;
  bool unseen = false;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].state != RankState::running) continue;
    const bool gone = lives[i] == Life::gone || lives[i] == Life::silent;
    if (gone) dead.push_back(ranks[i].rank);
    if (!gone) open.push_back(ranks[i]);
    unseen |= lives[i] == Life::elsewhere;
  }
  // Whom a request reached too late has done all that it was to do.
  const bool done = std::ranges::all_of(ranks, [](const RankStatus& rank) {
    return rank.state == RankState::finished && rank.exit_code == 0;
  });
  const RunCause end = cause_of_end(ranks, dead, done ? StopReason::none : stopped);
  const bool silent = end.rank != nullptr &&
                      lives[static_cast<std::size_t>(end.rank - ranks.data())] == Life::silent;
  if (auto broken = broken_summary(end, silent)) return *std::move(broken);
  if (open.empty()) return ended_summary(ranks, end.cause);
  const double silent_s =
      std::max(0.0, 1e-9 * static_cast<double>(now_ns - lastSign(ranks, last_sign_ns)));
  if (!unseen) return running_summary(open, stopped != StopReason::none, step_s, silent_s);
  return {RunState::unseen, Words::tr("on another host: %1 of %2 ranks have not ended, the last "
                                      "sign of life is %3 old")
                                .arg(open.size())
                                .arg(ranks.size())
                                .arg(secondsText(silent_s))};
}

}  // namespace tessera::gui
