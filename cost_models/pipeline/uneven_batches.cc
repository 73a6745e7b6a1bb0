#include "cost_models/pipeline/uneven_batches.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <vector>

#include "cost_models/documents/check.h"
#include "cost_models/pipeline/interleave.h"

namespace tessera {
namespace {

constexpr double kNotYet = -1;
constexpr double kBackward = 2;  // of a forward pass

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// When each operation ends, by its direction, its chunk's place in the model and its micro-batch.
class Ends {
 public:
  Ends(const StagedPass& pass, std::size_t micro_batches)
      : pass_(pass), micro_batches_(micro_batches) {
    for (auto& ends : ends_) ends.assign(depth() * micro_batches, kNotYet);
  }

  std::size_t place(int stage, const PipelineOp& op) const {
    return at(op.chunk * pass_.stages + stage);
  }
  double& of(int stage, const PipelineOp& op) {
    return ends_[op.forward ? 1 : 0][place(stage, op) * micro_batches_ + at(op.micro_batch)];
  }
  /// The end of what an operation takes its input from, and whether it comes from another rank.
  struct Input {
    double end = 0;
    bool sent = false;
  };
  /// At the model's beginning there is none: 0.
  Input needed(int stage, const PipelineOp& op) const {
    const std::size_t own = place(stage, op), m = at(op.micro_batch);
    const bool sent = pass_.stages > 1;
    if (op.forward) {
      return own == 0 ? Input{} : Input{ends_[1][(own - 1) * micro_batches_ + m], sent};
    }
    if (own + 1 == depth()) return {ends_[1][own * micro_batches_ + m], false};
    return {ends_[0][(own + 1) * micro_batches_ + m], sent};
  }

 private:
  std::size_t depth() const { return at(pass_.stages * pass_.chunks); }

  const StagedPass& pass_;
  std::size_t micro_batches_;
  std::array<std::vector<double>, 2> ends_;  // [forward]
};

// The end of the last operation, where `taken(place, op)` is how long one takes and what another
// rank has made is there `hop` later.
template <class Taken>
double last_end(const StagedPass& pass, std::size_t micro_batches, double hop, const Taken& taken) {
  const auto orders =
      pipeline_orders(pass.stages, pass.chunks, static_cast<int>(micro_batches), pass.training);
  Ends ends(pass, micro_batches);
  std::vector<std::size_t> next(orders.size());
  std::vector<double> now(orders.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < orders.size(); ++rank) {
      const int stage = static_cast<int>(rank);
      for (; next[rank] < orders[rank].size(); ++next[rank]) {
        const PipelineOp& op = orders[rank][next[rank]];
        const auto [needed, sent] = ends.needed(stage, op);
        if (needed == kNotYet) break;
        now[rank] =
            std::max(now[rank], needed + (sent ? hop : 0)) + taken(ends.place(stage, op), op);
        ends.of(stage, op) = now[rank];
        moved = true;
      }
    }
  }
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    TESSERA_CHECK(next[rank] == orders[rank].size());
  }
  return *std::max_element(now.begin(), now.end());
}

}  // namespace

double schedule_length(const StagedPass& pass, std::span<const double> loads) {
  if (!pass.training && pass.chunks == 1 && pass.shares.empty()) {
    return std::accumulate(loads.begin(), loads.end(), 0.0) +
           (pass.stages - 1) * *std::max_element(loads.begin(), loads.end());
  }
  return last_end(pass, loads.size(), 0, [&](std::size_t place, const PipelineOp& op) {
    const double passes = (op.forward ? 1 : kBackward) / pass.chunks;
    return passes * loads[at(op.micro_batch)] * (pass.shares.empty() ? 1 : pass.shares[place]);
  });
}

double schedule_length(const StagedPass& pass, int micro_batches) {
  const bool closed = pass.chunks == 1 || micro_batches % pass.stages == 0;
  if (closed && pass.shares.empty()) {
    return (micro_batches + (pass.stages - 1.0) / pass.chunks) *
           (pass.training ? 1 + kBackward : 1);
  }
  return schedule_length(pass, std::vector<double>(at(micro_batches), 1.0));
}

Seconds schedule_seconds(const StagedPass& pass, const PassSeconds& each, int micro_batches) {
  return Seconds{last_end(pass, at(micro_batches), each.hop.value,
                          [&](std::size_t place, const PipelineOp& op) {
                            return (op.forward ? each.forward : each.backward)[place].value;
                          })};
}

}  // namespace tessera
