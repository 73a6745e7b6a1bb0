// What one reinforcement-learning iteration has to do, as a workload YAML describes it.
//
// A plain value. Token counts are per sequence, batches in prompts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/enum_array.h"

namespace tessera {

/// The role a model plays. The rollout engine holds the actor's weights in a layout of its own.
enum class Role { actor, rollout, critic, reference, reward };
inline constexpr std::array kEveryRole{Role::actor, Role::rollout, Role::critic, Role::reference,
                                       Role::reward};
inline constexpr int kRoleCount = kEveryRole.size();
template <>
inline constexpr std::size_t kEnumerators<Role> = kEveryRole.size();
std::string_view name_of(Role role);
std::optional<Role> role_from(std::string_view name);

/// The phases of an iteration: one list for calls, simulator tasks, `timing_s/*`, traces and
/// comparison.
enum class Phase {
  load,
  gen,
  reshard,
  old_log_prob,
  ref,
  values,
  reward,
  adv,
  update_critic,
  update_actor,
  save_checkpoint,
};
inline constexpr std::array kEveryPhase{
    Phase::load,          Phase::gen,          Phase::reshard,        Phase::old_log_prob,
    Phase::ref,           Phase::values,       Phase::reward,         Phase::adv,
    Phase::update_critic, Phase::update_actor, Phase::save_checkpoint};
inline constexpr int kPhaseCount = kEveryPhase.size();
template <>
inline constexpr std::size_t kEnumerators<Phase> = kEveryPhase.size();
std::string_view name_of(Phase phase);
std::optional<Phase> phase_from(std::string_view name);

/// What a call does with its model.
enum class CallKind { generate, infer, train, compute };
std::string_view name_of(CallKind kind);

/// One node of an algorithm's dataflow; edges follow from the names of inputs and outputs.
struct Call {
  Phase phase = Phase::gen;  // also the call's name
  Role role = Role::actor;
  CallKind kind = CallKind::infer;
  std::vector<std::string> inputs, outputs;

  bool operator==(const Call&) const = default;
};
using Dataflow = std::vector<Call>;

/// Where the KL to the reference policy enters.
enum class KlPlace { none, loss, reward };
std::string_view name_of(KlPlace place);

/// Response lengths: a clipped log-normal, or measured ones (length_table.h).
struct LengthSpec {
  double mean = 0;
  double cv = 0;  // standard deviation / mean; 0 = fixed
  std::int64_t max = 0;
  /// Equally likely lengths, ascending; empty = the log-normal. `mean` and `cv` are then theirs.
  std::vector<std::int64_t> quantiles = {};

  bool operator==(const LengthSpec&) const = default;
};

/// Images of prompts, which a vision tower makes tokens of: these are among a prompt's tokens.
struct ImageSpec {
  double per_prompt = 0;    // mean; 0 = prompts have no images
  std::int64_t tokens = 0;  // of one, as the language model sees it

  bool operator==(const ImageSpec&) const = default;
};

struct Workload {
  std::string algorithm;  // "ppo", "grpo", or "custom" with its own dataflow
  Dataflow dataflow;      // resolved
  std::int64_t prompts_per_step = 0;
  std::int64_t samples_per_prompt = 1;
  std::int64_t prompt_tokens = 0;  // mean, which times count; where prompt_max is 0, of every one
  std::int64_t prompt_max = 0;  // tokens of the longest prompt, above the mean; 0 = all are alike
  ImageSpec images;
  LengthSpec response_tokens;
  std::int64_t mini_batches = 1;  // per epoch
  std::int64_t epochs = 1;        // passes over one rollout
  KlPlace kl = KlPlace::none;
  bool entropy = false;                    // the loss has an entropy term
  std::string critic_model, reward_model;  // path or preset; empty = the actor's spec / a rule

  std::int64_t sequences() const { return prompts_per_step * samples_per_prompt; }
  std::int64_t longest_prompt() const { return std::max(prompt_tokens, prompt_max); }
  bool operator==(const Workload&) const = default;
};

/// Tokens that memory and limits have to hold: the longest prompt and the longest response.
std::int64_t longest_sequence(const Workload& workload);

/// Prompts of this mean, none longer than `longest`, or than the mean where that is more.
void set_prompts(Workload& workload, std::int64_t mean, std::int64_t longest);

/// The preset's calls ("ppo" has a critic; a reference only where `kl` is not none). A reward that
/// is a rule is a call of kind `compute`, which needs no ranks; so is `adv`. Updates make nothing
/// that another call of the same step reads.
Dataflow preset_dataflow(std::string_view algorithm, KlPlace kl, bool reward_model);

/// Indices of `dataflow` in an order that respects inputs and outputs. Cycles, duplicate producers
/// and inputs that nobody makes (other than "prompts") are appended to `problems`.
std::vector<int> topological_order(const Dataflow& dataflow, const std::string& file,
                                   Problems& problems);

/// Reads a workload YAML or a preset's name (configs/workloads/NAME.yaml).
std::optional<Workload> read_workload(const std::filesystem::path& where, Problems& problems);
std::optional<Workload> parse_workload(std::string_view text, const std::string& file,
                                       Problems& problems);

}  // namespace tessera
