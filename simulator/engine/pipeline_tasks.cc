#include "simulator/engine/pipeline_tasks.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "cost_models/pipeline/interleave.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

class Pipeline {
 public:
  Pipeline(TaskGraph& graph, const PipelinePass& pass, const std::vector<TaskId>& ready,
           bool training)
      : graph_(graph),
        pass_(pass),
        layout_(pass.costs.role().layout),
        training_(training),
        replicas_(static_cast<int>(pass.micro_batches.size())),
        sharing_(pass.costs.operations().sharing(training)),
        ready_(ready),
        last_(at(replicas_), std::vector<TaskId>(at(layout_.pp), -1)),
        trailing_(at(layout_.pp)) {
    for (const auto& own : pass.micro_batches) {
      count_ = std::max(count_, static_cast<int>(own.size()));
    }
    const std::size_t cells = at(replicas_) * at(chunks()) * at(count_);
    for (Made* made : {&forward_, &backward_}) {
      made->first.assign(cells, -1);
      made->last.assign(cells, -1);
      made->sent.assign(cells, -1);
    }
    for (int r = 0; r < replicas_; ++r) {
      std::fill(last_[at(r)].begin(), last_[at(r)].end(), ready[at(r)]);
      for (const MicroBatch& batch : pass.micro_batches[at(r)]) {
        forward_.times.push_back(pass.costs.forward(batch, count_));
        if (training) backward_.times.push_back(pass.costs.backward(batch, count_));
      }
      first_time_.push_back(r == 0 ? 0 : first_time_.back() + pass.micro_batches[at(r - 1)].size());
    }
  }

  // Emits operations in every stage's own order as soon as what they need has been emitted.
  PassEnd run() {
    const auto orders = pipeline_orders(layout_.pp, layout_.vpp, count_, training_);
    std::vector<std::size_t> next(orders.size(), 0);
    std::size_t left = 0;
    for (const auto& order : orders) left += order.size();
    while (left > 0) {
      for (int stage = 0; stage < layout_.pp; ++stage) {
        const auto& order = orders[at(stage)];
        while (next[at(stage)] < order.size() && ready(stage, order[next[at(stage)]])) {
          emit(stage, order[next[at(stage)]++]);
          --left;
        }
      }
    }
    PassEnd end;
    for (int stage = 0; stage < layout_.pp; ++stage) {
      end.last.push_back(trailing_[at(stage)]);
      end.last_backward_s.push_back(training_ ? last_backward_seconds(stage) : 0);
      for (int r = 0; r < replicas_; ++r) end.last.back().push_back(last_[at(r)][at(stage)]);
    }
    return end;
  }

  void add_in_flight(std::vector<InFlight>& in_flight) const {
    for (int r = 0; r < replicas_; ++r) {
      for (int chunk = 0; chunk < chunks(); ++chunk) {
        const int stage = chunk % layout_.pp;
        const LayerRange& range = layout_.stages[at(chunk)];
        const std::int64_t layers = stage_layers(layout_, stage) > 0 ? range.last - range.first : 1;
        for (int m = 0; m < own_count(r); ++m) {
          const std::size_t c = cell(r, chunk, m);
          in_flight.push_back({forward_.first[c], backward_.last[c], stage, layers});
        }
      }
    }
  }

 private:
  // Tasks of one direction, by cell: the first and last of an operation, and the one after which
  // its result is at the neighbour; -1 = not yet.
  struct Made {
    std::vector<TaskId> first, last, sent;
    std::vector<std::vector<ChunkPass>> times;  // [replica's micro-batch][chunk]
  };

  int chunks() const { return layout_.pp * layout_.vpp; }
  int own_count(int replica) const {
    return static_cast<int>(pass_.micro_batches[at(replica)].size());
  }
  std::size_t cell(int replica, int chunk, int m) const {
    return (at(replica) * at(chunks()) + at(chunk)) * at(count_) + at(m);
  }
  int chunk_of(int stage, const PipelineOp& op) const { return op.chunk * layout_.pp + stage; }
  const ChunkPass& time_of(const Made& made, int replica, int chunk, int m) const {
    return made.times[first_time_[at(replica)] + at(m)][at(chunk)];
  }

  // The chunk whose result an operation needs; -1 at the model's ends.
  int source_of(int chunk, bool forward) const {
    if (forward) return chunk - 1;
    return chunk + 1 < chunks() ? chunk + 1 : -1;
  }

  bool ready(int stage, const PipelineOp& op) const {
    const int source = source_of(chunk_of(stage, op), op.forward);
    const Made& made = op.forward ? forward_ : backward_;
    return source < 0 || made.sent[cell(0, source, op.micro_batch)] >= 0;
  }

  void emit(int stage, const PipelineOp& op) {
    const int chunk = chunk_of(stage, op);
    if (sharing_ > 0 && layout_.stages[at(chunk)].first < layout_.stages[at(chunk)].last) {
      for (int r = 0; r < replicas_; r += sharing_) emit_sharded(r, stage, op);
    } else {
      for (int r = 0; r < replicas_; ++r) emit_whole(r, stage, op);
    }
    for (int r = 0; r < replicas_; ++r) hand_over(r, stage, op);
  }

