#include "executor/reshard/reshard.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

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

std::string to_string(const ReshardReport& report) {
  char text[160];
  std::snprintf(text, sizeof text,
                "[Reshard] %.4g ms, %.4g GB received by the busiest rank (lower bound %.4g GB), "
                "%.4g GB/s",
                report.seconds * 1e3, report.busiest * 1e-9, report.lower_bound * 1e-9,
                report.gb_per_s());
  return text;
}

Reshard::Reshard(const ParameterTable& table, const RankMap& from, const RankMap& to, DType dtype,
                 ReshardMode mode, int rank)
    : rank_(rank),
      mode_(mode),
      source_(arena_of(table, from, rank, dtype, true)),
      destination_(arena_of(table, to, rank, dtype, false)) {
  plan_ = plan_reshard(model_tensors(table, from, to, dtype));
  lower_bound_ = plan_.lower_bound.value;
  if (mode == ReshardMode::minimal) {
    compile_minimal();
  } else {
    plan_ = plan_reshard(full_gather_tensors(table, from, to, dtype));
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

ReshardReport Reshard::run(Communicator& world, const void* source, void* destination,
                           void* staging, const ReshardHooks& hooks) const {
  if (hooks.on_start) hooks.on_start();
  world.barrier();
  const auto start = std::chrono::steady_clock::now();
  for (const Round& round : rounds_) {
    if (mode_ == ReshardMode::minimal) {
      execute(round.gather, source, destination, world);
    } else {
      execute(round.gather, source, staging, world);
      execute(round.slice, staging, destination, world);
    }
  }
  world.barrier();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const ReshardReport report{seconds.count(), received_, plan_.bytes_received.value, lower_bound_};
  if (hooks.on_end) hooks.on_end(report);
  return report;
}

}  // namespace tessera
