// What about a plan contradicts itself.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/node_groups.h"
#include "cost_models/spec/preset_algorithms.h"
#include "planner/plan/checks/environment_check.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

struct Checker {
  const Plan& plan;
  const std::string& file;
  EngineRules engines;
  Problems& problems;

  void refuse(std::string place, std::string found, std::string expected, std::string hint = {}) {
    problems.push_back(
        {file, std::move(place), std::move(found), std::move(expected), std::move(hint)});
  }
  /// nullptr where no engine has the plan's name.
  const EngineRule* engine_rule() const;
  void check_engine();
  void check_models();
  void check_dataflow();
  bool rollout_apart() const;
  void check_schedule();
  void check_call_list();
  /// `ended`: phases that have, before the call.
  void check_order(const Call& call, const std::set<Phase>& ended);
  void check_roles();
  void check_ranks(const RolePlan& role, const std::string& place);
  void check_types(const RolePlan& role, const std::string& place);
  void check_map(const RolePlan& role, const std::string& place);
  void check_batching(const RolePlan& role, const std::string& place);
  void check_reshard();
};

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

bool has_call(const Workload& workload, Role role, CallKind kind) {
  return std::any_of(workload.dataflow.begin(), workload.dataflow.end(),
                     [&](const Call& call) { return call.role == role && call.kind == kind; });
}

bool needs_ranks(const Workload& workload, Role role) {
  return std::any_of(workload.dataflow.begin(), workload.dataflow.end(), [&](const Call& call) {
    return call.role == role && call.kind != CallKind::compute;
  });
}

const EngineRule* Checker::engine_rule() const {
  const auto found = std::find_if(engines.begin(), engines.end(),
                                  [&](const EngineRule& rule) { return rule.name == plan.engine; });
  return found == engines.end() ? nullptr : &*found;
}

void Checker::check_engine() {
  if (engine_rule() != nullptr) return;
  std::vector<std::string> known;
  for (const EngineRule& rule : engines) known.emplace_back(rule.name);
  std::string names;
  for (const std::string& name : known) {
    names += (names.empty() ? "" : name == known.back() ? " or " : ", ") + name;
  }
  refuse("/engine", in_quotes(plan.engine), names, did_you_mean(plan.engine, known));
}

void Checker::check_models() {
  if (!plan.models.contains("actor")) {
    refuse("/models", "no 'actor'", "the actor's model");
  }
  for (const auto& [name, source] : plan.models) {
    const bool used =
        std::any_of(plan.roles.begin(), plan.roles.end(),
                    [&, &key = name](const RolePlan& role) { return role.model == key; });
    if (!used) refuse("/models/" + name, "a model that no role uses", "models of roles only");
    const std::string& digest = source.config_sha256;
    const bool hex =
        digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!digest.empty() && !hex) {
      refuse("/models/" + name + "/config_sha256", in_quotes(digest),
             "64 hexadecimal digits, or \"\"");
    }
  }
}

void Checker::check_dataflow() {
  Problems found;
  topological_order(plan.workload.dataflow, file, found);
  for (Problem& problem : found) {
    refuse("/dataflow", problem.found + " in " + problem.place, problem.expected, problem.hint);
  }
  const std::string& algorithm = plan.workload.algorithm;
  if (algorithm == "custom") return;
  if (!is_preset_algorithm(algorithm)) {
    refuse("/workload/algorithm", in_quotes(algorithm), "ppo, grpo or custom");
    return;
  }
  const bool model = has_call(plan.workload, Role::reward, CallKind::infer);
  if (plan.workload.dataflow != preset_dataflow(algorithm, plan.workload.kl, model)) {
    refuse("/dataflow", "calls that are not those of " + algorithm,
           "the preset's calls for kl " + std::string(name_of(plan.workload.kl)),
           "algorithm custom may have any calls");
  }
}

