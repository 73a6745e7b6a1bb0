#include "executor/reshard/weight_reshard.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "executor/comm/stopwatch.h"
#include "executor/reshard/buffered_reshard.h"
#include "executor/reshard/choose_path.h"
#include "executor/reshard/overlapped_reshard.h"
#include "executor/storage/peer_blocks.h"
#include "executor/transfers/round_sums.h"

namespace tessera {
namespace {

constexpr int kBytesSlot = 3;  // of HostSignals

bool casts(const PlacedReshard& plan) { return plan.source_type != plan.destination_type; }

/// An incremental reshard's transfers are cut into the pieces that it moves or spares.
PlacedReshard checked_plan(PlacedReshard plan, const WeightReshardOptions& options) {
  if (!options.incremental) return plan;
  if (casts(plan) || options.wire) {
    throw Error(ExitCode::usage,
                "reshard: an incremental reshard moves bytes as they are, without a cast");
  }
  plan.plan = cut_into_pieces(plan.plan, plan.tensors, options.piece_bytes);
  return plan;
}

/// The rounds of all weights as they are; none where types differ.
ReshardRounds rounds_of(const PlacedReshard& plan, const Communicator& host,
                        const WeightReshardOptions& options) {
  if (casts(plan)) return {};
  return options.overlap ? overlapped_rounds(plan, host.rank(), host.size(), options.bucket_bytes,
                                             options.write_order)
                         : direct_rounds(plan, host.rank(), host.size(), options.bucket_bytes);
}

std::unique_ptr<PeerBlocks> peers_of(const PlacedReshard& plan, const ReshardSite& site) {
  if (casts(plan) || site.block == nullptr) return nullptr;
  TESSERA_CHECK(site.copies != nullptr && site.source == site.block->data());
  return std::make_unique<PeerBlocks>(*site.host, site.block);
}

}  // namespace

class WeightReshard::State {
 public:
  State(PlacedReshard plan, const ReshardSite& site, const WeightReshardOptions& options)
      : plan_(checked_plan(std::move(plan), options)),
        site_(site),
        options_(options),
        ops_(site.ops != nullptr ? *site.ops : host_memory_ops()),
        signals_(*site.host, options.timeout_s),
        direct_(rounds_of(plan_, *site.host, options)),
        peers_(peers_of(plan_, site)),
        setup_{.plan = plan_,
               .site = site_,
               .options = options_,
               .rounds = direct_,
               .signals = signals_,
               .memory = {peers_.get(), site.source, site.destination}},
        path_(make_path(setup_)),
        last_sums_(direct_.rounds.size()) {
    if (options_.overlap) require_reads();
  }
  State(const State&) = delete;

  /// Runs `fn`; its failure ends the peers' waits, too.
  template <class Fn>
  auto aborting(Fn fn) {
    try {
      return fn();
    } catch (...) {
      signals_.abort();
      throw;
    }
  }

  ReshardReport run(const ReshardHooks& hooks) {
    if (hooks.on_start) hooks.on_start();
    barrier();
    const Stopwatch watch;
    const DType wire = wire_now();
    ReshardReport report = new_report(wire);
    if (direct_.rounds.empty() || wire != plan_.source_type) {
      make_buffers(wire);
      buffered_->run(
          *path_, [this] { barrier(); }, report);
    } else if (path_ == nullptr) {
      path_ = fastest_path(
          setup_, [&](ReshardPath& path) { run_direct(path, report); }, [this] { barrier(); },
          report.tried);
    } else {
      run_direct(*path_, report);
    }
    meet(report);
    report.seconds = report.exposed_s = watch.seconds();
    return finished(report, hooks);
  }

  int buckets() const { return static_cast<int>(direct_.rounds.size()); }

  int first_bucket_of(int tensor) const {
    for (int k = 0; k < buckets(); ++k) {
      for (const Transfer& transfer : direct_.rounds[static_cast<std::size_t>(k)].plan.transfers) {
        if (transfer.tensor == tensor) return k;
      }
    }
    return -1;
  }

