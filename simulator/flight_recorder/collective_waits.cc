#include "simulator/flight_recorder/collective_waits.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <map>
#include <optional>
#include <set>

namespace tessera {
namespace {

/// One member of a group.
struct Member {
  const FlightRecord* record = nullptr;
  const CollectiveGroup* group = nullptr;
  int place = 0;  // of the group in the record
};
using Members = std::vector<Member>;

std::map<std::uint64_t, Members> members_by_group(std::span<const FlightRecord> records) {
  std::map<std::uint64_t, Members> groups;
  for (const FlightRecord& record : records) {
    for (std::size_t i = 0; i < record.groups.size(); ++i) {
      const CollectiveGroup& group = record.groups[i];
      if (group.size > 0) groups[group.id].push_back({&record, &group, static_cast<int>(i)});
    }
  }
  return groups;
}

bool is_open(const LastCollective& what) {
  return what.state == CollectiveState::waits || what.state == CollectiveState::enqueued;
}

bool is_exchange(const LastCollective& what) { return what.kind == CollectiveKind::exchange; }

/// What a rank is in. It waits in one operation at a time; what it tried after one that failed is
/// no news, so the oldest counts. On a device's stream there may be many.
std::vector<const LastCollective*> open_of(const FlightRecord& record) {
  std::vector<const LastCollective*> open;
  bool waits = false;
  for (const LastCollective& what : record.last) {
    const bool host = what.state == CollectiveState::waits;
    if (!is_open(what) || (host && waits)) continue;
    waits = waits || host;
    open.push_back(&what);
  }
  return open;
}

/// A member's own look at an operation of the group, where it is still in the ring.
const LastCollective* find(const Member& member, std::int64_t sequence) {
  for (const LastCollective& what : member.record->last) {
    if (what.group == member.place && what.sequence == sequence && !is_exchange(what)) return &what;
  }
  return nullptr;
}

/// Adds a member that is in the operation.
void enter(CollectiveWait& wait, const Member& member, const LastCollective& what) {
  wait.waiting.push_back(member.record->rank);
  if (wait.since_ns != 0 && wait.since_ns <= what.begun_ns) return;
  wait.since_ns = what.begun_ns;
  wait.what = what;
}

/// The collective that the last member has not entered, or that all are in.
std::optional<CollectiveWait> collective_wait(const Members& members) {
  std::int64_t least = -1, most = 0;
  for (const Member& member : members) {
    const std::int64_t begun = member.group->begun.collectives;
    least = least < 0 ? begun : std::min(least, begun);
    most = std::max(most, begun);
  }
  CollectiveWait wait{.group = members.front().group->name, .size = members.front().group->size};
  const std::int64_t sequence = least < most ? least + 1 : most;
  for (const Member& member : members) {
    if (member.group->begun.collectives < sequence) wait.absent.push_back(member.record->rank);
    for (const LastCollective* what : open_of(*member.record)) {
      if (what->group != member.place || is_exchange(*what)) continue;
      const LastCollective* const same = find(member, sequence);
      const bool in_it = same != nullptr && is_open(*same);
      // On a stream the one that hangs may be an earlier one, which is not known to have ended.
      enter(wait, member, in_it ? *same : *what);
      break;
    }
  }
  if (wait.waiting.empty()) return std::nullopt;
  return wait;
}

/// Members in an exchange, and their peers that are not.
std::optional<CollectiveWait> exchange_wait(const Members& members) {
  CollectiveWait wait{.group = members.front().group->name, .size = members.front().group->size};
  std::set<int> peers;
  for (const Member& member : members) {
    for (const LastCollective* what : open_of(*member.record)) {
      if (what->group != member.place || !is_exchange(*what)) continue;
      enter(wait, member, *what);
      peers.insert(what->peers.begin(), what->peers.end());
      break;
    }
  }
  if (wait.waiting.empty()) return std::nullopt;
  for (const Member& member : members) {
    const int rank = member.record->rank;
    const bool in_it = std::ranges::find(wait.waiting, rank) != wait.waiting.end();
    if (peers.contains(member.group->index) && !in_it) wait.absent.push_back(rank);
  }
  return wait;
}

bool differ(const LastCollective& a, const LastCollective& b) {
  return a.kind != b.kind || a.bytes != b.bytes || a.type != b.type || a.root != b.root;
}

/// The first that differs from what the first member has called.
std::optional<CollectiveMismatch> mismatch(const Members& members) {
  const Member& first = members.front();
  for (const LastCollective& mine : first.record->last) {
    if (mine.group != first.place || is_exchange(mine)) continue;
    for (const Member& member : members) {
      const LastCollective* const theirs = find(member, mine.sequence);
      if (theirs == nullptr || !differ(mine, *theirs)) continue;
      return CollectiveMismatch{.group = first.group->name,
                                .rank = first.record->rank,
                                .other = member.record->rank,
                                .of_rank = mine,
                                .of_other = *theirs};
    }
  }
  return std::nullopt;
}

/// "rank 3", "ranks 0, 1, 2", at most eight of them.
std::string ranks_of(const std::vector<int>& ranks) {
  constexpr std::size_t kMost = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kMost) text += " and " + std::to_string(ranks.size() - kMost) + " more";
  return text;
}

std::string size_text(std::int64_t bytes) {
  char text[40];
  const auto value = static_cast<double>(bytes);
  if (bytes < 1000) {
    std::snprintf(text, sizeof text, "%d bytes", static_cast<int>(bytes));
  } else if (bytes < 1'000'000) {
    std::snprintf(text, sizeof text, "%.3g kB", value * 1e-3);
  } else if (bytes < 1'000'000'000) {
    std::snprintf(text, sizeof text, "%.3g MB", value * 1e-6);
  } else {
    std::snprintf(text, sizeof text, "%.4g GB", value * 1e-9);
  }
  return text;
}

std::string sentence_of(const CollectiveWait& wait) {
  const bool many = wait.waiting.size() > 1;
  const bool enqueued = wait.what.state == CollectiveState::enqueued;
  std::string text = ranks_of(wait.waiting) +
                     (enqueued ? (many ? " have enqueued " : " has enqueued ")
                               : (many ? " wait in " : " waits in ")) +
                     describe(wait.what, wait.group) + " of step " +
                     std::to_string(wait.what.step) + ", phase " + wait.what.phase + ", since " +
                     clock_of(wait.since_ns) + "; ";
  if (!wait.absent.empty()) {
    return text + ranks_of(wait.absent) + (wait.absent.size() > 1 ? " have" : " has") +
           " not entered it";
  }
  const int known = static_cast<int>(wait.waiting.size());
  if (is_exchange(wait.what)) return text + "its peers are in it";
  return text +
         (known < wait.size ? "others have left it, or have no record" : "all have entered it");
}

const FlightRecord* record_of(std::span<const FlightRecord> records, int rank) {
  const auto found = std::ranges::find(records, rank, &FlightRecord::rank);
  return found == records.end() ? nullptr : &*found;
}

std::string sentence_of_waited_for(int rank, std::span<const FlightRecord> records) {
  std::string text =
      "rank " + std::to_string(rank) + " is waited for, and waits for nobody; its last was ";
  const FlightRecord* const record = record_of(records, rank);
  if (record == nullptr || record->last.empty()) return text + "none";
  const LastCollective& last = record->last.back();
  text += describe(last, record->groups[static_cast<std::size_t>(last.group)].name);
  if (last.ended_ns > 0) text += ", ended " + clock_of(last.ended_ns);
  return text;
}

}  // namespace

