#include "executor/reshard/weight_switch.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/comm/stopwatch.h"
#include "executor/reshard/buffered_switch.h"
#include "executor/reshard/gather_path.h"
#include "executor/reshard/message_path.h"
#include "executor/reshard/overlapped_switch.h"
#include "executor/reshard/switch_sums.h"
#include "executor/storage/host_signals.h"
#include "executor/storage/peer_blocks.h"

namespace tessera {
namespace {

constexpr int kBytesSlot = 3;                                  // of HostSignals
constexpr std::int64_t kStageBytes = std::int64_t{512} << 20;  // of what is merged, by default

/// How weights travel.
enum class Path : std::uint8_t { reads, messages, gathers };

}  // namespace

class WeightSwitch::State {
 public:
  State(SwitchPlan plan, const SwitchSite& site, const SwitchOptions& options)
      : plan_(std::move(plan)),
        site_(site),
        options_(options),
        rank_(site.host->rank()),
        ops_(site.ops != nullptr ? *site.ops : host_memory_ops()),
        signals_(*site.host, options.timeout_s),
        transfers_(plan_, site_, signals_, options_) {
    const bool casts = plan_.source_type != plan_.destination_type;
    if (options_.incremental && (casts || options_.wire)) {
      throw Error(ExitCode::usage,
                  "reshard: an incremental switch moves bytes as they are, without a cast");
    }
    if (options_.incremental) {
      plan_.plan = cut_into_pieces(plan_.plan, plan_.tensors, options_.piece_bytes);
    }
    if (!casts) {
      direct_ = options_.overlap ? overlapped_rounds(plan_, rank_, ranks(), options_.bucket_bytes,
                                                     options_.write_order)
                                 : direct_rounds(plan_, rank_, ranks(), options_.bucket_bytes);
      sums_.resize(direct_.rounds.size());
      if (site_.block != nullptr) {
        TESSERA_CHECK(site_.copies != nullptr && site_.source == site_.block->data());
        peers_ = std::make_unique<PeerBlocks>(*site_.host, site_.block);
      }
    }
    choose();
    if (options_.overlap) require_reads();
  }
  State(const State&) = delete;

