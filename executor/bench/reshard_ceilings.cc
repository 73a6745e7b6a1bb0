#include "executor/bench/reshard_ceilings.h"

#include <nlohmann/json.hpp>

#include "executor/comm/stopwatch.h"
#include "executor/measure/device_timing.h"
#include "executor/measure/timing.h"
#include "executor/storage/peer_blocks.h"

namespace tessera {

using nlohmann::json;

ReshardCeilings::ReshardCeilings(const BenchSite& site, int repetitions)
    : site_(site),
      repetitions_(repetitions),
      ranks_(site.host->size()),
      rank_(site.host->rank()),
      signals_(*site.host) {}

/// Bytes from each peer: whole lines of memory.
std::int64_t ReshardCeilings::part_of(std::int64_t bytes) const {
  return std::max<std::int64_t>(bytes / (ranks_ - 1) / 256 * 256, 256);
}

json ReshardCeilings::pull(std::int64_t bytes, bool in_steps) {
  const std::int64_t part = part_of(bytes), received = part * (ranks_ - 1);
  const auto source = site_.make_block(part), target = site_.make_block(received);
  const PeerBlocks peers(*site_.host, source.get());
  const auto copies = site_.make_copies();
  const auto barrier = in_steps ? site_.make_barrier() : nullptr;
  std::vector<CopyBatch> batches;
  for (int k = 1; k < ranks_; ++k) {
    CopyBatch& batch = batches.emplace_back();
    batch.peer = (rank_ + k) % ranks_;
    batch.add(static_cast<std::byte*>(target->data()) + part * (k - 1), peers.at(batch.peer),
              static_cast<std::size_t>(part));
  }
  const Timing timing = timed_on_all(*site_.host, repetitions_, [&] {
    signals_.barrier();
    const Stopwatch watch;
    copies->await_producer();
    signals_.barrier();
    barrier ? copies->start_in_steps(batches, *barrier) : copies->start(batches);
    copies->wait();
    signals_.barrier();
    return watch.seconds();
  });
  json made = timing_json(timing, static_cast<double>(received));
  made["received_bytes"] = received;
  site_.host->barrier();
  return made;
}

json ReshardCeilings::gather(std::int64_t bytes) {
  const std::int64_t part = part_of(bytes), received = part * (ranks_ - 1);
  const torch::Tensor all = torch::empty(
      {part * ranks_}, torch::TensorOptions().dtype(torch::kUInt8).device(site_.device));
  auto* data = static_cast<std::byte*>(all.data_ptr());
  const Timing timing = timed_on_all(*site_.host, repetitions_, [&] {
    synchronize(site_.device);
    signals_.barrier();
    const Stopwatch watch;
    site_.world->all_gather(data + part * rank_, data, static_cast<std::size_t>(part),
                            DType::uint8);
    synchronize(site_.device);
    signals_.barrier();
    return watch.seconds();
  });
  json made = timing_json(timing, static_cast<double>(received));
  made["received_bytes"] = received;
  return made;
}

json ReshardCeilings::messages(const PullTraffic& traffic, std::int64_t received) {
  const auto bytes = torch::TensorOptions().dtype(torch::kUInt8).device(site_.device);
  const auto between = [&](int from, int to) {
    return traffic[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  };
  std::vector<torch::Tensor> memory;
  std::vector<SendBlock> sends;
  std::vector<ReceiveBlock> receives;
  for (int k = 1; k < ranks_; ++k) {
    const int to = (rank_ + k) % ranks_, from = (rank_ - k + ranks_) % ranks_;
    const std::int64_t out = between(rank_, to), in = between(from, rank_);
    memory.push_back(torch::zeros({out}, bytes));
    sends.push_back({to, memory.back().data_ptr(), static_cast<std::size_t>(out)});
    memory.push_back(torch::zeros({in}, bytes));
    receives.push_back({from, memory.back().data_ptr(), static_cast<std::size_t>(in)});
  }
  const Timing timing = timed_on_all(*site_.host, repetitions_, [&] {
    synchronize(site_.device);
    signals_.barrier();
    const Stopwatch watch;
    site_.world->exchange(sends, receives);
    synchronize(site_.device);
    signals_.barrier();
    return watch.seconds();
  });
  return timing_json(timing, static_cast<double>(received));
}

}  // namespace tessera
