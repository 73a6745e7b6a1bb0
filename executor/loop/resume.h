// A run's folder, which one run at a time works in, and the checkpoint in it to go on from.
//
// Collective over the run's ranks, which share the run's folder.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "executor/loop/run_saver.h"
#include "simulator/timeline/run_lock.h"

namespace tessera {

/// Rank 0 makes the run's folder where a bare launcher has started the ranks (it must not exist,
/// unless the run goes on in it), locks it as long as the value lives, and removes what a run that
/// died has left half done. Throws Error (bad_input) on every rank.
std::optional<RunLock> take_folder(const std::filesystem::path& folder, bool create, bool may_exist,
                                   Communicator& host);

/// The checkpoints to go on from, the first choice first, alike on every rank; none = from the
/// beginning. Rank 0 looks for them, and tells of those whose files are not whole, and of those
/// that are passed over as the step after them has shown them to be ruined (not where resume_ruined
/// says otherwise, or resume_from_path names the very checkpoint). Throws Error (bad_input) where
/// resume_path has none, or none is left of what `auto` finds: a run never starts anew where it has
/// trained before.
std::vector<std::filesystem::path> resume_candidates(const CheckpointConfig& config,
                                                     const std::filesystem::path& run,
                                                     Communicator& host, const Note& note);

/// The same on one rank, with the Problems of those that are not whole or passed over.
std::vector<std::filesystem::path> sound_checkpoints(const CheckpointConfig& config,
                                                     const std::filesystem::path& run,
                                                     const Note& note, Problems& problems);

/// Which weights the actor's adapters stand beside, for its checkpoints: their digest, or what drew
/// them. Empty: it has no adapters.
std::string base_of(const Plan& plan, const ParameterTable& table, const RunConfig& config);

/// The step of a checkpoint's folder.
std::int64_t step_of_checkpoint(const std::filesystem::path& folder);

/// Restores the first candidate whose bytes are all as they were written, and returns what it says.
/// Throws Error (bad_input) with what was found where none is.
CheckpointManifest resume(Worker& worker, const std::vector<std::filesystem::path>& candidates,
                          const CheckpointData& data, const RunConfig& config, const Note& note);

/// Takes a run that has made `step` steps back to its newest complete checkpoint, which must be
/// there (resume_candidates), and returns that step. What rules have counted and lowered stays, and
/// so does the place in the prompts: those of the steps between are left out, not taken again. The
/// checkpoint is written anew with both, so that a run that dies then goes on so, too. Throws as
/// resume does.
std::int64_t roll_back(Worker& worker, const std::vector<std::filesystem::path>& candidates,
                       std::int64_t step, const RunConfig& config, RunSaver& saver,
                       const Note& note);

}  // namespace tessera
