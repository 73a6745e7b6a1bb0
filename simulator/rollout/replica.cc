#include "simulator/rollout/replica.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/spec/expert_parallel.h"

namespace tessera {
namespace {

// A prefill of a replica, which ends when all have done theirs; none where nothing takes time.
struct Admission {
  std::optional<RolloutSegment> segment;
  OperationTime time;
};

// A replica's sequences. Its segments end when its clock is moved.
class Replica {
 public:
  Replica(std::span<const std::int64_t> lengths, const ReplicaBatching& batching,
          const ReplicaCosts& costs)
      : lengths_(lengths), batching_(batching), costs_(costs), free_(batching.max_sequences) {
    TESSERA_CHECK(free_ > 0);
  }

  bool left() const { return next_ < lengths_.size() || !preempted_.empty() || !running_.empty(); }
  double running() const { return static_cast<double>(running_count_); }
  // Cached tokens of a sequence, on average.
  double context() const {
    return static_cast<double>(offsets_) / running() + static_cast<double>(decoded_);
  }

  // The next sample has a slot and room.
  bool enters() const {
    if (free_ == 0 || (next_ == lengths_.size() && preempted_.empty())) return false;
    if (batching_.cache_tokens == 0 || running_count_ == 0) return true;
    const std::int64_t tokens =
        preempted_.empty() ? batching_.prompt_tokens + 1 : preempted_.back().cached;
    const std::int64_t half_block = batching_.block_tokens / 2;
    return free_tokens() >= static_cast<double>(tokens + half_block);
  }

  // Samples that were preempted come before new ones, and compute their tokens again.
  Admission admit() {
    const bool chunked = !batching_.refills_alone;
    double again = 0;
    std::int64_t prompts = 0, entered = 0, ended = 0;
    for (; !preempted_.empty() && enters(); --free_, ++entered) {
      const Preempted one = preempted_.back();
      preempted_.pop_back();
      again += static_cast<double>(one.cached);
      enter(one.cached, one.left);
    }
    std::int64_t last_prompt = chunked ? cached_prompt_ : -1;
    for (; preempted_.empty() && next_ < lengths_.size() && enters(); ++next_) {
      const auto prompt = static_cast<std::int64_t>(next_) / batching_.samples_per_prompt;
      if (prompt != last_prompt) {
        const std::int64_t tokens = (prompts + 1) * batching_.prompt_tokens;
        if (batching_.prefill_tokens > 0 && prompts > 0 && tokens > batching_.prefill_tokens) break;
        ++prompts;
        last_prompt = prompt;
      }
      ++entered;
      --free_;
      const std::int64_t length = lengths_[next_];
      TESSERA_CHECK(length > 0);
      if (length == 1) {  // the prefill's draw is all
        ++ended;
      } else {
        enter(batching_.prompt_tokens + 1, length - 1);
      }
    }
    free_ += ended;
    cached_prompt_ = last_prompt;
    if (chunked && decoded_ > 0) return chunks(prompts, again, entered, ended);
    OperationTime time = costs_.prefill(static_cast<double>(prompts), static_cast<double>(entered));
    if (!segments_.empty() && segments_.back().kind == SegmentKind::prefill) {
      time.seconds /= batching_.stages;
      time.communication /= batching_.stages;
    }
    return {prefilled(prompts, entered, ended), time};
  }

  // Decode steps until the next sequence ends or the cache is full; makes room for one.
  std::int64_t steps() {
    if (batching_.cache_tokens == 0) return running_.top().first - decoded_;
    make_room();
    const auto room = static_cast<std::int64_t>(std::floor(free_tokens() / running()));
    return std::min(running_.top().first - decoded_, std::max<std::int64_t>(1, room));
  }

  // All running sequences decode.
  void decode(std::int64_t steps) { decoded_ += steps; }

  // Those whose last token that was are gone, and counted by the last segment.
  void end() {
    for (; !running_.empty() && running_.top().first == decoded_; drop_preempted()) {
      leave(running_.top().second);
      running_.pop();
      ++segments_.back().ended;
    }
  }
  // The replica's time moves on to `clock`, with this segment or without any.
  void append(RolloutSegment segment, double communication, double clock) {
    segment.start_s = now_;
    segment.end_s = now_ = clock;
    segment.communication_s = communication;
    segments_.push_back(segment);
  }

  double now() const { return now_; }
  std::vector<RolloutSegment> take() { return std::move(segments_); }

 private:
  struct Sequence {
    std::int64_t end = 0;     // decode step after which it ends
    std::int64_t offset = 0;  // cached tokens at step zero
    bool runs = true;         // else it was preempted
  };
  struct Preempted {
    std::int64_t cached = 0, left = 0;  // tokens that it had, decode steps that it has
  };
  using Ending = std::pair<std::int64_t, std::size_t>;  // the step, position in entered_

