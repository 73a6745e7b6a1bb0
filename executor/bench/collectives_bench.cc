#include "executor/bench/collectives_bench.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "executor/comm/nccl_world.h"
#include "executor/comm/stopwatch.h"
#include "executor/measure/device_timing.h"
#include "executor/measure/timing.h"
#include "executor/storage/host_signals.h"
#include "executor/storage/peer_blocks.h"

namespace tessera {
namespace {

using nlohmann::json;

class CollectivesBench {
 public:
  CollectivesBench(const BenchSite& site, const CollectivesBenchOptions& options)
      : site_(site),
        options_(options),
        ranks_(site.host->size()),
        rank_(site.host->rank()),
        signals_(*site.host) {
    std::int64_t largest = 0;
    for (const std::int64_t size : options.sizes) largest = std::max(largest, size);
    block_ = site.make_block(largest);
    from_ = site.make_block(largest);
    peers_ = std::make_unique<PeerBlocks>(*site.host, from_.get());
    copies_ = site.make_copies();
    if (site.gpu()) {
      std::vector<int> all(static_cast<std::size_t>(ranks_));
      std::iota(all.begin(), all.end(), 0);
      const WindowMemory window{block_->data(), static_cast<std::size_t>(largest)};
      window_ = split_with_windows(*site.world, all, CtaPolicy::zero, {&window, 1});
    }
  }

  json run() {
    json rows = json::array();
    for (const std::int64_t size : options_.sizes)
      measure(size / (std::int64_t{256} * ranks_) * 256, rows);
    return rows;
  }

 private:
  /// `part` bytes per rank.
  void measure(std::int64_t part, json& rows) {
    const std::int64_t all = part * ranks_;
    auto* data = static_cast<std::byte*>(block_->data());
    auto* from = static_cast<std::byte*>(from_->data());
    std::byte* const mine = data + part * rank_;
    const auto bytes = static_cast<std::size_t>(part), elements = bytes / 2;
    const auto n = static_cast<double>(ranks_), received = static_cast<double>(all - part);
    const auto add = [&](const char* name, double moved, const std::function<void()>& body) {
      const Timing timing = timed_on_all(*site_.host, options_.repetitions, [&] {
        synchronize(site_.device);
        signals_.barrier();
        const Stopwatch watch;
        body();
        synchronize(site_.device);
        signals_.barrier();
        return watch.seconds();
      });
      rows.push_back({{"operation", name},
                      {"bytes", all},
                      {"seconds", timing.median},
                      {"gb_per_s", moved * 1e-9 / timing.median}});
    };
    Communicator& world = *site_.world;
    const DType type = site_.gpu() ? DType::bf16 : DType::fp32;
    const std::size_t count = static_cast<std::size_t>(all / size_of(type));
    add("copy_engine_pull", received, [&] { pull(part); });
    if (window_) {
      add("all_gather_window", received,
          [&] { window_->all_gather(mine, data, elements, DType::bf16); });
    }
    add("all_gather", received, [&] { world.all_gather(mine, data, bytes, DType::uint8); });
    add("reduce_scatter", received, [&] {
      world.reduce_scatter(from, mine, bytes / static_cast<std::size_t>(size_of(type)), type,
                           ReduceOp::sum);
    });
    add("all_reduce", 2 * static_cast<double>(all) * (n - 1) / n,
        [&] { world.all_reduce(data, count, type, ReduceOp::sum); });
    add("all_to_all", received, [&] { world.all_to_all(from, data, bytes, DType::uint8); });
    const SendBlock send{(rank_ + 1) % ranks_, from, static_cast<std::size_t>(all)};
    const ReceiveBlock receive{(rank_ + ranks_ - 1) % ranks_, data, static_cast<std::size_t>(all)};
    add("send_receive", static_cast<double>(all), [&] {
      world.exchange({&send, 1}, {&receive, 1});
    });
  }

  void pull(std::int64_t part) {
    std::vector<CopyBatch> batches;
    for (int k = 1; k < ranks_; ++k) {
      CopyBatch& batch = batches.emplace_back();
      batch.peer = (rank_ + k) % ranks_;
      batch.add(static_cast<std::byte*>(block_->data()) + part * batch.peer, peers_->at(batch.peer),
                static_cast<std::size_t>(part));
    }
    copies_->start(batches);
    copies_->wait();
  }

  const BenchSite& site_;
  const CollectivesBenchOptions& options_;
  int ranks_, rank_;
  HostSignals signals_;
  std::unique_ptr<SharedBlock> block_, from_;
  std::unique_ptr<PeerBlocks> peers_;
  std::unique_ptr<BlockCopies> copies_;
  std::unique_ptr<Communicator> window_;
};

}  // namespace

json bench_collectives(const BenchSite& site, const CollectivesBenchOptions& options) {
  return CollectivesBench(site, options).run();
}

std::string collectives_table(const json& result) {
  std::string text;
  char line[120];
  for (const json& row : result) {
    std::snprintf(line, sizeof line, "%-20s %12.3f MB %10.3f ms %8.1f GB/s\n",
                  row["operation"].get<std::string>().c_str(), row["bytes"].get<double>() * 1e-6,
                  row["seconds"].get<double>() * 1e3, row["gb_per_s"].get<double>());
    text += line;
  }
  return text;
}

}  // namespace tessera