FlightRecords read_flight_records(const std::filesystem::path& run,
                                  std::span<const RankStatus> ranks) {
  FlightRecords found;
  for (const RankStatus& rank : ranks) {
    const std::string who = "rank " + std::to_string(rank.rank);
    std::string reason;
    auto record = read_flight_record(run, rank.rank, reason);
    if (record && record->pid != rank.pid) {
      reason = "it is of process " + std::to_string(record->pid) + ", and the rank's was " +
               std::to_string(rank.pid);
      record.reset();
    }
    if (!record) {
      found.troubles.push_back(who + " has no record of its collectives: " + reason);
      continue;
    }
    if (record->damaged > 0) {
      found.troubles.push_back(who + ": " + std::to_string(record->damaged) +
                               " parts of its record of collectives are damaged and left out");
    }
    found.records.push_back(*std::move(record));
  }
  return found;
}

CollectiveWaits collective_waits(std::span<const FlightRecord> records, std::int64_t until_ns) {
  CollectiveWaits found;
  std::set<int> absent, waiting;
  for (const auto& [id, members] : members_by_group(records)) {
    if (auto wrong = mismatch(members)) found.mismatches.push_back(*std::move(wrong));
    for (auto wait : {collective_wait(members), exchange_wait(members)}) {
      if (!wait || wait->since_ns > until_ns) continue;
      absent.insert(wait->absent.begin(), wait->absent.end());
      waiting.insert(wait->waiting.begin(), wait->waiting.end());
      found.waits.push_back(*std::move(wait));
    }
  }
  std::ranges::sort(found.waits, {}, &CollectiveWait::since_ns);
  std::ranges::set_difference(absent, waiting, std::back_inserter(found.waited_for));
  return found;
}

std::string describe(const LastCollective& what, const std::string& group) {
  std::string text(name_of(what.kind));
  text += " " + std::to_string(what.sequence) + " of " + group;
  if (what.bytes == 0) return text;
  return text + " (" + size_text(what.bytes) + " of " + std::string(name_of(what.type)) + ")";
}

std::string line_of(const LastCollective& what, const std::string& group) {
  std::string text = describe(what, group) + ", phase " + what.phase + " of step " +
                     std::to_string(what.step) + ", begun " + clock_of(what.begun_ns) + ", ";
  if (what.ended_ns <= 0) {
    return text +
           (what.state == CollectiveState::waits ? "not ended" : std::string(name_of(what.state)));
  }
  char seconds[40];
  std::snprintf(seconds, sizeof seconds, "ended after %.3g s",
                static_cast<double>(what.ended_ns - what.begun_ns) * 1e-9);
  return text + seconds;
}

std::string clock_of(std::int64_t ns) {
  const auto seconds = static_cast<std::time_t>(ns / 1'000'000'000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[40];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d UTC", utc.tm_hour, utc.tm_min, utc.tm_sec);
  return text;
}

std::vector<std::string> sentences_of(const CollectiveWaits& waits,
                                      std::span<const FlightRecord> records) {
  std::vector<std::string> sentences;
  for (const int rank : waits.waited_for) {
    sentences.push_back(sentence_of_waited_for(rank, records));
  }
  for (const CollectiveMismatch& wrong : waits.mismatches) {
    sentences.push_back("ranks " + std::to_string(wrong.rank) + " and " +
                        std::to_string(wrong.other) +
                        " have called different things: " + describe(wrong.of_rank, wrong.group) +
                        ", " + describe(wrong.of_other, wrong.group));
  }
  for (const CollectiveWait& wait : waits.waits) sentences.push_back(sentence_of(wait));
  if (waits.waited_for.empty() && waits.waits.size() > 1) {
    sentences.emplace_back(
        "no rank is waited for that does not wait itself: they wait for one "
        "another");
  }
  return sentences;
}

}  // namespace tessera