  /// What fails here ends the peers' waits, too.
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
          transfers_, [this] { barrier(); }, report);
    } else if (!chosen_) {
      probe(report);
    } else {
      run_direct(report);
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
    take(Path::reads);
    chosen_ = true;
    if (!overlapped_) {
      overlapped_ =
          std::make_unique<OverlappedSwitch>(direct_, site_, signals_, transfers_, memory());
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
    std::int64_t bytes = buffered_ ? buffered_->bytes() : 0;
    if (messages_) bytes += messages_->stage_bytes();
    if (gathers_) bytes += gathers_->stage_bytes();
    return bytes;
  }

  ReshardTransport transport() const {
    return chosen_ ? transport_of(path_) : ReshardTransport::automatic;
  }

 private:
  int ranks() const { return site_.host->size(); }
  DType wire_now() const {
    if (!options_.wire || switches_ < options_.wire_from) return plan_.source_type;
    return *options_.wire;
  }
  void barrier() { signals_.usable() ? signals_.barrier() : site_.host->barrier(); }

  bool can_read() const {
    const bool casts = plan_.source_type != plan_.destination_type;
    return site_.copies != nullptr && (casts || site_.block != nullptr);
  }
  /// Rounds of messages need copies within memory of the site's kind.
  bool can_stage() const { return site_.copies != nullptr || !site_.make_block; }
  bool moves_all_as_they_are() const {
    return !options_.incremental && !options_.wire && !direct_.rounds.empty();
  }
  std::int64_t stage_bytes() const {
    return options_.bucket_bytes > 0 ? 4 * options_.bucket_bytes : kStageBytes;
  }
  /// NCCL runs many all-gathers as one by its kernels, and one after the other by copy engines.
  MergeLimits gather_limits() const {
    const bool window = options_.transport == ReshardTransport::window;
    return {options_.merge_below.value_or(window ? kMergeAll : 0), stage_bytes()};
  }

  ReshardTransport transport_of(Path path) const {
    if (path == Path::messages) return ReshardTransport::send_recv;
    if (path == Path::reads) {
      return site_.make_block ? ReshardTransport::copy_engine : ReshardTransport::host;
    }
    const bool window = options_.transport == ReshardTransport::window;
    return window ? ReshardTransport::window : ReshardTransport::all_gather;
  }

  /// What an overlapped switch needs, alike on every rank.
  void require_reads() const {
    const bool named = options_.transport != ReshardTransport::automatic;
    if (peers_ && signals_.usable() && moves_all_as_they_are() && !options_.verify &&
        (!named || path_ == Path::reads)) {
      return;
    }
    throw Error(ExitCode::usage,
                "reshard: an overlapped switch reads mapped memory of one host, one type of "
                "weights, moves all of them, and verifies nothing");
  }

  void take(Path path) {
    path_ = path;
    transfers_.use_reads(path == Path::reads);
  }

  void choose() {
    const ReshardTransport wanted = options_.transport;
    switch (wanted) {
      case ReshardTransport::copy_engine:
      case ReshardTransport::host:
        if (can_read()) break;
        throw Error(ExitCode::usage, "reshard: " + std::string(name_of(wanted)) +
                                         " needs source memory that peers can map");
      case ReshardTransport::all_gather:
      case ReshardTransport::window:
        if (!moves_all_as_they_are() || !can_stage()) {
          throw Error(ExitCode::usage, "reshard: all-gathers move all weights as they are");
        }
        take(Path::gathers);
        return;
      case ReshardTransport::send_recv:
        take(Path::messages);
        return;
      case ReshardTransport::automatic:
        // GPUs of one host: copy engines were faster in every pair measured (benchmarks/results).
        if (!can_read()) take(Path::messages);
        chosen_ = ranks() == 1 || (can_read() && site_.make_block && signals_.usable()) ||
                  !moves_all_as_they_are();
        return;
    }
  }

  ReshardReport new_report(DType wire) const {
    const auto travelling = [&](std::int64_t bytes) {
      return bytes / size_of(plan_.source_type) * size_of(wire);
    };
    return {.lower_bound = travelling(plan_.plan.lower_bound.value),
            .planned = plan_.plan.bytes_received.value};
  }

  /// Ranks meet, and learn what the busiest of them received.
  void meet(ReshardReport& report) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(ranks()));
    if (signals_.usable()) {
      signals_.raise(kBytesSlot, static_cast<std::uint64_t>(report.received));
      signals_.barrier();
      for (int rank = 0; rank < ranks(); ++rank) {
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
    ++switches_;
    if (hooks.on_end) hooks.on_end(report);
    return report;
  }

  RoundMemory memory() const { return {peers_.get(), site_.source, site_.destination}; }

  void await_producer() {
    if (site_.copies != nullptr) site_.copies->await_producer();
  }

  /// The first switch, every way twice, since the first time connects; the fastest one stays. All
  /// ranks decide by the slowest one.
  void probe(ReshardReport& report) {
    if (can_stage()) make_gathers();
    std::vector<Path> paths{Path::messages};
    if (gathers_ && !gathers_->nothing()) paths.push_back(Path::gathers);
    if (can_read()) paths.push_back(Path::reads);
    std::vector<float> seconds;
    for (const Path path : paths) {
      take(path);
      make_path();
      run_direct(report);
      barrier();
      const Stopwatch watch;
      run_direct(report);
      barrier();
      seconds.push_back(static_cast<float>(watch.seconds()));
    }
    site_.host->all_reduce(seconds.data(), seconds.size(), DType::fp32, ReduceOp::max);
    const auto fastest = std::min_element(seconds.begin(), seconds.end()) - seconds.begin();
    take(paths[static_cast<std::size_t>(fastest)]);
    chosen_ = true;
    if (path_ != Path::gathers) gathers_.reset();
    if (path_ == Path::reads) messages_.reset();
    if (paths.size() == 1) return;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      report.tried.push_back({transport_of(paths[i]), seconds[i]});
    }
  }

  void make_gathers() {
    if (!gathers_) gathers_ = std::make_unique<GatherPath>(plan_, site_, gather_limits());
  }

  /// What the path needs to move everything.
  void make_path() {
    if (path_ == Path::gathers) make_gathers();
    if (path_ == Path::reads || !can_stage()) return;
    if (messages_ && messages_for_ == path_) return;
    const SwitchPlan all = path_ == Path::gathers ? gathers_->rest_of(plan_) : plan_;
    messages_.reset();  // before new stages are made
    if (!all.plan.transfers.empty())
      messages_ = std::make_unique<MessagePath>(all, site_, options_.merge_below, stage_bytes());
    messages_for_ = path_;
  }

  /// Moves everything, whatever has changed. Returns the bytes that came from peers.
  std::int64_t move_all() {
    make_path();
    std::int64_t received = path_ == Path::gathers ? gathers_->run() : 0;
    if (path_ != Path::reads && messages_) received += messages_->run();
    if (path_ == Path::gathers || (path_ == Path::messages && messages_)) return received;
    for (std::size_t k = 0; k < direct_.rounds.size(); ++k) {
      received += transfers_.start(direct_, k, memory());
    }
    transfers_.settle();
    return received;
  }

  void run_direct(ReshardReport& report) {
    await_producer();
    const bool sums = options_.incremental || options_.verify;
    std::vector<TransferSums> now(sums ? direct_.rounds.size() : 0);
    for (std::size_t k = 0; k < now.size(); ++k) {
      now[k] = sums_of(k).share(site_.source, ops_, *site_.host);
    }
    barrier();
    report.received = options_.incremental ? 0 : move_all();
    for (std::size_t k = 0; options_.incremental && k < direct_.rounds.size(); ++k) {
      const SwitchRound& round = direct_.rounds[k];
      const TransferSums& last = sums_[k];
      const auto changed = [&](int index) {
        const auto i = static_cast<std::size_t>(index);
        return last.empty() || last[i] != now[k][i];
      };
      report.received += transfers_.start(round, memory(), changed);
    }
    if (options_.incremental) transfers_.settle();
    for (std::size_t k = 0; options_.verify && k < now.size(); ++k) {
      sums_of(k).check_landed(now[k], site_.destination, ops_, plan_.tensors);
    }
    report.verified = options_.verify;
    if (options_.incremental) sums_ = std::move(now);
  }

  /// The sums of one round, compiled once.
  const RoundSums& sums_of(std::size_t k) {
    direct_sums_.resize(direct_.rounds.size());
    if (!direct_sums_[k]) direct_sums_[k].emplace(direct_.rounds[k], rank_);
    return *direct_sums_[k];
  }

  void make_buffers(DType wire) {
    if (buffered_ && buffered_->wire() == wire) return;
    messages_.reset();
    buffered_.reset();
    buffered_ =
        std::make_unique<BufferedSwitch>(plan_, site_, options_, ops_, wire, path_ == Path::reads);
  }

  SwitchPlan plan_;
  SwitchSite site_;
  SwitchOptions options_;
  int rank_;
  MemoryOps& ops_;
  HostSignals signals_;

  SwitchRounds direct_;  // no rounds when types differ
  std::unique_ptr<PeerBlocks> peers_;
  Path path_ = Path::reads;
  bool chosen_ = true;  // false: the first switch tries every path
  RoundTransfers transfers_;
  std::unique_ptr<GatherPath> gathers_;
  std::unique_ptr<MessagePath> messages_;  // of all, or of what no all-gather does
  Path messages_for_ = Path::messages;
  std::int64_t switches_ = 0;
  std::vector<TransferSums> sums_;  // of the last incremental switch, by round
  std::vector<std::optional<RoundSums>> direct_sums_;
  std::unique_ptr<BufferedSwitch> buffered_;  // of the wire's type in use
  ReshardHooks hooks_;                        // of the switch that was begun
  std::unique_ptr<OverlappedSwitch> overlapped_;
};

WeightSwitch::WeightSwitch(SwitchPlan plan, const SwitchSite& site, const SwitchOptions& options)
    : state_(std::make_unique<State>(std::move(plan), site, options)) {}
WeightSwitch::~WeightSwitch() = default;
ReshardReport WeightSwitch::run(const ReshardHooks& hooks) {
  return state_->aborting([&] { return state_->run(hooks); });
}
int WeightSwitch::buckets() const { return state_->buckets(); }
int WeightSwitch::first_bucket_of(int tensor) const { return state_->first_bucket_of(tensor); }
void WeightSwitch::begin(const ReshardHooks& hooks) { state_->begin(hooks); }
void WeightSwitch::ready(int bucket) { state_->ready(bucket); }
void WeightSwitch::written(std::span<const int> tensors) { state_->written(tensors); }
bool WeightSwitch::begun() const { return state_->begun(); }
ReshardReport WeightSwitch::finish() {
  return state_->aborting([&] { return state_->finish(); });
}
std::int64_t WeightSwitch::buffer_bytes() const { return state_->buffer_bytes(); }
ReshardTransport WeightSwitch::transport() const { return state_->transport(); }

}  // namespace tessera