  void begin(const ReshardHooks& hooks) {
    require_reads();
    hooks_ = hooks;
    if (hooks_.on_start) hooks_.on_start();
    if (!overlapped_) {
      if (path_ == nullptr || !reads_peers(path_->transport())) path_ = make_read_path(setup_);
      overlapped_ = std::make_unique<OverlappedReshard>(direct_, site_, signals_, *path_);
    }
    overlapped_->begin();
  }

  void ready(int bucket) {
    TESSERA_CHECK(begun());
    overlapped_->ready(bucket);
  }
  void written(std::span<const int> tensors) {
    TESSERA_CHECK(begun());
    overlapped_->written(tensors);
  }
  bool begun() const { return overlapped_ && overlapped_->begun(); }

  ReshardReport finish() {
    TESSERA_CHECK(begun());
    const Stopwatch watch;
    ReshardReport report = new_report(plan_.source_type);
    report.received = overlapped_->finish();
    meet(report);
    report.exposed_s = watch.seconds();
    report.seconds = std::max(report.exposed_s, overlapped_->seconds());
    return finished(report, hooks_);
  }

  std::int64_t buffer_bytes() const {
    return (buffered_ ? buffered_->bytes() : 0) + (path_ ? path_->stage_bytes() : 0);
  }

  ReshardTransport transport() const {
    return path_ ? path_->transport() : ReshardTransport::automatic;
  }

 private:
  DType wire_now() const {
    if (!options_.wire || reshards_ < options_.wire_from) return plan_.source_type;
    return *options_.wire;
  }
  void barrier() { signals_.usable() ? signals_.barrier() : site_.host->barrier(); }

  /// Throws Error (usage) where an overlapped reshard cannot be, alike on every rank.
  void require_reads() const {
    const bool named = options_.transport != ReshardTransport::automatic;
    if (peers_ && signals_.usable() && setup_.moves_all_as_they_are() && !options_.verify &&
        (!named || reads_peers(path_->transport()))) {
      return;
    }
    throw Error(ExitCode::usage,
                "reshard: an overlapped reshard reads mapped memory of one host, one type of "
                "weights, moves all of them, and verifies nothing");
  }

  ReshardReport new_report(DType wire) const {
    const auto travelling = [&](std::int64_t bytes) {
      return bytes / size_of(plan_.source_type) * size_of(wire);
    };
    ReshardReport report{.lower_bound = travelling(plan_.plan.lower_bound.value),
                         .planned = plan_.plan.bytes_received.value};
    if (wire != plan_.source_type) report.wire = wire;
    return report;
  }

  /// Ranks meet, and learn what the busiest of them received.
  void meet(ReshardReport& report) {
    const int ranks = site_.host->size();
    std::vector<std::int64_t> all(static_cast<std::size_t>(ranks));
    if (signals_.usable()) {
      signals_.raise(kBytesSlot, static_cast<std::uint64_t>(report.received));
      signals_.barrier();
      for (int rank = 0; rank < ranks; ++rank) {
        all[static_cast<std::size_t>(rank)] =
            static_cast<std::int64_t>(signals_.value(rank, kBytesSlot));
      }
    } else {
      site_.host->all_gather(&report.received, all.data(), 1, DType::int64);
    }
    report.busiest = *std::max_element(all.begin(), all.end());
    if (options_.incremental) report.lower_bound = report.busiest;
  }

  ReshardReport finished(ReshardReport report, const ReshardHooks& hooks) {
    report.transport = transport();
    ++reshards_;
    if (hooks.on_end) hooks.on_end(report);
    return report;
  }

