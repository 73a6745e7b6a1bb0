#include "simulator/engine/pipeline_tasks.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace tessera {
namespace {

class Pipeline {
 public:
  Pipeline(TaskGraph& graph, const PipelinePass& pass, TaskId ready, bool training)
      : graph_(graph),
        pass_(pass),
        stages_(pass.costs.role().layout.pp),
        count_(static_cast<int>(pass.micro_batches.size())),
        ready_(ready),
        last_(static_cast<std::size_t>(stages_), ready),
        forward_(at(stages_) * at(count_), -1),
        backward_(forward_),
        forward_task_(forward_),
        backward_task_(forward_) {
    for (const MicroBatch& batch : pass.micro_batches) {
      forward_times_.push_back(pass.costs.forward(batch, count_));
      if (training) backward_times_.push_back(pass.costs.backward(batch, count_));
    }
  }

  std::vector<TaskId> run_forward() {
    for (int m = 0; m < count_; ++m) {
      for (int stage = 0; stage < stages_; ++stage) forward(m, stage);
    }
    return last_;
  }

  // Emits operations in every stage's own order as soon as what they need has been emitted.
  std::vector<TaskId> run_training(std::vector<InFlight>& in_flight) {
    std::vector<int> position(at(stages_), 0);  // operations of each stage so far
    for (int left = 2 * count_ * stages_; left > 0;) {
      for (int stage = 0; stage < stages_; ++stage) {
        while (position[at(stage)] < 2 * count_ && emit(stage, position[at(stage)])) {
          ++position[at(stage)];
          --left;
        }
      }
    }
    for (int stage = 0; stage < stages_; ++stage) {
      for (int m = 0; m < count_; ++m) {
        in_flight.push_back({forward_task_[cell(m, stage)], backward_task_[cell(m, stage)], stage});
      }
    }
    return last_;
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  std::size_t cell(int m, int stage) const { return at(stage) * at(count_) + at(m); }

  // Operation `position` of a stage; false when its input is not there yet.
  bool emit(int stage, int position) {
    const int ahead = std::min(stages_ - stage - 1, count_);
    const int steady = position - ahead;
    const bool drains = steady >= 2 * (count_ - ahead);
    const bool is_forward = position < ahead || (!drains && steady % 2 == 0);
    if (is_forward) {
      const int m = position < ahead ? position : ahead + steady / 2;
      if (stage > 0 && forward_[cell(m, stage - 1)] < 0) return false;
      forward(m, stage);
      return true;
    }
    const int m = drains ? position - count_ : steady / 2;
    if (stage + 1 < stages_ && backward_[cell(m, stage + 1)] < 0) return false;
    backward(m, stage);
    return true;
  }

  void forward(int m, int stage) {
    const TaskId input = stage > 0 ? forward_[cell(m, stage - 1)] : ready_;
    const TaskId task = compute("F", m, stage, forward_times_[at(m)][at(stage)], input);
    forward_task_[cell(m, stage)] = task;
    forward_[cell(m, stage)] = stage + 1 < stages_ ? send("send F", m, stage, stage) : task;
  }

  void backward(int m, int stage) {
    const TaskId input = stage + 1 < stages_ ? backward_[cell(m, stage + 1)] : ready_;
    const TaskId task = compute("B", m, stage, backward_times_[at(m)][at(stage)], input);
    backward_task_[cell(m, stage)] = task;
    backward_[cell(m, stage)] = stage > 0 ? send("send B", m, stage, stage - 1) : task;
  }

  TaskId compute(const char* name, int m, int stage, OperationTime time, TaskId input) {
    std::vector<TaskId> after = {input};
    if (last_[at(stage)] != input) after.push_back(last_[at(stage)]);
    return last_[at(stage)] = graph_.add({.name = name + std::to_string(m),
                                          .phase = pass_.phase,
                                          .ranks = pass_.costs.stage_ranks(pass_.replica, stage),
                                          .duration_ns = nanoseconds(time.seconds),
                                          .after = std::move(after),
                                          .communication_ns = nanoseconds(time.communication_s)});
  }

  // `stage` hands over what it has just computed, across the border after `border`.
  TaskId send(const char* name, int m, int stage, int border) {
    const MicroBatch& batch = pass_.micro_batches[at(m)];
    const double seconds = pass_.costs.hop_seconds(batch, pass_.replica, border);
    return last_[at(stage)] = graph_.add({.name = name + std::to_string(m),
                                          .phase = pass_.phase,
                                          .stream = Stream::communication,
                                          .ranks = pass_.costs.stage_ranks(pass_.replica, stage),
                                          .duration_ns = nanoseconds(seconds),
                                          .after = {last_[at(stage)]},
                                          .bytes = pass_.costs.hop_bytes(batch)});
  }

  TaskGraph& graph_;
  const PipelinePass& pass_;
  int stages_, count_;
  TaskId ready_;
  std::vector<TaskId> last_;                // of every stage
  std::vector<TaskId> forward_, backward_;  // after which the neighbour may go on; -1 = not yet
  std::vector<TaskId> forward_task_, backward_task_;
  std::vector<std::vector<OperationTime>> forward_times_, backward_times_;  // [m][stage]
};

}  // namespace

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

std::vector<TaskId> add_forward_pass(TaskGraph& graph, const PipelinePass& pass, TaskId ready) {
  return Pipeline(graph, pass, ready, false).run_forward();
}

std::vector<TaskId> add_training_pass(TaskGraph& graph, const PipelinePass& pass, TaskId ready,
                                      std::vector<InFlight>& in_flight) {
  return Pipeline(graph, pass, ready, true).run_training(in_flight);
}

}  // namespace tessera
