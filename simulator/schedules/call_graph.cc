#include "simulator/schedules/call_graph.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/spec/enum_names.h"
#include "planner/plan/schedule.h"

namespace tessera {
namespace {

constexpr auto kOverlapNames =
    enum_names<StepOverlap>({{StepOverlap::synchronous, "synchronous"},
                             {StepOverlap::split, "split"},
                             {StepOverlap::one_step_off, "one step off"},
                             {StepOverlap::asynchronous, "asynchronous"}});

bool trains(Phase phase) { return phase == Phase::update_actor || phase == Phase::update_critic; }

/// The call of `ranks` that shares one with `rollout`, beside the rollout's own; nullptr: none.
const CallRanks::value_type* sharing(const CallRanks& ranks, const std::vector<int>& rollout) {
  for (const auto& call : ranks) {
    if (call.first == Phase::gen || call.first == Phase::reshard) continue;
    const auto shared = [&](int rank) {
      return std::binary_search(rollout.begin(), rollout.end(), rank);
    };
    if (std::any_of(call.second.begin(), call.second.end(), shared)) return &call;
  }
  return nullptr;
}

/// Ranks by the set of calls that they take part in, and each call's pools.
void add_pools(const std::vector<std::vector<int>>& ranks_of_calls, CallGraph& graph) {
  std::map<int, std::vector<int>> calls_of_rank;
  for (std::size_t call = 0; call < ranks_of_calls.size(); ++call) {
    for (const int rank : ranks_of_calls[call])
      calls_of_rank[rank].push_back(static_cast<int>(call));
  }
  std::map<std::vector<int>, int> pool_of_calls;
  for (const auto& [rank, calls] : calls_of_rank) {
    const auto [known, fresh] =
        pool_of_calls.try_emplace(calls, static_cast<int>(graph.pools.size()));
    if (fresh) {
      graph.pools.emplace_back();
      for (const int call : calls)
        graph.calls[static_cast<std::size_t>(call)].pools.push_back(known->second);
    }
    graph.pools[static_cast<std::size_t>(known->second)].ranks.push_back(rank);
  }
  for (RepeatedCall& call : graph.calls) std::sort(call.pools.begin(), call.pools.end());
}

/// The waits of a call for another one whose outputs it reads: in the same step, but for responses
/// that were made a step ahead.
CallWait data_wait(const CallGraph& graph, int call, int on, const StepSchedule& schedule) {
  const bool ahead = schedule.overlap == StepOverlap::one_step_off &&
                     graph.calls[static_cast<std::size_t>(on)].phase == Phase::gen;
  return {call, on, ahead ? 1 : 0};
}

/// The weights that a step's generation has: those of the update before it, or of an earlier one.
void add_weight_waits(const StepSchedule& schedule, CallGraph& graph) {
  const int update = call_number(graph, Phase::update_actor), taken = weights_number(graph);
  if (update < 0 || taken < 0) return;
  const int lag = schedule.overlap == StepOverlap::asynchronous ? schedule.staleness : 0;
  graph.waits.push_back({taken, update, 1 + lag});
}

/// A model that a step trains is what the calls of the next one run.
void add_model_waits(const std::map<Phase, Role>& roles, CallGraph& graph) {
  for (std::size_t on = 0; on < graph.calls.size(); ++on) {
    if (!trains(graph.calls[on].phase)) continue;
    for (std::size_t call = 0; call < graph.calls.size(); ++call) {
      const Phase phase = graph.calls[call].phase;
      if (phase == Phase::reshard || phase == Phase::gen ||
          roles.at(phase) != roles.at(graph.calls[on].phase))
        continue;
      graph.waits.push_back({static_cast<int>(call), static_cast<int>(on), 1});
    }
  }
}

}  // namespace

std::string name_of(const StepSchedule& schedule) {
  std::string name(kOverlapNames[schedule.overlap]);
  if (schedule.overlap == StepOverlap::asynchronous) {
    name += ", staleness " + std::to_string(schedule.staleness);
  }
  return name;
}

int call_number(const CallGraph& graph, Phase phase) {
  for (std::size_t i = 0; i < graph.calls.size(); ++i) {
    if (graph.calls[i].phase == phase && !graph.calls[i].lent) return static_cast<int>(i);
  }
  return -1;
}

int weights_number(const CallGraph& graph) {
  const int sent = call_number(graph, Phase::reshard);
  return sent >= 0 ? sent : call_number(graph, Phase::gen);
}

std::string why_no_schedule(const CallRanks& ranks, const StepSchedule& schedule) {
  const auto gen = ranks.find(Phase::gen);
  const bool ahead = schedule.overlap == StepOverlap::one_step_off ||
                     schedule.overlap == StepOverlap::asynchronous;
  if (!ahead) return {};
  if (gen == ranks.end()) return "no call generates responses";
  const auto* shared = sharing(ranks, gen->second);
  if (shared == nullptr) return {};
  return "the rollout shares ranks with " + std::string(name_of(shared->first)) +
         ", so that it cannot run beside the step";
}

CallGraph call_graph(const Workload& workload, const CallRanks& ranks, const StepSchedule& schedule,
                     const std::vector<int>& lent) {
  TESSERA_CHECK(why_no_schedule(ranks, schedule).empty());
  CallGraph graph;
  std::vector<std::vector<int>> occupied;
  std::map<Phase, Role> roles;
  std::vector<ScheduledCall> scheduled;
  for (const ScheduledCall& call : default_schedule(workload)) {
    const auto own = ranks.find(call.phase);
    if (own == ranks.end()) continue;
    roles[call.phase] = call.role;
    const bool beside =
        schedule.overlap == StepOverlap::asynchronous && call.phase == Phase::reshard;
    graph.calls.push_back({call.phase, {}});
    occupied.push_back(beside ? ranks.at(Phase::gen) : own->second);
    scheduled.push_back(call);
    if (call.phase != Phase::gen || lent.empty()) continue;
    // The weights are those of its own ranks: it waits for their calls alone.
    graph.calls.push_back({.phase = Phase::gen, .pools = {}, .lent = true});
    occupied.push_back(lent);
    scheduled.push_back({});
  }
  add_pools(occupied, graph);
  for (std::size_t call = 0; call < scheduled.size(); ++call) {
    for (const Phase phase : scheduled[call].after) {
      const int on = call_number(graph, phase);
      if (on < 0) continue;
      graph.waits.push_back(data_wait(graph, static_cast<int>(call), on, schedule));
      if (phase != Phase::gen || lent.empty()) continue;
      graph.waits.push_back(data_wait(graph, static_cast<int>(call), on + 1, schedule));
    }
  }
  add_weight_waits(schedule, graph);
  add_model_waits(roles, graph);
  if (schedule.overlap == StepOverlap::synchronous) {
    const int count = static_cast<int>(graph.calls.size());
    for (int call = 0; call < count; ++call) {
      for (int on = 0; on < count; ++on) graph.waits.push_back({call, on, 1});
    }
  }
  return graph;
}

std::vector<CallWait> pool_waits(const CallGraph& graph) {
  std::set<std::tuple<int, int, int>> found;
  for (std::size_t pool = 0; pool < graph.pools.size(); ++pool) {
    std::vector<int> calls;
    for (std::size_t call = 0; call < graph.calls.size(); ++call) {
      const auto& pools = graph.calls[call].pools;
      if (std::binary_search(pools.begin(), pools.end(), static_cast<int>(pool))) {
        calls.push_back(static_cast<int>(call));
      }
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      found.emplace(calls[i], i > 0 ? calls[i - 1] : calls.back(), i > 0 ? 0 : 1);
    }
  }
  std::vector<CallWait> waits;
  for (const auto& [call, on, steps] : found) waits.push_back({call, on, steps});
  return waits;
}

std::vector<EventWait> event_waits(const CallGraph& graph,
                                   const std::map<Phase, std::int64_t>& durations_ns,
                                   std::int64_t lent_ns) {
  std::vector<EventWait> waits;
  for (const auto& some : {graph.waits, pool_waits(graph)}) {
    for (const CallWait& wait : some) {
      const RepeatedCall& on = graph.calls[static_cast<std::size_t>(wait.on)];
      const std::int64_t duration = on.lent ? lent_ns : durations_ns.at(on.phase);
      waits.push_back({wait.call, wait.on, duration, wait.steps});
    }
  }
  return waits;
}

}  // namespace tessera
