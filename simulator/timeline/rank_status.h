// The present work of every rank of a run, as files that outlive the ranks.
//
// RUN/ranks/<rank> is a small file that the rank keeps mapped: what it wrote last is still there
// after SIGKILL. A thread of the rank counts beats in it, five a second, for as long as the process
// runs. The rank writes; the parent of the run, the window and people after a crash read.
// RUN/stop asks all ranks to end; it is empty, or says "requeue". Times are nanoseconds of the
// system clock since 1970.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace tessera {

/// `terminated`: ended by SIGTERM, as launchers do to the survivors of a failure. A rank that died
/// of anything else stays `running` in its file.
enum class RankState : std::int32_t { running, finished, terminated };

struct RankStatus {
  int rank = 0;
  int pid = 0;
  std::string phase;  // at most 23 characters
  std::int64_t step = 0;
  std::int64_t phase_since_ns = 0;
  std::int64_t ended_ns = 0;  // 0 while running
  RankState state = RankState::running;
  int exit_code = 0;         // of a finished rank
  std::int64_t beats = 0;    // signs of life so far
  bool waiting = false;      // for a message of another rank, as of the last beat
  double stall_limit_s = 0;  // without a sign of life for so long it counts as stalled; 0 = never
};

/// What a rank says of itself beside its phases.
struct RankLife {
  double stall_limit_s = 0;                    // as in RankStatus
  const std::atomic<bool>* waiting = nullptr;  // while it waits for others; outlives the file
  bool marks_end = true;                       // by SIGTERM; false: somebody else handles it
};

/// A rank's own file. One per process; its thread writes, a signal handler may end it.
class RankStatusFile {
 public:
  /// Creates RUN/ranks/<rank>, replacing what an earlier run left, in phase "load" of step 0. From
  /// then on SIGTERM marks the file before it ends the process, unless `life` says otherwise. Error
  /// (io) when it cannot.
  RankStatusFile(const std::filesystem::path& run, int rank, const RankLife& life = {});
  ~RankStatusFile();
  RankStatusFile(const RankStatusFile&) = delete;
  RankStatusFile& operator=(const RankStatusFile&) = delete;

  void enter(std::string_view phase, std::int64_t step);
  /// Marks the rank as finished; to be called last, with the code that the process exits with.
  void finish(int exit_code);

 private:
  struct Record;
  friend std::optional<RankStatus> read_rank_status(const std::filesystem::path& file,
                                                    std::string* fault);
  static void on_terminate(int signal);
  void beat(const std::stop_token& stop);
  Record* record_;
  const std::atomic<bool>* waiting_;
  std::jthread heart_;  // last: ends before what it writes to
};

/// One file, or nullopt where there is none that is complete; `fault` then says why.
std::optional<RankStatus> read_rank_status(const std::filesystem::path& file,
                                           std::string* fault = nullptr);

/// A rank of which nothing is known.
struct UnreadRank {
  int rank = 0;
  bool missing = false;  // it has no file: it may not have started yet
  std::string fault;     // "no such file"
  bool operator==(const UnreadRank&) const = default;
};

struct RankFiles {
  std::vector<RankStatus> ranks;   // by rank
  std::vector<UnreadRank> unread;  // likewise; of those without a file 256 at most
};

/// What the ranks of a run left. `ranks`: how many there are at least, as its plan says; 0 = as
/// many as the files name. Where no rank has a file, none is missing.
RankFiles read_rank_files(const std::filesystem::path& run, int ranks = 0);
/// Of those that can be read, by rank.
std::vector<RankStatus> read_rank_statuses(const std::filesystem::path& run);

/// True while the process exists and has not ended (a zombie has).
bool is_alive(int pid);

/// Why a run is asked to end: it is not to go on, or it is to be queued again.
enum class StopReason : std::int32_t { none, stop, requeue };

/// Asks the ranks to end; they look between phases.
void request_stop(const std::filesystem::path& run, StopReason reason = StopReason::stop);
StopReason requested_stop(const std::filesystem::path& run);
/// For a run that is started again: what an earlier one was asked is over.
void forget_stop(const std::filesystem::path& run);
inline bool stop_requested(const std::filesystem::path& run) {
  return requested_stop(run) != StopReason::none;
}

/// RUN/pause, while it exists, holds a run between two steps; its text says who asks for it.
void request_pause(const std::filesystem::path& run, std::string_view who);
bool pause_requested(const std::filesystem::path& run);
/// The first line of that text, or its beginning; empty where there is none.
std::string pause_requester(const std::filesystem::path& run);
/// Lets a run that pauses go on; false where it does not pause.
bool end_pause(const std::filesystem::path& run);

}  // namespace tessera
