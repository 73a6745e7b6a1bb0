// An engine as one value: what it can run, how its kernels behave, how it deals ranks and moves
// weights, how far its memory is from what is counted. Nothing outside of this folder and
// planner/interop asks an engine for its name.
//
// Plain values of static lifetime and pure functions; any thread. What a new engine takes beside
// its file and its row in engines.cc: CONTRIBUTING.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/engine_traits.h"
#include "cost_models/spec/units.h"
#include "planner/engines/capabilities.h"
#include "planner/engines/choices.h"
#include "planner/engines/fixed_order.h"
#include "planner/engines/generation_engine.h"
#include "planner/engines/memory_accuracy.h"
#include "planner/plan/engine_rule.h"

namespace tessera {

/// A way to hand weights over in which every rank gathers every tensor whole, bucket by bucket.
struct WholeGather {
  bool master_weights = false;  // what is gathered; else weights in the parameters' type
  /// The engine's default (verl 0.9.1's update_weights_bucket_megabytes); a larger tensor has a
  /// bucket of its own size.
  Bytes bucket{std::int64_t{2048} << 20};
};

/// How weights get from the actor to the rollout.
struct WeightHandover {
  std::optional<WholeGather> gather;  // nullopt: each rank receives what it lacks
  /// Plans state the exact ranges that ranks send, however many these are: the engine reads them.
  bool exact_ranges = false;
  /// The rollout's ranks may be any list: one that moves fewer bytes is chosen (assign_ranks).
  bool any_rank_list = false;
  /// Training weights can be views of the rollout's (least_shared_weight_bytes).
  bool shares_memory = false;
};

struct Engine {
  std::string name, version;  // version: of which these facts are; empty = this repository's
  /// Who generates where Tessera's own executor runs its plans; nullopt: it runs none of them.
  std::optional<GenerationEngine> generation;
  Capabilities capabilities;
  EngineTraits traits;       // where none of EngineChoices is taken (traits_of)
  bool has_choices = false;  // EngineChoices change its traits; else its kernels do both anyway
  PromptDealing prompts = PromptDealing::requests;
  WeightHandover weights;
  /// What each token takes of DecodeTraits::token_served for its log-prob, which the server need
  /// not tell; nullopt: it cannot be told otherwise.
  std::optional<Seconds> log_prob_served;
  /// The rollout, and the actor where it scores what was generated, add up in one order: they have
  /// equal tensor parallel degrees and GPUs, and such a plan answers only those who ask for it.
  std::optional<FixedOrder> fixed_order;
  MemoryAccuracy memory = kUnmeasuredMemory;
  /// One step off, the time that its trainer logs as gen is the wait for what was generated
  /// meanwhile.
  bool logs_wait_for_rollout = false;
};

/// The rows of engines.cc, sorted by name, kAnyEngine among them.
const std::vector<Engine>& every_engine();

/// Names of the engines that exist: without kAnyEngine, sorted.
std::vector<std::string> engine_names();

/// The engine of that name; nullptr and a Problem with did-you-mean where there is none. kAnyEngine
/// is none.
const Engine* engine_of(std::string_view name, Problems& problems);

/// The same for what a user asks to plan for (--engine), which may be kAnyEngine.
const Engine* requested_engine(std::string_view name, Problems& problems);

/// True of every role for kAnyEngine.
bool runs(const Engine& engine, Role role);

/// The engines whose plans answer a request for this one: itself, and for kAnyEngine after it every
/// other that runs these roles, has no fixed order and does not answer on request alone.
std::vector<const Engine*> answering(const Engine& asked, const std::vector<Role>& roles);

/// The engine of a plan or request that has been checked; of another name the value of kAnyEngine.
const Engine& engine_named(std::string_view name);

/// What a search takes where nobody says it: log-probs that the engine need not tell are told only
/// where the workload has no other old ones (verl's bypass mode).
ToldLogProbs quickest_log_probs(const Engine& engine, const Workload& workload);

/// How the engine's kernels behave where a plan takes these choices.
EngineTraits traits_of(const Engine& engine, EngineChoices choices = {});
EngineTraits traits_of(std::string_view engine, EngineChoices choices = {});

/// What validate (planner/plan/plan.h) needs of every engine; static lifetime.
EngineRules engine_rules();

}  // namespace tessera