bool Checker::rollout_apart() const {
  const RolePlan *const actor = plan.find(Role::actor), *const rollout = plan.find(Role::rollout);
  if (actor == nullptr || rollout == nullptr) return false;
  return std::none_of(rollout->ranks.begin(), rollout->ranks.end(), [&](int rank) {
    return std::find(actor->ranks.begin(), actor->ranks.end(), rank) != actor->ranks.end();
  });
}

void Checker::check_call_list() {
  std::set<Phase> before;
  for (std::size_t i = 0; i < plan.schedule.size(); ++i) {
    const ScheduledCall& scheduled = plan.schedule[i];
    const std::string place = "/schedule/" + std::to_string(i);
    const std::string name(name_of(scheduled.phase));
    for (const Phase phase : scheduled.after) {
      if (!before.contains(phase)) {
        refuse(place + "/after", in_quotes(name_of(phase)),
               "phases that come earlier in the schedule");
      }
    }
    if (!before.insert(scheduled.phase).second) {
      refuse(place + "/call", in_quotes(name) + " a second time", "every call once");
    }
    const auto call =
        std::find_if(plan.workload.dataflow.begin(), plan.workload.dataflow.end(),
                     [&](const Call& candidate) { return candidate.phase == scheduled.phase; });
    if (call != plan.workload.dataflow.end()) {
      if (call->role != scheduled.role) {
        refuse(place + "/role", in_quotes(name_of(scheduled.role)),
               std::string(name_of(call->role)) + ", as in the dataflow");
      }
      continue;
    }
    const bool own = scheduled.phase == Phase::load || scheduled.phase == Phase::reshard ||
                     scheduled.phase == Phase::save_checkpoint;
    if (!own) refuse(place + "/call", in_quotes(name), "a call of the dataflow");
  }
}

// What must have ended before each phase, transitively.
std::map<Phase, std::set<Phase>> ended_before(const std::vector<ScheduledCall>& schedule) {
  std::map<Phase, std::set<Phase>> ended;
  for (const ScheduledCall& scheduled : schedule) {
    std::set<Phase>& mine = ended[scheduled.phase];
    for (const Phase phase : scheduled.after) {
      mine.insert(phase);
      if (ended.contains(phase) && phase != scheduled.phase) {
        mine.insert(ended[phase].begin(), ended[phase].end());
      }
    }
  }
  return ended;
}

void Checker::check_order(const Call& call, const std::set<Phase>& ended) {
  const std::string name = in_quotes(name_of(call.phase));
  for (const Call& other : plan.workload.dataflow) {
    for (const std::string& output : other.outputs) {
      const bool needed =
          std::find(call.inputs.begin(), call.inputs.end(), output) != call.inputs.end();
      if (!needed || ended.contains(other.phase)) continue;
      // One step off policy: the responses are those of the step before, made on other ranks
      // while this step trains; weights move in between.
      if (other.kind == CallKind::generate && rollout_apart() && ended.contains(Phase::reshard)) {
        continue;
      }
      refuse("/schedule", name + " without waiting for '" + std::string(name_of(other.phase)) + "'",
             "an order in which '" + output + "' is made before it is used");
    }
  }
  const bool resharded = plan.find(Role::actor) != nullptr && !plan.reshard.empty();
  if (call.kind == CallKind::generate && resharded && !ended.contains(Phase::reshard)) {
    refuse("/schedule", name + " without waiting for 'reshard'",
           "weights that have arrived before they are used");
  }
}

void Checker::check_schedule() {
  check_call_list();
  auto ended = ended_before(plan.schedule);
  for (const Call& call : plan.workload.dataflow) {
    if (ended.contains(call.phase)) {
      check_order(call, ended[call.phase]);
    } else {
      refuse("/schedule", "no call '" + std::string(name_of(call.phase)) + "'",
             "every call of the dataflow");
    }
  }
}

