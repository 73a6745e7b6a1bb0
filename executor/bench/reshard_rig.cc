#include "executor/bench/reshard_rig.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "executor/arena/shared_arena.h"
#include "executor/reshard/gpu_site.h"
#include "executor/tensor/range_copies.h"
#include "executor/tensor/torch_memory_ops.h"

namespace tessera {
namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 25;  // elements

}  // namespace

std::unique_ptr<SharedBlock> BenchSite::make_block(std::int64_t bytes) const {
  return gpu() ? make_device_block(bytes, device.index()) : make_host_block(bytes);
}

std::unique_ptr<BlockCopies> BenchSite::make_copies() const {
  return gpu() ? make_device_copies(device.index(), stream, make_range_copies(device.index()))
               : make_host_copies();
}

std::unique_ptr<StreamBarrier> BenchSite::make_barrier() const {
  return gpu() ? make_stream_barrier(*host, device.index()) : nullptr;
}

std::int64_t BenchSite::free_bytes() const {
  std::size_t free = 0, total = 0;
  if (gpu()) cudaMemGetInfo(&free, &total);
  return static_cast<std::int64_t>(free);
}

ReshardRig::ReshardRig(const BenchSite& site, const ParameterTable& table, const RankMap& from,
                       const RankMap& to, DType dtype)
    : site_(site),
      table_(table),
      reshard_(table, from, to, dtype, ReshardMode::minimal, site.host->rank()),
      arena_on_([&table, from, to, dtype](int rank) {
        return shared_arena_on(table, from, to, rank, dtype);
      }),
      arena_(arena_on_(site.host->rank())),
      block_(site.make_block(arena_.bytes)),
      copies_(site.make_copies()),
      ops_(site.gpu() ? make_torch_memory_ops(site.device.index()) : nullptr) {}

torch::Tensor ReshardRig::elements(const ArenaSlot& slot) const {
  const std::int64_t size = arena_.rollout.element_bytes;
  const auto options =
      torch::TensorOptions().dtype(size == 2 ? torch::kShort : torch::kInt).device(site_.device);
  return torch::from_blob(static_cast<std::byte*>(block_->data()) + slot.range.offset,
                          {slot.range.bytes / size}, options);
}

/// By tensor and position in the whole tensor's memory order: inner dims are whole in every layout,
/// so a slot is one range of positions.
torch::Tensor ReshardRig::values(const ArenaSlot& slot, std::int64_t begin, std::int64_t end,
                                 int version) const {
  const Parameter& parameter = table_.rows[static_cast<std::size_t>(slot.tensor)];
  const auto dim = static_cast<std::size_t>(slot.outer_dim);
  const std::int64_t inner = parameter.elements() / parameter.shape[dim];
  const std::int64_t first = slot.box.dims[dim].lo * inner;
  torch::Tensor positions = torch::arange(
      first + begin, first + end, torch::TensorOptions().dtype(torch::kLong).device(site_.device));
  return positions.mul_(2654435761)
      .add_(slot.tensor * 40503 + version * 7919)
      .bitwise_right_shift_(7)
      .bitwise_and_(0x7fff)
      .to(arena_.rollout.element_bytes == 2 ? torch::kShort : torch::kInt);
}

void ReshardRig::poison() {
  torch::from_blob(block_->data(), {arena_.bytes},
                   torch::TensorOptions().dtype(torch::kUInt8).device(site_.device))
      .fill_(0xA5);
}

void ReshardRig::write_slot(std::size_t index, int version) {
  const ArenaSlot& slot = arena_.training.slots[index];
  torch::Tensor into = elements(slot);
  for (std::int64_t begin = 0; begin < into.numel(); begin += kPiece) {
    const std::int64_t end = std::min(begin + kPiece, into.numel());
    into.slice(0, begin, end).copy_(values(slot, begin, end, version));
  }
}

void ReshardRig::write(int version) {
  for (std::size_t i = 0; i < arena_.training.slots.size(); ++i) write_slot(i, version);
}

std::int64_t ReshardRig::wrong_in(const ArenaLayout& layout, int version) const {
  torch::Tensor wrong =
      torch::zeros({}, torch::TensorOptions().dtype(torch::kLong).device(site_.device));
  for (const ArenaSlot& slot : layout.slots) {
    const torch::Tensor found = elements(slot);
    for (std::int64_t begin = 0; begin < found.numel(); begin += kPiece) {
      const std::int64_t end = std::min(begin + kPiece, found.numel());
      wrong += found.slice(0, begin, end).ne(values(slot, begin, end, version)).sum();
    }
  }
  auto total = static_cast<std::int64_t>(wrong.item<std::int64_t>());
  site_.host->all_reduce(&total, 1, DType::int64, ReduceOp::sum);
  return total;
}

std::int64_t ReshardRig::wrong_in_rollout(int version) const {
  return wrong_in(arena_.rollout, version);
}
std::int64_t ReshardRig::wrong_in_training(int version) const {
  return wrong_in(arena_.training, version);
}

std::unique_ptr<WeightReshard> ReshardRig::make_reshard(const WeightReshardOptions& options) {
  ReshardSite at{.world = site_.world,
                 .host = site_.host,
                 .block = block_.get(),
                 .source = block_->data(),
                 .destination = block_->data(),
                 .copies = copies_.get(),
                 .ops = ops_.get()};
  if (site_.gpu()) complete_on_gpu(at, site_.device.index());
  if (options.transport == ReshardTransport::window) {
    gather_through_windows(at, {{block_->data(), static_cast<std::size_t>(arena_.bytes)}});
  }
  return std::make_unique<WeightReshard>(
      reshard_.placed([on = arena_on_](int rank) { return on(rank).training; }, arena_.rollout), at,
      options);
}

}  // namespace tessera
