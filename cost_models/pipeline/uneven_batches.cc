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

  double& of(int stage, const PipelineOp& op) {
    return ends_[op.forward ? 1 : 0][place(stage, op) * micro_batches_ + at(op.micro_batch)];
  }
  /// The end of what an operation takes its input from; 0 at the model's beginning.
  double needed(int stage, const PipelineOp& op) const {
    const std::size_t own = place(stage, op), m = at(op.micro_batch);
    if (op.forward) return own == 0 ? 0 : ends_[1][(own - 1) * micro_batches_ + m];
    const bool last = own + 1 == depth();
    return ends_[last ? 1 : 0][(last ? own : own + 1) * micro_batches_ + m];
  }

 private:
  std::size_t depth() const { return at(pass_.stages * pass_.chunks); }
  std::size_t place(int stage, const PipelineOp& op) const {
    return at(op.chunk * pass_.stages + stage);
  }

  const StagedPass& pass_;
  std::size_t micro_batches_;
  std::array<std::vector<double>, 2> ends_;  // [forward]
};

}  // namespace

double schedule_length(const StagedPass& pass, std::span<const double> loads) {
  if (!pass.training && pass.chunks == 1) {
    return std::accumulate(loads.begin(), loads.end(), 0.0) +
           (pass.stages - 1) * *std::max_element(loads.begin(), loads.end());
  }
  const auto orders =
      pipeline_orders(pass.stages, pass.chunks, static_cast<int>(loads.size()), pass.training);
  Ends ends(pass, loads.size());
  std::vector<std::size_t> next(orders.size());
  std::vector<double> now(orders.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < orders.size(); ++rank) {
      const int stage = static_cast<int>(rank);
      for (; next[rank] < orders[rank].size(); ++next[rank]) {
        const PipelineOp& op = orders[rank][next[rank]];
        const double needed = ends.needed(stage, op);
        if (needed == kNotYet) break;
        const double passes = (op.forward ? 1 : kBackward) / pass.chunks;
        now[rank] = std::max(now[rank], needed) + passes * loads[at(op.micro_batch)];
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

double schedule_length(const StagedPass& pass, int micro_batches) {
  if (pass.chunks == 1 || micro_batches % pass.stages == 0) {
    return (micro_batches + (pass.stages - 1.0) / pass.chunks) *
           (pass.training ? 1 + kBackward : 1);
  }
  return schedule_length(pass, std::vector<double>(at(micro_batches), 1.0));
}

}  // namespace tessera
