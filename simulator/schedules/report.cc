#include "cost_models/documents/document.h"
#include "cost_models/documents/printed.h"
#include "cost_models/documents/strict_json.h"
#include "simulator/schedules/steady_state.h"

namespace tessera {
namespace {

std::string cycle_in_words(const SteadyState& state) {
  std::string text;
  for (const Phase phase : state.cycle) {
    text += (text.empty() ? "" : " > ") + std::string(name_of(phase));
  }
  if (state.cycle_steps > 1) text += printed(", in %d steps", static_cast<int>(state.cycle_steps));
  return text;
}

std::string name_of(const StepSchedule& schedule, bool lent) {
  return tessera::name_of(schedule) + (lent ? ", trainers lent" : "");
}

std::string name_of(const SteadyState& state) {
  return name_of(state.schedule, state.lent.prompts > 0);
}

Node lent_node(const LentShare& lent) {
  Node node = map_node();
  add(node, "prompts", node_of(lent.prompts));
  add(node, "replicas", node_of(std::int64_t{lent.replicas}));
  add(node, "sequences", node_of(lent.sequences));
  add(node, "to_s", node_of(lent.to_s));
  add(node, "back_s", node_of(lent.back_s));
  add(node, "parked_bytes", node_of(lent.parked_bytes));
  return node;
}

std::string lent_text(const LentShare& lent) {
  return printed(
      "  lent: %lld prompts to %d replicas, %lld sequences at once, %.2f s to and %.2f s "
      "back%s\n",
      static_cast<long long>(lent.prompts), lent.replicas, static_cast<long long>(lent.sequences),
      lent.to_s, lent.back_s,
      lent.parked_bytes > 0 ? ", optimizer states in host memory meanwhile" : "");
}

Node pool_node(const PoolUse& pool) {
  Node node = map_node(), ranks = list_node();
  for (const int rank : pool.ranks) ranks.items.push_back(node_of(std::int64_t{rank}));
  add(node, "ranks", std::move(ranks));
  add(node, "busy_s", node_of(pool.busy_s));
  add(node, "idle_s", node_of(pool.idle_s));
  return node;
}

Node state_node(const SteadyState& state) {
  Node node = map_node(), cycle = list_node(), pools = list_node();
  add(node, "schedule", node_of(std::string_view(name_of(state))));
  add(node, "step_s", node_of(state.step_s));
  add(node, "drawn_step_s", node_of(state.drawn_step_s));
  for (const Phase phase : state.cycle) cycle.items.push_back(node_of(name_of(phase)));
  add(node, "cycle", std::move(cycle));
  add(node, "cycle_steps", node_of(state.cycle_steps));
  add(node, "staleness", node_of(state.staleness));
  add(node, "most_staleness", node_of(state.most_staleness));
  for (const PoolUse& pool : state.pools) pools.items.push_back(pool_node(pool));
  add(node, "pools", std::move(pools));
  if (state.copy_bytes > 0) add(node, "copy_bytes", node_of(state.copy_bytes));
  if (state.lent.prompts > 0) add(node, "lent", lent_node(state.lent));
  return node;
}

}  // namespace

std::string to_text(const ScheduleComparison& comparison) {
  std::string text = printed("%-43s %10s %10s  %-13s  %s\n", "schedule", "step", "drawn",
                             "staleness", "waits for");
  for (const SteadyState& state : comparison.states) {
    text +=
        printed("%-43s %8.2f s %8.2f s  %4.2f, most %-2d  ", name_of(state).c_str(), state.step_s,
                state.drawn_step_s, state.staleness, static_cast<int>(state.most_staleness));
    text += cycle_in_words(state) + "\n";
    if (state.lent.prompts > 0) text += lent_text(state.lent);
    if (state.copy_bytes > 0 && state.lent.prompts == 0) {
      text +=
          printed("  a copy of the weights for senders: %.2f GiB on each of the actor's ranks\n",
                  static_cast<double>(state.copy_bytes) / (1 << 30));
    }
  }
  for (const RefusedSchedule& refused : comparison.refused) {
    text += printed("%-43s ", name_of(refused.schedule, refused.lent).c_str()) +
            "no: " + refused.why + "\n";
  }
  text += "idle in a step\n";
  for (const SteadyState& state : comparison.states) {
    for (const PoolUse& pool : state.pools) {
      const double step = pool.busy_s + pool.idle_s;
      text += printed("  %-41s %8.2f s  %5.1f %%  ", name_of(state).c_str(), pool.idle_s,
                      step > 0 ? 100 * pool.idle_s / step : 0.0);
      text += "ranks " + ranges_text(pool.ranks) + "\n";
    }
  }
  return text;
}

std::string to_json(const ScheduleComparison& comparison) {
  Node root = map_node(), states = list_node(), refused = list_node();
  add(root, "draws", node_of(std::int64_t{comparison.draws}));
  for (const SteadyState& state : comparison.states) states.items.push_back(state_node(state));
  add(root, "schedules", std::move(states));
  for (const RefusedSchedule& each : comparison.refused) {
    Node node = map_node();
    add(node, "schedule", node_of(std::string_view(name_of(each.schedule, each.lent))));
    add(node, "why", node_of(std::string_view(each.why)));
    refused.items.push_back(std::move(node));
  }
  add(root, "refused", std::move(refused));
  return json_text(root);
}

}  // namespace tessera