void Checker::check_ranks(const RolePlan& role, const std::string& place) {
  if (role.ranks.empty()) refuse(place + "/ranks", "no ranks", "at least one rank");
  std::set<int> seen;
  for (std::size_t i = 0; i < role.ranks.size(); ++i) {
    const int rank = role.ranks[i];
    if (rank < 0 || rank >= plan.cluster.gpus()) {
      refuse(place + "/ranks", std::to_string(rank),
             "ranks from 0 to " + std::to_string(plan.cluster.gpus() - 1) + ", the cluster's");
    } else if (!seen.insert(rank).second) {
      refuse(place + "/ranks", std::to_string(rank) + " a second time", "every rank once");
    } else if (role.rank_order != RankOrder::list && i > 0 && role.ranks[i - 1] > rank) {
      refuse(place + "/ranks",
             "rank " + std::to_string(rank) + " after rank " + std::to_string(role.ranks[i - 1]),
             "ascending ranks", "put the order into rank_map as a list");
    }
  }
}

/// The types that the file says the ranks have.
void Checker::check_types(const RolePlan& role, const std::string& place) {
  std::vector<std::string> types;
  if (!plan.cluster.groups.empty()) {
    types = types_of(plan.cluster, view_of(plan.cluster, role.ranks));
  }
  if (role.gpu_types == types) return;
  const auto listed = [](const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return all.empty() ? "none: the cluster has one type" : all;
  };
  refuse(place + "/gpu_types", role.gpu_types.empty() ? "nothing" : listed(role.gpu_types),
         listed(types) + (types.empty() ? "" : ", the types of its ranks"));
}

/// Maps that need no other problem reported first.
void Checker::check_map(const RolePlan& role, const std::string& place) {
  RankMap training;
  if (role.rank_order == RankOrder::strided) {
    const RolePlan* const actor = plan.find(Role::actor);
    if (role.role != Role::rollout || actor == nullptr || actor->rank_order == RankOrder::strided) {
      refuse(place + "/rank_map", "strided", "contiguous, megatron or a list",
             "only the rollout can be strided over the actor's ranks");
      return;
    }
    Problems hidden;  // the actor's own are reported at its place
    training =
        make_rank_map(actor->rank_order, actor->layout, actor->ranks, nullptr, place, hidden);
    if (!hidden.empty()) return;
  }
  const std::size_t before = problems.size();
  make_rank_map(role.rank_order, role.layout, role.ranks,
                role.rank_order == RankOrder::strided ? &training : nullptr, place + "/rank_map",
                problems);
  for (std::size_t i = before; i < problems.size(); ++i) problems[i].file = file;
}

void Checker::check_batching(const RolePlan& role, const std::string& place) {
  const Workload& work = plan.workload;
  const std::int64_t dp = role.layout.dp;
  if (has_call(work, role.role, CallKind::train)) {
    const std::int64_t expected = work.sequences() / work.mini_batches;
    if (role.batching.mini_batch != expected) {
      refuse(place + "/batching/mini_batch", std::to_string(role.batching.mini_batch),
             std::to_string(expected) + " = prompts_per_step x samples_per_prompt / mini_batches");
    } else if (expected % dp != 0) {
      refuse(place + "/batching/mini_batch", std::to_string(expected),
             "a multiple of dp = " + std::to_string(dp));
    }
  }
  if (has_call(work, role.role, CallKind::generate)) {
    const EngineRule* const rule = engine_rule();
    const bool prompts = rule != nullptr && rule->prompts == PromptDealing::whole_prompts;
    const std::int64_t most = prompts ? work.prompts_per_step : work.sequences();
    if (most < dp) {
      refuse(place + "/layout", "dp " + std::to_string(dp),
             std::string("at most one replica per ") + (prompts ? "prompt, " : "sequence, ") +
                 std::to_string(most));
    }
    if (role.batching.max_sequences <= 0) {
      refuse(place + "/batching/max_sequences", std::to_string(role.batching.max_sequences),
             "a positive integer", "the rollout decodes so many sequences at once");
    }
    const std::int64_t longest = longest_sequence(work);
    if (const std::int64_t held = role.batching.kv_cache_tokens; held != 0 && held < longest) {
      refuse(place + "/batching/kv_cache_tokens", std::to_string(held),
             "at least " + std::to_string(longest) + ", or none",
             "the cache must hold a longest prompt and response");
    }
  } else if (work.sequences() % dp != 0) {
    refuse(
        place + "/layout", "dp " + std::to_string(dp),
        "a divisor of prompts_per_step x samples_per_prompt = " + std::to_string(work.sequences()));
  }
}

