#include "simulator/engine/simulate.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <tuple>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/stopped.h"
#include "planner/plan/plan.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/pricing/solution_pricer.h"
#include "planner/request/plan_request.h"
#include "simulator/engine/link_loads.h"
#include "simulator/engine/memory_over_time.h"
#include "simulator/engine/role_costs.h"

namespace tessera {
namespace {

constexpr double kMostSeconds = 1e9;  // of all steps

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Time covered by spans that come in ascending order of their starts.
class Coverage {
 public:
  /// Nanoseconds that nothing before covered.
  std::int64_t add(std::int64_t start_ns, std::int64_t end_ns) {
    const std::int64_t fresh = std::max<std::int64_t>(0, end_ns - std::max(start_ns, covered_to_));
    covered_to_ = std::max(covered_to_, end_ns);
    total_ += fresh;
    return fresh;
  }
  std::int64_t total() const { return total_; }

 private:
  std::int64_t covered_to_ = 0, total_ = 0;
};

class Summary {
 public:
  Summary(const Plan& plan, const Calibration& calibration, const SimulationOptions& options)
      : steps_(static_cast<double>(options.steps)),
        costs_(plan, calibration),
        tasks_(build_iteration(plan, calibration, options, costs_)),
        network_run_(run(tasks_, options.stop)),
        runs_(network_run_.runs),
        awaited_(awaited_tasks(tasks_.graph, runs_)),
        windows_(options.load_windows),
        stop_(options.stop) {
    result_.ranks.resize(at(plan.world_size()));
    result_.steps = options.steps;
    result_.timeline.source = "predicted";
    for (const TaskRun& one : runs_) end_ns_ = std::max(end_ns_, one.end_ns);
  }

  Simulation make(const Plan& plan) {
    result_.step_s = static_cast<double>(end_ns_) * 1e-9 / steps_;
    std::size_t most = 0;
    for (const Task& task : tasks_.graph.tasks) most += task.ranks.size();
    for (const CallTasks& call : tasks_.calls) most += call.ranks.size();
    result_.timeline.spans.reserve(most);
    for (std::size_t call = 0; call < tasks_.calls.size(); ++call) add_spans(call);
    end_if_stopped(stop_);
    sort(result_.timeline);
    end_if_stopped(stop_);
    note_tasks();
    summarize_phases();
    summarize_ranks();
    result_.timeline.memory = memory_over_time(plan, costs_, tasks_, runs_, stop_);
    find_peaks();
    end_if_stopped(stop_);
    add_critical_path();
    add_rollout();
    add_network(plan.world_size());
    return std::move(result_);
  }

 private:
  void add_network(int ranks) {
    result_.links = link_loads(tasks_, network_run_, end_ns_, windows_, stop_);
    result_.load_window_ns = windows_ > 0 ? end_ns_ / windows_ : 0;
    result_.communication = communication_parts(tasks_, runs_, ranks);
    for (const CallTasks& call : tasks_.calls) {
      result_.calls.push_back({call.phase, call.step, run_of(call.start).end_ns,
                               run_of(call.end).end_ns, run_of(call.end).slack_ns});
    }
    if (!tasks_.shares_links) return;
    const auto per_step = [&](std::int64_t ns) { return static_cast<double>(ns) * 1e-9 / steps_; };
    std::int64_t equal_end = 0;
    for (const TaskRun& one : run(tasks_.graph, stop_)) equal_end = std::max(equal_end, one.end_ns);
    // Flows end at whole nanoseconds, which rounds each once more.
    const std::int64_t cost = std::max<std::int64_t>(0, end_ns_ - network_run_.alone_end_ns);
    result_.shared = {true, per_step(cost), network_run_.shared_s / steps_, per_step(equal_end)};
  }

  const TaskRun& run_of(TaskId id) const { return runs_[static_cast<std::size_t>(id)]; }

  // A call's spans: one per task and rank, and the phase on each of its ranks.
  void add_spans(std::size_t index) {
    end_if_stopped(stop_);
    const CallTasks& call = tasks_.calls[index];
    const std::int64_t start = run_of(call.start).end_ns;
    std::vector<std::int64_t> last(result_.ranks.size(), start);
    auto& spans = result_.timeline.spans;
    for (TaskId id = call.start + 1; id < call.end; ++id) {
      const Task& task = tasks_.graph.tasks[static_cast<std::size_t>(id)];
      const TaskRun& run = run_of(id);
      for (const int rank : task.ranks) {
        last[at(rank)] = std::max(last[at(rank)], run.end_ns);
        result_.ranks[at(rank)].exposed_comm_s +=
            static_cast<double>(communication_ns(task, run)) * 1e-9;
        if (run.end_ns == run.start_ns) continue;
        spans.push_back({run.start_ns, run.end_ns, rank, task.stream, task.phase, call.step, id,
                         task.name, task.bytes, run.slack_ns});
      }
    }
    for (const int rank : call.ranks) {
      if (last[at(rank)] == start) continue;
      spans.push_back({start, last[at(rank)], rank, Stream::phases, call.phase, call.step,
                       call.start, std::string(name_of(call.phase)), 0, 0});
    }
  }

  void note_tasks() {
    result_.tasks.resize(runs_.size());
    for (TaskId id = 0; id < static_cast<TaskId>(runs_.size()); ++id) {
      const Task& task = tasks_.graph.tasks[at(id)];
      TaskNote& note = result_.tasks[at(id)];
      if (task.stream == Stream::compute)
        note.communication_ns = communication_ns(task, run_of(id));
      const TaskId before = awaited_[at(id)];
      if (before < 0) continue;
      const bool is_seen = !tasks_.graph.tasks[at(before)].ranks.empty() &&
                           run_of(before).end_ns > run_of(before).start_ns;
      note.awaited = is_seen ? before : result_.tasks[at(before)].awaited;
    }
  }