  // Tasks that an operation of a replica waits for: its input and what its stage did before.
  std::vector<TaskId> needs(int replica, int stage, const PipelineOp& op) const {
    const int source = source_of(chunk_of(stage, op), op.forward);
    const Made& made = op.forward ? forward_ : backward_;
    const TaskId before = last_[at(replica)][at(stage)];
    const TaskId input =
        source < 0 ? ready_[at(replica)] : made.sent[cell(replica, source, op.micro_batch)];
    if (input == before) return {before};
    return {input, before};
  }

  static std::string name_of(const PipelineOp& op, const char* verb = "", const char* part = "") {
    return std::string(verb) + (op.forward ? "F" : "B") + std::to_string(op.micro_batch) + part;
  }

  TaskId compute(int replica, int stage, const std::string& name, const ChunkPass& chunk,
                 std::vector<TaskId> after) {
    Task task{.name = name,
              .phase = pass_.phase,
              .ranks = pass_.costs.stage_ranks(replica, stage),
              .duration_ns = nanoseconds(chunk.time.seconds),
              .after = std::move(after),
              .communication_ns = nanoseconds(chunk.time.communication)};
    pass_.links.put_layers(graph_, task, pass_.costs, replica, stage, chunk);
    return graph_.add(std::move(task));
  }

  void emit_whole(int replica, int stage, const PipelineOp& op) {
    if (op.micro_batch >= own_count(replica)) return skip(replica, stage, op);
    Made& made = op.forward ? forward_ : backward_;
    const int chunk = chunk_of(stage, op);
    const std::size_t c = cell(replica, chunk, op.micro_batch);
    made.first[c] = made.last[c] = last_[at(replica)][at(stage)] =
        compute(replica, stage, name_of(op), time_of(made, replica, chunk, op.micro_batch),
                needs(replica, stage, op));
  }

  // A replica with fewer micro-batches than others does nothing, but its successors look here.
  void skip(int replica, int stage, const PipelineOp& op) {
    Made& made = op.forward ? forward_ : backward_;
    const std::size_t c = cell(replica, chunk_of(stage, op), op.micro_batch);
    made.first[c] = made.last[c] = made.sent[c] = last_[at(replica)][at(stage)];
  }

  // A task of the replicas that share layers, from `begin` on; without duration it is a mere
  // dependency.
  TaskId group_task(int begin, int stage, const std::string& name, double seconds, Traffic bytes,
                    std::vector<TaskId> after) {
    std::vector<int> ranks;
    for (int r = begin; seconds > 0 && r < begin + sharing_; ++r) {
      const auto& own = pass_.costs.stage_ranks(r, stage);
      ranks.insert(ranks.end(), own.begin(), own.end());
    }
    Task task{.name = name,
              .phase = pass_.phase,
              .stream = Stream::communication,
              .ranks = std::move(ranks),
              .duration_ns = nanoseconds(seconds),
              .after = std::move(after),
              .exchange = Exchange::shards};
    if (seconds > 0) {
      pass_.links.put_collective(graph_, task, pass_.costs, stage, {begin, begin + sharing_, 1},
                                 Collective::all_gather, bytes);
    }
    return graph_.add(std::move(task));
  }

  // Bytes of a stage's shards that move in so many seconds, where `whole` move all of a chunk's.
  Traffic shard_bytes(int stage, int chunk, double seconds, double whole, DType type) const {
    if (whole <= 0) return {};
    std::int64_t layers = 0;
    for (int c = stage; c < chunks(); c += layout_.pp) layers += layers_of(c);
    const double part = static_cast<double>(layers_of(chunk)) / static_cast<double>(layers);
    const auto elements = static_cast<double>(pass_.costs.operations().elements(stage).total());
    return Traffic{elements * part * static_cast<double>(size_of(type)) * seconds / whole};
  }
  std::int64_t layers_of(int chunk) const {
    return layout_.stages[at(chunk)].last - layout_.stages[at(chunk)].first;
  }

