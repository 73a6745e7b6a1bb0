#include "simulator/engine/memory_over_time.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "cost_models/documents/stopped.h"
#include "planner/plan/plan.h"
#include "simulator/engine/role_costs.h"

namespace tessera {
namespace {

/// A change of a rank's memory at a time, in the order in which changes happen within a call.
struct Change {
  std::int64_t time_ns = 0;
  enum Kind { call_begins, backward_ends, forward_begins, call_ends } kind = call_begins;
  int call = 0;
  std::int64_t layers = 0;  // whose activations begin or end
};

/// A role that lives on a rank.
struct Resident {
  const RoleCosts* costs = nullptr;
  int stage = 0;
};

Bytes planned_reserve(const RolePlan& role) {
  Bytes most;
  for (const auto& [phase, use] : role.memory) most = std::max(most, use.reserve);
  return most;
}

class MemoryTrace {
 public:
  MemoryTrace(const Plan& plan, const PlanCosts& costs, const IterationTasks& tasks,
              const std::vector<TaskRun>& runs)
      : tasks_(tasks), runs_(runs), residents_(static_cast<std::size_t>(plan.world_size())) {
    changes_.resize(residents_.size());
    for (const RolePlan& role : plan.roles) {
      const RoleCosts& own = costs.of(role.role);
      const RankMap& map = own.map();
      for (std::size_t i = 0; i < map.ranks.size(); ++i) {
        residents_[static_cast<std::size_t>(map.ranks[i])].push_back({&own, map.coords[i].pp});
      }
    }
    for (std::size_t call = 0; call < tasks.calls.size(); ++call)
      add_changes(static_cast<int>(call));
  }

  std::vector<MemorySample> samples(const std::stop_token& stop) {
    for (std::size_t rank = 0; rank < residents_.size(); ++rank) {
      end_if_stopped(stop);
      if (!residents_[rank].empty()) add_rank(static_cast<int>(rank));
    }
    return std::move(samples_);
  }

 private:
  void add_changes(int call) {
    const CallTasks& tasks = tasks_.calls[static_cast<std::size_t>(call)];
    const auto run = [&](TaskId task) { return runs_[static_cast<std::size_t>(task)]; };
    for (const int rank : tasks.ranks) {
      auto& changes = changes_[static_cast<std::size_t>(rank)];
      changes.push_back({run(tasks.start).start_ns, Change::call_begins, call});
      changes.push_back({run(tasks.end).end_ns, Change::call_ends, call});
    }
    for (const InFlight& one : tasks.in_flight) {
      for (const int rank : tasks_.graph.tasks[static_cast<std::size_t>(one.forward)].ranks) {
        auto& changes = changes_[static_cast<std::size_t>(rank)];
        changes.push_back({run(one.forward).start_ns, Change::forward_begins, call, one.layers});
        changes.push_back({run(one.backward).end_ns, Change::backward_ends, call, one.layers});
      }
    }
  }

  void add_rank(int rank) {
    const auto& residents = residents_[static_cast<std::size_t>(rank)];
    MemoryUse base;
    for (const Resident& resident : residents) {
      base = base + resident.costs->resident(resident.stage);
      base.reserve += planned_reserve(resident.costs->role());
    }
    auto& changes = changes_[static_cast<std::size_t>(rank)];
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return std::tie(a.time_ns, a.call, a.kind) < std::tie(b.time_ns, b.call, b.kind);
    });
    put({0, rank, base});
    std::int64_t in_flight = 0;
    for (const Change& change : changes) {
      if (change.kind == Change::forward_begins) in_flight += change.layers;
      if (change.kind == Change::backward_ends) in_flight -= change.layers;
      const bool ended = change.kind == Change::call_ends;
      put({change.time_ns, rank,
           ended ? base : during(residents, change.call, in_flight, base.reserve)});
    }
  }

  void put(const MemorySample& sample) {
    const bool same_time = !samples_.empty() && samples_.back().rank == sample.rank &&
                           samples_.back().time_ns == sample.time_ns;
    if (same_time) {
      samples_.back() = sample;
    } else if (samples_.empty() || samples_.back().rank != sample.rank ||
               samples_.back().use != sample.use) {
      samples_.push_back(sample);
    }
  }

  // Micro-batches of a stage that are as much as so many layers of them in flight.
  static double batches_of(std::int64_t layers, const ParallelLayout& layout, int stage) {
    const std::int64_t whole = stage_layers(layout, stage);
    return static_cast<double>(layers) / static_cast<double>(whole > 0 ? whole : layout.vpp);
  }

  // On a rank with these roles, with so many layers of micro-batches in flight.
  MemoryUse during(const std::vector<Resident>& residents, int call_index, std::int64_t layers,
                   Bytes reserve) {
    const CallTasks& call = tasks_.calls[static_cast<std::size_t>(call_index)];
    MemoryUse use;
    for (const Resident& resident : residents) {
      const RolePlan& role = resident.costs->role();
      const bool trains = role.role == call.role;
      const auto key = std::tuple(role.role, call.phase, resident.stage, trains ? layers : 0);
      const auto [entry, added] = known_.try_emplace(key);
      if (added) {
        entry->second =
            resident.costs->memory(call.phase, resident.stage,
                                   trains ? batches_of(layers, role.layout, resident.stage) : 0);
      }
      use = use + entry->second;
    }
    use.reserve += reserve;
    return use;
  }

  const IterationTasks& tasks_;
  const std::vector<TaskRun>& runs_;
  std::vector<std::vector<Resident>> residents_;  // by rank
  std::vector<std::vector<Change>> changes_;      // by rank
  std::map<std::tuple<Role, Phase, int, std::int64_t>, MemoryUse> known_;
  std::vector<MemorySample> samples_;
};

}  // namespace

std::vector<MemorySample> memory_over_time(const Plan& plan, const PlanCosts& costs,
                                           const IterationTasks& tasks,
                                           const std::vector<TaskRun>& runs,
                                           const std::stop_token& stop) {
  return MemoryTrace(plan, costs, tasks, runs).samples(stop);
}

}  // namespace tessera
