#include "executor/reshard/weight_switch.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>

#include "cost_models/spec/problem.h"
#include "executor/reshard/follower.h"
#include "executor/reshard/gathers.h"
#include "executor/reshard/pull_steps.h"
#include "executor/reshard/staged_messages.h"
#include "executor/reshard/switch_rounds.h"
#include "executor/reshard/switch_sums.h"
#include "executor/storage/host_signals.h"
#include "executor/storage/peer_blocks.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kHere = -1;                     // peer of a CopyBatch within this rank's memory
constexpr int kReadySlot = 1, kStepSlot = 2;  // of HostSignals
constexpr std::int64_t kStepQuantum = std::int64_t{1} << 20;   // of the lengths of steps
constexpr std::int64_t kBucketBytes = std::int64_t{64} << 20;  // of buffers, by default
constexpr std::int64_t kStageBytes = std::int64_t{256} << 20;  // of merged messages, by default

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::byte* at(void* data, std::int64_t offset) { return static_cast<std::byte*>(data) + offset; }
const std::byte* at(const void* data, std::int64_t offset) {
  return static_cast<const std::byte*>(data) + offset;
}

template <class... Values>
std::string text(const char* format, Values... values) {
  char buffer[240];
  const int length = std::snprintf(buffer, sizeof buffer, format, values...);
  return {buffer, static_cast<std::size_t>(length)};
}

/// The memories that one round reads and writes on this rank, and its peers' of the first kind.
struct RoundMemory {
  const PeerBlocks* peers = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
};

bool everything(int) { return true; }

/// Threads meet where copies are done when they return.
class HostBarrier final : public StreamBarrier {
 public:
  explicit HostBarrier(HostSignals& signals) : signals_(signals) {}
  void meet(void*) override {
    signals_.raise(kStepSlot, ++met_);
    signals_.await_all(kStepSlot, met_);
  }

 private:
  HostSignals& signals_;
  std::uint64_t met_ = 0;
};

/// A round's copies on this rank, one peer at a time.
struct SteppedCopies {
  std::vector<CopyBatch> kept;   // what stays on this rank
  std::vector<CopyBatch> steps;  // as many on every rank
};

}  // namespace

std::string to_string(const ReshardReport& report) {
  std::string line = text(
      "[Reshard] %.4g ms by %s, %.4g GB received by the busiest rank (lower bound %.4g GB), "
      "%.4g GB/s",
      report.seconds * 1e3, name_of(report.transport).data(), report.busiest * 1e-9,
      report.lower_bound * 1e-9, report.gb_per_s());
  if (report.exposed_s < report.seconds) line += text(", %.3g ms exposed", report.exposed_s * 1e3);
  if (report.cast_error > 0) line += text(", cast error %.2g", report.cast_error);
  if (report.verified) line += ", checksums equal";
  return line;
}

