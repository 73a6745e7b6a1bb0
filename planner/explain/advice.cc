#include "planner/explain/advice.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "planner/engines/engine.h"
#include "planner/engines/group_degrees.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/planner.h"
#include "planner/plan/amounts.h"
#include "planner/plan/plan.h"
#include "planner/pricing/fixed.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_request.h"
#include "planner/request/plan_value.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"
#include "planner/search/search.h"
#include "planner/space/engine_limits.h"

namespace tessera {
namespace {

// The plan under the cost models, and what becomes of it when one role's candidate is another.
class Ladder {
 public:
  Ladder(const Plan& plan, const Calibration& calibration)
      : plan_(plan),
        request_(priced_request_of(plan, calibration)),
        costs_(evaluator_of(plan, calibration)),
        solution_(solution_of(plan)) {
    for (const RolePlan& role : plan.roles) own_[role.role] = own_bytes(role.role, solution_);
  }

  const Candidate& candidate(Role role) const { return solution_.choice.at(role); }

  /// `words` are the change as --fix reads it; everything else stays as the plan has it.
  Rung rung(std::string what, std::vector<std::string> words, const Candidate& changed) {
    return rung(std::move(what), std::move(words), std::vector{changed});
  }
  /// Of the first of several roles that change together.
  Rung rung(std::string what, std::vector<std::string> words,
            const std::vector<Candidate>& together) {
    const Candidate& changed = together.front();
    Rung rung{.what = std::move(what), .words = std::move(words), .role = changed.role};
    rung.why = beyond_engine(rung.words);
    if (!rung.why.empty()) return rung;
    Solution other = solution_;
    for (const Candidate& each : together) other.choice.at(each.role) = each;
    const FixedIteration priced =
        price_iteration(costs_, other.choice, other.placement, other.policy_lag);
    rung.why = priced.why;
    if (!priced.fits()) return rung;
    other.seconds = priced.seconds;
    other.step_s = priced.step_s;
    const Plan made = compose_plan(request_, costs_, other, &known_);
    rung.possible = true;
    rung.step_s = made.prediction.step_s;
    rung.peak_bytes = made.prediction.peak_bytes;
    rung.role_saves_bytes = own_.at(changed.role) - own_bytes(changed.role, other);
    return rung;
  }

  /// The role, and for the actor those that must have its group degrees.
  std::vector<Candidate> in_groups_of(Role trained) const {
    std::vector<Candidate> all{candidate(trained)};
    if (trained != Role::actor) return all;
    const Capabilities& can = engine_named(plan_.engine).capabilities;
    for (const std::vector<Role>& block : solution_.placement) {
      if (std::find(block.begin(), block.end(), Role::actor) == block.end()) continue;
      for (const Role role : block) {
        if (role != Role::actor && shares_groups(can, role)) all.push_back(candidate(role));
      }
    }
    return all;
  }

 private:
  // Of the role's fullest rank in the phase of its own that needs most.
  Bytes own_bytes(Role role, const Solution& solution) {
    Bytes most;
    for (const Phase phase : phases_of(request_.workload, role)) {
      most = std::max(most, Bytes{costs_.memory(solution.choice.at(role), phase).total()});
    }
    return most;
  }

  std::string beyond_engine(const std::vector<std::string>& words) const {
    Problems problems;
    PlanRequest asked = request_;
    asked.fixed = parse_settings(words, problems);
    if (!problems.empty()) return "needs " + problems[0].expected;
    const auto limits = engine_limits(asked, engine_named(plan_.engine).capabilities);
    return limits.empty() ? "" : describe(limits.front(), plan_.engine);
  }

