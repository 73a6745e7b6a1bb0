#include "simulator/flight_recorder/collective_waits.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

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

bool is_exchange(const LastCollective& what) { return what.kind == CollectiveKind::exchange; }

/// How many of the operation's kind a member has begun or ended.
std::int64_t count_of(const FlightRecorder::Reached& reached, const LastCollective& what) {
  return is_exchange(what) ? reached.exchanges : reached.collectives;
}

/// A member's own look at an operation of the group, where it is still in the ring.
const LastCollective* find(const Member& member, const LastCollective& like,
                           std::int64_t sequence) {
  for (const LastCollective& what : member.record->last) {
    if (what.group == member.place && what.sequence == sequence &&
        is_exchange(what) == is_exchange(like)) {
      return &what;
    }
  }
  return nullptr;
}

/// What a rank is in. It waits in one operation at a time: what it tried after one that failed is
/// no news, so the oldest counts. Of a group's work on a device's stream it is the newest.
std::vector<const LastCollective*> open_of(const FlightRecord& record) {
  std::vector<const LastCollective*> open;
  bool waits = false;
  std::set<std::pair<int, bool>> enqueued;
  for (auto what = record.last.rbegin(); what != record.last.rend(); ++what) {
    const bool first = what->state == CollectiveState::enqueued &&
                       enqueued.emplace(what->group, is_exchange(*what)).second;
    if (first) open.push_back(&*what);
  }
  for (const LastCollective& what : record.last) {
    if (what.state != CollectiveState::waits || std::exchange(waits, true)) continue;
    open.push_back(&what);
  }
  return open;
}

/// The members whose part in the operation a member needs: of an exchange its peers.
bool is_needed(const LastCollective& what, const Member& other, const Member& self) {
  if (other.record == self.record) return false;
  return !is_exchange(what) ||
         std::ranges::find(what.peers, other.group->index) != what.peers.end();
}

/// It has ended the operation, or put more work of the group behind it on the stream.
bool has_left(const Member& member, const LastCollective& what) {
  return count_of(member.group->ended, what) >= what.sequence ||
         (what.state == CollectiveState::enqueued &&
          count_of(member.group->begun, what) > what.sequence);
}

/// What is enqueued hangs at the first operation that another member has not enqueued.
const LastCollective& first_missed(const Members& members, const Member& self,
                                   const LastCollective& what) {
  std::int64_t sequence = what.sequence;
  for (const Member& other : members) {
    if (!is_needed(what, other, self)) continue;
    sequence = std::min(sequence, count_of(other.group->begun, what) + 1);
  }
  const LastCollective* const found = find(self, what, sequence);
  return found != nullptr && found->state == CollectiveState::enqueued ? *found : what;
}

/// The operation that a member is in, with those that it needs there.
CollectiveWait wait_of(const Members& members, const Member& self, const LastCollective& open) {
  const bool enqueued = open.state == CollectiveState::enqueued;
  const LastCollective& what = enqueued ? first_missed(members, self, open) : open;
  CollectiveWait wait{.what = what,
                      .group = self.group->name,
                      .size = self.group->size,
                      .waiting = {self.record->rank},
                      .absent = {},
                      .left = {},
                      .since_ns = what.begun_ns};
  for (const Member& other : members) {
    if (!is_needed(what, other, self)) continue;
    const int rank = other.record->rank;
    if (count_of(other.group->begun, what) < what.sequence) wait.absent.push_back(rank);
    if (has_left(other, what)) wait.left.push_back(rank);
  }
  return wait;
}

void merge(std::vector<int>& into, const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    const auto place = std::ranges::lower_bound(into, rank);
    if (place == into.end() || *place != rank) into.insert(place, rank);
  }
}

/// Members that are in the same operation are told of together.
void add(std::vector<CollectiveWait>& waits, CollectiveWait wait) {
  for (CollectiveWait& known : waits) {
    const bool same = known.what.sequence == wait.what.sequence &&
                      is_exchange(known.what) == is_exchange(wait.what);
    if (!same) continue;
    merge(known.waiting, wait.waiting);
    merge(known.absent, wait.absent);
    merge(known.left, wait.left);
    if (wait.since_ns >= known.since_ns) return;
    known.since_ns = wait.since_ns;
    known.what = wait.what;
    return;
  }
  waits.push_back(std::move(wait));
}

/// Work on a stream that all have entered and nobody is known to hang at.
bool is_unexplained(const CollectiveWait& wait) {
  return wait.what.state == CollectiveState::enqueued && wait.absent.empty();
}