  void summarize_phases() {
    for (const CallTasks& call : tasks_.calls) {
      const std::int64_t length = run_of(call.end).end_ns - run_of(call.start).end_ns;
      result_.phases_s[call.phase] += static_cast<double>(length) * 1e-9 / steps_;
      rank_ns_[call.phase] += static_cast<double>(length) * static_cast<double>(call.ranks.size());
    }
  }

  void summarize_ranks() {
    const std::span<const Span> all = result_.timeline.spans;
    for (std::size_t first = 0; first < all.size();) {
      end_if_stopped(stop_);
      std::size_t next = first;
      while (next < all.size() && all[next].rank == all[first].rank) ++next;
      summarize_rank(all.subspan(first, next - first));
      first = next;
    }
    for (RankSummary& rank : result_.ranks) rank.exposed_comm_s /= steps_;
    for (const auto& [phase, seconds] : result_.phases_s) {
      result_.phases_idle[phase] = rank_ns_[phase] > 0 ? 1 - busy_ns_[phase] / rank_ns_[phase] : 0;
    }
  }

  void summarize_rank(std::span<const Span> spans) {
    std::vector<const Span*> working;
    for (const Span& span : spans) {
      if (span.stream != Stream::phases) working.push_back(&span);
    }
    std::stable_sort(working.begin(), working.end(),
                     [](const Span* a, const Span* b) { return a->start_ns < b->start_ns; });
    Coverage all, computing;
    for (const Span* span : working) {
      const std::int64_t fresh = all.add(span->start_ns, span->end_ns);
      busy_ns_[span->phase] += static_cast<double>(fresh);
      if (span->stream == Stream::compute) computing.add(span->start_ns, span->end_ns);
    }
    RankSummary& rank = result_.ranks[at(spans.front().rank)];
    rank.exposed_comm_s += static_cast<double>(all.total() - computing.total()) * 1e-9;
    rank.idle_share = 1 - static_cast<double>(all.total()) / static_cast<double>(end_ns_);
  }

  void find_peaks() {
    for (const MemorySample& sample : result_.timeline.memory) {
      RankSummary& rank = result_.ranks[at(sample.rank)];
      if (sample.use.total() <= rank.peak_bytes) continue;
      rank.peak_bytes = sample.use.total();
      rank.peak_phase = phase_at(sample.rank, sample.time_ns);
    }
  }

  Phase phase_at(int rank, std::int64_t time_ns) const {
    for (const CallTasks& call : tasks_.calls) {
      const bool during = run_of(call.start).end_ns <= time_ns && time_ns < run_of(call.end).end_ns;
      if (during && std::binary_search(call.ranks.begin(), call.ranks.end(), rank)) {
        return call.phase;
      }
    }
    return Phase::load;
  }

  void add_critical_path() {
    std::size_t call = 0;
    for (const TaskId id : tessera::critical_path(awaited_, runs_)) {
      const Task& task = tasks_.graph.tasks[static_cast<std::size_t>(id)];
      if (task.duration_ns == 0) continue;
      while (tasks_.calls[call].end < id) ++call;
      const TaskRun& run = run_of(id);
      result_.critical_path.push_back({task.name, task.phase, tasks_.calls[call].step, task.ranks,
                                       run.start_ns, run.end_ns, run.slack_ns});
    }
  }

  void add_rollout() {
    for (const ReplicaTasks& replica : tasks_.replicas) {
      const CallTasks& call = tasks_.calls[at(replica.call)];
      result_.rollout.push_back({call.step, replica.replica, replica.ranks,
                                 active_samples(replica.segments, run_of(call.start).end_ns,
                                                run_of(replica.before).end_ns)});
    }
  }

  double steps_ = 1;
  PlanCosts costs_;
  IterationTasks tasks_;
  NetworkRun network_run_;
  const std::vector<TaskRun>& runs_;
  std::vector<TaskId> awaited_;
  int windows_ = 0;
  std::stop_token stop_;
  std::int64_t end_ns_ = 0;
  EnumArray<Phase, double> rank_ns_, busy_ns_;  // of all ranks of a phase's calls
  Simulation result_;
};

}  // namespace

double Simulation::exposed_comm_s() const {
  double most = 0;
  for (const RankSummary& rank : ranks) most = std::max(most, rank.exposed_comm_s);
  return most;
}

std::int64_t Simulation::peak_bytes() const {
  std::int64_t most = 0;
  for (const RankSummary& rank : ranks) most = std::max(most, rank.peak_bytes);
  return most;
}

void check_duration(const Plan& plan, const Calibration& calibration, std::int64_t steps,
                    Problems& problems) {
  const PlanRequest request = priced_request_of(plan, calibration);
  const PricedPhases priced =
      SolutionPricer(request, solution_of(plan), deal_of(plan, request)).price(calibration);
  double seconds = priced.step_s.value;
  for (const Seconds phase : priced.seconds) seconds = std::max(seconds, phase.value);
  if (seconds * static_cast<double>(steps) <= kMostSeconds) return;
  std::array<char, 64> found{};
  std::snprintf(found.data(), found.size(), "a step of %.3g s", seconds);
  problems.push_back({calibration.name, "", found.data(), "at most 1e9 s in all",
                      "a constant of the calibration is far from any machine's"});
}

Simulation simulate(const Plan& plan, const Calibration& calibration,
                    const SimulationOptions& options) {
  return Summary(plan, calibration, options).make(plan);
}

}  // namespace tessera