  // Of the paged cache; a last block is half empty on average.
  double free_tokens() const {
    const double each =
        static_cast<double>(decoded_) + static_cast<double>(batching_.block_tokens - 1) / 2;
    return batching_.cache_tokens - static_cast<double>(offsets_) - running() * each;
  }

  void enter(std::int64_t cached, std::int64_t left) {
    const Sequence entered{decoded_ + left, cached - decoded_};
    running_.emplace(entered.end, entered_.size());
    newest_.push_back(entered_.size());
    entered_.push_back(entered);
    offsets_ += entered.offset;
    ++running_count_;
  }

  void leave(std::size_t index) {
    entered_[index].runs = false;
    offsets_ -= entered_[index].offset;
    --running_count_;
    ++free_;
  }

  RolloutSegment prefilled(std::int64_t prompts, std::int64_t entered, std::int64_t ended) const {
    return {.kind = SegmentKind::prefill,
            .sequences = entered,
            .steps = prompts,
            .active = running_count_ + ended,
            .ended = ended};
  }

  // New prompts, and tokens that are computed again at the rate of prompts.
  Admission chunks(std::int64_t prompts, double again, std::int64_t entered, std::int64_t ended) {
    if (prompts == 0 && again == 0) {  // takes no time of its own
      segments_.back().ended += ended;
      return {};
    }
    const std::int64_t prompt = std::max<std::int64_t>(1, batching_.prompt_tokens);
    const std::int64_t whole = std::max(prompts, batching_.prefill_tokens / prompt);
    const auto most = static_cast<double>(std::max<std::int64_t>(1, whole));
    OperationTime time = costs_.prefill(most, most);
    const double part = (static_cast<double>(prompts) + again / static_cast<double>(prompt)) /
                        (most * static_cast<double>(batching_.stages));
    time.seconds *= part;
    time.communication *= part;
    return {prefilled(prompts, entered, ended), time};
  }

  // The newest give up their blocks until each of the others can have one token more.
  void make_room() {
    while (running_count_ > 1 && free_tokens() < running()) {
      while (!entered_[newest_.back()].runs) newest_.pop_back();
      const Sequence& newest = entered_[newest_.back()];
      preempted_.push_back({newest.offset + decoded_, newest.end - decoded_});
      leave(newest_.back());
      newest_.pop_back();
    }
    drop_preempted();
  }

  // From the top of the sequences by their ends.
  void drop_preempted() {
    while (!running_.empty() && !entered_[running_.top().second].runs) running_.pop();
  }

  std::span<const std::int64_t> lengths_;
  const ReplicaBatching& batching_;
  const ReplicaCosts& costs_;
  std::vector<Sequence> entered_;     // every entry
  std::vector<std::size_t> newest_;   // positions of those that may run, the newest last
  std::vector<Preempted> preempted_;  // the next to enter last
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> running_;
  std::int64_t running_count_ = 0;  // without those in running_ that were preempted
  std::int64_t free_;
  std::size_t next_ = 0;             // first sequence that has not entered
  std::int64_t decoded_ = 0;         // decode steps so far
  std::int64_t cached_prompt_ = -1;  // the last that was prefilled
  std::int64_t offsets_ = 0;         // sum over the running ones of cached tokens at step zero
  double now_ = 0;
  std::vector<RolloutSegment> segments_;
};

// Replicas whose passes are one after the other's: those that share experts. One alone is a group.
class Lockstep {
 public:
  Lockstep(std::span<const std::span<const std::int64_t>> lengths, const ReplicaBatching& batching,
           const ReplicaCosts& costs)
      : costs_(costs) {
    for (const auto& own : lengths) replicas_.emplace_back(own, batching, costs);
  }

  std::vector<std::vector<RolloutSegment>> run() {
    while (std::any_of(replicas_.begin(), replicas_.end(),
                       [](const Replica& each) { return each.left(); })) {
      if (!admit()) decode();
    }
    std::vector<std::vector<RolloutSegment>> segments;
    for (Replica& each : replicas_) {
      // It works on the others' tokens until they have ended.
      if (each.now() < clock_) each.append({.kind = SegmentKind::decode}, 0, clock_);
      segments.push_back(each.take());
    }
    return segments;
  }

 private:
  // Prefills of all that have some; the others wait. False where none has.
  bool admit() {
    std::vector<std::pair<Replica*, Admission>> entered;
    OperationTime longest;
    for (Replica& each : replicas_) {
      if (!each.left() || !each.enters()) continue;
      entered.emplace_back(&each, each.admit());
      if (entered.back().second.time.seconds > longest.seconds) {
        longest = entered.back().second.time;
      }
    }
    clock_ += longest.seconds.value;
    for (const auto& [replica, admission] : entered) {
      if (!admission.segment) continue;
      replica->append(*admission.segment, admission.time.communication, clock_);
    }
    return !entered.empty();
  }