  /// Weights as they are, by `path`: all, or those that changed; with checksums where asked.
  void run_direct(ReshardPath& path, ReshardReport& report) {
    if (site_.copies != nullptr) site_.copies->await_producer();
    const bool sums = options_.incremental || options_.verify;
    std::vector<TransferSums> now(sums ? direct_.rounds.size() : 0);
    for (std::size_t k = 0; k < now.size(); ++k) {
      now[k] = sums_of(k).share(site_.source, ops_, *site_.host);
    }
    barrier();
    report.received = options_.incremental ? move_changed(path, now) : path.run();
    for (std::size_t k = 0; options_.verify && k < now.size(); ++k) {
      sums_of(k).check_landed(now[k], site_.destination, ops_, plan_.tensors);
    }
    report.verified = options_.verify;
    if (options_.incremental) last_sums_ = std::move(now);
  }

  /// Moves the transfers whose sums are not those of the last reshard. Returns the bytes that came
  /// from peers.
  std::int64_t move_changed(ReshardPath& path, const std::vector<TransferSums>& now) {
    std::int64_t received = 0;
    for (std::size_t k = 0; k < direct_.rounds.size(); ++k) {
      const TransferSums& last = last_sums_[k];
      received += path.begin(direct_.rounds[k], setup_.memory, [&](int index) {
        const auto i = static_cast<std::size_t>(index);
        return last.empty() || last[i] != now[k][i];
      });
    }
    path.end();
    return received;
  }

  /// The sums of one round, compiled once.
  const RoundSums& sums_of(std::size_t k) {
    direct_sums_.resize(direct_.rounds.size());
    if (!direct_sums_[k]) direct_sums_[k].emplace(direct_.rounds[k], site_.host->rank());
    return *direct_sums_[k];
  }

  void make_buffers(DType wire) {
    if (buffered_ && buffered_->wire() == wire) return;
    path_->rest();
    buffered_.reset();
    buffered_ = std::make_unique<BufferedReshard>(plan_, site_, options_, ops_, wire,
                                                  reads_peers(path_->transport()));
  }

  PlacedReshard plan_;
  ReshardSite site_;
  WeightReshardOptions options_;
  MemoryOps& ops_;
  HostSignals signals_;

  ReshardRounds direct_;
  std::unique_ptr<PeerBlocks> peers_;
  PathSetup setup_;                    // refers to all of the above
  std::unique_ptr<ReshardPath> path_;  // nullptr: the first reshard tries every one
  std::int64_t reshards_ = 0;
  std::vector<TransferSums> last_sums_;  // of the last incremental reshard, by round
  std::vector<std::optional<RoundSums>> direct_sums_;
  std::unique_ptr<BufferedReshard> buffered_;  // of the wire's type in use
  ReshardHooks hooks_;                         // of the reshard that was begun
  std::unique_ptr<OverlappedReshard> overlapped_;
};

WeightReshard::WeightReshard(PlacedReshard plan, const ReshardSite& site,
                             const WeightReshardOptions& options)
    : state_(std::make_unique<State>(std::move(plan), site, options)) {}
WeightReshard::~WeightReshard() = default;
ReshardReport WeightReshard::run(const ReshardHooks& hooks) {
  return state_->aborting([&] { return state_->run(hooks); });
}
int WeightReshard::buckets() const { return state_->buckets(); }
int WeightReshard::first_bucket_of(int tensor) const { return state_->first_bucket_of(tensor); }
void WeightReshard::begin(const ReshardHooks& hooks) { state_->begin(hooks); }
void WeightReshard::ready(int bucket) { state_->ready(bucket); }
void WeightReshard::written(std::span<const int> tensors) { state_->written(tensors); }
bool WeightReshard::begun() const { return state_->begun(); }
ReshardReport WeightReshard::finish() {
  return state_->aborting([&] { return state_->finish(); });
}
std::int64_t WeightReshard::buffer_bytes() const { return state_->buffer_bytes(); }
ReshardTransport WeightReshard::transport() const { return state_->transport(); }

}  // namespace tessera
