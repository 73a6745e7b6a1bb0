// The layouts that a role may have: degrees, memory choices and batches, as values and as a list.
//
// Plain values and pure functions. Ranks count GPUs, token limits tokens of one micro-batch on one
// model replica.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "planner/engines/capabilities.h"
#include "planner/request/candidate.h"
#include "planner/request/request.h"
#include "planner/space/distinct_limits.h"
#include "planner/space/pool_share.h"

namespace tessera {

/// The candidates of one layout: every choice of memory with every batch; where `limits_apart`,
/// with every pair of batches, one for the calls that train and one for the others. Batches ascend.
struct LayoutSpace {
  Candidate layout;  // the degrees; nothing of choices and batches but a fixed update_tokens
  std::vector<MemoryChoice> choices;
  std::vector<BatchLimit> batches;
  bool limits_apart = false;
  PoolShare share = PoolShare::even;  // of a rollout that has GPUs of its own

  Candidate at(const MemoryChoice& choice, const BatchLimit& batch) const;
  std::int64_t size() const;
};

/// The same with lists that many layouts have in common, which SharedLists owns.
struct SharedSpace {
  Candidate layout;
  std::span<const MemoryChoice> choices;
  std::span<const BatchLimit> batches;
  bool limits_apart = false;
  PoolShare share = PoolShare::even;

  Candidate at(const MemoryChoice& choice, const BatchLimit& batch) const;
  std::int64_t size() const;
};

/// Every list once. What it hands out holds as long as it lives; one thread.
class SharedLists {
 public:
  SharedSpace shared(const LayoutSpace& space);

 private:
  // Layouts that follow one another often have the same.
  template <typename Item>
  struct Lists {
    std::set<std::vector<Item>> all;
    const std::vector<Item>* latest = nullptr;

    const std::vector<Item>& kept(const std::vector<Item>& list) {
      if (latest == nullptr || *latest != list) latest = &*all.insert(list).first;
      return *latest;
    }
  };
  Lists<MemoryChoice> choices_;
  Lists<BatchLimit> batches_;
};

/// Every way to run a role on `gpus` ranks that engine, model, batch and fixed settings allow: tp
/// divides a node and does not exceed the heads, pp the layers; dp divides the role's batches, and
/// the rollout's is at most what is dealt to its replicas; token limits of calls that train, and of
/// the others, count longest sequences, one limit for every number of micro-batches (`limits`),
/// up to 128 Ki tokens per cp rank; rollout slots all of a replica's sequences, a half, a quarter,
/// ... Where the engine has them: cp as context_degrees.h says, as ring and as Ulysses;
/// virtual stages that divide the layers, up to 8; the last stage shorter by its head; ep that
/// divides the experts, with an etp that divides tp (of others' servers 1 or tp); FSDP over all
/// replicas or a node's; every recomputation; optimizer, or everything, offloaded between phases;
/// the rollout unmapped. Sequence parallelism wherever tp > 1, for short sequences also without. In
/// a fixed order.
std::vector<LayoutSpace> enumerate_layouts(const PlanRequest& request,
                                           const Capabilities& capabilities, Role role, int gpus,
                                           DistinctLimits& limits);
std::vector<Candidate> candidates_of(const std::vector<LayoutSpace>& layouts);
/// The candidates with one token limit for all calls of a role.
std::vector<Candidate> enumerate_candidates(const PlanRequest& request,
                                            const Capabilities& capabilities, Role role, int gpus);

}  // namespace tessera
