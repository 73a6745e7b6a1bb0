// What a rank's flight recorder has kept, as a reader sees it: a rank may write it meanwhile, or
// have died in the midst of it. Values; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "simulator/flight_recorder/flight_recorder.h"

namespace tessera {

/// `waits`: begun, and the rank has not come back from it. `enqueued`: on a device's stream, and
/// not known to have ended (the rank looks ten times a second). `captured`: in a graph, which runs
/// it later.
enum class CollectiveState : std::uint8_t { ended, waits, enqueued, captured };
std::string_view name_of(CollectiveState state);

struct LastCollective {
  int group = 0;              // place in FlightRecord::groups
  std::int64_t sequence = 0;  // from 1 among its group's collectives, or exchanges
  CollectiveKind kind = CollectiveKind::barrier;
  CollectiveState state = CollectiveState::ended;
  DType type = DType::uint8;
  std::int64_t bytes = 0;
  int root = -1;
  std::vector<int> peers;  // members that an exchange has messages for or from; below 63
  std::string phase;
  std::int64_t step = 0;
  std::int64_t begun_ns = 0, ended_ns = 0;  // since 1970; 0 where that is not known
};

struct CollectiveGroup {
  std::uint64_t id = 0;  // equal on all members
  std::string name;      // "actor tp"
  int size = 0, index = 0;
  FlightRecorder::Reached begun, ended;
};

struct FlightRecord {
  int rank = 0, pid = 0;
  std::vector<CollectiveGroup> groups;
  std::vector<LastCollective> last;  // at most 64, oldest first
  int damaged = 0;                   // entries and groups that cannot be
};

/// RUN/ranks/<rank>.collectives; nullopt with the reason where it is none.
std::optional<FlightRecord> read_flight_record(const std::filesystem::path& run, int rank,
                                               std::string& reason);

}  // namespace tessera