  // A chunk on the replicas that share its layers. With overlap its shards move beside it; only
  // what comes before the pass's first layer and after its last one has tasks in line.
  void emit_sharded(int begin, int stage, const PipelineOp& op) {
    Made& made = op.forward ? forward_ : backward_;
    const RoleOperations& operations = pass_.costs.operations();
    const int chunk = chunk_of(stage, op), end = begin + sharing_;
    const bool overlaps = operations.shards_overlap();
    const bool first = op.forward && chunk == stage && op.micro_batch == 0;
    const bool last = !op.forward && chunk == stage && op.micro_batch == most_of(begin, end) - 1;
    const ChunkPass& any = made.times.front()[at(chunk)];
    std::vector<TaskId> before;
    for (int r = begin; r < end; ++r) before.push_back(last_[at(r)][at(stage)]);
    const RoleDTypes& types = pass_.costs.role().dtypes;
    const Seconds alone =
        (first ? operations.before_pass(stage) : Seconds{}) + (overlaps ? Seconds{} : any.gather);
    const Traffic gathered = shard_bytes(stage, chunk, any.gather, any.gather, types.param);
    const Traffic scattered = shard_bytes(stage, chunk, any.scatter, any.scatter, types.grad);
    const TaskId gather =
        group_task(begin, stage, name_of(op, "gather "), alone,
                   shard_bytes(stage, chunk, alone, any.gather, types.param), before);
    if (overlaps && any.gather + any.scatter > 0) {
      trailing_[at(stage)].push_back(group_task(begin, stage, name_of(op, "shards of "),
                                                any.gather + any.scatter, gathered + scattered,
                                                {gather}));
    }
    std::vector<TaskId> ends;
    for (int r = begin; r < end; ++r) {
      if (op.micro_batch >= own_count(r)) {
        skip(r, stage, op);
        continue;
      }
      std::vector<TaskId> after = needs(r, stage, op);
      after.push_back(gather);
      const std::size_t c = cell(r, chunk, op.micro_batch);
      made.first[c] = made.last[c] = last_[at(r)][at(stage)] =
          compute(r, stage, name_of(op), time_of(made, r, chunk, op.micro_batch), std::move(after));
      ends.push_back(made.last[c]);
    }
    if (op.forward || ends.empty()) return;
    const Seconds reduce =
        (last ? operations.after_pass(stage) : Seconds{}) + (overlaps ? Seconds{} : any.scatter);
    if (reduce <= 0) return;
    const TaskId reduced =
        group_task(begin, stage, name_of(op, "reduce "), reduce,
                   shard_bytes(stage, chunk, reduce, any.scatter, types.grad), ends);
    for (int r = begin; r < end; ++r) last_[at(r)][at(stage)] = reduced;
  }

  int most_of(int begin, int end) const {
    int most = 0;
    for (int r = begin; r < end; ++r) most = std::max(most, own_count(r));
    return most;
  }

  // To the stage that goes on; between chunks of one rank nothing moves.
  void hand_over(int replica, int stage, const PipelineOp& op) {
    if (op.micro_batch >= own_count(replica)) return;
    Made& made = op.forward ? forward_ : backward_;
    const int chunk = chunk_of(stage, op);
    const std::size_t c = cell(replica, chunk, op.micro_batch);
    const auto target = consumer(layout_.pp, layout_.vpp, stage, op);
    if (!target || target->stage == stage) {
      made.sent[c] = made.last[c];
      return;
    }
    const MicroBatch& batch = pass_.micro_batches[at(replica)][at(op.micro_batch)];
    const double seconds = pass_.costs.hop_seconds(batch, replica, stage, target->stage);
    Task task{.name = name_of(op, "send "),
              .phase = pass_.phase,
              .stream = Stream::communication,
              .ranks = pass_.costs.stage_ranks(replica, stage),
              .duration_ns = nanoseconds(seconds),
              .after = {last_[at(replica)][at(stage)]},
              .bytes = pass_.costs.hop_bytes(batch),
              .exchange = Exchange::stages};
    pass_.links.put_message(graph_, task, pass_.costs, replica, stage, target->stage,
                            Traffic{static_cast<double>(task.bytes)});
    made.sent[c] = last_[at(replica)][at(stage)] = graph_.add(std::move(task));
  }

  double last_backward_seconds(int stage) const {
    double most = 0;
    for (int r = 0; r < replicas_; ++r) {
      if (own_count(r) == 0) continue;
      double whole = 0;
      for (int chunk = stage; chunk < chunks(); chunk += layout_.pp) {
        whole += time_of(backward_, r, chunk, own_count(r) - 1).time.seconds.value;
      }
      most = std::max(most, whole);
    }
    return most;
  }

  TaskGraph& graph_;
  const PipelinePass& pass_;
  const ParallelLayout& layout_;
  bool training_;
  int replicas_, sharing_;  // replicas; those that share what lies in layers
  int count_ = 0;           // most micro-batches of a replica
  const std::vector<TaskId>& ready_;
  std::vector<std::vector<TaskId>> last_;      // of every replica and stage
  std::vector<std::vector<TaskId>> trailing_;  // by stage: reductions that nothing follows yet
  std::vector<std::size_t> first_time_;        // of each replica, into Made::times
  Made forward_, backward_;
};

}  // namespace

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

PassEnd add_forward_pass(TaskGraph& graph, const PipelinePass& pass,
                         const std::vector<TaskId>& ready) {
  return Pipeline(graph, pass, ready, false).run();
}

PassEnd add_training_pass(TaskGraph& graph, const PipelinePass& pass,
                          const std::vector<TaskId>& ready, std::vector<InFlight>& in_flight) {
  Pipeline pipeline(graph, pass, ready, true);
  PassEnd end = pipeline.run();
  pipeline.add_in_flight(in_flight);
  return end;
}

}  // namespace tessera
