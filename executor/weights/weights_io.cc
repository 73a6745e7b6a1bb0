// Weights from a Hugging Face folder, from a seed, and back as whole tensors.
#include <ATen/Parallel.h>

#include <algorithm>
#include <span>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/spec/expert_parallel.h"
#include "cost_models/spec/families.h"
#include "executor/checkpoint/model_folder.h"
#include "executor/checkpoint/tensor_box.h"
#include "executor/comm/groups.h"
#include "executor/data/init_model.h"
#include "executor/threads/shared_work.h"
#include "executor/weights/kept_weights.h"
#include "executor/weights/parallel_ops.h"
#include "executor/weights/weights.h"

namespace tessera {
namespace {

/// FNV-1a (Fowler, Noll, Vo) of a name, started from a seed.
std::uint64_t seed_of(std::uint64_t seed, const std::string& name) {
  std::uint64_t hash = 14695981039346656037ULL ^ (seed * 0x9E3779B97F4A7C15ULL);
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

/// The held part of a whole tensor, in memory order.
torch::Tensor held_part(const ArenaSlot& slot, torch::Tensor full) {
  for (int dim = 0; dim < slot.box.rank; ++dim) {
    const Interval range = slot.box.dims[static_cast<std::size_t>(dim)];
    full = full.narrow(dim, range.lo, range.size());
  }
  return full.movedim(slot.outer_dim, 0);
}

torch::Tensor drawn(const Parameter& parameter, std::uint64_t seed, double deviation,
                    torch::Device device) {
  const std::uint64_t own = seed_of(seed, parameter.name);
  torch::Tensor full =
      torch::empty(parameter.shape, torch::TensorOptions(device).dtype(at::kFloat));
  if (!device.is_cpu()) {
    torch::manual_seed(own);
    return full.normal_(0.0, deviation);
  }
  return full.normal_(0.0, deviation, at::make_generator<at::CPUGeneratorImpl>(own));
}

void initialize_row(Weights& weights, const ArenaSlot& slot, std::uint64_t seed, double deviation,
                    torch::Device device) {
  const Parameter& parameter = weights.table.rows[static_cast<std::size_t>(slot.tensor)];
  torch::Tensor tensor = part_in(weights, slot);
  if (parameter.shape.size() < 2) {
    tensor.fill_(parameter.name.ends_with("norm.weight") ? 1.0 : 0.0);
    return;
  }
  tensor.copy_(held_part(slot, drawn(parameter, seed, deviation, device)));
}

constexpr double kHeadDeviation = 0.02;                      // of a value head that no folder has
constexpr std::int64_t kDrawnAtOnce = 1 << 14;               // elements that are worth a thread
constexpr std::int64_t kReadAtOnce = std::int64_t{1} << 30;  // bytes on the host before they move

/// The elements of a box as init-model draws them, in checkpoint order of dims, fp32 on the host.
torch::Tensor drawn_box(const Parameter& parameter, const Box& box, double deviation,
                        std::uint64_t seed) {
  std::vector<std::int64_t> sizes;
  for (int dim = 0; dim < box.rank; ++dim) {
    sizes.push_back(box.dims[static_cast<std::size_t>(dim)].size());
  }
  torch::Tensor part = torch::empty(sizes, at::kFloat);
  if (part.numel() == 0) return part;
  const std::int64_t run = sizes.back();
  auto* const data = part.mutable_data_ptr<float>();
  share_work(part.numel() / run, std::max<std::int64_t>(1, kDrawnAtOnce / run),
             at::get_num_threads(), [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t row = begin; row < end; ++row) {
                 std::int64_t first = 0, left = row, stride = parameter.shape.back();
                 for (std::size_t dim = sizes.size() - 1; dim-- > 0;) {
                   first += (box.dims[dim].lo + left % sizes[dim]) * stride;
                   left /= sizes[dim];
                   stride *= parameter.shape[dim];
                 }
                 first += box.dims[sizes.size() - 1].lo;
                 initial_values(parameter, deviation, seed, first,
                                {data + row * run, static_cast<std::size_t>(run)});
               }
             });
  return part;
}

/// A tensor's part in a folder, and where it goes.
struct Read {
  const TensorView* view;
  const ArenaSlot* slot;
  torch::Tensor target, host;  // `host` is `target` where that can be written to as it is
};

/// Reads all of them with torch's number of threads, then moves what came by the host.
void read_all(std::vector<Read>& reads, DType type, Problems& problems) {
  std::vector<Problems> found(reads.size());
  share_work(static_cast<std::int64_t>(reads.size()), 1, at::get_num_threads(),
             [&](std::int64_t begin, std::int64_t end) {
               for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end);
                    ++i) {
                 const Read& read = reads[i];
                 read_box(*read.view, read.slot->box, read.slot->outer_dim,
                          read.host.mutable_data_ptr(), type, found[i]);
               }
             });
  for (std::size_t i = 0; i < reads.size(); ++i) {
    problems.insert(problems.end(), found[i].begin(), found[i].end());
    if (found[i].empty() && !reads[i].host.is_same(reads[i].target)) {
      reads[i].target.copy_(reads[i].host);
    }
  }
  reads.clear();
}

