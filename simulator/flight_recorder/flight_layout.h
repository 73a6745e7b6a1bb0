// The bytes of RUN/ranks/<rank>.collectives: a rank's groups and a ring of its last collectives.
//
// Fixed sizes, the host's byte order, no pointers: the rank keeps the file mapped and writes,
// others read it at any time. What is damaged must do no harm, so nothing here is trusted by a
// reader. Times are nanoseconds of the system clock since 1970. `docs/commands/measure.md`
// describes it.
#pragma once

#include <array>
#include <cstdint>

namespace tessera {

struct FlightLayout {
  static constexpr std::array<char, 8> kMagic = {'T', 'S', 'R', 'C', 'O', 'L', 'L', '1'};
  static constexpr int kEntries = 64, kGroups = 192, kPhases = 32;
  /// Bits of Entry::flags. `enqueued`: the call returned when the work was on a device's stream;
  /// `captured`: it went into a graph, which runs it later and more than once.
  static constexpr std::uint8_t kEnqueued = 1, kCaptured = 2;
  /// Collectives and exchanges of a group are counted apart: all members call each of the former,
  /// and an exchange is called by those that have a message alone.
  enum Counter { kCollectives, kExchanges, kCounters };

  struct Group {
    std::uint64_t id;  // equal on all members, and in no other group of the run
    std::array<char, 48> name;
    std::int32_t size, index;  // members, and which of them this rank is
    std::array<std::int64_t, kCounters> begun, ended;
  };
  struct Entry {
    std::int64_t number;    // from 1 over all groups; `check` is written last, 0 while it changes
    std::int64_t sequence;  // from 1 among its group's collectives, or exchanges
    std::int64_t begun_ns, ended_ns;  // 0: it has not ended, or nobody has looked yet
    std::int64_t bytes;
    std::uint64_t peers;  // of an exchange: bit i is member i, the last bit all from 63 on
    std::int32_t step, root;
    std::uint16_t group;
    std::uint8_t kind, type, phase, flags;
    std::uint16_t unused;
    std::int64_t check;
  };

  std::array<char, 8> magic;
  std::int32_t rank, pid;
  std::int32_t groups, phases;  // used of the tables
  std::int32_t phase, unused;   // the present one
  std::int64_t step;
  std::int64_t begun;  // entries so far
  std::array<std::array<char, 24>, kPhases> phase_names;
  std::array<Group, kGroups> group_table;
  std::array<Entry, kEntries> ring;
};

}  // namespace tessera
