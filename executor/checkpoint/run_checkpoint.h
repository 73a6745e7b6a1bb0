// A checkpoint of a run: the folder global_step_N with each rank's state in one or several
// safetensors files, and the manifest checkpoint.json that is written last.
//
// A folder has this name only when it is complete: it is made as .global_step_N.partial, its files
// are flushed, and a rename publishes it. The manifest has a digest of itself and of every file's
// header, and each header the digests of its tensors (xxh3, 64 bits, in hexadecimal), so that
// whatever changed on disk is told by name. Plain values; the functions that write are called by
// one process of a run, which holds the lock of its folder (simulator/timeline/run_lock.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/dtype.h"

namespace tessera {

/// A trained role whose state a checkpoint holds.
struct CheckpointRole {
  std::string model;  // the plan's name of it
  std::int64_t parameters = 0;
  DType dtype = DType::fp32;         // of the weights; master weights and moments are fp32
  std::int64_t optimizer_steps = 0;  // that were applied
  std::string layout;                // of the ranks that saved it, for people
  std::string base;                  // digest of what adapters stand beside; empty: there are none
  double adapter_scale = 0;          // alpha / rank of the adapters; 0: there are none
  bool operator==(const CheckpointRole&) const = default;
};

/// Response tokens of a prompt when it was last answered: by these generation is dealt.
struct CheckpointLength {
  std::int64_t row = 0;  // of the data
  double mean = 0, longest = 0;
  bool operator==(const CheckpointLength&) const = default;
};

/// Which prompts the steps took: with these a step's number is the position in the data.
struct CheckpointData {
  std::int64_t prompts = 0, per_step = 0, seed = 0;
  std::int64_t first = 0;  // position of the run's first prompt in all epochs
  bool shuffle = true;
  std::string digest;  // of all prompts' tokens and truths
  bool operator==(const CheckpointData&) const = default;
};

/// What the rules of a run have done to it so far, and what they count: it goes on so.
struct RuleState {
  double lr_scale = 1;               // of every learning rate
  std::int64_t prompts_skipped = 0;  // of the source, by roll-backs: all later ones move up
  // How often rules have asked for each action that was carried out.
  std::int64_t warnings = 0, lr_lowered = 0, roll_backs = 0, pauses = 0, stops = 0;
  // Over all steps: numbers of training that were none, updates that were left out.
  std::int64_t not_finite = 0, skipped_updates = 0;
  bool operator==(const RuleState&) const = default;
};

struct CheckpointFile {
  std::string name;
  std::int64_t bytes = 0;
  std::string header;  // digest of the header and its length
  bool operator==(const CheckpointFile&) const = default;
};

struct CheckpointManifest {
  std::int64_t step = 0;  // finished ones
  std::string created, tessera_version;
  std::map<std::string, CheckpointRole> roles;  // by role
  double kl_coef = 0;                           // of the KL in the reward, as it is after the step
  std::int64_t prompts_taken = 0;  // of the source, by a run that filters groups; else 0
  RuleState rules;
  bool owes_validation = false;  // of the step: a stop has cut it short
  std::int64_t seed = 0;         // of the sampled tokens
  CheckpointData data;
  std::vector<CheckpointLength> lengths;  // of prompts that were answered, by row
  std::map<std::string, double>
      metrics;                        // of the step: what checkpoints are ranked by, learning rates
  std::vector<CheckpointFile> files;  // by rank, and of a rank by part
  bool operator==(const CheckpointManifest&) const = default;
};

/// Which checkpoints stay when a new one is complete.
struct CheckpointsToKeep {
  std::int64_t newest = 0;  // how many; 0 = all
  std::int64_t best = 0;    // stay for `metric`, of all; without effect where all stay
  std::string metric = "critic/score/mean";
  bool higher_is_better = true;
};

inline constexpr const char* kManifestName = "checkpoint.json";

std::filesystem::path checkpoint_path(const std::filesystem::path& checkpoints, std::int64_t step);
/// Where a checkpoint lies while ranks write it.
std::filesystem::path partial_path(const std::filesystem::path& checkpoints, std::int64_t step);
/// The file of a part of a rank's state: rank_00001.safetensors, rank_00001_1.safetensors, ...
std::string rank_file_name(int rank, int part = 0);

/// Folders named global_step_N, newest first; whether they are sound is not looked at.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& checkpoints);

/// Name, length and header digest of a rank's file.
std::optional<CheckpointFile> describe_file(const std::filesystem::path& file, Problems& problems);
/// The same of one that is open.
std::optional<CheckpointFile> describe_file(const std::filesystem::path& file,
                                            std::span<const std::byte> bytes, Problems& problems);

bool write_manifest(const std::filesystem::path& file, const CheckpointManifest& manifest,
                    Problems& problems);
/// The manifest of a checkpoint folder whose files are all there in their full length and whose
/// headers are as they were written; nullopt with a Problem for each thing that is not.
std::optional<CheckpointManifest> read_manifest(const std::filesystem::path& folder,
                                                Problems& problems);

/// Writes the manifest into the partial folder of its step and publishes the folder (an older one
/// of that step is replaced at once). False with Problems, the partial folder removed, where that
/// fails.
bool publish_checkpoint(const std::filesystem::path& checkpoints,
                        const CheckpointManifest& manifest, Problems& problems);

/// A checkpoint that the step after it showed to be ruined bears a note of how, of one line, until
/// such a step goes well; a disk that refuses costs the note.
void note_ruined(const std::filesystem::path& folder, const std::string& how);
void forget_ruined(const std::filesystem::path& folder);
/// What the note says; empty: nobody has shown it.
std::string ruined_by(const std::filesystem::path& folder);

/// Removes what need not be kept once the checkpoint of `step` is there. Training has gone on well
/// from that of `proven` and from older ones: the newest of these stays, whatever has followed it,
/// so that there is one to go back to where the newer ones turn out to be ruined; -1 = from none,
/// and all stay. A later one than `step` is none of this run's: it began before it, since that one
/// is damaged or the user chose another. It counts as none of the newest and stays, until the run
/// writes its own.
void remove_old_checkpoints(const std::filesystem::path& checkpoints, std::int64_t step,
                            std::int64_t proven, const CheckpointsToKeep& keep);

/// Removes what a run that died has left unfinished, and the room that it kept.
void remove_leftovers(const std::filesystem::path& checkpoints);

}  // namespace tessera