/// What lies in the slots, from a folder.
void load_slots(Weights& weights, std::span<const ArenaSlot> slots,
                const std::filesystem::path& path, std::uint64_t seed, Problems& problems) {
  torch::NoGradGuard no_grad;
  const auto folder = ModelFolder::open(path, problems);
  if (!folder || !check_tensors(*folder, weights.table, problems)) return;
  std::vector<Read> reads;
  std::int64_t bytes = 0;
  for (const ArenaSlot& slot : slots) {
    const Parameter& parameter = weights.table.rows[static_cast<std::size_t>(slot.tensor)];
    const TensorView* view = folder->find(parameter.name);
    if (view == nullptr) {  // a value head
      initialize_row(weights, slot, seed, kHeadDeviation, torch::kCPU);
      continue;
    }
    const torch::Tensor target = part_in(weights, slot);
    const bool direct = target.is_cpu() && target.is_contiguous();
    reads.push_back(
        {view, &slot, target,
         direct ? target : torch::empty(target.sizes(), target.options().device(torch::kCPU))});
    bytes += direct ? 0 : slot.range.bytes;
    if (bytes < kReadAtOnce) continue;
    read_all(reads, weights.dtype, problems);
    bytes = 0;
  }
  read_all(reads, weights.dtype, problems);
}

/// The ranks that whole tensors come from, in the order of their group: one replica, or the whole
/// role where experts lie apart, of which no replica may hold all.
struct Sources {
  Communicator* group = nullptr;  // nullptr: this rank alone
  std::vector<RankCoord> coords;
  bool role = false;
  int root = 0;

  Interval counted(const Parameter& parameter, const ParallelLayout& layout,
                   std::size_t rank) const {
    return role ? counted_in_role(parameter, layout, coords[rank])
                : counted_range(parameter, layout, coords[rank]);
  }
};

/// Everybody's coordinates, in the order of the role.
std::vector<RankCoord> role_coords(const Weights& weights, Communicator& role) {
  const RankCoord& own = weights.coord;
  const torch::Tensor mine =
      torch::tensor({own.tp, own.cp, own.pp, own.dp_replicate, own.dp_shard}, torch::kLong)
          .to(weights.device());
  const torch::Tensor all = all_rows(mine.unsqueeze(0), &role).cpu();
  std::vector<RankCoord> coords;
  for (int rank = 0; rank < role.size(); ++rank) {
    const auto* const at = all[rank].const_data_ptr<std::int64_t>();
    const auto axis = [&](int i) { return static_cast<int>(at[i]); };
    coords.push_back({.tp = axis(0),
                      .cp = axis(1),
                      .pp = axis(2),
                      .dp_replicate = axis(3),
                      .dp_shard = axis(4)});
  }
  return coords;
}

Sources sources_of(const Weights& weights, const ParallelGroups& groups) {
  if (experts_apart(weights.model(), weights.layout)) {
    Sources sources{groups.role.get(), role_coords(weights, *groups.role), true, 0};
    const auto root = std::find(sources.coords.begin(), sources.coords.end(), RankCoord{});
    sources.root = static_cast<int>(root - sources.coords.begin());
    return sources;
  }
  Sources sources{.group = groups.model.get(), .coords = {}};
  for (int pp = 0; pp < weights.layout.pp; ++pp) {
    for (int tp = 0; tp < weights.layout.tp; ++tp) {
      RankCoord coord = weights.coord;
      coord.tp = tp;
      coord.pp = pp;
      sources.coords.push_back(coord);
    }
  }
  return sources;
}

