// What the readers of verl's keys share while they make a plan: the configuration, what is made so
// far, and typed access with verl's defaults. Used by the import_verl*.cc files alone.
#pragma once

#include <string>
#include <utility>

#include "cost_models/documents/problem_list.h"
#include "planner/interop/config/imported.h"
#include "planner/space/place_pools.h"

namespace tessera {

inline constexpr Whole kVerlTokens{.least = 1, .most = std::int64_t{1} << 40};  // of one GPU

struct VerlImport {
  const ConfigValues& config;
  const ImportOptions& options;
  Problems& problems;
  Imported out;
  std::int64_t world = 1;         // GPUs that train
  std::int64_t rollout_gpus = 0;  // of its own, one step off; 0 = it shares those that train

  Plan& plan() { return out.plan; }
  Workload& work() { return out.plan.workload; }

  std::int64_t integer(const std::string& key, std::int64_t otherwise,
                       Whole range = kPositive) const {
    return config.integer(key, otherwise, problems, range);
  }
  int degree(const std::string& key, std::int64_t otherwise) const {
    return static_cast<int>(integer(key, otherwise, {.least = 1, .most = 1 << 20}));
  }
  bool flag(const std::string& key, bool otherwise) const {
    return config.boolean(key, otherwise, problems);
  }
  std::string text(const std::string& key, std::string otherwise) const {
    return config.text(key, std::move(otherwise), problems);
  }
  /// A number of the key, whole or not.
  double number(const std::string& key, double otherwise) const;
  DType dtype(const std::string& key, const char* otherwise, DType unlisted) const {
    return dtype_from(text(key, otherwise)).value_or(unlisted);
  }
  void note(std::string sentence) { out.notes.push_back(std::move(sentence)); }
  /// A note of a value that verl itself stops at and the plan can do without; `where` says which
  /// error verl raises.
  void note_stop(const std::string& key, const std::string& found, const std::string& expected,
                 const std::string& where);
  /// A Problem at the place of `key`, where the file has it.
  void refuse(const std::string& key, std::string found, std::string expected,
              std::string hint = {}) const;
  /// Tokens of the longest sequence.
  std::int64_t longest() const { return longest_sequence(out.plan.workload); }
};

/// The layout of the engine's keys in `block`, stages included where it has several. Of FSDP the
/// actor's and the reference's outer `ulysses_key` wins over the block's where it is above one.
ParallelLayout verl_layout(VerlImport& in, const std::string& block, const std::string& ulysses_key,
                           const ModelSpec& model, Role role);
/// The same of VeOmni's keys, and of torchtitan's.
ParallelLayout veomni_layout(VerlImport& in, const std::string& block, const ModelSpec& model,
                             Role role);
ParallelLayout torchtitan_layout(VerlImport& in, const std::string& block, const ModelSpec& model,
                                 Role role);
/// What VeOmni's keys say of a role's types and of what leaves the device.
void read_veomni_memory(VerlImport& in, const std::string& block, RolePlan& role);
/// What torchtitan recomputes of the actor.
Recompute torchtitan_recompute(VerlImport& in);

/// Moves pools to the GPU types that the options name, and notes what the file does not say of
/// types and of the number of GPUs.
void place_pools(VerlImport& in);

/// What limits the micro-batches of one call.
struct VerlCall {
  bool dynamic = false;        // by tokens (use_dynamic_bsz), else by sequences
  std::string limit;           // key of the tokens per GPU
  std::int64_t otherwise = 0;  // where it is absent
  bool inherits = false;       // `otherwise` is another call's limit, whose notes are its own
  std::string sequences;       // the keys of sequences per GPU begin so
  std::int64_t present = 0;    // sequences of the call on all replicas
};

/// A micro-batch of one replica: tokens that it may have or, of counted sequences, that memory has
/// to hold.
struct VerlMicroBatch {
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;  // 0 = the tokens cut
};

/// That of the call. Where lengths are known, a limit above what a replica's sequences bring does
/// not bind.
VerlMicroBatch micro_batch_of(VerlImport& in, const VerlCall& call, const ParallelLayout& layout);

/// plan().roles, from the workload and the models.
void read_verl_roles(VerlImport& in);

/// Notes of what verl does and no price counts. Precondition: the models are read.
void note_uncounted(VerlImport& in);

/// Notes of what verl 0.9.1 itself stops at, and of how its servers differ from what plans count.
/// Precondition: the roles are read.
void note_stops(VerlImport& in);
/// A note of the tokens that verl pads where it does not remove padding, which plans do not count.
void note_padding(VerlImport& in);

/// What `model.mtp` has the actor and the servers do with layers of multi-token prediction.
MtpUse actors_prediction_layers(VerlImport& in);
MtpUse rollouts_prediction_layers(VerlImport& in);

/// Whether the servers tell log-probs of what they draw, as the file says it.
ToldLogProbs told_log_probs(VerlImport& in);

}  // namespace tessera
