#include "executor/arena/pulls.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/split.h"

namespace tessera {
namespace {

/// Pairs two lists of ranges with equal totals into reads.
void append(std::vector<Pull>& pulls, int peer, int transfer, std::vector<ByteRange> from,
            std::vector<ByteRange> to) {
  std::size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    const std::int64_t bytes = std::min(from[i].bytes, to[j].bytes);
    if (bytes > 0) pulls.push_back({peer, transfer, from[i].offset, to[j].offset, bytes});
    from[i] = {from[i].offset + bytes, from[i].bytes - bytes};
    to[j] = {to[j].offset + bytes, to[j].bytes - bytes};
    if (from[i].bytes == 0) ++i;
    if (to[j].bytes == 0) ++j;
  }
  if (i != from.size() || j != to.size()) {
    throw Error(ExitCode::internal, "reshard: source and destination of transfer " +
                                        std::to_string(transfer) + " differ in size");
  }
}

/// Bytes that each rank receives from and sends to others.
class Load {
 public:
  explicit Load(bool count_kept) : count_kept_(count_kept) {}
  void add(const Transfer& transfer, std::int64_t bytes) {
    if (transfer.source == transfer.destination && !count_kept_) return;
    busiest_ = std::max(
        {busiest_, received_[transfer.destination] += bytes, sent_[transfer.source] += bytes});
  }
  std::int64_t busiest() const { return busiest_; }

 private:
  bool count_kept_;
  std::map<int, std::int64_t> received_, sent_;
  std::int64_t busiest_ = 0;
};

/// Piece i of n of a transfer along the tensor's outermost dim; false when it is empty.
bool cut(Transfer& transfer, const ShardedTensor& tensor, std::int64_t pieces, std::int64_t piece) {
  if (pieces == 1) return true;
  if (transfer.box.rank == 0) return piece == 0;
  Interval& rows = transfer.box.dims[static_cast<std::size_t>(tensor.outer_dim)];
  const Interval part = split(rows.size(), pieces, piece);
  rows = {rows.lo + part.lo, rows.lo + part.hi};
  return !rows.empty();
}

/// As few rows as make whole words of 16 bytes: GPUs move what is not aligned at half the rate.
std::int64_t aligned_rows(std::int64_t row_bytes) {
  constexpr std::int64_t kWord = 16;
  return kWord / std::gcd(std::max<std::int64_t>(row_bytes, 1), kWord);
}

}  // namespace

std::vector<Pull> compile_pulls(const ReshardPlan& plan, int rank, int ranks,
                                const LocateOnRank& source, const LocateBox& destination,
                                const std::function<bool(const Transfer&)>& wanted) {
  std::vector<Pull> pulls;
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const Transfer& transfer = plan.transfers[i];
    if (transfer.destination != rank || (wanted && !wanted(transfer))) continue;
    append(pulls, transfer.source, static_cast<int>(i),
           source(transfer.source, transfer.tensor, transfer.box),
           destination(transfer.tensor, transfer.box));
  }
  const auto turn = [&](const Pull& pull) { return (pull.peer - rank + ranks - 1) % ranks; };
  std::stable_sort(pulls.begin(), pulls.end(),
                   [&](const Pull& a, const Pull& b) { return turn(a) < turn(b); });
  return pulls;
}

std::vector<Pull> joined(std::span<const Pull> pulls) {
  std::vector<Pull> made;
  for (const Pull& pull : pulls) {
    Pull* last = made.empty() ? nullptr : &made.back();
    if (last != nullptr && last->peer == pull.peer && last->from + last->bytes == pull.from &&
        last->to + last->bytes == pull.to) {
      last->bytes += pull.bytes;
    } else {
      made.push_back(pull);
    }
  }
  return made;
}