/// The tensor in memory order, whole, on the sources' root; undefined elsewhere.
torch::Tensor gather_row(const Weights& weights, const Sources& sources, int row) {
  const auto index = static_cast<std::size_t>(row);
  const Parameter& parameter = weights.table.rows[index];
  Communicator* const group = sources.group;
  std::vector<Interval> counted;
  for (std::size_t i = 0; i < sources.coords.size(); ++i) {
    counted.push_back(sources.counted(parameter, weights.layout, i));
  }
  const int rank = group == nullptr ? 0 : group->rank();
  const Interval own = counted[static_cast<std::size_t>(rank)];
  const torch::Tensor mine =
      own.empty() ? torch::Tensor() : weights.tensors[index].narrow(0, own.lo, own.size());
  if (group == nullptr) return mine;

  std::vector<std::int64_t> shape = parameter.shape;
  const int outer = std::max(parameter.split_dim, 0);
  std::rotate(shape.begin(), shape.begin() + outer, shape.begin() + outer + 1);
  const std::int64_t row_bytes = parameter.elements() / shape.front() * weights.arena.element_bytes;
  std::vector<SendBlock> sends;
  std::vector<ReceiveBlock> receives;
  torch::Tensor whole;
  if (!own.empty()) {
    sends.push_back(
        {sources.root, mine.const_data_ptr(), static_cast<std::size_t>(own.size() * row_bytes)});
  }
  if (rank == sources.root) {
    whole = torch::empty(shape, weights.storage.options());
    auto* place = static_cast<std::byte*>(whole.mutable_data_ptr());
    for (std::size_t peer = 0; peer < counted.size(); ++peer) {
      const auto bytes = static_cast<std::size_t>(counted[peer].size() * row_bytes);
      if (bytes == 0) continue;
      receives.push_back({static_cast<int>(peer), place, bytes});
      place += bytes;
    }
  }
  group->exchange(sends, receives);
  return whole;
}

}  // namespace

void initialize(Weights& weights, std::uint64_t seed, double deviation, torch::Device device) {
  torch::NoGradGuard no_grad;
  for (const ArenaSlot& slot : weights.arena.slots) {
    initialize_row(weights, slot, seed, deviation, device);
  }
}

torch::Tensor part_in(const Weights& weights, const ArenaSlot& slot) {
  const auto row = static_cast<std::size_t>(slot.tensor);
  const ArenaSlot& whole =
      weights.arena.slots[static_cast<std::size_t>(weights.arena.slot_of[row])];
  torch::Tensor part = weights.tensors[row].movedim(0, whole.outer_dim);
  for (int dim = 0; dim < slot.box.rank; ++dim) {
    const Interval mine = slot.box.dims[static_cast<std::size_t>(dim)];
    part =
        part.narrow(dim, mine.lo - whole.box.dims[static_cast<std::size_t>(dim)].lo, mine.size());
  }
  return part.movedim(slot.outer_dim, 0);
}

std::vector<ArenaSlot> kept_slots(const Weights& weights) {
  if (weights.layout.dp_shard == 1) return weights.arena.slots;
  return arena_layout(weights.table, weights.layout, weights.coord, weights.dtype, true).slots;
}

void load_weights(Weights& weights, const std::filesystem::path& folder, std::uint64_t seed,
                  Problems& problems) {
  load_slots(weights, weights.arena.slots, folder, seed, problems);
}

void load_kept_weights(Weights& weights, const std::filesystem::path& folder, std::uint64_t seed,
                       Problems& problems) {
  load_slots(weights, kept_slots(weights), folder, seed, problems);
}

void draw_kept_weights(Weights& weights, const ModelSpec& model, double deviation,
                       std::uint64_t seed) {
  torch::NoGradGuard no_grad;
  const ParameterTable own = parameter_table(model);
  for (const ArenaSlot& slot : kept_slots(weights)) {
    const Parameter& parameter = weights.table.rows[static_cast<std::size_t>(slot.tensor)];
    if (!own.find(parameter.name)) {
      initialize_row(weights, slot, seed, kHeadDeviation, torch::kCPU);
      continue;
    }
    part_in(weights, slot)
        .copy_(drawn_box(parameter, slot.box, deviation, seed).movedim(slot.outer_dim, 0));
  }
}

void gather_weights(const Weights& weights, const ParallelGroups& groups,
                    const std::function<void(const Parameter&, const torch::Tensor&)>& sink) {
  torch::NoGradGuard no_grad;
  const bool first_replica = weights.coord.dp_replicate == 0 && weights.coord.dp_shard == 0;
  const bool first = first_replica && weights.coord.cp == 0;
  const bool root = first && weights.coord.tp == 0 && weights.coord.pp == 0;
  if (!first && !experts_apart(weights.model(), weights.layout)) return;
  const Sources sources = sources_of(weights, groups);
  for (std::size_t row = 0; row < weights.table.rows.size(); ++row) {
    const torch::Tensor whole = gather_row(weights, sources, static_cast<int>(row));
    if (!root) continue;
    const Parameter& parameter = weights.table.rows[row];
    sink(parameter, whole.movedim(0, std::max(parameter.split_dim, 0)).cpu().contiguous());
  }
}

}  // namespace tessera
