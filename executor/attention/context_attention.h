// Self-attention of sequences that are cut over a context-parallel group.
//
// A ring: every rank keeps its queries while blocks of keys and values travel to the next rank; the
// next block is on its way before the current one is attended to, and the parts are merged by their
// log-sum-exp. The backward pass sends the blocks round again, their fp32 gradients one step behind
// them (Liu et al. 2023; Brandon et al. 2023 for the causal split). Ulysses exchanges positions for
// heads before attention, and back after it (Jacobs et al. 2023). Collective over the group; one
// thread per rank.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/attention/attention.h"
#include "executor/attention/context_slices.h"
#include "executor/attention/partial_attention.h"
#include "executor/comm/communicator.h"
#include "executor/tensor/side_stream.h"

namespace tessera {

/// How a context-parallel group talks. `lane` carries the ring's blocks beside the computation, on
/// `side`; nullptr: the group itself does, in program order.
struct ContextParallel {
  Communicator* group = nullptr;
  Communicator* lane = nullptr;
  SideStream side;

  bool alone() const { return group == nullptr || group->size() == 1; }
};

/// One packed batch's way through the group.
struct ContextPlan {
  ContextParallel parallel;
  ContextSlice slice;
  // Ring: rows that each rank holds, and what this rank's queries do with each rank's keys, from
  // its own on.
  std::vector<std::int64_t> rows;
  std::vector<AttentionPart> parts;
  // Ulysses: attention over all tokens for some of the heads.
  std::vector<std::int64_t> kv_heads;  // of this rank, in order of the ranks they go to
  std::shared_ptr<const AttentionPlan> inner;
};

/// `lengths` are of whole sequences. Precondition: context_refusal has nothing against it, the
/// group is not alone.
std::shared_ptr<const ContextPlan> plan_context(const Weights& weights,
                                                std::span<const std::int64_t> lengths,
                                                const ContextParallel& parallel);

/// q [rows, heads, head_dim], k and v [rows, kv heads, head_dim] of this rank's tokens (rows beyond
/// them come out as zero). Returns [rows, heads * head_dim]; differentiable.
torch::Tensor attend_context(const std::shared_ptr<const ContextPlan>& plan, const HeadRange& heads,
                             const torch::Tensor& q, const torch::Tensor& k,
                             const torch::Tensor& v);

}  // namespace tessera
