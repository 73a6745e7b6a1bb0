// Which rank the others wait for: the flight records of a run's ranks beside one another.
//
// Members of a group call the same collectives in the same order: who has begun fewest is waited
// for by the others. Exchanges are judged by their peers. A pure function of the records; ranks are
// the run's, times nanoseconds since 1970.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "simulator/flight_recorder/flight_record.h"
#include "simulator/timeline/rank_status.h"

namespace tessera {

/// What the ranks of a run have kept.
struct FlightRecords {
  std::vector<FlightRecord> records;
  std::vector<std::string> troubles;  // a sentence for each rank without a record, or a damaged one
};

/// Those of the ranks with these files; a record of another process than the rank's is none.
FlightRecords read_flight_records(const std::filesystem::path& run,
                                  std::span<const RankStatus> ranks);

/// An operation of a group that some members are in.
struct CollectiveWait {
  LastCollective what;  // as the first that entered it has noted it
  std::string group;
  int size = 0;              // members; those without a record are not in the lists
  std::vector<int> waiting;  // are in it, ascending
  std::vector<int> absent;   // have not entered it
  std::vector<int> left;     // have ended it, or enqueued more of the group's work behind it
  std::int64_t since_ns = 0;
};

/// Members that called different things as the same collective of their group.
struct CollectiveMismatch {
  std::string group;
  int rank = 0, other = 0;
  LastCollective of_rank, of_other;  // with the same sequence
};

struct CollectiveWaits {
  /// What somebody has not entered first, then the longest. Enqueued work that all have entered
  /// has ended where one has left it, and is one wait at most otherwise, the last.
  std::vector<CollectiveWait> waits;
  std::vector<CollectiveMismatch> mismatches;
  /// Absent somewhere, and not in an operation that others keep from its end.
  std::vector<int> waited_for;
};

/// Of a run that has ended every wait counts.
inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// Waits that began after `until_ns` are left out: ranks that work are never at the same place.
CollectiveWaits collective_waits(std::span<const FlightRecord> records, std::int64_t until_ns);

/// "all_reduce 3411 of actor tp (16.8 MB of fp32)".
std::string describe(const LastCollective& what, const std::string& group);

/// The same, when it was begun, in which phase, and how it stands.
std::string line_of(const LastCollective& what, const std::string& group);

/// "12:03:07 UTC".
std::string clock_of(std::int64_t ns);

/// A sentence each: what differs, who waits in what and who has not entered it, whom they wait for,
/// the other waits.
std::vector<std::string> sentences_of(const CollectiveWaits& waits,
                                      std::span<const FlightRecord> records);

}  // namespace tessera
