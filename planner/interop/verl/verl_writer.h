// What the writers of verl's keys share: the plan with its roles at hand, and the settings made so
// far. Used by the verl_*settings.cc files only.
#pragma once

#include <string>
#include <utility>

#include "cost_models/adapters.h"
#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/dtype.h"
#include "cost_models/spec/workload.h"
#include "planner/interop/verl/verl_engines.h"
#include "planner/interop/verl/verl_settings.h"
#include "planner/plan/plan.h"

namespace tessera {

struct VerlWriter {
  const Plan& plan;
  const VerlOptions& options;
  Problems& problems;
  const RolePlan& actor = *plan.find(Role::actor);
  const RolePlan& rollout = *plan.find(Role::rollout);
  const RolePlan* critic = plan.find(Role::critic);
  const RolePlan* reference = plan.find(Role::reference);
  const RolePlan* reward = plan.find(Role::reward);
  const Workload& work = plan.workload;
  const VerlEngineKeys& keys = keys_of_plan(plan.engine);
  bool megatron = keys.engine == VerlEngine::megatron;
  bool apart = false;  // the rollout generates one step off on GPUs of its own
  VerlSettings out = {};

  template <class T>
  void set(std::string key, T value, std::string comment = {}) {
    out.settings.push_back({std::move(key), node_of(value), std::move(comment), false});
  }
  /// A key that verl's own files do not list.
  template <class T>
  void add(std::string key, T value, std::string comment = {}) {
    out.settings.push_back({std::move(key), node_of(value), std::move(comment), true});
  }
  /// A name; one that Hydra or YAML would not take as it is becomes a Problem.
  void text(std::string key, std::string_view value, std::string comment = {});
  void check_name(const std::string& key, std::string_view value);
  /// `value`, or, where it is empty, a variable of the script.
  void known_or_asked(std::string key, const std::string& value, const char* variable,
                      std::string what);
  /// Those of one of the plan's models, where nothing else is `stated`. Quantized ones are asked
  /// for: they have to be prepared (prepare_model.h).
  void weights(std::string key, const std::string& model, const std::string& stated,
               const char* variable, const std::string& whose);
  void note(std::string sentence) { out.notes.push_back(std::move(sentence)); }
  void refuse(std::string place, std::string found, std::string expected, std::string hint);
  /// Tokens per GPU of a limit that the plan states per replica.
  std::int64_t per_gpu(const RolePlan& role, std::int64_t tokens, const char* field);
  int world() const { return static_cast<int>(actor.ranks.size()); }
};

/// "bfloat16", ... as verl and the inference engines name types.
std::string_view verl_dtype(DType type);

/// Of adapters, where `lora` is used; `prefix` is the role's model.
void write_verl_lora(VerlWriter& w, const std::string& prefix, const Lora& lora);
void write_verl_actor(VerlWriter& w);
void write_verl_critic(VerlWriter& w);
/// The keys of a role that trains, or of the reference, below `prefix` ("actor_rollout_ref.actor").
void write_veomni(VerlWriter& w, const std::string& prefix, const RolePlan& role);
void write_torchtitan(VerlWriter& w, const std::string& prefix, const RolePlan& role);
void write_verl_reference(VerlWriter& w);
/// The rollout, with the asynchronous trainer where it is apart, and the reward model.
void write_verl_serving(VerlWriter& w);
/// What the keys cannot say, as notes; what Megatron does not take, as Problems.
void note_verl_limits(VerlWriter& w);

}  // namespace tessera
