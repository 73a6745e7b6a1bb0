#include "planner/engines/engine_check.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/packing.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/context_parallel.h"
#include "cost_models/spec/expert_parallel.h"
#include "planner/engines/group_degrees.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule.h"

namespace tessera {
namespace {

template <class T>
bool contains(const std::vector<T>& all, const T& value) {
  return std::find(all.begin(), all.end(), value) != all.end();
}

// Appends refusals about one role's layout; places are the layout's fields.
class LayoutCheck {
 public:
  LayoutCheck(const Engine& engine, const ModelSpec& model, Role role, const ParallelLayout& layout,
              Problems& problems)
      : name_(engine.name),
        can_(engine.capabilities),
        model_(model),
        role_(role),
        layout_(layout),
        problems_(problems) {}

  void run() {
    const bool rollout = served();
    if (!rollout && layout_.tp > can_.training.most_tp)
      too_much("tp", layout_.tp, can_.training.most_tp);
    const int most_pp = rollout ? can_.serving.most_pp : can_.training.most_pp;
    if (layout_.pp > most_pp) too_much("pp", layout_.pp, most_pp);
    if (layout_.cp > 1 && (rollout || !can_.training.context_parallel))
      too_much("cp", layout_.cp, 1);
    if (layout_.cp > 1 && can_.training.ulysses.value_or(layout_.ulysses) != layout_.ulysses) {
      refuse("ulysses", layout_.ulysses ? "true" : "false", layout_.ulysses ? "false" : "true");
    }
    if (const std::string why = context_refusal(model_, layout_); !why.empty()) {
      refuse(layout_.ulysses ? "cp" : "ulysses",
             layout_.ulysses ? std::to_string(layout_.cp) : "false",
             layout_.ulysses ? "a degree that heads divide by" : "true", why);
    }
    if (layout_.vpp > 1 && (rollout || !can_.training.virtual_stages))
      too_much("vpp", layout_.vpp, 1);
    if (layout_.dp_shard > 1 && (rollout || !can_.training.fully_sharded)) {
      too_much("dp_shard", layout_.dp_shard, 1);
    }
    if (layout_.sequence_parallel && (rollout || !can_.training.sequence_parallel)) {
      refuse("sequence_parallel", "true", "false");
    }
    check_experts();
    check_zero();
    check_heads(rollout ? can_.serving.heads : can_.training.heads);
    if (rollout && can_.serving.refusals != nullptr) {
      for (const std::string& why : can_.serving.refusals(model_, layout_)) {
        refuse("tp", std::to_string(layout_.tp), "a layout that its server can hold", why);
      }
    }
  }

 private:
  // By an inference engine: the rollout, and verl's reward model.
  bool served() const {
    return role_ == Role::rollout || (role_ == Role::reward && can_.serving.reward);
  }
  void refuse(std::string field, std::string found, std::string expected, std::string why = {}) {
    if (why.empty()) {
      why = "engine '" + name_ + "' cannot run the " + std::string(name_of(role_)) + " so";
    }
    problems_.push_back(
        {"", std::move(field), std::move(found), std::move(expected), std::move(why)});
  }
  void too_much(const char* field, int found, int most) {
    refuse(field, std::to_string(found), most == 1 ? "1" : "at most " + std::to_string(most));
  }

  void check_experts() {
    if (!served()) {
      if (layout_.ep > 1 && !can_.training.expert_parallel) too_much("ep", layout_.ep, 1);
      if (can_.training.experts == nullptr) return;
      return check_rule(can_.training.experts(model_, layout_));
    }
    if (can_.serving.experts == ServedExperts::any_part) {
      return check_rule(served_expert_refusal(model_, layout_));
    }
    if (layout_.ep == 1) {
      if (can_.serving.experts == ServedExperts::whole_replica && model_.moe &&
          layout_.etp != layout_.tp) {
        refuse("etp", std::to_string(layout_.etp), "tp = " + std::to_string(layout_.tp),
               "the servers of '" + name_ + "' cut experts as they cut the rest");
      }
      return;
    }
    if (can_.serving.experts == ServedExperts::together) return too_much("ep", layout_.ep, 1);
    if (layout_.ep % layout_.tp != 0 || layout_.etp != 1) {
      refuse("ep", std::to_string(layout_.ep), "a multiple of tp = " + std::to_string(layout_.tp),
             "the servers of '" + name_ + "' spread experts over tp x data parallel ranks");
    }
  }