std::vector<ReshardPlan> cut_into_buckets(const ReshardPlan& plan,
                                          std::span<const ShardedTensor> tensors,
                                          std::int64_t bound, bool count_kept) {
  std::vector<ReshardPlan> buckets(1);
  if (bound <= 0) {
    buckets[0].transfers = plan.transfers;
    return buckets;
  }
  std::vector<std::vector<Transfer>> by_tensor(tensors.size());
  for (const Transfer& transfer : plan.transfers) {
    by_tensor[static_cast<std::size_t>(transfer.tensor)].push_back(transfer);
  }
  Load open(count_kept);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const ShardedTensor& tensor = tensors[t];
    const auto bytes_of = [&](const Transfer& transfer) { return bytes_moved(transfer, tensors); };
    Load alone(count_kept), together = open;
    for (const Transfer& transfer : by_tensor[t]) {
      alone.add(transfer, bytes_of(transfer));
      together.add(transfer, bytes_of(transfer));
    }
    const std::int64_t pieces = std::max<std::int64_t>(1, (alone.busiest() + bound - 1) / bound);
    if (together.busiest() > bound && !buckets.back().transfers.empty()) {
      buckets.emplace_back();
      together = alone;
    }
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      if (piece > 0) buckets.emplace_back();
      for (Transfer part : by_tensor[t]) {
        if (cut(part, tensor, pieces, piece)) buckets.back().transfers.push_back(part);
      }
    }
    open = together;
    if (pieces > 1) {  // what the last piece holds
      open = Load(count_kept);
      for (const Transfer& part : buckets.back().transfers) open.add(part, bytes_of(part));
    }
  }
  const auto order = [](const Transfer& a, const Transfer& b) {
    return std::pair(a.destination, a.source) < std::pair(b.destination, b.source);
  };
  for (ReshardPlan& bucket : buckets) {
    std::stable_sort(bucket.transfers.begin(), bucket.transfers.end(), order);
  }
  return buckets;
}

std::vector<ReshardPlan> cut_in_proportion(const ReshardPlan& plan,
                                           std::span<const ShardedTensor> tensors,
                                           std::span<const double> ends,
                                           std::span<const int> order) {
  std::vector<std::size_t> turn(tensors.size());
  for (std::size_t t = 0; t < turn.size(); ++t) turn[t] = order.size() + t;
  for (std::size_t i = 0; i < order.size(); ++i) turn[static_cast<std::size_t>(order[i])] = i;
  std::map<std::pair<int, int>, std::vector<Transfer>> edges;  // by destination and source
  for (const Transfer& transfer : plan.transfers) {
    edges[{transfer.destination, transfer.source}].push_back(transfer);
  }
  std::vector<ReshardPlan> buckets(ends.size());
  for (auto& [edge, transfers] : edges) {
    std::stable_sort(transfers.begin(), transfers.end(), [&](const Transfer& a, const Transfer& b) {
      return turn[static_cast<std::size_t>(a.tensor)] < turn[static_cast<std::size_t>(b.tensor)];
    });
    const auto bytes_of = [&](const Transfer& transfer) { return bytes_moved(transfer, tensors); };
    std::int64_t total = 0, done = 0;
    for (const Transfer& transfer : transfers) total += bytes_of(transfer);
    std::size_t bucket = 0;
    for (const Transfer& transfer : transfers) {
      const auto dim =
          static_cast<std::size_t>(tensors[static_cast<std::size_t>(transfer.tensor)].outer_dim);
      const Interval rows = transfer.box.rank == 0 ? Interval{0, 1} : transfer.box.dims[dim];
      const std::int64_t row = rows.empty() ? 0 : bytes_of(transfer) / rows.size();
      for (std::int64_t first = rows.lo; first < rows.hi;) {
        const bool last = bucket + 1 == ends.size();
        const auto end = static_cast<std::int64_t>(ends[bucket] * static_cast<double>(total));
        const std::int64_t fit =
            last ? rows.hi - first : (end - done) / std::max<std::int64_t>(row, 1);
        const std::int64_t count =
            fit >= rows.hi - first ? rows.hi - first : fit / aligned_rows(row) * aligned_rows(row);
        if (count <= 0) {
          ++bucket;
          continue;
        }
        Transfer part = transfer;
        if (part.box.rank > 0) part.box.dims[dim] = {first, first + count};
        buckets[bucket].transfers.push_back(part);
        first += count;
        done += count * row;
      }
    }
  }
  return buckets;
}

ReshardPlan cut_into_pieces(const ReshardPlan& plan, std::span<const ShardedTensor> tensors,
                            std::int64_t bytes) {
  ReshardPlan made = plan;
  made.transfers.clear();
  for (const Transfer& transfer : plan.transfers) {
    const ShardedTensor& tensor = tensors[static_cast<std::size_t>(transfer.tensor)];
    const std::int64_t all = bytes_moved(transfer, tensors);
    const std::int64_t pieces =
        bytes > 0 ? std::max<std::int64_t>(1, (all + bytes - 1) / bytes) : 1;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      Transfer part = transfer;
      if (cut(part, tensor, pieces, piece)) made.transfers.push_back(part);
    }
  }
  return made;
}

}  // namespace tessera
