// One rollout replica under continuous batching, or several in lockstep, from finish to finish
// instead of token by token.
//
// Follows executor/rollout/request_queue: waiting samples enter free slots before the next
// decode step, as many prompts as one prefill batch holds; samples of one prompt that enter
// together share its prefill; a prefill draws each sample's first token, a decode step one more of
// all. Prefill batches that follow one another fill the stages of a pipeline. Where the KV cache is
// paged, samples enter while their tokens have room in it too, and where it runs out the newest
// give up theirs, which they compute again before anything new enters (cost_models/paging). Seconds
// come from the caller's cost functions. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cost_models/spec/parallel_layout.h"
#include "cost_models/spec/split.h"
#include "cost_models/spec/workload.h"
#include "planner/plan/engine_rule.h"
#include "planner/pricing/role/role_cost.h"

namespace tessera {

struct ReplicaBatching {
  std::int64_t prompt_tokens = 0;
  std::int64_t samples_per_prompt = 1;
  std::int64_t max_sequences = 1;   // slots
  std::int64_t prefill_tokens = 0;  // limit of one prefill batch; 0 = none
  int stages = 1;                   // of the replica's pipeline
  /// A freed slot's prompt has a pass of its own; else its tokens are part of decode steps (chunked
  /// prefill; Agrawal et al. 2023, arXiv:2308.16369), at the rate of a full prefill batch, and what
  /// other samples of the prompt left in the cache is used again.
  bool refills_alone = true;
  /// What a paged KV cache holds; 0 = it has room for whatever the slots hold.
  double cache_tokens = 0;
  std::int64_t block_tokens = 1;  // of such a cache
};

struct ReplicaCosts {
  /// `prompts` whole prompts, and the first draw of `sequences` samples.
  std::function<OperationTime(double prompts, double sequences)> prefill;
  /// One token of each of `sequences` sequences at `context` cached tokens on average.
  std::function<OperationTime(double sequences, double context)> decode;
};

enum class SegmentKind { prefill, decode };

/// A prefill batch, or decode steps with a constant batch.
struct RolloutSegment {
  SegmentKind kind = SegmentKind::decode;
  std::int64_t sequences = 0;  // decoded at once, or entering
  std::int64_t steps = 0;      // decode steps; prompts of a prefill
  double start_s = 0, end_s = 0;
  double communication_s = 0;
  std::int64_t active = 0;  // sequences that have a slot while it lasts
  std::int64_t ended = 0;   // that end with it
};

/// A replica's part of a step's sequences, prompt by prompt and sample by sample, as they are
/// dealt.
Interval replica_share(const Workload& workload, PromptDealing dealing, int replicas, int replica);

/// `response_tokens` of the replica's sequences, sample by sample of each prompt. Segments follow
/// one another without gaps, from zero.
std::vector<RolloutSegment> simulate_replica(std::span<const std::int64_t> response_tokens,
                                             const ReplicaBatching& batching,
                                             const ReplicaCosts& costs);

/// Replicas whose experts are dealt to all of them: each pass of one is one of all
/// (executor/rollout/paged_model). Where all decode, each has as many rows as the fullest; a
/// prefill of one makes the others wait, and one that has ended works on until all have. Of each
/// replica its segments, the last of which, without sequences, is that wait for the end.
std::vector<std::vector<RolloutSegment>> simulate_lockstep(
    std::span<const std::span<const std::int64_t>> response_tokens, const ReplicaBatching& batching,
    const ReplicaCosts& costs);

/// To which replicas a step's sequences go.
struct ReplicaDeal {
  const Workload& workload;
  PromptDealing dealing;
  const ParallelLayout& layout;  // dp replicas; neighbours decode in lockstep
};

/// Of every replica its segments; none of one that has no sequences and waits for nobody.
std::vector<std::vector<RolloutSegment>> simulate_replicas(
    std::span<const std::int64_t> response_tokens, const ReplicaDeal& dealt,
    const ReplicaBatching& batching, const ReplicaCosts& costs);

/// Neighbours of one kind joined while together they take at most 1/parts of the whole; a joined
/// decode segment has the mean batch of its steps.
std::vector<RolloutSegment> coarsened(const std::vector<RolloutSegment>& segments, int parts);

}  // namespace tessera
