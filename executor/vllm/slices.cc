#include "executor/vllm/slices.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cost_models/documents/check.h"
#include "executor/arena/arena_layout.h"
#include "executor/vllm/weight_messages.h"

namespace tessera {
namespace {

/// The training ranks in the order in which a worker on `rank` asks them: itself, then those behind
/// it, so that workers begin with different ones.
std::vector<std::size_t> sources_from(const RankMap& training, int rank) {
  std::vector<std::size_t> order(training.ranks.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const int world = 1 + *std::max_element(training.ranks.begin(), training.ranks.end());
  const auto distance = [&](std::size_t i) {
    const int behind = training.ranks[i] - rank;
    return behind >= 0 ? behind : behind + std::max(world, rank + 1);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); });
  return order;
}

class WorkerSlices {
 public:
  WorkerSlices(const ParameterTable& table, const RankMap& training, DType dtype, int rank)
      : table_(table), training_(training), order_(sources_from(training, rank)) {
    for (const RankCoord& coord : training.coords) {
      arenas_.push_back(arena_layout(table, training.layout, coord, dtype, true));
    }
    result_.rank = rank;
  }

  void add(const VllmPart& part) {
    std::vector<Box> missing;
    if (volume(part.box) > 0) missing.push_back(part.box);
    for (const std::size_t source : order_) {
      std::vector<Box> left;
      for (const Box& box : missing) {
        const std::optional<Box> here = stored(source, part.row, box);
        if (!here) {
          left.push_back(box);
          continue;
        }
        take(part, *here, source);
        for (const Box& rest : subtract(box, *here)) left.push_back(rest);
      }
      missing = std::move(left);
    }
    TESSERA_CHECK(missing.empty());
    if (part.zeros > 0) {
      const std::int64_t from = part.at + part.box.dims[0].size();
      result_.zeros.push_back({part.parameter, {from, from + part.zeros}});
    }
  }

  VllmWorkerSlices take_all() { return std::move(result_); }

 private:
  /// What of `box` the source stores; nullopt: nothing.
  std::optional<Box> stored(std::size_t source, int row, const Box& box) const {
    const int slot = arenas_[source].slot_of[static_cast<std::size_t>(row)];
    if (slot < 0) return std::nullopt;
    const Box common = intersect(box, arenas_[source].slots[static_cast<std::size_t>(slot)].box);
    return volume(common) > 0 ? std::optional<Box>(common) : std::nullopt;
  }

  void take(const VllmPart& part, const Box& box, std::size_t source) {
    const ByteRange range = range_of(arenas_[source], part.row, box);
    const auto cut = static_cast<std::size_t>(part.dim);
    const std::int64_t first = part.at + box.dims[cut].lo - part.box.dims[cut].lo;
    const Interval along{first, first + box.dims[cut].size()};
    const bool vector = box.rank < 2;
    const Interval other = vector ? Interval{0, 1} : box.dims[1 - cut];
    const Parameter& row = table_.rows[static_cast<std::size_t>(part.row)];
    const std::int64_t pitch = vector ? 1 : row.shape[1];
    result_.slices.push_back({.parameter = part.parameter,
                              .rows = cut == 0 ? along : other,
                              .columns = cut == 0 ? other : along,
                              .transposed = cut == 1,
                              .rank = training_.ranks[source],
                              .offset = range.offset,
                              .tensor = row.name,
                              .corner = box.dims[0].lo * pitch + (vector ? 0 : box.dims[1].lo),
                              .pitch = pitch});
    result_.bytes += range.bytes;
    if (training_.ranks[source] != result_.rank) result_.bytes_moved += range.bytes;
  }

  const ParameterTable& table_;
  const RankMap& training_;
  std::vector<std::size_t> order_;
  std::vector<ArenaLayout> arenas_;  // by training rank
  VllmWorkerSlices result_;
};

/// What both kinds of tables have.
nlohmann::json table_of(std::span<const VllmWorkerSlices> workers, DType dtype, bool on_gpu) {
  using nlohmann::json;
  json text{{"version", 2},
            {"device", on_gpu ? "cuda" : "cpu"},
            {"dtype", std::string(name_of(dtype))},
            {"workers", json::array()}};
  for (const VllmWorkerSlices& worker : workers) {
    json slices = json::array(), zeros = json::array();
    for (const VllmSlice& slice : worker.slices) {
      slices.push_back({slice.parameter, slice.rows.lo, slice.rows.hi, slice.columns.lo,
                        slice.columns.hi, slice.transposed, slice.rank, slice.offset, slice.tensor,
                        slice.corner, slice.pitch});
    }
    for (const VllmZeros& part : worker.zeros) {
      zeros.push_back({part.parameter, part.rows.lo, part.rows.hi});
    }
    text["workers"].push_back(
        {{"slices", std::move(slices)}, {"zeros", std::move(zeros)}, {"rounds", worker.rounds}});
  }
  return text;
}

}  // namespace

VllmWorkerSlices vllm_slices(const ParameterTable& table, const RankMap& training, DType dtype,
                             int tp, int tp_rank, int rank) {
  WorkerSlices slices(table, training, dtype, rank);
  for (const VllmPart& part : vllm_parts(table, tp, tp_rank)) slices.add(part);
  return slices.take_all();
}

std::string vllm_table_json(std::span<const VllmWorkerSlices> workers,
                            const std::vector<VllmBlock>& blocks, DType dtype, bool on_gpu) {
  nlohmann::json text = table_of(workers, dtype, on_gpu);
  text["blocks"] = nlohmann::json::array();
  for (const VllmBlock& block : blocks) text["blocks"].push_back({block.socket, block.bytes});
  return text.dump();
}

std::string vllm_table_json(std::span<const VllmWorkerSlices> workers, const VllmLinkTable& link,
                            DType dtype, bool on_gpu) {
  nlohmann::json text = table_of(workers, dtype, on_gpu);
  const bool nccl = !link.nccl_id.empty();
  text["link"] = {{"kind", nccl ? "nccl" : "sockets"},
                  {"senders", link.senders},
                  {"first_worker", link.first_worker}};
  if (nccl) {
    text["link"]["id"] = link.nccl_id;
    text["link"]["size"] = std::ssize(link.senders) + link.workers;
  } else {
    text["link"]["sockets"] = link.sockets;
  }
  return text.dump();
}

}  // namespace tessera
