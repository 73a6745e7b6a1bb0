#include "executor/reshard/weight_switch.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "cost_models/spec/problem.h"
#include "executor/reshard/follower.h"
#include "executor/reshard/gather_path.h"
#include "executor/reshard/message_path.h"
#include "executor/reshard/read_path.h"
#include "executor/reshard/switch_rounds.h"
#include "executor/reshard/switch_sums.h"
#include "executor/storage/host_signals.h"
#include "executor/storage/peer_blocks.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kReadySlot = 1, kBytesSlot = 3;                  // of HostSignals
constexpr std::int64_t kBucketBytes = std::int64_t{64} << 20;  // of buffers, by default
constexpr std::int64_t kStageBytes = std::int64_t{512} << 20;  // of what is merged, by default

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::byte* at(void* data, std::int64_t offset) { return static_cast<std::byte*>(data) + offset; }
const std::byte* at(const void* data, std::int64_t offset) {
  return static_cast<const std::byte*>(data) + offset;
}

bool everything(int) { return true; }

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
        signals_(*site.host),
        reads_(plan_, site_, signals_, options_) {
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
  }
  State(const State&) = delete;
  /// A switch that was begun and not finished ends for the peers, too.
  ~State() {
    if (follower_) signals_.abort();
  }

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
    const Clock::time_point begin = Clock::now();
    const DType wire = wire_now();
    ReshardReport report = new_report(wire);
    if (direct_.rounds.empty() || wire != plan_.source_type) {
      run_buffered(wire, report);
    } else if (!chosen_) {
      probe(report);
    } else {
      run_direct(report);
    }
    meet(report);
    report.seconds = report.exposed_s = seconds_since(begin);
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
    const bool named = options_.transport != ReshardTransport::automatic;
    if (!peers_ || !signals_.usable() || !moves_all_as_they_are() || options_.verify ||
        (named && path_ != Path::reads)) {
      throw Error(ExitCode::usage,
                  "reshard: an overlapped switch reads mapped memory of one host, one type of "
                  "weights, moves all of them, and verifies nothing");
    }
    hooks_ = hooks;
    if (hooks_.on_start) hooks_.on_start();
    started_at_ = Clock::now();
    overlapped_bytes_ = 0;
    marks_.assign(direct_.rounds.size(), -1);
    path_ = Path::reads;
    chosen_ = true;
    await_tensors();
    follower_ = std::make_unique<Follower>([this](Follower& counter) { follow(counter); });
    ready_complete();
  }

  void ready(int bucket) {
    TESSERA_CHECK(follower_ != nullptr);
    marks_[static_cast<std::size_t>(bucket)] = site_.copies->mark_producer();
    awaited_[static_cast<std::size_t>(bucket)] = -1;
    follower_->raise(bucket + 1);
  }

  void written(std::span<const int> tensors) {
    TESSERA_CHECK(follower_ != nullptr);
    for (const int tensor : tensors) {
      for (const int bucket : std::exchange(buckets_of_[tensor], {})) {
        --awaited_[static_cast<std::size_t>(bucket)];
      }
    }
    ready_complete();
  }

  bool begun() const { return follower_ != nullptr; }

  ReshardReport finish() {
    TESSERA_CHECK(follower_ != nullptr);
    for (std::size_t k = 0; k < awaited_.size(); ++k) {
      if (awaited_[k] >= 0) ready(static_cast<int>(k));
    }
    const Clock::time_point begin = Clock::now();
    follower_->join();
    follower_.reset();
    site_.copies->wait();
    ReshardReport report = new_report(plan_.source_type);
    report.received = overlapped_bytes_;
    meet(report);
    report.exposed_s = seconds_since(begin);
    report.seconds = std::max(report.exposed_s, seconds_since(started_at_));
    ++overlapped_;
    return finished(report, hooks_);
  }

  std::int64_t buffer_bytes() const {
    std::int64_t bytes = 0;
    for (const auto* block : {&out_, &in_}) {
      if (*block) bytes += (*block)->bytes();
    }
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
        path_ = Path::gathers;
        return;
      case ReshardTransport::send_recv:
        path_ = Path::messages;
        return;
      case ReshardTransport::automatic:
        // GPUs of one host: copy engines were faster in every pair measured (benchmarks/results).
        if (!can_read()) path_ = Path::messages;
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

  /// Both ends of an edge decide alike: only ranks of one host read one another's memory.
  bool reads(int peer) const { return path_ == Path::reads && reads_.reads(peer); }
  bool sends_messages() const { return path_ != Path::reads || !signals_.usable(); }
  RoundMemory memory() const { return {peers_.get(), site_.source, site_.destination}; }

  /// Begins a round. Sources are final on every rank. Returns the bytes that come from peers, as
  /// send() does.
  std::int64_t start(const SwitchRound& round, const RoundMemory& memory,
                     const std::function<bool(int)>& wanted) {
    std::int64_t received = 0;
    if (path_ == Path::reads) received += reads_.start(round, memory, wanted);
    if (sends_messages()) received += send(round, memory, wanted);
    return received;
  }

  std::int64_t send(const SwitchRound& round, const RoundMemory& memory,
                    const std::function<bool(int)>& wanted) {
    const auto by_message = [&](int index) {
      const Transfer& transfer = round.plan.transfers[static_cast<std::size_t>(index)];
      const int other = transfer.source == rank_ ? transfer.destination : transfer.source;
      return !reads(other) && wanted(index);
    };
    const ByteSchedule schedule = messages_of(round, rank_, by_message);
    execute(schedule, memory.from, memory.to, *site_.world, uneven());
    return schedule.received;
  }

  /// Some rank sends much more than another: all at once would meet at its links.
  bool uneven() const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
    for (const RankTraffic& traffic : plan_.plan.traffic) {
      least = std::min(least, traffic.sent);
      most = std::max(most, traffic.sent);
    }
    return most - least > most / 8;
  }

  /// Returns when what was started has arrived here.
  void settle() {
    if (path_ == Path::reads) site_.copies->wait();
    if (sends_messages()) site_.world->barrier();
  }

  void await_producer() {
    if (site_.copies != nullptr) site_.copies->await_producer();
  }

  /// The first switch, every way; the fastest one stays. All ranks decide by the slowest one.
  void probe(ReshardReport& report) {
    if (can_stage()) make_gathers();
    std::vector<Path> paths{Path::messages};
    if (gathers_ && !gathers_->nothing()) paths.push_back(Path::gathers);
    if (can_read()) paths.push_back(Path::reads);
    std::vector<float> seconds;
    for (const Path path : paths) {
      path_ = path;
      make_path();
      barrier();
      const Clock::time_point begin = Clock::now();
      run_direct(report);
      barrier();
      seconds.push_back(static_cast<float>(seconds_since(begin)));
    }
    site_.host->all_reduce(seconds.data(), seconds.size(), DType::fp32, ReduceOp::max);
    const auto fastest = std::min_element(seconds.begin(), seconds.end()) - seconds.begin();
    path_ = paths[static_cast<std::size_t>(fastest)];
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
      if (path_ == Path::reads) received += reads_.start(direct_, k, memory());
      if (sends_messages()) received += send(direct_.rounds[k], memory(), everything);
    }
    settle();
    return received;
  }

  void run_direct(ReshardReport& report) {
    await_producer();
    const bool sums = options_.incremental || options_.verify;
    std::vector<TransferSums> now(sums ? direct_.rounds.size() : 0);
    for (std::size_t k = 0; k < now.size(); ++k) {
      now[k] = sums_of(direct_sums_, direct_, k).share(site_.source, ops_, *site_.host);
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
      report.received += start(round, memory(), changed);
    }
    if (options_.incremental) settle();
    for (std::size_t k = 0; options_.verify && k < now.size(); ++k) {
      sums_of(direct_sums_, direct_, k)
          .check_landed(now[k], site_.destination, ops_, plan_.tensors);
    }
    report.verified = options_.verify;
    if (options_.incremental) sums_ = std::move(now);
  }

  /// The sums of one round, compiled once.
  const RoundSums& sums_of(std::vector<std::optional<RoundSums>>& all, const SwitchRounds& rounds,
                           std::size_t k) const {
    if (all.empty()) all.resize(rounds.rounds.size());
    if (!all[k]) all[k].emplace(rounds.rounds[k], rank_);
    return *all[k];
  }

  void make_buffers(DType wire) {
    if (wire_ == wire) return;
    wire_ = wire;
    messages_.reset();
    const std::int64_t bound = options_.bucket_bytes > 0 ? options_.bucket_bytes : kBucketBytes;
    buffered_sums_.clear();
    buffered_ = buffered_rounds(plan_, rank_, ranks(), wire, bound);
    buffer_peers_.reset();
    out_ = new_block(site_, 2 * buffered_.out_bytes);
    in_ = buffered_.in_bytes > 0 ? new_block(site_, 2 * buffered_.in_bytes) : nullptr;
    if (path_ == Path::reads) buffer_peers_ = std::make_unique<PeerBlocks>(*site_.host, out_.get());
  }

  /// While one bucket travels the next is cast into the other half of the buffer.
  void run_buffered(DType wire, ReshardReport& report) {
    make_buffers(wire);
    const RoundMemory memory{buffer_peers_.get(), out_->data(),
                             in_ ? in_->data() : site_.destination};
    const std::vector<SwitchRound>& rounds = buffered_.rounds;
    if (!rounds.empty()) pack(rounds[0], wire);
    for (std::size_t k = 0; k < rounds.size(); ++k) {
      await_producer();
      TransferSums sums;
      if (options_.verify) {
        sums = sums_of(buffered_sums_, buffered_, k).share(out_->data(), ops_, *site_.host);
      }
      barrier();  // every rank has packed bucket k, and read bucket k - 1
      report.received += start(rounds[k], memory, everything);
      if (k + 1 < rounds.size()) pack(rounds[k + 1], wire);
      settle();
      if (options_.verify) {
        sums_of(buffered_sums_, buffered_, k).check_landed(sums, memory.to, ops_, plan_.tensors);
      }
      for (const BufferCast& cast : rounds[k].unpack) {
        ops_.cast(at(site_.destination, cast.to), plan_.destination_type,
                  at(in_->data(), cast.from), wire, static_cast<std::size_t>(cast.elements));
      }
    }
    await_producer();
    report.verified = options_.verify;
    if (wire != DType::fp32 && plan_.source_type == DType::fp32) {
      const CastError error = ops_.take_cast_error();
      std::array<float, 2> sums{static_cast<float>(error.squared_error),
                                static_cast<float>(error.squared_norm)};
      site_.host->all_reduce(sums.data(), sums.size(), DType::fp32, ReduceOp::sum);
      report.cast_error = sums[1] > 0 ? std::sqrt(sums[0] / sums[1]) : 0;
    }
  }

  void pack(const SwitchRound& round, DType wire) {
    for (const BufferCast& cast : round.pack) {
      const auto elements = static_cast<std::size_t>(cast.elements);
      const std::byte* from = at(site_.source, cast.from);
      if (wire != DType::fp32 && plan_.source_type == DType::fp32) {
        ops_.cast_noting_error(at(out_->data(), cast.to), wire, from, elements);
      } else {
        ops_.cast(at(out_->data(), cast.to), wire, from, plan_.source_type, elements);
      }
    }
  }

  /// Which of this rank's tensors each bucket waits for.
  void await_tensors() {
    buckets_of_.clear();
    awaited_.assign(direct_.rounds.size(), 0);
    for (std::size_t k = 0; k < direct_.rounds.size(); ++k) {
      for (const Transfer& transfer : direct_.rounds[k].plan.transfers) {
        if (transfer.source != rank_) continue;
        std::vector<int>& buckets = buckets_of_[transfer.tensor];
        if (!buckets.empty() && buckets.back() == static_cast<int>(k)) continue;
        buckets.push_back(static_cast<int>(k));
        ++awaited_[k];
      }
    }
  }

  /// Buckets leave in their order.
  void ready_complete() {
    for (std::size_t k = 0; k < awaited_.size() && awaited_[k] <= 0; ++k) {
      if (awaited_[k] == 0) ready(static_cast<int>(k));
    }
  }

  /// A bucket leaves when its last writes are done on every rank.
  void follow(Follower& counter) {
    const std::uint64_t before = overlapped_ * direct_.rounds.size();
    for (std::size_t k = 0; k < direct_.rounds.size(); ++k) {
      if (!counter.await(static_cast<int>(k) + 1)) return;
      site_.copies->await_mark(marks_[k]);
      signals_.raise(kReadySlot, before + k + 1);
      signals_.await_all(kReadySlot, before + k + 1);
      if (k == 0) started_at_ = Clock::now();
      overlapped_bytes_ += reads_.start(direct_, k, memory());
    }
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
  ReadPath reads_;
  std::unique_ptr<GatherPath> gathers_;
  std::unique_ptr<MessagePath> messages_;  // of all, or of what no all-gather does
  Path messages_for_ = Path::messages;
  std::int64_t switches_ = 0;
  std::vector<TransferSums> sums_;  // of the last incremental switch, by round
  std::vector<std::optional<RoundSums>> direct_sums_, buffered_sums_;

  std::optional<DType> wire_;  // what the buffers were made for
  SwitchRounds buffered_;
  std::unique_ptr<SharedBlock> out_, in_;
  std::unique_ptr<PeerBlocks> buffer_peers_;

  std::uint64_t overlapped_ = 0;       // switches so far
  std::int64_t overlapped_bytes_ = 0;  // of this one, from peers
  ReshardHooks hooks_;
  Clock::time_point started_at_;
  std::vector<int> marks_;
  std::map<int, std::vector<int>> buckets_of_;  // tensors that are still to be written
  std::vector<int> awaited_;                    // tensors by bucket; -1 = it is ready
  std::unique_ptr<Follower> follower_;          // last: its thread uses the rest
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
