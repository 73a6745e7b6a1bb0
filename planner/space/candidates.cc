// The candidates that layouts stand for.
#include "planner/space/distinct_limits.h"
#include "planner/space/layout_space.h"

namespace tessera {

namespace {

Candidate candidate_at(const Candidate& layout, const MemoryChoice& choice,
                       const BatchLimit& batch) {
  Candidate candidate = layout;
  candidate.zero = choice.zero;
  candidate.recompute = choice.recompute;
  candidate.offload = choice.offload;
  candidate.tokens = batch.tokens;
  candidate.max_sequences = batch.max_sequences;
  return candidate;
}

std::int64_t size_of(std::size_t choices, std::size_t batches, bool limits_apart) {
  return static_cast<std::int64_t>(choices * batches * (limits_apart ? batches : 1));
}

}  // namespace

Candidate LayoutSpace::at(const MemoryChoice& choice, const BatchLimit& batch) const {
  return candidate_at(layout, choice, batch);
}

Candidate SharedSpace::at(const MemoryChoice& choice, const BatchLimit& batch) const {
  return candidate_at(layout, choice, batch);
}

std::int64_t LayoutSpace::size() const {
  return size_of(choices.size(), batches.size(), limits_apart);
}

std::int64_t SharedSpace::size() const {
  return size_of(choices.size(), batches.size(), limits_apart);
}

SharedSpace SharedLists::shared(const LayoutSpace& space) {
  const auto& choices = choices_.kept(space.choices);
  const auto& batches = batches_.kept(space.batches);
  return {space.layout, choices, batches, space.limits_apart, space.share};
}

std::vector<Candidate> candidates_of(const std::vector<LayoutSpace>& layouts) {
  std::vector<Candidate> candidates;
  for (const LayoutSpace& space : layouts) {
    for (const MemoryChoice& choice : space.choices) {
      for (const BatchLimit& batch : space.batches) {
        candidates.push_back(space.at(choice, batch));
        if (!space.limits_apart) continue;
        const Candidate alike = candidates.back();
        for (const BatchLimit& other : space.batches) {
          if (other.tokens == batch.tokens) continue;
          candidates.push_back(alike);
          candidates.back().update_tokens = other.tokens;
        }
      }
    }
  }
  return candidates;
}

std::vector<Candidate> enumerate_candidates(const PlanRequest& request,
                                            const Capabilities& capabilities, Role role, int gpus) {
  DistinctLimits limits(request.workload);
  std::vector<LayoutSpace> layouts = enumerate_layouts(request, capabilities, role, gpus, limits);
  for (LayoutSpace& space : layouts) space.limits_apart = false;
  return candidates_of(layouts);
}

}  // namespace tessera