  // The rows of the fullest replica, to which the others are padded, and the context at which these
  // rows read what is read by the replica that reads most.
  std::pair<double, double> load() const {
    double rows = 0, context = 0;
    for (const Replica& each : replicas_) {
      if (each.left()) rows = std::max(rows, each.running());
    }
    for (const Replica& each : replicas_) {
      if (!each.left()) continue;
      const double part = each.running() == rows ? 1 : each.running() / rows;
      context = std::max(context, part * each.context());
    }
    return {rows, context};
  }

  // Until the first of them ends a sequence or has a full cache, in pieces within which the context
  // grows by at most a sixteenth: a step's time is nearly linear in the context, so the middle
  // stands for the piece.
  void decode() {
    std::int64_t steps = std::numeric_limits<std::int64_t>::max();
    for (Replica& each : replicas_) {
      if (each.left()) steps = std::min(steps, each.steps());
    }
    OperationTime sum;
    for (std::int64_t done = 0; done < steps;) {
      const auto [rows, context] = load();
      const std::int64_t piece =
          std::min(steps - done, std::max<std::int64_t>(1, std::llround(context / 16)));
      const OperationTime step = costs_.decode(rows, context + static_cast<double>(piece - 1) / 2);
      sum.seconds += static_cast<double>(piece) * step.seconds;
      sum.communication += static_cast<double>(piece) * step.communication;
      done += piece;
      for (Replica& each : replicas_) {
        if (each.left()) each.decode(piece);
      }
    }
    clock_ += sum.seconds.value;
    for (Replica& each : replicas_) {
      if (!each.left()) continue;
      const auto running = static_cast<std::int64_t>(each.running());
      each.append({.sequences = running, .steps = steps, .active = running}, sum.communication,
                  clock_);
      each.end();
    }
  }

  const ReplicaCosts& costs_;
  std::vector<Replica> replicas_;
  double clock_ = 0;
};

RolloutSegment joined(const RolloutSegment& a, const RolloutSegment& b) {
  RolloutSegment both = a;
  both.end_s = b.end_s;
  both.communication_s += b.communication_s;
  both.steps += b.steps;
  both.ended += b.ended;
  both.active = std::max(a.active, b.active);
  if (a.kind == SegmentKind::prefill) {
    both.sequences += b.sequences;
  } else {
    const double tokens = static_cast<double>(a.sequences) * static_cast<double>(a.steps) +
                          static_cast<double>(b.sequences) * static_cast<double>(b.steps);
    both.sequences = std::llround(tokens / static_cast<double>(both.steps));
  }
  return both;
}

}  // namespace

Interval replica_share(const Workload& workload, PromptDealing dealing, int replicas, int replica) {
  if (dealing == PromptDealing::requests) return split(workload.sequences(), replicas, replica);
  const Interval prompts = split(workload.prompts_per_step, replicas, replica);
  return {prompts.lo * workload.samples_per_prompt, prompts.hi * workload.samples_per_prompt};
}

std::vector<std::vector<RolloutSegment>> simulate_lockstep(
    std::span<const std::span<const std::int64_t>> response_tokens, const ReplicaBatching& batching,
    const ReplicaCosts& costs) {
  return Lockstep(response_tokens, batching, costs).run();
}

std::vector<RolloutSegment> simulate_replica(std::span<const std::int64_t> response_tokens,
                                             const ReplicaBatching& batching,
                                             const ReplicaCosts& costs) {
  return std::move(Lockstep({&response_tokens, 1}, batching, costs).run().front());
}

std::vector<std::vector<RolloutSegment>> simulate_replicas(
    std::span<const std::int64_t> response_tokens, const ReplicaDeal& dealt,
    const ReplicaBatching& batching, const ReplicaCosts& costs) {
  const int replicas = dealt.layout.dp, together = replicas_in_lockstep(dealt.layout);
  std::vector<std::vector<RolloutSegment>> all;
  for (int first = 0; first < replicas; first += together) {
    std::vector<std::span<const std::int64_t>> lengths;
    for (int replica = first; replica < std::min(replicas, first + together); ++replica) {
      const Interval share = replica_share(dealt.workload, dealt.dealing, replicas, replica);
      lengths.push_back(response_tokens.subspan(static_cast<std::size_t>(share.lo),
                                                static_cast<std::size_t>(share.size())));
    }
    for (auto& segments : simulate_lockstep(lengths, batching, costs)) {
      all.push_back(std::move(segments));
    }
  }
  return all;
}

std::vector<RolloutSegment> coarsened(const std::vector<RolloutSegment>& segments, int parts) {
  std::vector<RolloutSegment> result;
  if (segments.empty()) return result;
  const double least = segments.back().end_s / parts;
  for (const RolloutSegment& segment : segments) {
    const bool short_enough = !result.empty() && result.back().kind == segment.kind &&
                              segment.end_s - result.back().start_s <= least;
    if (short_enough) {
      result.back() = joined(result.back(), segment);
    } else {
      result.push_back(segment);
    }
  }
  return result;
}

}  // namespace tessera