  const Plan& plan_;
  PlanRequest request_;
  CostEvaluator costs_;
  Solution solution_;
  KnownReshards known_;
  std::map<Role, Bytes> own_;
};

void add_rollout_rungs(Ladder& ladder, Advice& advice) {
  const Candidate& now = ladder.candidate(Role::rollout);
  for (int tp = now.tp / 2; tp >= 1; tp /= 2) {
    // As many sequences at once on as many GPUs: each of more replicas decodes fewer.
    const int more = now.tp / tp;
    Candidate changed = now;
    changed.tp = tp;
    changed.dp = now.dp * more;
    changed.max_sequences = (now.max_sequences + more - 1) / more;
    if (now.ep == 1) changed.etp = tp;
    advice.ladder.push_back(ladder.rung(
        "rollout TP " + std::to_string(now.tp) + " -> " + std::to_string(tp) + ", more micro-DP",
        {"rollout.tp=" + std::to_string(tp),
         "rollout.max_sequences=" + std::to_string(changed.max_sequences)},
        changed));
  }
  if (now.max_sequences > 1) {
    Candidate changed = now;
    changed.max_sequences = (now.max_sequences + 1) / 2;
    advice.ladder.push_back(
        ladder.rung("half the sequences decoded at once",
                    {"rollout.max_sequences=" + std::to_string(changed.max_sequences)}, changed));
  }
}

// On as many GPUs, with `factor` times as many in a tensor-parallel group.
Candidate with_more_tp(const Candidate& now, int factor) {
  Candidate changed = now;
  changed.tp = now.tp * factor;
  changed.dp = now.dp / factor;
  changed.dp_shard = std::gcd(now.dp_shard, changed.dp);
  if (now.dp_shard > 1 && changed.dp_shard == 1) changed.zero = 1;
  if (changed.dp == 1) changed.zero = 0;
  if (now.ep == 1) changed.etp = changed.tp;
  changed.sequence_parallel = true;
  return changed;
}

void add_training_rungs(const Plan& plan, Role role, Ladder& ladder, Advice& advice) {
  const Candidate& now = ladder.candidate(role);
  const std::string name(name_of(role));
  const auto add = [&](std::string what, std::string word, const Candidate& changed) {
    advice.ladder.push_back(ladder.rung(std::move(what), {std::move(word)}, changed));
  };
  if (!now.offload.optimizer) {
    Candidate changed = now;
    changed.offload.optimizer = true;
    add(name + "'s optimizer offloaded", name + ".offload=optimizer", changed);
  }
  for (const Recompute mode : {Recompute::selective, Recompute::full}) {
    if (mode <= now.recompute) continue;
    Candidate changed = now;
    changed.recompute = mode;
    const std::string how(name_of(mode));
    add(name + " recomputes, " + how, name + ".recompute=" + how, changed);
  }
  for (const int zero : {1, 2, 3}) {
    if (zero <= now.zero || now.dp == 1) continue;
    Candidate changed = now;
    changed.zero = zero;
    if (zero == 3) changed.dp_shard = now.dp;
    add(name + " ZeRO " + std::to_string(zero), name + ".zero=" + std::to_string(zero), changed);
  }
  for (const int factor : {2, 4}) {
    if (now.tp > plan.cluster.gpus_per_node / factor || now.dp % factor != 0) continue;
    std::vector<Candidate> together = ladder.in_groups_of(role);
    std::vector<std::string> words;
    for (Candidate& each : together) {
      each = with_more_tp(each, factor);
      words.push_back(std::string(name_of(each.role)) + ".tp=" + std::to_string(each.tp));
    }
    advice.ladder.push_back(
        ladder.rung(name + " TP " + std::to_string(now.tp * factor), words, together));
  }
}

// What practice tries in this order when memory runs out.
void add_ladder(const Plan& plan, const PlanRequest& request, Advice& advice) {
  Ladder ladder(plan, request.calibration);
  if (plan.find(Role::rollout) != nullptr) add_rollout_rungs(ladder, advice);
  for (const Role role : {Role::actor, Role::critic}) {  // the first that the plan has
    if (plan.find(role) != nullptr) return add_training_rungs(plan, role, ladder, advice);
  }
}

// The best plan with one choice fixed, against this one.
struct Searched {
  bool possible = false;
  Priced priced;
  std::string why;
};

Searched searched(const PlanRequest& request, const std::vector<std::string>& words) {
  Problems problems;
  PlanRequest fixed = request;
  fixed.fixed = parse_settings(words, problems);
  std::optional<PlanOutcome> outcome;
  if (problems.empty()) outcome = make_plan(fixed, problems);
  if (!outcome) return {.why = problems.empty() ? "not known" : "needs " + problems[0].expected};
  if (const Infeasible* none = std::get_if<Infeasible>(&*outcome)) {
    return {.why = none->reasons.empty() ? "nothing fits" : none->reasons[0]};
  }
  return {.possible = true, .priced = priced(std::get<Plan>(*outcome)), .why = {}};
}

constexpr const char* kHybridFlow = "HybridFlow, arXiv:2409.19256, 8.3";

// What practice says about clusters of this size and jobs of this kind, with sources named as
// configs/rules names them (docs/notes/claims.md says what they are), and what the plan does.
void add_hints(const Plan& plan, const PlanRequest& request, Advice& advice) {
  const RolePlan* actor = plan.find(Role::actor);
  const RolePlan* rollout = plan.find(Role::rollout);
  if (actor == nullptr) return;
  const int gpus = plan.world_size();
  if (gpus < 16) {
    const Searched sharded = searched(request, {"actor.tp=1", "actor.pp=1"});
    advice.hints.push_back(
        {"below 16 GPUs use FSDP alone, no TP 8", "practice text on resharding",
         "the plan trains with " + describe(actor->layout) +
             (sharded.possible ? "; data parallel alone " + worse_text(plan, sharded.priced)
                               : "; data parallel alone is impossible: " + sharded.why)});
  }
  if (gpus >= 16 && gpus <= 64) {
    const Searched colocated = searched(request, {"placement=colocated"});
    advice.hints.push_back({"16 to 64 GPUs: colocate all roles", kHybridFlow,
                            placement_of(plan).size() == 1 ? "the plan does"
                            : colocated.possible ? "colocated " + worse_text(plan, colocated.priced)
                                                 : "colocated is impossible: " + colocated.why});
  }
  if (gpus >= 96) {
    advice.hints.push_back({"from 96 GPUs on split actor and critic", kHybridFlow,
                            "compare the placements in the certificate"});
  }
  const auto generating = rollout != nullptr ? rollout->memory.find(Phase::gen)
                                             : std::map<Phase, MemoryUse>::const_iterator{};
  if (rollout != nullptr && generating != rollout->memory.end()) {
    const double memory = static_cast<double>(plan.cluster.device.memory.value);
    advice.hints.push_back(
        {"memory x utilisation x TP > 2 x parameters (rollout)",
         "verl, docs/perf/device_tuning.rst",
         "the rollout's weights take " +
             percent(static_cast<double>(generating->second.weights.value) / memory) +
             " of a GPU"});
  }
}

// "1.5 GiB less", "0.2 GiB more".
std::string less(Bytes saved, const char* equal) {
  constexpr Bytes kShown{(1LL << 30) / 20};  // half of the last digit
  const Bytes amount = saved < 0 ? -saved : saved;
  if (amount < kShown) return equal;
  return in_gib(amount, 1) + (saved > 0 ? " less" : " more");
}

}  // namespace

Advice advice_for(const Plan& plan, const PlanRequest& request) {
  Advice advice{.step_s = plan.prediction.step_s,
                .peak_bytes = plan.prediction.peak_bytes,
                .limit_bytes = usable_memory(request),
                .ladder = {},
                .hints = {}};
  add_ladder(plan, request, advice);
  add_hints(plan, request, advice);
  return advice;
}

std::string describe(const Advice& advice) {
  std::string out = "if memory runs out (plan: " + in_gib(advice.peak_bytes, 1) + " of " +
                    in_gib(advice.limit_bytes, 1) +
                    "), practice tries in this order, each change alone:\n";
  for (const Rung& rung : advice.ladder) {
    out += "  " + rung.what + ": ";
    if (rung.possible) {
      const double longer = rung.step_s / advice.step_s - 1;
      out += "step " + percent(std::abs(longer)) + (longer < 0 ? " shorter" : " longer") +
             ", peak " + in_gib(rung.peak_bytes, 1) + " (" +
             less(advice.peak_bytes - rung.peak_bytes, "as before") + "; the " +
             std::string(name_of(rung.role)) + " itself " +
             less(rung.role_saves_bytes, "as much as before") + ")\n";
    } else {
      out += "no: " + rung.why + "\n";
    }
  }
  for (const Hint& hint : advice.hints) {
    out += "practice: " + hint.advice + " [" + hint.source + "]; here " + hint.verdict + "\n";
  }
  return out;
}

std::string to_json(const Advice& advice) {
  Node root = map_node();
  add(root, "step_s", node_of(advice.step_s));
  add(root, "peak_bytes", node_of(advice.peak_bytes));
  add(root, "limit_bytes", node_of(advice.limit_bytes));
  Node ladder = list_node();
  for (const Rung& rung : advice.ladder) {
    Node each = map_node();
    add(each, "what", node_of(rung.what));
    Node words = list_node();
    for (const std::string& word : rung.words) words.items.push_back(node_of(word));
    add(each, "settings", std::move(words));
    add(each, "possible", node_of(rung.possible));
    if (rung.possible) {
      add(each, "step_s", node_of(rung.step_s));
      add(each, "peak_bytes", node_of(rung.peak_bytes));
      add(each, "role", node_of(name_of(rung.role)));
      add(each, "role_saves_bytes", node_of(rung.role_saves_bytes));
    } else {
      add(each, "why", node_of(rung.why));
    }
    ladder.items.push_back(std::move(each));
  }
  add(root, "ladder", std::move(ladder));
  Node hints = list_node();
  for (const Hint& hint : advice.hints) {
    Node each = map_node();
    add(each, "advice", node_of(hint.advice));
    add(each, "source", node_of(hint.source));
    add(each, "verdict", node_of(hint.verdict));
    hints.items.push_back(std::move(each));
  }
  add(root, "hints", std::move(hints));
  return json_text(root);
}

}  // namespace tessera