  void check_rule(const std::string& why) {
    if (why.empty()) return;
    const bool dealt = layout_.ep > 1;
    refuse(dealt ? "ep" : "etp", std::to_string(dealt ? layout_.ep : layout_.etp),
           dealt ? "1" : std::to_string(layout_.tp), "engine '" + name_ + "' does not run " + why);
  }

  void check_zero() {
    if (served() || contains(can_.training.zero, layout_.zero)) return;
    if (layout_.dp == 1 && layout_.zero <= 1) return;  // nothing to cut
    std::string stages;
    for (const int stage : can_.training.zero) {
      stages += (stages.empty() ? "" : " or ") + std::to_string(stage);
    }
    refuse("zero", std::to_string(layout_.zero), stages);
  }

  void check_heads(HeadRule rule) {
    if (model_.compressed && model_.compressed->groups % layout_.tp != 0) {
      refuse("tp", std::to_string(layout_.tp),
             "a divisor of the " + std::to_string(model_.compressed->groups) +
                 " groups of heads whose outputs are projected together",
             "no rank has a part of a group");
      return;
    }
    if (rule == HeadRule::any || layout_.tp == 1) return;
    const std::int64_t tp = layout_.tp;
    const auto divides = [&](std::int64_t units, const char* what) {
      if (units % tp == 0) return;
      refuse("tp", std::to_string(tp), "a divisor of the " + std::to_string(units) + " " + what,
             "engine '" + name_ +
                 "' gives every rank equally many; tessera does not need "
                 "that");
    };
    divides(model_.query_heads, "query heads");
    divides(model_.ffn, "ffn columns");
    const std::int64_t kv = model_.kv_heads;
    if (kv % tp == 0 || (rule == HeadRule::query_heads && tp % kv == 0)) return;
    refuse("tp", std::to_string(tp),
           rule == HeadRule::all_heads
               ? "a divisor of the " + std::to_string(kv) + " key-value heads"
               : "a divisor or a multiple of the " + std::to_string(kv) + " key-value heads");
  }

