#include "cost_models/pipeline/interleave.h"

#include <algorithm>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// (chunk, micro-batch) in forward order: micro-batches in groups of `stages`, a group through one
/// chunk after the other. Backward: chunks reversed.
std::vector<PipelineOp> pieces(int stages, int chunks, int micro_batches, bool forward) {
  std::vector<PipelineOp> list;
  for (int first = 0; first < micro_batches; first += stages) {
    for (int c = 0; c < chunks; ++c) {
      for (int m = first; m < std::min(first + stages, micro_batches); ++m) {
        list.push_back({forward, forward ? c : chunks - 1 - c, m});
      }
    }
  }
  return list;
}

/// What a pipeline's ranks have to do forwards and backwards, one after the other.
struct Pieces {
  std::vector<PipelineOp> forwards, backwards;
};

Pieces pieces_of(int stages, int chunks, int micro_batches) {
  return {pieces(stages, chunks, micro_batches, true),
          pieces(stages, chunks, micro_batches, false)};
}

std::vector<PipelineOp> order_of(const Pieces& all, int ahead) {
  const auto& [forwards, backwards] = all;
  const std::size_t warm = std::min(index(ahead), forwards.size());
  std::vector<PipelineOp> order;
  order.reserve(2 * forwards.size());
  order.assign(forwards.begin(), forwards.begin() + std::ptrdiff_t(warm));
  std::size_t next = 0;
  for (std::size_t i = warm; i < forwards.size(); ++i) {
    order.push_back(forwards[i]);
    order.push_back(backwards[next++]);
  }
  order.insert(order.end(), backwards.begin() + std::ptrdiff_t(next), backwards.end());
  return order;
}

int warm_up(int stages, int chunks, int stage) {
  return (stages - stage - 1) * 2 + (chunks - 1) * stages;
}

/// When each operation is done; -1 = not yet.
struct Progress {
  int stages, chunks, micro_batches;
  std::vector<int> done;

  int& at(int stage, const PipelineOp& op) {
    return done[index(((stage * 2 + op.forward) * chunks + op.chunk) * micro_batches +
                      op.micro_batch)];
  }
  bool before(int stage, const PipelineOp& op, int tick) {
    const int when = at(stage, op);
    return when >= 0 && when < tick;
  }
  bool ready(int stage, const PipelineOp& op, int tick) {
    const PipelineOp same{op.forward, op.chunk, op.micro_batch};
    if (op.forward) {
      if (stage > 0) return before(stage - 1, same, tick);
      return op.chunk == 0 || before(stages - 1, {true, op.chunk - 1, op.micro_batch}, tick);
    }
    if (stage < stages - 1) return before(stage + 1, same, tick);
    if (op.chunk < chunks - 1) return before(0, {false, op.chunk + 1, op.micro_batch}, tick);
    return before(stage, {true, op.chunk, op.micro_batch}, tick);
  }
};

/// Nothing when the orders wait for one another.
std::optional<PipelineTicks> run(const std::vector<std::vector<PipelineOp>>& orders, int stages,
                                 int chunks, int micro_batches) {
  Progress progress{stages, chunks, micro_batches,
                    std::vector<int>(index(stages * 2 * chunks * micro_batches), -1)};
  std::vector<std::size_t> next(orders.size(), 0);
  PipelineTicks ticks;
  const auto finished = [&] {
    for (std::size_t s = 0; s < orders.size(); ++s) {
      if (next[s] < orders[s].size()) return false;
    }
    return true;
  };
  while (!finished()) {
    const int tick = static_cast<int>(ticks.size());
    std::vector<std::optional<PipelineOp>> now(orders.size());
    bool any = false;
    for (std::size_t s = 0; s < orders.size(); ++s) {
      if (next[s] == orders[s].size()) continue;
      const PipelineOp& op = orders[s][next[s]];
      const int stage = static_cast<int>(s);
      if (!progress.ready(stage, op, tick)) continue;
      now[s] = op;
      progress.at(stage, op) = tick;
      ++next[s];
      any = true;
    }
    if (!any) return std::nullopt;
    ticks.push_back(std::move(now));
  }
  return ticks;
}

}  // namespace

std::vector<PipelineOp> interleaved_order(int stages, int chunks, int micro_batches, int stage,
                                          bool training) {
  if (!training) return pieces(stages, chunks, micro_batches, true);
  return order_of(pieces_of(stages, chunks, micro_batches), warm_up(stages, chunks, stage));
}

std::vector<std::vector<PipelineOp>> pipeline_orders(int stages, int chunks, int micro_batches,
                                                     bool training) {
  const Pieces all = pieces_of(stages, chunks, micro_batches);
  std::vector<std::vector<PipelineOp>> orders;
  for (int s = 0; s < stages; ++s) {
    const int ahead = chunks == 1 ? stages - s - 1 : warm_up(stages, chunks, s);
    orders.push_back(training ? order_of(all, ahead) : all.forwards);
  }
  const bool whole = micro_batches % stages == 0;
  if (!training || chunks == 1 || whole || run(orders, stages, chunks, micro_batches)) {
    return orders;
  }
  // A last group of fewer micro-batches than stages needs more of them ahead.
  orders.assign(index(stages), order_of(all, chunks * micro_batches));
  return orders;
}

PipelineTicks interleaved_ticks(int stages, int chunks, int micro_batches, bool training) {
  std::vector<std::vector<PipelineOp>> orders;
  for (int s = 0; s < stages; ++s) {
    orders.push_back(interleaved_order(stages, chunks, micro_batches, s, training));
  }
  if (const auto ticks = run(orders, stages, chunks, micro_batches)) return *ticks;
  const auto ticks =
      run(pipeline_orders(stages, chunks, micro_batches, training), stages, chunks, micro_batches);
  TESSERA_CHECK(ticks.has_value());
  return *ticks;
}

std::optional<PipelineTarget> consumer(int stages, int chunks, int stage, const PipelineOp& op) {
  if (op.forward) {
    if (stage + 1 < stages) return PipelineTarget{stage + 1, op};
    if (op.chunk + 1 == chunks) return std::nullopt;
    return PipelineTarget{0, {true, op.chunk + 1, op.micro_batch}};
  }
  if (stage > 0) return PipelineTarget{stage - 1, op};
  if (op.chunk == 0) return std::nullopt;
  return PipelineTarget{stages - 1, {false, op.chunk - 1, op.micro_batch}};
}

}  // namespace tessera
