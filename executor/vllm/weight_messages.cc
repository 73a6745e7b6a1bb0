#include "executor/vllm/weight_messages.h"

#include <map>
#include <set>

#include "executor/arena/byte_address.h"

namespace tessera {
namespace {

/// The round of each tensor, by name, and how many there are.
std::map<std::string, std::int64_t> rounds_of_tensors(const ParameterTable& table, DType dtype,
                                                      int tp, std::int64_t round_bytes) {
  std::map<std::string, std::int64_t> rounds;
  std::int64_t round = 0, filled = 0;
  for (const Parameter& row : table.rows) {
    std::int64_t bytes = size_of(dtype);
    for (const std::int64_t size : row.shape) bytes *= size;
    if (row.split_dim >= 0) bytes /= tp;
    if (filled > 0 && filled + bytes > round_bytes) {
      ++round;
      filled = 0;
    }
    filled += bytes;
    rounds[row.name] = round;
  }
  return rounds;
}

std::int64_t bytes_of(const VllmSlice& slice, DType dtype) {
  return slice.rows.size() * slice.columns.size() * size_of(dtype);
}

}  // namespace

void cut_rounds(const ParameterTable& table, DType dtype, int tp,
                std::span<VllmWorkerSlices> workers, std::int64_t round_bytes) {
  const auto rounds = rounds_of_tensors(table, dtype, tp, round_bytes);
  std::int64_t count = 0;
  for (const auto& [name, round] : rounds) count = std::max(count, round + 1);
  for (VllmWorkerSlices& worker : workers) {
    worker.rounds.assign(static_cast<std::size_t>(count), 0);
    for (const VllmSlice& slice : worker.slices) {
      ++worker.rounds[static_cast<std::size_t>(rounds.at(slice.tensor))];
    }
    std::int64_t end = 0;
    for (std::int64_t& round : worker.rounds) round = end += round;
  }
}

std::vector<int> senders_to(std::span<const VllmWorkerSlices> workers) {
  std::set<int> ranks;
  for (const VllmWorkerSlices& worker : workers) {
    for (const VllmSlice& slice : worker.slices) ranks.insert(slice.rank);
  }
  return {ranks.begin(), ranks.end()};
}

std::vector<WeightRound> rounds_of(int rank, const void* block,
                                   std::span<const VllmWorkerSlices> workers, DType dtype) {
  std::vector<WeightRound> rounds(workers.empty() ? 0 : workers.front().rounds.size());
  for (std::size_t index = 0; index < workers.size(); ++index) {
    const VllmWorkerSlices& worker = workers[index];
    std::int64_t at = 0;
    for (std::size_t round = 0; round < rounds.size(); ++round) {
      for (; at < worker.rounds[round]; ++at) {
        const VllmSlice& slice = worker.slices[static_cast<std::size_t>(at)];
        if (slice.rank != rank) continue;
        rounds[round].push_back({.peer = static_cast<int>(index),
                                 .data = tessera::at(block, slice.offset),
                                 .bytes = static_cast<std::size_t>(bytes_of(slice, dtype))});
      }
    }
  }
  return rounds;
}

}  // namespace tessera
