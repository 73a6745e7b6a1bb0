// The step of an optimizer whose states lie in host memory: piece by piece, through pinned memory.
#include <c10/core/impl/VirtualGuardImpl.h>
#include <algorithm>

#include "executor/train/optimizer.h"

namespace tessera {
namespace {

using torch::Tensor;

std::int64_t begin_of(const std::vector<fused::Chunk>& piece) { return piece.front().offset; }
std::int64_t end_of(const std::vector<fused::Chunk>& piece) {
  return piece.back().offset + piece.back().count;
}

}  // namespace

/// Chunks are cut at multiples of the piece's length from their own beginning, so that a CPU's
/// vector loops round every element as they do over whole chunks.
void Optimizer::cut_pieces() {
  std::vector<fused::Chunk> in_order = chunks_.updated;
  std::sort(in_order.begin(), in_order.end(),
            [](const fused::Chunk& a, const fused::Chunk& b) { return a.offset < b.offset; });
  for (const fused::Chunk& chunk : in_order) {
    for (std::int64_t first = 0; first < chunk.count; first += options_.piece_elements) {
      const fused::Chunk part{chunk.offset + first,
                              std::min(options_.piece_elements, chunk.count - first), chunk.decay};
      const bool fits =
          !pieces_.chunks.empty() &&
          part.offset + part.count - begin_of(pieces_.chunks.back()) <= options_.piece_elements;
      if (!fits) pieces_.chunks.emplace_back();
      pieces_.chunks.back().push_back(part);
    }
  }
  std::int64_t longest = 0;
  for (const auto& piece : pieces_.chunks) {
    const std::int64_t begin = begin_of(piece), end = end_of(piece);
    longest = std::max(longest, end - begin);
    pieces_.runs.emplace_back();
    for (const Run& run : runs_) {
      const Interval part =
          intersect(Interval{begin, end}, Interval{run.shard, run.shard + run.count});
      if (!part.empty())
        pieces_.runs.back().push_back({part.lo, run.place + part.lo - run.shard, part.size()});
    }
  }
  const bool gpu = weights_.device().is_cuda();
  const auto host = torch::TensorOptions().pinned_memory(gpu);
  for (int i = 0; i < 2; ++i) {
    pieces_.gradients[i] = torch::empty({longest}, host.dtype(torch::kFloat32));
    pieces_.weights[i] = torch::empty({longest}, host.dtype(values_.dtype()));
  }
  if (gpu) {
    const c10::impl::VirtualGuardImpl guard(weights_.device().type());
    pieces_.copies = SideStream(guard.getStreamFromGlobalPool(weights_.device()));
  }
}

/// Two pieces are on their way at any time: one's gradients to the host, another's weights back.
void Optimizer::update_on_host(double learning_rate) {
  const SideStream& copies = pieces_.copies;
  const auto count = pieces_.chunks.size();
  const SideStream::Moment ready = copies.now();
  const auto part = [&](const Tensor& x, std::size_t i) {
    const auto& piece = pieces_.chunks[i];
    return x.narrow(0, begin_of(piece), end_of(piece) - begin_of(piece));
  };
  const auto room = [&](const Tensor(&buffers)[2], std::size_t i) {
    return buffers[i % 2].narrow(0, 0, end_of(pieces_.chunks[i]) - begin_of(pieces_.chunks[i]));
  };
  std::vector<SideStream::Moment> fetched(count), sent(count);
  const auto fetch = [&](std::size_t i) {
    fetched[i] = copies.run(ready, [&] {
      room(pieces_.gradients, i).copy_(part(sharded_.shards(), i), /*non_blocking=*/true);
    });
  };
  if (count > 0) fetch(0);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + 1 < count) fetch(i + 1);
    SideStream::synchronize(fetched[i]);
    adamw_by_torch(pieces_.chunks[i], room(pieces_.gradients, i), begin_of(pieces_.chunks[i]),
                   learning_rate);
    if (i >= 2) SideStream::synchronize(sent[i - 2]);
    room(pieces_.weights, i).copy_(part(state_.master, i));
    sent[i] = copies.run(ready, [&] {
      const Tensor piece = room(pieces_.weights, i);
      for (const Run& run : pieces_.runs[i])
        values_.narrow(0, run.place, run.count)
            .copy_(piece.narrow(0, run.shard - begin_of(pieces_.chunks[i]), run.count),
                   /*non_blocking=*/true);
    });
  }
  if (count == 0) return;
  copies.wait(sent.back());
  SideStream::synchronize(sent.back());  // the buffers are the next step's
}

}  // namespace tessera
