// Saves a run while it goes on: checkpoints in the background, and Hugging Face folders.
//
// A save copies what training has made into host memory and leaves the writing to a thread of its
// own, which has the next step's time for it: a run that dies loses no more steps than lie between
// two checkpoints. What goes wrong there is told and never ends the run. A state that is
// none to go on from is not saved. Owned by one rank's main thread; functions that say so are
// collective over the world.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/checkpoint/disk_reserve.h"
#include "executor/checkpoint/training_origin.h"
#include "executor/loop/worker.h"
#include "executor/prompts/prompt_set.h"
#include "executor/run_state/snapshot.h"

namespace tessera {

struct Plan;

/// A line for people, on rank 0; empty elsewhere.
using Note = std::function<void(const std::string& line)>;

/// Where a run's checkpoints and its exported models lie.
std::filesystem::path checkpoints_of(const std::filesystem::path& run);
std::filesystem::path exports_of(const std::filesystem::path& run);

class RunSaver {
 public:
  /// Keeps references. The run goes on after `first_step` steps, which `resumed_from` holds.
  RunSaver(Worker& worker, const Plan& plan, const RunConfig& config, const PromptSet& prompts,
           const std::filesystem::path& run, Note note, std::int64_t first_step = 0);

  std::int64_t first_step() const { return first_step_; }
  const std::filesystem::path& run() const { return run_; }
  const CheckpointData& data() const { return data_; }
  /// What the weights after `steps` steps have been trained with.
  TrainingOrigin origin(std::int64_t steps) const;
  /// Whether something is to be saved after the step.
  bool due(std::int64_t step) const { return checkpoint_due(step) || export_due(step); }
  /// Whether a checkpoint of the step has been begun and has not failed, or was resumed from.
  bool holds(std::int64_t step) const { return step == last_; }
  /// The same once what is being written has ended: it may fail, and be tried again with the room
  /// that was kept for the last one. Collective.
  bool holds_whole(std::int64_t step) {
    settle();
    return holds(step);
  }

  /// A step has ended with these numbers, equal on every rank, and nothing is pending. Where one of
  /// a trained role is NaN or infinite, the state after it is not sound; else that of the newest
  /// checkpoint was, and older ones may go. Where those of its first update are, the state that it
  /// began with is ruined. Collective.
  void judge(std::int64_t step, const Metrics& numbers);
  /// What was computed with the state after `steps` steps has shown that it is ruined: its
  /// checkpoint, where the run has one, gets a note. Collective.
  void ruined(std::int64_t steps, const std::string& how);
  /// Whether the state after `step` steps, which is the run's, may be saved and exported: neither
  /// the step's numbers nor a weight are NaN or infinite. Says so where not, and from which step
  /// the run can go on, once for a step. Collective.
  bool sound(std::int64_t step);

  /// Whether the checkpoint of the state after `step` steps is there, of a run that has finish()ed.
  /// Says so where not, and from which step the run can go on. Alike on every rank.
  bool saved(std::int64_t step) const;

  /// Saves what is due, and keeps room on the disk for the run's last checkpoint. `numbers`: the
  /// step's, equal on every rank. Collective.
  void save_due(std::int64_t step, const Metrics& numbers);
  /// A checkpoint of the state after `step` steps, where that is sound. Collective.
  void save(std::int64_t step, const Metrics& numbers);
  /// The records of the step that was saved last are written: its checkpoint may appear.
  void recorded() { writer_.recorded(); }
  /// What is saved from here on is the last: it may take the room that was kept for it.
  void release_reserve() { reserve_.release(); }
  /// A checkpoint that was begun may still be on its way to the disk.
  bool pending() const { return writer_.pending(); }
  /// Waits until it is complete, or given up. Collective.
  void settle();
  /// The same, and tells what became of it. Collective.
  void finish();
  /// Numbers of checkpoints that have become complete since the last call: checkpoint/bytes,
  /// checkpoint/write_s, checkpoint/gbps, or checkpoint/failed. On rank 0; tells of them, too.
  Metrics take_report();

 private:
  bool checkpoint_due(std::int64_t step) const;
  bool export_due(std::int64_t step) const;
  bool has_room(std::int64_t step, const std::vector<StateTensor>& tensors);
  void save_export(std::int64_t step);
  /// Collective.
  CheckpointManifest manifest(std::int64_t step, const Metrics& numbers) const;
  std::string weight_not_finite() const;
  std::string newest_checkpoint() const;
  void tell_unranked(std::int64_t step, const Metrics& numbers);

  Worker& worker_;
  const Plan& plan_;
  const RunConfig& config_;
  std::filesystem::path run_;
  Note note_;
  std::int64_t first_step_, last_;
  CheckpointData data_;
  std::map<Role, std::int64_t> parameters_;  // that are trained, of all ranks once
  std::map<Role, RoleSnapshot> snapshots_;
  std::int64_t not_finite_ = -1;           // the step whose numbers are not
  std::int64_t looked_at_ = -1;            // the step after which the state was looked at
  bool sound_ = true;                      // that state
  std::vector<CheckpointEnd> refused_;     // on rank 0: not begun for want of room
  std::vector<torch::Tensor> generators_;  // of the last snapshot
  std::int64_t bytes_ = 0;                 // of the last checkpoint, of all ranks
  bool told_unranked_ = false;             // that a checkpoint lacks the monitored number
  std::int64_t told_unsaved_ = -1;         // the last step whose checkpoint was told as not saved
  DiskReserve reserve_;                    // on rank 0
  CheckpointWriter writer_;                // last: its thread reads what is above
};

}  // namespace tessera