void Checker::check_roles() {
  for (std::size_t i = 0; i < plan.roles.size(); ++i) {
    const RolePlan& role = plan.roles[i];
    const std::string place = "/roles/" + std::to_string(i);
    const std::string name(name_of(role.role));
    if (i > 0 && plan.roles[i - 1].role >= role.role) {
      refuse(place + "/role", in_quotes(name),
             "every role once, in the order actor, rollout, critic, reference, reward");
    }
    // Where nothing trains the actor it is what the rollout's weights come from.
    const Role user = role.role == Role::actor && needs_ranks(plan.workload, Role::rollout)
                          ? Role::rollout
                          : role.role;
    if (!needs_ranks(plan.workload, user)) {
      refuse(place + "/role", in_quotes(name), "roles that have calls in the dataflow");
    }
    check_ranks(role, place);
    const auto model = plan.models.find(role.model);
    if (model == plan.models.end()) {
      refuse(place + "/model", in_quotes(role.model), "a key of /models");
      continue;
    }
    const std::size_t before = problems.size();
    tessera::validate(role.layout, model->second.spec.layers,
                      static_cast<std::int64_t>(role.ranks.size()), file, place + "/layout",
                      problems);
    if (problems.size() != before) continue;
    check_map(role, place);
    check_types(role, place);
    check_batching(role, place);
  }
  for (const Role role : kEveryRole) {
    if (needs_ranks(plan.workload, role) && plan.find(role) == nullptr) {
      refuse("/roles", "no '" + std::string(name_of(role)) + "'",
             "every role that has calls in the dataflow");
    }
  }
}

void Checker::check_reshard() {
  const RolePlan* const actor = plan.find(Role::actor);
  const RolePlan* const rollout = plan.find(Role::rollout);
  if (actor != nullptr && rollout != nullptr && actor->model != rollout->model) {
    refuse("/roles/1/model", in_quotes(rollout->model), in_quotes(actor->model) + ", the actor's");
  }
  std::set<std::pair<Role, Role>> pairs;
  for (std::size_t i = 0; i < plan.reshard.size(); ++i) {
    const PlannedReshard& pair = plan.reshard[i];
    const std::string place = "/reshard/" + std::to_string(i);
    if (pair.from != Role::actor || pair.to != Role::rollout) {
      refuse(place, std::string(name_of(pair.from)) + " to " + std::string(name_of(pair.to)),
             "actor to rollout");
    }
    if (!pairs.emplace(pair.from, pair.to).second) {
      refuse(place, "the same pair again", "every pair once");
    }
    const bool hex = pair.digest.size() == 16 &&
                     pair.digest.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!pair.digest.empty() && !hex) {
      refuse(place + "/digest", in_quotes(pair.digest), "16 hexadecimal digits, or \"\"");
    }
    if (pair.mode == ReshardMode::minimal && pair.bytes_received < pair.lower_bound_bytes) {
      refuse(place + "/bytes_received", std::to_string(pair.bytes_received),
             "at least lower_bound_bytes = " + std::to_string(pair.lower_bound_bytes));
    }
  }
  if (actor != nullptr && rollout != nullptr && plan.reshard.empty()) {
    refuse("/reshard", "no pair", "how weights move from the actor to the rollout");
  }
}

}  // namespace

void validate(const Plan& plan, const std::string& file, EngineRules engines, Problems& problems) {
  Checker checker{plan, file, engines, problems};
  checker.check_engine();
  checker.check_models();
  checker.check_dataflow();
  checker.check_roles();
  checker.check_schedule();
  checker.check_reshard();
  check_environment(plan.environment, file, problems);
}

}  // namespace tessera
