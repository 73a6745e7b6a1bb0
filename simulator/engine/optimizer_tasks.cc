#include "simulator/engine/optimizer_tasks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "planner/plan/plan.h"
#include "simulator/engine/planned_arrivals.h"

namespace tessera {
namespace {

class OptimizerStep {
 public:
  OptimizerStep(IterationTasks& tasks, TaskLinks& links, const RoleCosts& costs, Phase phase)
      : tasks_(tasks), links_(links), costs_(costs), phase_(phase) {}

  std::vector<TaskId> add(PassEnd pass) {
    const int stages = costs_.role().layout.pp;
    std::vector<std::vector<int>> ranks(static_cast<std::size_t>(stages));
    std::vector<TaskId> reduced;
    const std::size_t hidden_before = tasks_.hidden.size();
    for (int stage = 0; stage < stages; ++stage) {
      const auto at = static_cast<std::size_t>(stage);
      for (int replica = 0; replica < costs_.role().layout.dp; ++replica) {
        ranks[at] = united(std::move(ranks[at]), costs_.stage_ranks(replica, stage));
      }
      reduced.push_back(collective(
          stage, Exchange::gradients,
          {.name = "reduce gradients",
           .phase = phase_,
           .stream = Stream::communication,
           .ranks = ranks[at],
           .duration_ns = nanoseconds(costs_.reduce_seconds(stage, pass.last_backward_s[at])),
           .after = std::move(pass.last[at]),
           .bytes = costs_.gradient_bytes(stage)},
          nanoseconds(costs_.reduce_seconds(stage)), -1));
    }
    // The gradients' norm is that of all stages.
    const TaskId norm = join("norm", phase_, std::vector(reduced));
    std::vector<TaskId> done;
    for (int stage = 0; stage < stages; ++stage) {
      const auto at = static_cast<std::size_t>(stage);
      const TaskId update =
          graph().add({.name = "optimizer",
                       .phase = phase_,
                       .ranks = ranks[at],
                       .duration_ns = nanoseconds(costs_.optimizer_seconds(stage)),
                       .after = {norm}});
      done.push_back(collective(
          stage, Exchange::parameters,
          {.name = "gather parameters",
           .phase = phase_,
           .stream = Stream::communication,
           .ranks = ranks[at],
           .duration_ns = nanoseconds(costs_.gather_seconds(stage, pass.last_backward_s[at])),
           .after = {update},
           .bytes = costs_.parameter_bytes(stage)},
          nanoseconds(costs_.gather_seconds(stage)), reduced[at]));
    }
    share_time(hidden_before);
    return done;
  }

 private:
  TaskGraph& graph() { return tasks_.graph; }

  TaskId join(const char* name, Phase phase, std::vector<TaskId> after) {
    return graph().add({.name = name, .phase = phase, .ranks = {}, .after = std::move(after)});
  }

  // A stage's gradients or parameters over its replicas; without duration (one replica, or all of
  // it is hidden) it is a mere dependency. `whole_ns`: its time where nothing hides it;
  // `behind_pass`: the first task behind the stage's backward pass, -1 = this one.
  TaskId collective(int stage, Exchange exchange, Task task, std::int64_t whole_ns,
                    TaskId behind_pass) {
    const ParallelLayout& layout = costs_.role().layout;
    const Traffic bytes{static_cast<double>(task.bytes)};
    const bool shards_layers = layout.dp_shard > 1;
    const Collective what = shards_layers || layout.zero == 0 ? Collective::all_reduce
                            : exchange == Exchange::gradients ? Collective::reduce_scatter
                                                              : Collective::all_gather;
    const auto put = [&](Task& on) {
      on.exchange = exchange;
      links_.put_collective(graph(), on, costs_, stage,
                            {0, layout.dp, shards_layers ? layout.dp_shard : 1}, what, bytes);
    };
    const std::int64_t shown_ns = std::max<std::int64_t>(0, task.duration_ns);
    HiddenExchange hidden{.hidden_ns = whole_ns - shown_ns, .ranks = task.ranks};
    if (hidden.hidden_ns > 0) {
      Task whole = task;
      whole.duration_ns = whole_ns;
      put(whole);
      if (shown_ns > 0) put(task);
      task.port_bytes =
          whole.port_bytes * static_cast<double>(shown_ns) / static_cast<double>(whole_ns);
      hidden.exchange = exchange;
      hidden.pattern = whole.pattern;
      hidden.card_bytes = whole.card_bytes - task.card_bytes;
      hidden.port_bytes = whole.port_bytes - task.port_bytes;
      hidden.shared_bytes = whole.shared_bytes - task.shared_bytes;
    } else if (shown_ns > 0) {
      put(task);
    }
    hidden.shown = shown_ns > 0 ? graph().add(std::move(task))
                                : join(task.name.c_str(), task.phase, std::move(task.after));
    hidden.behind_pass = behind_pass < 0 ? hidden.shown : behind_pass;
    const TaskId shown = hidden.shown;
    if (hidden.hidden_ns > 0) tasks_.hidden.push_back(std::move(hidden));
    return shown;
  }

  // What one pass hides travels in turns, over the time that all of it takes.
  void share_time(std::size_t first) {
    std::map<TaskId, std::int64_t> beside;
    for (std::size_t i = first; i < tasks_.hidden.size(); ++i) {
      beside[tasks_.hidden[i].behind_pass] += tasks_.hidden[i].hidden_ns;
    }
    for (std::size_t i = first; i < tasks_.hidden.size(); ++i) {
      tasks_.hidden[i].beside_ns = beside.at(tasks_.hidden[i].behind_pass);
    }
  }

  IterationTasks& tasks_;
  TaskLinks& links_;
  const RoleCosts& costs_;
  Phase phase_;
};

}  // namespace

std::vector<TaskId> add_optimizer_step(IterationTasks& tasks, TaskLinks& links,
                                       const RoleCosts& costs, Phase phase, PassEnd pass) {
  return OptimizerStep(tasks, links, costs, phase).add(std::move(pass));
}

}  // namespace tessera
