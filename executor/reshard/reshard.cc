#include "executor/reshard/reshard.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/layout/model_tensors.h"

namespace tessera {
namespace {

std::optional<ArenaLayout> arena_of(const ParameterTable& table, const RankMap& map, int rank,
                                    DType dtype, bool stored) {
  const int index = map.index_of(rank);
  if (index < 0) return std::nullopt;
  return arena_layout(table, map.layout, map.coords[index], dtype, stored);
}

/// The transfers of each tensor as a plan of its own.
std::vector<ReshardPlan> by_tensor(const ReshardPlan& plan, size_t tensors) {
  std::vector<ReshardPlan> plans(tensors);
  for (const Transfer& transfer : plan.transfers) {
    plans[transfer.tensor].transfers.push_back(transfer);
  }
  return plans;
}

/// Places boxes of one whole tensor in memory of its own, `outer_dim` outermost.
LocateBox locate_in_whole(const Parameter& parameter, int outer_dim, std::int64_t element_bytes) {
  const std::int64_t row_bytes = parameter.elements() / parameter.shape[outer_dim] * element_bytes;
  return [=](int, const Box& box) {
    const Interval rows = box.dims[outer_dim];
    return std::vector<ByteRange>{{rows.lo * row_bytes, rows.size() * row_bytes}};
  };
}

}  // namespace

Reshard::Reshard(const ParameterTable& table, const RankMap& from, const RankMap& to, DType dtype,
                 ReshardMode mode, int rank, const ReshardOptions& options)
    : table_(table),
      from_(from),
      to_(to),
      dtype_(dtype),
      rank_(rank),
      mode_(mode),
      source_(arena_of(table, from, rank, dtype, true)),
      destination_(arena_of(table, to, rank, dtype, false)) {
  plan_ = plan_reshard(model_tensors(table, from, to, dtype), options);
  lower_bound_ = plan_.lower_bound.value;
  if (mode == ReshardMode::minimal) {
    compile_minimal();
  } else {
    plan_ = plan_reshard(full_gather_tensors(table, from, to, dtype), options);
    compile_full(table);
  }
  for (const Round& round : rounds_) received_ += round.gather.received;
}

void Reshard::compile_minimal() {
  const LocateBox nowhere = [](int, const Box&) { return std::vector<ByteRange>{}; };
  rounds_.push_back({compile(plan_, rank_, source_ ? locate_in(*source_) : nowhere,
                             destination_ ? locate_in(*destination_) : nowhere),
                     {}});
}

void Reshard::compile_full(const ParameterTable& table) {
  const LocateBox nowhere = [](int, const Box&) { return std::vector<ByteRange>{}; };
  const std::vector<ReshardPlan> plans = by_tensor(plan_, table.rows.size());
  for (size_t tensor = 0; tensor < table.rows.size(); ++tensor) {
    const Parameter& parameter = table.rows[tensor];
    const int outer_dim = std::max(0, parameter.split_dim);
    const std::int64_t element_bytes = destination_ ? destination_->element_bytes
                                       : source_    ? source_->element_bytes
                                                    : 0;
    const LocateBox whole = locate_in_whole(parameter, outer_dim, element_bytes);
    Round round;
    round.gather = compile(plans[tensor], rank_, source_ ? locate_in(*source_) : nowhere, whole);
    if (destination_) {
      staging_bytes_ = std::max(staging_bytes_, parameter.elements() * element_bytes);
      const int slot = destination_->slot_of[tensor];
      if (slot >= 0) {
        const ArenaSlot& held = destination_->slots[slot];
        round.slice.copies.push_back({whole(static_cast<int>(tensor), held.box)[0].offset,
                                      held.range.offset, held.range.bytes});
      }
    }
    rounds_.push_back(std::move(round));
  }
}

PlacedReshard Reshard::placed() const {
  const auto training = [this](int rank) {
    return arena_layout(table_, from_.layout,
                        from_.coords[static_cast<std::size_t>(from_.index_of(rank))], dtype_, true);
  };
  return placed(training, destination_ ? *destination_ : ArenaLayout{});
}

PlacedReshard Reshard::placed(std::function<ArenaLayout(int rank)> training,
                              const ArenaLayout& rollout) const {
  TESSERA_CHECK(mode_ == ReshardMode::minimal);
  PlacedReshard made{.plan = plan_,
                     .tensors = model_tensors(table_, from_, to_, dtype_),
                     .source_type = dtype_,
                     .destination_type = dtype_};
  auto layouts = std::make_shared<std::map<int, ArenaLayout>>();
  made.source = [layouts, training = std::move(training)](int rank, int tensor, const Box& box) {
    auto found = layouts->find(rank);
    if (found == layouts->end()) found = layouts->emplace(rank, training(rank)).first;
    return std::vector<ByteRange>{range_of(found->second, tensor, box)};
  };
  made.destination = [arena = rollout](int tensor, const Box& box) {
    return std::vector<ByteRange>{range_of(arena, tensor, box)};
  };
  return made;
}

ReshardReport Reshard::run(Communicator& world, const void* source, void* destination,
                           void* staging, const ReshardHooks& hooks) const {
  if (hooks.on_start) hooks.on_start();
  world.barrier();
  const auto start = std::chrono::steady_clock::now();
  for (const Round& round : rounds_) {
    if (mode_ == ReshardMode::minimal) {
      execute(round.gather, source, destination, world);
    } else {
      execute(round.gather, source, staging, world, /*in_rounds=*/false);
      execute(round.slice, staging, destination, world, /*in_rounds=*/false);
    }
  }
  world.barrier();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const ReshardReport report{.seconds = seconds.count(),
                             .received = received_,
                             .busiest = plan_.bytes_received.value,
                             .lower_bound = lower_bound_,
                             .planned = plan_.bytes_received.value,
                             .exposed_s = seconds.count()};
  if (hooks.on_end) hooks.on_end(report);
  return report;
}

}  // namespace tessera