/// Such work has ended where others have gone on: a rank that is stopped or killed does not note
/// it.
bool is_over(const CollectiveWait& wait) { return is_unexplained(wait) && !wait.left.empty(); }

std::vector<CollectiveWait> waits_in(const Members& members) {
  std::vector<CollectiveWait> waits;
  for (const Member& member : members) {
    for (const LastCollective* what : open_of(*member.record)) {
      if (what->group != member.place) continue;
      CollectiveWait wait = wait_of(members, member, *what);
      if (!is_over(wait)) add(waits, std::move(wait));
    }
  }
  return waits;
}

/// Of work that all have enqueued the oldest alone tells something: the rest stands behind it.
void put_in_order(std::vector<CollectiveWait>& waits) {
  std::ranges::sort(waits, {}, [](const CollectiveWait& wait) {
    return std::tuple(wait.absent.empty(), is_unexplained(wait), wait.since_ns);
  });
  const auto unexplained = std::ranges::find_if(waits, is_unexplained);
  if (unexplained != waits.end()) waits.erase(std::next(unexplained), waits.end());
}

/// Somebody keeps them there. Where others have left it they stand still themselves; work that all
/// have enqueued keeps no rank.
bool is_kept(const CollectiveWait& wait) {
  if (!wait.absent.empty()) return true;
  return wait.what.state == CollectiveState::waits && wait.left.empty();
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
      const LastCollective* const theirs = find(member, mine, mine.sequence);
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
  if (!wait.left.empty())
    return text + ranks_of(wait.left) + (wait.left.size() > 1 ? " have" : " has") + " left it";
  if (is_exchange(wait.what)) return text + "its peers have entered it";
  const bool all = static_cast<int>(wait.waiting.size()) == wait.size;
  return text + (all ? "all have entered it" : "nobody is known to be missing");
}

const FlightRecord* record_of(std::span<const FlightRecord> records, int rank) {
  const auto found = std::ranges::find(records, rank, &FlightRecord::rank);
  return found == records.end() ? nullptr : &*found;
}

std::string sentence_of_waited_for(int rank, std::span<const FlightRecord> records) {
  const std::string who = "rank " + std::to_string(rank) + " is waited for, and ";
  const FlightRecord* const record = record_of(records, rank);
  if (record == nullptr || record->last.empty()) return who + "has called nothing";
  const auto open = std::ranges::find(record->last, CollectiveState::waits, &LastCollective::state);
  const bool stands = open != record->last.end();
  const LastCollective& last = stands ? *open : record->last.back();
  const std::string what =
      describe(last, record->groups[static_cast<std::size_t>(last.group)].name);
  if (stands) return who + "has not come back from " + what + ", which its peers have left";
  const std::string ended = last.ended_ns > 0 ? ", ended " + clock_of(last.ended_ns) : "";
  return who + "waits for nobody; its last was " + what + ended;
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
  const bool none = !ranks.empty() && std::ranges::none_of(ranks, [&](const RankStatus& rank) {
    return std::filesystem::exists(flight_file(run, rank.rank));
  });
  if (none) found.troubles = {"no rank has left a record of its collectives"};
  return found;
}

CollectiveWaits collective_waits(std::span<const FlightRecord> records, std::int64_t until_ns) {
  CollectiveWaits found;
  std::set<int> absent, waiting;
  for (const auto& [id, members] : members_by_group(records)) {
    if (auto wrong = mismatch(members)) found.mismatches.push_back(*std::move(wrong));
    for (CollectiveWait& wait : waits_in(members)) {
      if (wait.since_ns > until_ns) continue;
      absent.insert(wait.absent.begin(), wait.absent.end());
      if (is_kept(wait)) waiting.insert(wait.waiting.begin(), wait.waiting.end());
      found.waits.push_back(std::move(wait));
    }
  }
  put_in_order(found.waits);
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
  for (const CollectiveMismatch& wrong : waits.mismatches) {
    sentences.push_back("ranks " + std::to_string(wrong.rank) + " and " +
                        std::to_string(wrong.other) +
                        " have called different things: " + describe(wrong.of_rank, wrong.group) +
                        ", " + describe(wrong.of_other, wrong.group));
  }
  for (const CollectiveWait& wait : waits.waits) {
    sentences.push_back(sentence_of(wait));
    if (&wait != &waits.waits.front()) continue;
    for (const int rank : waits.waited_for) {
      sentences.push_back(sentence_of_waited_for(rank, records));
    }
  }
  if (waits.waited_for.empty() && waits.waits.size() > 1) {
    sentences.emplace_back(
        "no rank is waited for that does not wait itself: they wait for one "
        "another");
  }
  return sentences;
}

}  // namespace tessera