class WeightSwitch::State {
 public:
  State(SwitchPlan plan, const SwitchSite& site, const SwitchOptions& options)
      : plan_(std::move(plan)),
        site_(site),
        options_(options),
        rank_(site.host->rank()),
        ops_(site.ops != nullptr ? *site.ops : host_memory_ops()),
        signals_(*site.host) {
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
        make_step_barrier();
      }
    }
    choose(casts);
  }
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
    barrier();
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
    if (!peers_ || !signals_.usable() || options_.incremental || options_.wire) {
      throw Error(ExitCode::usage,
                  "reshard: an overlapped switch needs mapped memory of one host, one type of "
                  "weights, and moves all of them");
    }
    hooks_ = hooks;
    if (hooks_.on_start) hooks_.on_start();
    started_at_ = Clock::now();
    marks_.assign(direct_.rounds.size(), -1);
    by_copy_ = chosen_ = true;
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
    barrier();
    ReshardReport report = new_report(plan_.source_type);
    report.exposed_s = seconds_since(begin);
    report.seconds = std::max(report.exposed_s, seconds_since(started_at_));
    ++overlapped_;
    return finished(report, hooks_);
  }

  std::int64_t buffer_bytes() const {
    std::int64_t bytes = 0;
    for (const auto* block : {&out_, &in_, &out_stage_, &in_stage_}) {
      if (*block) bytes += (*block)->bytes();
    }
    return bytes;
  }

  ReshardTransport transport() const {
    if (!chosen_) return ReshardTransport::automatic;
    if (gathers_) return options_.transport;
    if (!by_copy_) return ReshardTransport::send_recv;
    return site_.make_block ? ReshardTransport::copy_engine : ReshardTransport::host;
  }

 private:
  int ranks() const { return site_.host->size(); }
  DType wire_now() const {
    if (!options_.wire || switches_ < options_.wire_from) return plan_.source_type;
    return *options_.wire;
  }
  void barrier() { signals_.usable() ? signals_.barrier() : site_.host->barrier(); }

  /// Where peers are read in steps.
  void make_step_barrier() {
    const PullOrder automatic = site_.make_barrier ? PullOrder::in_steps : PullOrder::together;
    const PullOrder order = options_.pulls == PullOrder::automatic ? automatic : options_.pulls;
    if (order == PullOrder::together || ranks() == 1 || !signals_.usable()) return;
    if (options_.incremental) return;  // what moves is not known before
    step_barrier_ =
        site_.make_barrier ? site_.make_barrier() : std::make_unique<HostBarrier>(signals_);
  }

  void choose(bool casts) {
    const ReshardTransport wanted = options_.transport;
    const bool can_copy = site_.copies != nullptr && (casts || site_.block != nullptr);
    const bool must_copy =
        wanted == ReshardTransport::copy_engine || wanted == ReshardTransport::host;
    gathers_ = wanted == ReshardTransport::all_gather || wanted == ReshardTransport::window;
    if (gathers_ && (casts || options_.wire || options_.incremental)) {
      throw Error(ExitCode::usage, "reshard: all-gathers move all weights as they are");
    }
    if (gathers_) make_groups();
    if (must_copy && !can_copy) {
      throw Error(ExitCode::usage, "reshard: " + std::string(name_of(wanted)) +
                                       " needs source memory that peers can map");
    }
    by_copy_ = can_copy && wanted != ReshardTransport::send_recv && !gathers_;
    // GPUs of one host: copy engines were faster in every pair measured (benchmarks/results).
    const bool known = site_.make_block && signals_.usable();
    chosen_ = !by_copy_ || must_copy || known || ranks() == 1;
  }

  /// One bucket, whatever its size: gathers need no buffers.
  void make_groups() {
    direct_ = direct_rounds(plan_, rank_, ranks(), 0);
    sums_.resize(1);
    const LocateBox own = [this](int tensor, const Box& box) {
      return plan_.source(rank_, tensor, box);
    };
    schedule_ = find_gathers(direct_.rounds[0].plan, plan_.tensors, rank_, own, plan_.destination);
    for (const std::vector<int>& members : schedule_.groups) {
      groups_.push_back(site_.split ? site_.split(members) : site_.world->split(members));
    }
  }

  void gather() {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      std::vector<GatherBlock> blocks;
      for (const Gather& each : schedule_.gathers) {
        if (each.group != static_cast<int>(g)) continue;
        blocks.push_back({at(site_.source, each.from), at(site_.destination, each.to),
                          static_cast<std::size_t>(each.bytes)});
      }
      if (!blocks.empty()) groups_[g]->all_gather_batch(blocks);
    }
  }

  ReshardReport new_report(DType wire) const {
    const std::vector<RankTraffic>& traffic = plan_.plan.traffic;
    const auto index = static_cast<std::size_t>(rank_);
    const auto travelling = [&](std::int64_t bytes) {
      return bytes / size_of(plan_.source_type) * size_of(wire);
    };
    return {.received = index < traffic.size() ? travelling(traffic[index].received) : 0,
            .busiest = travelling(plan_.plan.bytes_received.value),
            .lower_bound = travelling(plan_.plan.lower_bound.value),
            .planned = plan_.plan.bytes_received.value};
  }

  ReshardReport finished(ReshardReport report, const ReshardHooks& hooks) {
    report.transport = transport();
    ++switches_;
    if (hooks.on_end) hooks.on_end(report);
    return report;
  }

  /// Both ends of an edge decide alike: only ranks of one host read one another's memory.
  bool reads(int peer) const { return by_copy_ && signals_.same_host(peer); }
  bool sends_messages() const { return !by_copy_ || !signals_.usable(); }

  std::vector<CopyBatch> batches_of(const SwitchRound& round, const RoundMemory& memory,
                                    const std::function<bool(int)>& wanted) const {
    std::vector<Pull> chosen;
    for (const Pull& pull : round.pulls) {
      if (reads(pull.peer) && wanted(pull.transfer)) chosen.push_back(pull);
    }
    std::vector<CopyBatch> batches;
    for (const Pull& pull : joined(chosen)) {
      const int peer = pull.peer == rank_ ? kHere : pull.peer;
      if (batches.empty() || batches.back().peer != peer) batches.push_back({.peer = peer});
      add(batches.back(), pull, memory);
    }
    return batches;
  }

  void add(CopyBatch& batch, const Pull& pull, const RoundMemory& memory) const {
    const std::byte* from =
        pull.peer == rank_ ? at(memory.from, pull.from) : memory.peers->at(pull.peer) + pull.from;
    std::byte* to = at(memory.to, pull.to);
    if (from == to) return;  // the layouts share this storage
    const std::int64_t most = options_.copy_bytes > 0 ? options_.copy_bytes : pull.bytes;
    for (std::int64_t done = 0; done < pull.bytes; done += most) {
      batch.add(to + done, from + done,
                static_cast<std::size_t>(std::min(most, pull.bytes - done)));
    }
  }

  /// This rank's part of the round's steps: of every peer's pulls as many bytes as the step has.
  SteppedCopies stepped(const SwitchRound& round, const RoundMemory& memory) const {
    std::map<int, std::vector<Pull>> left;  // by peer
    for (const Pull& pull : joined(round.pulls)) left[pull.peer].push_back(pull);
    SteppedCopies made;
    CopyBatch& kept = made.kept.emplace_back(CopyBatch{.peer = kHere});
    for (const Pull& pull : left[rank_]) add(kept, pull, memory);
    std::map<int, std::size_t> next;
    for (const PullStep& step :
         matched_steps(traffic_of(round.plan, plan_.tensors, ranks()), kStepQuantum)) {
      const int peer = step.source[static_cast<std::size_t>(rank_)];
      std::int64_t bytes = step.bytes[static_cast<std::size_t>(rank_)];
      CopyBatch& batch = made.steps.emplace_back(CopyBatch{.peer = std::max(peer, 0)});
      while (bytes > 0) {
        Pull& pull = left.at(peer).at(next[peer]);
        const std::int64_t part = std::min(bytes, pull.bytes);
        add(batch, {peer, pull.transfer, pull.from, pull.to, part}, memory);
        pull.from += part, pull.to += part, pull.bytes -= part, bytes -= part;
        if (pull.bytes == 0) ++next[peer];
      }
    }
    return made;
  }

  /// Begins all of a direct round by copies.
  void start_copies(std::size_t k) {
    if (!step_barrier_) return site_.copies->start(batches_of_all(k));
    if (direct_steps_.empty()) direct_steps_.resize(direct_.rounds.size());
    if (!direct_steps_[k]) {
      direct_steps_[k] =
          stepped(direct_.rounds[k], {peers_.get(), site_.source, site_.destination});
    }
    site_.copies->start_in_steps(direct_steps_[k]->steps, *step_barrier_);
    site_.copies->start(direct_steps_[k]->kept);
  }

  /// All of a direct round, compiled once.
  const std::vector<CopyBatch>& batches_of_all(std::size_t k) {
    if (direct_batches_.empty()) direct_batches_.resize(direct_.rounds.size());
    if (!direct_batches_[k]) {
      direct_batches_[k] = batches_of(direct_.rounds[k],
                                      {peers_.get(), site_.source, site_.destination}, everything);
    }
    return *direct_batches_[k];
  }

  /// Begins a round. Sources are final on every rank.
  void start(const SwitchRound& round, const RoundMemory& memory,
             const std::function<bool(int)>& wanted) {
    if (by_copy_) site_.copies->start(batches_of(round, memory, wanted));
    if (sends_messages()) send(round, memory, wanted);
  }

  void send(const SwitchRound& round, const RoundMemory& memory,
            const std::function<bool(int)>& wanted) {
    const auto by_message = [&](int index) {
      const Transfer& transfer = round.plan.transfers[static_cast<std::size_t>(index)];
      const int other = transfer.source == rank_ ? transfer.destination : transfer.source;
      return !reads(other) && wanted(index);
    };
    execute(messages_of(round, rank_, by_message), memory.from, memory.to, *site_.world, uneven());
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
    if (by_copy_) site_.copies->wait();
    if (sends_messages()) site_.world->barrier();
  }

  /// Messages are merged where memory can be copied here.
  bool merges() const {
    return !by_copy_ && !gathers_ && (site_.copies != nullptr || !site_.make_block);
  }

  void drop_stages() {
    messages_.reset();
    out_stage_.reset();
    in_stage_.reset();
  }

  void make_stages() {
    if (messages_) return;
    const std::int64_t bound = options_.bucket_bytes > 0 ? 4 * options_.bucket_bytes : kStageBytes;
    messages_ = staged_messages(plan_, rank_, ranks(), bound);
    if (messages_->out_bytes > 0) out_stage_ = new_block(messages_->out_bytes);
    if (messages_->in_bytes > 0) in_stage_ = new_block(messages_->in_bytes);
    if (site_.copies == nullptr) own_copies_ = make_host_copies();
  }

  void post(const MessageRound& round) {
    std::vector<SendBlock> sends;
    std::vector<ReceiveBlock> receives;
    for (const auto& [peer, staged, range] : round.sends) {
      sends.push_back({peer, at(staged ? out_stage_->data() : site_.source, range.offset),
                       static_cast<std::size_t>(range.bytes)});
    }
    for (const auto& [peer, staged, range] : round.receives) {
      receives.push_back({peer, at(staged ? in_stage_->data() : site_.destination, range.offset),
                          static_cast<std::size_t>(range.bytes)});
    }
    site_.world->exchange(sends, receives);
  }

  /// While one round travels the last one is unpacked and the next one packed. Messages are ordered
  /// on the producer's stream.
  void run_merged() {
    make_stages();
    BlockCopies& copies = site_.copies != nullptr ? *site_.copies : *own_copies_;
    const std::vector<MessageRound>& rounds = messages_->rounds;
    CopyBatch batch{.peer = rank_};
    const auto add = [&](const std::vector<MessageRound::Copy>& list, const void* from, void* to) {
      for (const auto& copy : list) {
        const std::byte* source = at(from, copy.from);
        std::byte* target = at(to, copy.to);
        if (source != target) batch.add(target, source, static_cast<std::size_t>(copy.bytes));
      }
    };
    const auto copy = [&] {
      copies.start({&batch, 1});
      copies.wait();
      batch = {.peer = rank_};
    };
    const auto pack = [&](std::size_t k) {
      if (out_stage_) add(rounds[k].pack, site_.source, out_stage_->data());
    };
    const auto unpack = [&](std::size_t k) {
      if (in_stage_) add(rounds[k].unpack, in_stage_->data(), site_.destination);
    };
    pack(0);
    copy();
    int mark = -1;
    for (std::size_t k = 0; k < rounds.size(); ++k) {
      post(rounds[k]);
      const int last = std::exchange(mark, copies.mark_producer());
      add(rounds[k].kept, site_.source, site_.destination);
      if (k > 0) {
        copies.await_mark(last);
        unpack(k - 1);
      }
      if (k + 1 < rounds.size()) pack(k + 1);
      copy();
    }
    copies.await_mark(mark);
    unpack(rounds.size() - 1);
    copy();
  }

  void await_producer() {
    if (site_.copies != nullptr) site_.copies->await_producer();
  }

  /// The first switch, both ways; the faster one stays. All ranks decide by the slowest one.
  void probe(ReshardReport& report) {
    std::array<float, 2> seconds{};
    for (const bool by_copy : {false, true}) {
      by_copy_ = by_copy;
      barrier();
      const Clock::time_point begin = Clock::now();
      run_direct(report);
      barrier();
      seconds[by_copy] = static_cast<float>(seconds_since(begin));
    }
    site_.host->all_reduce(seconds.data(), seconds.size(), DType::fp32, ReduceOp::max);
    by_copy_ = seconds[1] <= seconds[0];
    if (by_copy_) drop_stages();
    chosen_ = true;
  }

  /// Begins everything, whatever has changed.
  void move_all(const RoundMemory& memory) {
    if (merges()) return run_merged();
    for (std::size_t k = 0; k < direct_.rounds.size(); ++k) {
      if (by_copy_) start_copies(k);
      if (gathers_) gather();
      if (!sends_messages()) continue;
      send(direct_.rounds[k], memory, [&](int index) {
        return !gathers_ || schedule_.covered[static_cast<std::size_t>(index)] == 0;
      });
    }
  }

  void run_direct(ReshardReport& report) {
    const RoundMemory memory{peers_.get(), site_.source, site_.destination};
    await_producer();
    const bool sums = options_.incremental || options_.verify;
    std::vector<TransferSums> now(sums ? direct_.rounds.size() : 0);
    for (std::size_t k = 0; k < now.size(); ++k) {
      now[k] = sums_of(direct_sums_, direct_, k).share(site_.source, ops_, *site_.host);
    }
    barrier();
    std::int64_t received = 0;
    if (!options_.incremental) move_all(memory);
    for (std::size_t k = 0; options_.incremental && k < direct_.rounds.size(); ++k) {
      const SwitchRound& round = direct_.rounds[k];
      const TransferSums& last = sums_[k];
      const auto changed = [&](int index) {
        const auto i = static_cast<std::size_t>(index);
        return last.empty() || last[i] != now[k][i];
      };
      start(round, memory, changed);
      for (const Pull& pull : round.pulls) {
        if (pull.peer != rank_ && changed(pull.transfer)) received += pull.bytes;
      }
    }
    settle();
    for (std::size_t k = 0; options_.verify && k < now.size(); ++k) {
      sums_of(direct_sums_, direct_, k)
          .check_landed(now[k], site_.destination, ops_, plan_.tensors);
    }
    report.verified = options_.verify;
    if (options_.incremental) {
      sums_ = std::move(now);
      note_received(report, received);
    }
  }

  /// The sums of one round, compiled once.
  const RoundSums& sums_of(std::vector<std::optional<RoundSums>>& all, const SwitchRounds& rounds,
                           std::size_t k) const {
    if (all.empty()) all.resize(rounds.rounds.size());
    if (!all[k]) all[k].emplace(rounds.rounds[k], rank_);
    return *all[k];
  }

  void note_received(ReshardReport& report, std::int64_t received) {
    std::int64_t most = 0;
    std::vector<std::int64_t> all(static_cast<std::size_t>(ranks()));
    site_.host->all_gather(&received, all.data(), 1, DType::int64);
    for (const std::int64_t each : all) most = std::max(most, each);
    report.received = received;
    report.busiest = report.lower_bound = most;
  }

  std::unique_ptr<SharedBlock> new_block(std::int64_t bytes) const {
    return site_.make_block ? site_.make_block(bytes) : make_host_block(bytes);
  }

  void make_buffers(DType wire) {
    if (wire_ == wire) return;
    wire_ = wire;
    drop_stages();
    const std::int64_t bound = options_.bucket_bytes > 0 ? options_.bucket_bytes : kBucketBytes;
    buffered_sums_.clear();
    buffered_ = buffered_rounds(plan_, rank_, ranks(), wire, bound);
    buffer_peers_.reset();
    out_ = new_block(2 * buffered_.out_bytes);
    in_ = buffered_.in_bytes > 0 ? new_block(2 * buffered_.in_bytes) : nullptr;
    if (by_copy_) buffer_peers_ = std::make_unique<PeerBlocks>(*site_.host, out_.get());
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
      start(rounds[k], memory, everything);
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
      start_copies(k);
    }
  }

  SwitchPlan plan_;
  SwitchSite site_;
  SwitchOptions options_;
  int rank_;
  MemoryOps& ops_;
  HostSignals signals_;

  SwitchRounds direct_;  // no rounds when types differ
  std::vector<std::optional<std::vector<CopyBatch>>> direct_batches_;
  std::unique_ptr<StreamBarrier> step_barrier_;  // nullptr = reads go together
  std::vector<std::optional<SteppedCopies>> direct_steps_;
  std::unique_ptr<PeerBlocks> peers_;
  bool by_copy_ = false, gathers_ = false, chosen_ = false;
  GatherSchedule schedule_;
  std::vector<std::unique_ptr<Communicator>> groups_;  // nullptr where this rank is no member
  std::int64_t switches_ = 0;
  std::vector<TransferSums> sums_;  // of the last incremental switch, by round
  std::vector<std::optional<RoundSums>> direct_sums_, buffered_sums_;

  std::optional<MessageRounds> messages_;
  std::unique_ptr<SharedBlock> out_stage_, in_stage_;
  std::unique_ptr<BlockCopies> own_copies_;  // where the site has none

  std::optional<DType> wire_;  // what the buffers were made for
  SwitchRounds buffered_;
  std::unique_ptr<SharedBlock> out_, in_;
  std::unique_ptr<PeerBlocks> buffer_peers_;

  std::uint64_t overlapped_ = 0;  // switches so far
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