  const std::string& name_;
  const Capabilities& can_;
  const ModelSpec& model_;
  Role role_;
  const ParallelLayout& layout_;
  Problems& problems_;
};

void check_memory_options(const Engine& engine, const RolePlan& role, const std::string& place,
                          const std::string& file, Problems& problems) {
  const auto refuse = [&](const std::string& field, std::string found, std::string expected) {
    problems.push_back(
        {file, place + "/" + field, std::move(found), std::move(expected),
         "engine '" + engine.name + "' cannot run the " + std::string(name_of(role.role)) + " so"});
  };
  if (!contains(engine.capabilities.training.recompute, role.recompute)) {
    std::string known;
    for (const Recompute mode : engine.capabilities.training.recompute) {
      known += (known.empty() ? "" : " or ") + std::string(name_of(mode));
    }
    refuse("recompute", std::string(name_of(role.recompute)), known);
  }
  const bool may = engine.capabilities.offload.trained &&
                   (role.role != Role::rollout || engine.capabilities.offload.rollout);
  if (!may && role.offload != Offload{}) refuse("offload", "true", "false");
  if (may && role.role == Role::actor && role.offload.parameters &&
      !engine.capabilities.offload.actor_parameters) {
    refuse("offload/parameters", "true", "false, as the rollout reads them on the device");
  }
  refuse_type(engine, role.dtypes.param, file, place + "/dtypes/param", problems);
}

void check_rounds(const Engine& engine, const Plan& plan, const RolePlan& role,
                  const std::string& place, const std::string& file, Problems& problems) {
  const ParallelLayout& layout = role.layout;
  const InterleavedCount rule = engine.traits.pipeline.interleaved;
  const std::int64_t update = role.batching.mini_batch;  // 0 = it does not train
  const std::int64_t sequences = (update > 0 ? update : plan.workload.sequences()) / layout.dp;
  if (fills_rounds(rule, layout.pp, layout.vpp, sequences)) return;
  problems.push_back(
      {file, place + "/layout/vpp", std::to_string(layout.vpp),
       "1, or " + std::string(rule == InterleavedCount::equal ? "a multiple of" : "at least") +
           " pp = " + std::to_string(layout.pp) + " sequences of a batch on a replica",
       "engine '" + engine.name +
           "' runs virtual stages on a multiple of pp micro-batches, and a replica of the " +
           std::string(name_of(role.role)) + " has " + std::to_string(sequences) + " sequences"});
}

bool share_ranks(const RolePlan& a, const RolePlan& b) {
  return std::any_of(a.ranks.begin(), a.ranks.end(),
                     [&](int rank) { return contains(b.ranks, rank); });
}

// Each role against the first one on GPUs of its own whose process groups it has to use.
void check_groups(const Engine& engine, const Plan& plan, const std::string& file,
                  Problems& problems) {
  for (std::size_t i = 0; i < plan.roles.size(); ++i) {
    const RolePlan& role = plan.roles[i];
    const auto first =
        std::find_if(plan.roles.begin(), plan.roles.end(), [&](const RolePlan& other) {
          return shares_groups(engine.capabilities, other.role) && share_ranks(other, role);
        });
    if (first == plan.roles.end() || !shares_groups(engine.capabilities, role.role)) continue;
    const auto own = named(group_degrees(role.layout)),
               wanted = named(group_degrees(first->layout));
    std::string found, expected;
    for (std::size_t d = 0; d < own.size(); ++d) {
      if (own[d].second == wanted[d].second) continue;
      const std::string name(own[d].first);
      found += (found.empty() ? "" : ", ") + name + " " + std::to_string(own[d].second);
      expected += (expected.empty() ? "" : ", ") + name + " " + std::to_string(wanted[d].second);
    }
    if (found.empty()) continue;
    problems.push_back({file, "/roles/" + std::to_string(i) + "/layout",
                        found + " of the " + std::string(name_of(role.role)),
                        expected + " as the " + std::string(name_of(first->role)) + " has",
                        why_groups_agree(engine.name)});
  }
}

/// The rollout on GPUs that no other role of the pool has.
bool has_own_ranks(const Plan& plan, const RolePlan& role) {
  if (role.role != Role::rollout) return false;
  return std::all_of(plan.roles.begin(), plan.roles.end(), [&](const RolePlan& other) {
    if (other.role == Role::rollout) return true;
    return std::none_of(other.ranks.begin(), other.ranks.end(), [&](int rank) {
      return std::find(role.ranks.begin(), role.ranks.end(), rank) != role.ranks.end();
    });
  });
}

// Engines with one pool of GPUs: every role but the reward model uses all of them, and so does the
// rollout where it does not generate one step off on a pool of its own.
void check_placement(const Engine& engine, const Plan& plan, const std::string& file,
                     Problems& problems) {
  const RolePlan* const actor = plan.find(Role::actor);
  if (actor == nullptr) return;
  for (std::size_t i = 0; i < plan.roles.size(); ++i) {
    const RolePlan& role = plan.roles[i];
    if (role.role == Role::reward) continue;
    std::vector<int> mine = role.ranks, all = actor->ranks;
    std::sort(mine.begin(), mine.end());
    std::sort(all.begin(), all.end());
    if (mine == all) continue;
    const bool apart = !engine.capabilities.pools.rollout_lags.empty() && has_own_ranks(plan, role);
    if (apart && is_one_step_off(plan.schedule)) continue;
    if (apart) {
      problems.push_back({file, "/schedule", "a rollout on GPUs of its own that the step waits for",
                          "generation one step off",
                          "'" + engine.name + "' " + engine.version +
                              " has GPUs of its own for the rollout in its asynchronous trainer "
                              "alone (trainer.v1.trainer_mode=separate_async)"});
      continue;
    }
    problems.push_back({file, "/roles/" + std::to_string(i) + "/ranks",
                        std::to_string(mine.size()) + " ranks that are not the actor's",
                        "the actor's " + std::to_string(all.size()) + " ranks",
                        "'" + engine.name + "' " + engine.version +
                            " has one pool of GPUs for actor, rollout, critic and reference; plan "
                            "with placement=colocated"});
  }
}

// Of engines that run the whole loop.
void check_schedule(const Engine& engine, const Plan& plan, const std::string& file,
                    Problems& problems) {
  const bool runs_both = runs(engine, Role::actor) && runs(engine, Role::rollout);
  if (!runs_both || !is_one_step_off(plan.schedule) ||
      contains(engine.capabilities.pools.rollout_lags, 1))
    return;
  problems.push_back({file, "/schedule", "generation one step off", "generation in step",
                      "'" + engine.name +
                          "' generates, then trains; verl's asynchronous trainer "
                          "runs such plans"});
}

}  // namespace

bool divides_heads(HeadRule rule, const ModelSpec& model, std::int64_t tp) {
  if (model.compressed && model.compressed->groups % tp != 0) return false;
  if (rule == HeadRule::any || tp == 1) return true;
  if (model.query_heads % tp != 0 || model.ffn % tp != 0) return false;
  return model.kv_heads % tp == 0 || (rule == HeadRule::query_heads && tp % model.kv_heads == 0);
}

Problems outside_capabilities(const Engine& engine, const ModelSpec& model, Role role,
                              const ParallelLayout& layout) {
  Problems problems;
  LayoutCheck(engine, model, role, layout, problems).run();
  return problems;
}

Problems outside_capabilities(const Plan& plan, const std::string& file, std::string_view name) {
  Problems problems;
  const Engine* const engine =
      engine_of(name.empty() ? std::string_view(plan.engine) : name, problems);
  if (engine == nullptr) {
    problems.back().file = file;
    problems.back().place = "/engine";
    return problems;
  }
  if (plan.world_size() > plan.cluster.gpus_per_node) {
    refuse_cluster(*engine, plan.cluster, file, "/cluster", problems);
  }
  for (const auto& [name, model] : plan.models) {
    refuse_model(*engine, model, file, "/models/" + name + "/spec/family", problems);
  }
  for (std::size_t i = 0; i < plan.roles.size(); ++i) {
    const RolePlan& role = plan.roles[i];
    const std::string place = "/roles/" + std::to_string(i);
    if (!runs(*engine, role.role)) continue;  // run by something else
    const auto model = plan.models.find(role.model);
    const ModelSpec spec = model == plan.models.end() ? ModelSpec{} : model->second.spec;
    for (Problem& problem : outside_capabilities(*engine, spec, role.role, role.layout)) {
      problem.file = file;
      problem.place = place + "/layout/" + problem.place;
      problems.push_back(std::move(problem));
    }
    check_rounds(*engine, plan, role, place, file, problems);
    check_memory_options(*engine, role, place, file, problems);
    refuse_adapters(*engine, spec, role.lora, file, place + "/lora", problems);
    const bool own = engine->traits.kernels.account == ActivationAccount::executor;
    if (role.role != Role::rollout || own) {  // servers of others draft with them
      refuse_prediction_layers(*engine, spec, role.mtp, file, place + "/mtp", problems);
    }
  }
  for (std::size_t i = 0; i < plan.reshard.size(); ++i) {
    if (!plan.reshard[i].keep && !engine->capabilities.offload.rollout) {
      problems.push_back({file, "/reshard/" + std::to_string(i) + "/keep", "false", "true",
                          "engine '" + engine->name + "' keeps the rollout shard mapped"});
    }
  }
  if (engine->capabilities.pools.one_set_of_groups) check_groups(*engine, plan, file, problems);
  if (engine->capabilities.pools.colocated) check_placement(*engine, plan, file, problems);
  if (engine->fixed_order) check_equal_tp(plan, file, problems);
  check_schedule(*engine, plan, file, problems);
  return problems;
}

}  // namespace tessera
