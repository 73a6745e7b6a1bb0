#include "simulator/rollout/replica.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

class Replica {
 public:
  Replica(std::span<const std::int64_t> lengths, const ReplicaBatching& batching,
          const ReplicaCosts& costs)
      : lengths_(lengths), batching_(batching), costs_(costs), free_(batching.max_sequences) {
    TESSERA_CHECK(free_ > 0);
  }

  std::vector<RolloutSegment> run() {
    while (next_ < lengths_.size() || !running_.empty()) {
      if (next_ < lengths_.size() && free_ > 0) {
        admit();
      } else {
        decode_to_next_finish();
      }
    }
    return std::move(segments_);
  }

 private:
  // (decode step after which it ends, cached tokens at step zero); the next to end on top.
  using Running = std::pair<std::int64_t, std::int64_t>;

  void admit() {
    const bool chunked = !batching_.refills_alone;
    std::int64_t prompts = 0, entered = 0, ended = 0;
    std::int64_t last_prompt = chunked ? cached_prompt_ : -1;
    for (; next_ < lengths_.size() && free_ > 0; ++next_) {
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
        const std::int64_t offset = batching_.prompt_tokens + 1 - decoded_;
        running_.emplace(decoded_ + length - 1, offset);
        offsets_ += offset;
      }
    }
    free_ += ended;
    cached_prompt_ = last_prompt;
    if (chunked && decoded_ > 0) return append_chunks(prompts, entered);
    OperationTime time = costs_.prefill(static_cast<double>(prompts), static_cast<double>(entered));
    if (!segments_.empty() && segments_.back().kind == SegmentKind::prefill) {
      time.seconds /= batching_.stages;
      time.communication_s /= batching_.stages;
    }
    append({.kind = SegmentKind::prefill, .sequences = entered, .steps = prompts}, time);
  }

  void append_chunks(std::int64_t prompts, std::int64_t entered) {
    if (prompts == 0) return;
    const std::int64_t whole = std::max(
        prompts, batching_.prefill_tokens / std::max<std::int64_t>(1, batching_.prompt_tokens));
    OperationTime time = costs_.prefill(static_cast<double>(whole), static_cast<double>(whole));
    const double part =
        static_cast<double>(prompts) / static_cast<double>(whole * batching_.stages);
    time.seconds *= part;
    time.communication_s *= part;
    append({.kind = SegmentKind::prefill, .sequences = entered, .steps = prompts}, time);
  }

  // In pieces within which the context grows by at most a sixteenth: a step's time is nearly linear
  // in the context, so the middle stands for the piece.
  void decode_to_next_finish() {
    const std::int64_t end = running_.top().first;
    const auto alive = static_cast<double>(running_.size());
    RolloutSegment segment{.sequences = static_cast<std::int64_t>(running_.size())};
    OperationTime sum;
    while (decoded_ < end) {
      const double context = static_cast<double>(offsets_) / alive + static_cast<double>(decoded_);
      const std::int64_t piece =
          std::min(end - decoded_, std::max<std::int64_t>(1, std::llround(context / 16)));
      const OperationTime step = costs_.decode(alive, context + static_cast<double>(piece - 1) / 2);
      sum.seconds += static_cast<double>(piece) * step.seconds;
      sum.communication_s += static_cast<double>(piece) * step.communication_s;
      segment.steps += piece;
      decoded_ += piece;
    }
    append(segment, sum);
    while (!running_.empty() && running_.top().first == decoded_) {
      offsets_ -= running_.top().second;
      running_.pop();
      ++free_;
    }
  }

  void append(RolloutSegment segment, OperationTime time) {
    segment.start_s = now_;
    now_ += time.seconds;
    segment.end_s = now_;
    segment.communication_s = time.communication_s;
    segments_.push_back(segment);
  }

  std::span<const std::int64_t> lengths_;
  const ReplicaBatching& batching_;
  const ReplicaCosts& costs_;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
  std::int64_t free_;
  std::size_t next_ = 0;             // first sequence that has not entered
  std::int64_t decoded_ = 0;         // decode steps so far
  std::int64_t cached_prompt_ = -1;  // the last that was prefilled
  std::int64_t offsets_ = 0;         // sum over the running ones of cached tokens at step zero
  double now_ = 0;
  std::vector<RolloutSegment> segments_;
};

RolloutSegment joined(const RolloutSegment& a, const RolloutSegment& b) {
  RolloutSegment both = a;
  both.end_s = b.end_s;
  both.communication_s += b.communication_s;
  both.steps += b.steps;
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

std::vector<RolloutSegment> simulate_replica(std::span<const std::int64_t> response_tokens,
                                             const ReplicaBatching& batching,
                                             const ReplicaCosts& costs) {
  return Replica(response_tokens, batching, costs).run();
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
