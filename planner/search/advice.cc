#include "planner/search/advice.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "cost_models/spec/strict_json.h"
#include "planner/search/amounts.h"

namespace tessera {
namespace {

// A rung from what it is called and the words that fix it.
using Climb = std::function<Rung(std::string, std::vector<std::string>)>;

Rung climbed(Planner& planner, Objective objective, std::string what,
             std::vector<std::string> words) {
  Rung rung{.what = std::move(what), .words = std::move(words)};
  Problems problems;
  const FixedSettings settings = parse_settings(rung.words, problems);
  std::optional<PlanOutcome> outcome;
  if (problems.empty()) outcome = planner.plan(settings, objective, problems);
  if (!outcome) {
    rung.why = problems.empty() ? "not known" : "needs " + problems[0].expected;
    return rung;
  }
  if (const Infeasible* none = std::get_if<Infeasible>(&*outcome)) {
    rung.why = none->reasons.empty() ? "nothing fits" : none->reasons[0];
    return rung;
  }
  const Plan& plan = std::get<Plan>(*outcome);
  rung.possible = true;
  rung.step_s = plan.prediction.step_s;
  rung.peak_bytes = plan.prediction.peak_bytes;
  return rung;
}

// What practice tries in this order when memory runs out.
void add_ladder(const Plan& plan, const Climb& climb, Advice& advice) {
  const auto add = [&](std::string what, std::vector<std::string> words) {
    advice.ladder.push_back(climb(std::move(what), std::move(words)));
  };
  if (const RolePlan* rollout = plan.find(Role::rollout)) {
    for (int tp = rollout->layout.tp / 2; tp >= 1; tp /= 2) {
      add("rollout TP " + std::to_string(rollout->layout.tp) + " -> " + std::to_string(tp) +
              ", more micro-DP",
          {"rollout.tp=" + std::to_string(tp)});
    }
    const std::int64_t slots = rollout->batching.max_sequences;
    if (slots > 1) {
      add("half the sequences decoded at once",
          {"rollout.max_sequences=" + std::to_string((slots + 1) / 2)});
    }
  }
  const RolePlan* actor = plan.find(Role::actor);
  if (actor == nullptr) return;
  if (!actor->offload.optimizer) {
    add("actor's optimizer offloaded", {"actor.offload=optimizer"});
  }
  for (const Recompute mode : {Recompute::selective, Recompute::full}) {
    if (mode <= actor->recompute) continue;
    const std::string name(name_of(mode));
    add("actor recomputes, " + name, {"actor.recompute=" + name});
  }
  for (const int zero : {1, 2, 3}) {
    if (zero <= actor->layout.zero || actor->layout.dp() == 1) continue;
    add("actor ZeRO " + std::to_string(zero), {"actor.zero=" + std::to_string(zero)});
  }
  for (const int factor : {2, 4}) {
    const int tp = actor->layout.tp * factor;
    if (tp > plan.cluster.gpus_per_node) continue;
    add("actor TP " + std::to_string(tp), {"actor.tp=" + std::to_string(tp)});
  }
}

// What practice says about clusters of this size and jobs of this kind (sources in
// docs/claims.md), and what the plan does.
void add_hints(const Plan& plan, const Climb& climb, Advice& advice) {
  const RolePlan* actor = plan.find(Role::actor);
  const RolePlan* rollout = plan.find(Role::rollout);
  if (actor == nullptr) return;
  const int gpus = plan.world_size();
  if (gpus < 16) {
    const Rung sharded = climb("FSDP", {"actor.tp=1", "actor.pp=1"});
    advice.hints.push_back(
        {"below 16 GPUs use FSDP alone, no TP 8", "practice text S1",
         "the plan trains with " + describe(actor->layout) +
             (sharded.possible
                  ? "; data parallel alone takes " +
                        percent(sharded.step_s / plan.prediction.step_s - 1) + " longer"
                  : "; data parallel alone is impossible: " + sharded.why)});
  }
  if (gpus >= 16 && gpus <= 64) {
    advice.hints.push_back(
        {"16 to 64 GPUs: colocate all roles", "HybridFlow 8.3",
         plan.certificate.runner_up.empty()
             ? "no other placement fits"
             : "runner-up placement " + plan.certificate.runner_up[0].placement + " takes " +
                   percent(plan.certificate.runner_up[0].step_s / plan.prediction.step_s - 1) +
                   " longer"});
  }
  if (gpus >= 96) {
    advice.hints.push_back({"from 96 GPUs on split actor and critic", "HybridFlow 8.3",
                            "compare the placements in the certificate"});
  }
  if (rollout != nullptr) {
    const double weights = static_cast<double>(parameter_count(plan.model_of(Role::actor)) *
                                               size_of(rollout->dtypes.param)) /
                           rollout->layout.tp / rollout->layout.pp;
    const double memory = static_cast<double>(plan.cluster.device.memory.value);
    advice.hints.push_back(
        {"memory x utilisation x TP > 2 x parameters (rollout)", "verl device_tuning.rst",
         "the rollout's weights take " + percent(weights / memory) + " of a GPU"});
  }
}

}  // namespace

Advice advice_for(const Plan& plan, const PlanRequest& request) {
  Advice advice{.step_s = plan.prediction.step_s,
                .peak_bytes = plan.prediction.peak_bytes,
                .limit_bytes = usable_memory(plan.cluster, request.calibration),
                .ladder = {},
                .hints = {}};
  Planner planner(request);  // keeps the prices of one rung for the next
  const Climb climb = [&](std::string what, std::vector<std::string> words) {
    return climbed(planner, request.objective, std::move(what), std::move(words));
  };
  add_ladder(plan, climb, advice);
  add_hints(plan, climb, advice);
  return advice;
}

std::string describe(const Advice& advice) {
  std::string out = "if memory runs out (plan: " + in_gib(advice.peak_bytes, 1) + " of " +
                    in_gib(advice.limit_bytes, 1) + "), practice tries in this order:\n";
  for (const Rung& rung : advice.ladder) {
    out += "  " + rung.what + ": ";
    if (rung.possible) {
      out += "step " + percent(rung.step_s / advice.step_s - 1) + ", peak " +
             in_gib(rung.peak_bytes, 1) + " (" +
             (rung.peak_bytes <= advice.peak_bytes
                  ? in_gib(advice.peak_bytes - rung.peak_bytes, 1) + " less"
                  : in_gib(rung.peak_bytes - advice.peak_bytes, 1) + " more") +
             ")\n";
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
