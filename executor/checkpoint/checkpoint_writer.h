// Writes checkpoints in the background: every rank its own files, rank 0 the manifest.
//
// Ranks agree through the folder, which all of them share: a rank's files appear under their names
// when they are whole, and rank 0 publishes the checkpoint when all are there and the step's
// records are written: who resumes from a step finds all that was told of it. A write that fails
// leaves the checkpoints that exist as they are, and a state that only the next step shows to be
// ruined takes the place of none. Owned by one rank's training thread; a thread of its own writes,
// another one removes what is old.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <future>
#include <mutex>
#include <optional>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "executor/checkpoint/run_checkpoint.h"
#include "executor/checkpoint/state_file.h"

namespace tessera {

/// What became of a checkpoint.
struct CheckpointEnd {
  std::int64_t step = 0;
  std::int64_t bytes = 0;  // of all ranks; 0 where it failed
  double seconds = 0;      // from begin() to its name
  Problems problems;       // empty: it is complete
};

/// Whether the disk has room for `bytes`, looked at before anybody writes: a checkpoint that does
/// not fit would take the logs' room, too. A Problem where not.
bool check_space(const std::filesystem::path& checkpoints, std::int64_t bytes, Problems& problems);

class CheckpointWriter {
 public:
  /// `least_part_bytes`: as write_state() cuts a rank's state.
  CheckpointWriter(std::filesystem::path checkpoints, int rank, int ranks, CheckpointsToKeep keep,
                   std::int64_t least_part_bytes = kLeastPartBytes);
  /// Waits for this rank's files, and on rank 0 a moment for the others'.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;

  /// Precondition: not pending. The tensors' bytes stay as they are until await_own returns.
  void begin(CheckpointManifest manifest, std::vector<StateTensor> tensors);
  /// What the run records of the step has been written: the checkpoint may have its name. settle()
  /// and the end of the writer say so, too.
  void recorded() { recorded_ = true; }
  /// Begun and not settled yet.
  bool pending() const { return done_.valid(); }
  /// Waits until this rank has written its files; the Problems of that.
  const Problems& await_own();
  /// To be called on every rank after await_own: whether all ranks have written theirs. Rank 0
  /// waits until the checkpoint has its name or is given up.
  void settle(bool all_written);
  /// The step after that of the newest complete checkpoint, `step`, has gone well: older ones may
  /// go, which rank 0 does in the background. Precondition: not pending.
  void prove(std::int64_t step);
  /// Waits until nothing is being removed.
  void await_removed();
  /// On rank 0: what has ended since the last call.
  std::vector<CheckpointEnd> take_ends();

 private:
  void write(const CheckpointManifest& manifest, const std::vector<StateTensor>& tensors);
  void write_own(std::int64_t step, const std::vector<StateTensor>& tensors);
  CheckpointEnd complete(CheckpointManifest manifest);
  bool add_files(int rank, CheckpointManifest& manifest, Problems& problems) const;
  bool await_file(const std::filesystem::path& file, int rank, Problems& problems) const;
  void give_up_after(double seconds);

  std::filesystem::path checkpoints_;
  int rank_, ranks_;
  CheckpointsToKeep keep_;
  std::int64_t least_part_bytes_;
  std::int64_t step_ = 0;     // of what is pending
  std::int64_t proven_ = -1;  // a checkpoint after which training went on well; set between writes
  std::future<void> done_, removed_;
  std::promise<void> own_promise_;
  std::future<void> own_written_;
  Problems own_problems_;
  std::atomic<bool> recorded_ = false;               // of what is pending
  std::atomic<std::int64_t> patience_until_ns_ = 0;  // of rank 0 for others' files
  std::mutex mutex_;
  std::vector<CheckpointEnd> ends_;  // guarded by mutex_
};

}  // namespace tessera
