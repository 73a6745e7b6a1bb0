// A rank's flight recorder: its last 64 collectives, in a file that outlives the rank.
//
// RUN/ranks/<rank>.collectives stays mapped: what was written last is there after SIGKILL. Noting
// an operation makes no system call and allocates nothing. Bytes; times are the system clock's.
// Owned by the rank, and outlives its communicators. Any thread notes operations, one at a time for
// a group; one thread says the phase.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "cost_models/spec/dtype.h"

namespace tessera {

struct FlightLayout;

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  all_to_all,
  exchange,  // messages between members
  barrier
};
inline constexpr int kCollectiveKinds = 7;
std::string_view name_of(CollectiveKind kind);

/// What a rank enters. `bytes` is the larger of the send and the receive buffer.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::barrier;
  std::int64_t bytes = 0;
  DType type = DType::uint8;
  int root = -1;            // of a broadcast
  std::uint64_t peers = 0;  // of an exchange; see peer_bit
  bool enqueued = false;    // returns when the work is on a device's stream
};

/// The bit of a member of a group in CollectiveCall::peers.
constexpr std::uint64_t peer_bit(int member) {
  return std::uint64_t{1} << (member < 63 ? member : 63);
}

/// RUN/ranks/<rank>.collectives.
std::filesystem::path flight_file(const std::filesystem::path& run, int rank);

class FlightRecorder {
 public:
  static constexpr int kNoGroup = -1;  // there were too many; what it does is not noted

  /// In memory alone, until keep_in.
  FlightRecorder();
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  /// From now on in the run's folder, with what was noted before. No operation may be under way.
  /// Error (io) where the file cannot be made; the recorder then stays as it is.
  void keep_in(const std::filesystem::path& run, int rank);

  void enter(std::string_view phase, std::int64_t step);

  /// A group of `size` ranks, of which this is number `index`; `path` is equal on all of them and
  /// of no other group. Returns its number here.
  int add_group(std::string_view path, std::string_view name, int size, int index);
  void name_group(int group, std::string_view name);

  /// Notes that the rank enters an operation; returns its number for `end`.
  std::int64_t begin(int group, const CollectiveCall& call);
  void end(std::int64_t number);
  /// It went into a graph, which runs it later.
  void captured(std::int64_t number);

  /// How many operations of a group were begun; `end_until` says later that these have all ended.
  struct Reached {
    std::int64_t collectives = 0, exchanges = 0;
  };
  Reached begun(int group) const;
  void end_until(int group, const Reached& reached);

 private:
  FlightLayout* layout_;
};

}  // namespace tessera
