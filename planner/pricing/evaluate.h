// Time and memory of a candidate under the cost models, and the interface that any other evaluator
// (simulated, measured) implements.
//
// A CostEvaluator is the pricers of all roles under all views of the cluster (role/role_pricer.h;
// formulas and what overlaps with what are told there, by what is priced). It is made of a request
// and, to price an existing plan, of how that plan deals its ranks (plan_pricing.h). It caches and
// belongs to one thread. Seconds, bytes of one rank.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cost_models/memory.h"
#include "cost_models/spec/units.h"
#include "planner/plan/phase_seconds.h"
#include "planner/pricing/role/groups.h"
#include "planner/pricing/role/role_cost.h"
#include "planner/request/candidate.h"
#include "planner/request/request.h"

namespace tessera {

class ModelTables;      // role/role_model.h
class RolePricer;       // role/role_pricer.h
struct BusiestBytes;    // role/reshard.h
class PackedSequences;  // role/role_model.h

/// What prices candidates, as far as its callers may rely on it. Functions are pure: equal
/// arguments, equal results. Bytes do not fall when a token limit doubles (unless a cost says
/// may_shrink) or the rollout's slots grow, seconds do not with more recomputation or offload. What
/// of the reshard's seconds no layout changes are the rollout's own in that phase;
/// `reshard_seconds` are the rest. They depend on the layouts of both candidates only (where states
/// are evicted before, HandoverTraits, also on the ZeRO stage, which a request fixes then), and
/// where the rollout has ranks of its own (not `shared`) on its candidate and the actor's Senders.
/// Where a cost states `bytes`, a call depends on no token limit but its own, and resident and
/// in_reshard on none.
struct Evaluator {
  /// An actor as a rollout on ranks of its own sees it.
  struct Senders {
    int view = 0;
    /// Of all that the rollout's ranks receive, what the busiest rank sends. Seconds do not fall
    /// with it, and do not depend on it where the rollout has no more than 1 / share ranks.
    double share = 0;
  };

  /// Phases that need more than the search's limit may have no seconds.
  std::function<RoleCost(const Candidate&)> role;
  /// The same seconds whatever memory the candidate needs; empty = those of `role`.
  std::function<PhaseSeconds(const Candidate&)> seconds;
  std::function<Seconds(const Candidate& actor, const Candidate& rollout, bool shared)>
      reshard_seconds;
  /// Empty = 0 of every layout, and reshard_seconds from any actor of that view.
  std::function<double(const Candidate& actor)> busiest_share;
  std::function<Seconds(const Senders&, const Candidate& rollout)> seconds_apart;
  /// What no candidate takes less than that differs in its token limits alone, none of which is
  /// above the candidate's or below `smallest`; empty = the least of all of them is worked out.
  std::function<PhaseSeconds(const Candidate&, std::int64_t smallest)> least_seconds;
  /// No more than least_seconds, and sooner known; empty = nothing is.
  std::function<PhaseSeconds(const Candidate&, std::int64_t smallest)> glanced_seconds;
  /// The same bytes as `role`'s, without its seconds; empty = those of `role`.
  std::function<RoleCost(const Candidate&)> bytes;

  RoleCost bytes_of(const Candidate& candidate) const {
    return bytes ? bytes(candidate) : role(candidate);
  }
  double share_of(const Candidate& actor) const { return busiest_share ? busiest_share(actor) : 0; }
  Seconds reshard_apart(const Senders& from, const Candidate& rollout) const {
    if (seconds_apart) return seconds_apart(from, rollout);
    Candidate source;
    source.view = from.view;
    return reshard_seconds(source, rollout, false);
  }
};

class CostEvaluator {
 public:
  explicit CostEvaluator(const PlanRequest& request, Deal deal = {});
  CostEvaluator(const PlanRequest& request, ModelTables& tables, Deal deal = {});
  CostEvaluator(CostEvaluator&&) noexcept;
  ~CostEvaluator();

  const PlanRequest& request() const;
  /// The same with cluster and constants as a pool of that view (Candidate::view) sees them.
  const PlanRequest& request(int view) const;
  const Deal& deal() const { return deal_; }
  /// Prices by these constants from now on; what depends on none stays known.
  void recalibrate(const Calibration& calibration);

  /// Precondition: the workload has the role.
  RolePricer& pricer(Role role, int view);

  RoleCost cost(const Candidate& candidate);
  /// Of the role's phases, without the memory.
  PhaseSeconds seconds(const Candidate& candidate);
  /// As Evaluator::least_seconds and Evaluator::glanced_seconds.
  PhaseSeconds least_seconds(const Candidate& candidate, std::int64_t smallest);
  PhaseSeconds glanced_seconds(const Candidate& candidate, std::int64_t smallest);
  /// `shared`: the rollout is on the actor's ranks; else on ranks of its own, and where the two
  /// pools have other GPU types at the rate of the slower. The whole reshard, software included.
  Seconds reshard_seconds(const Candidate& actor, const Candidate& rollout, bool shared = true);
  /// The same to a rollout on ranks of its own.
  Seconds reshard_apart(const Evaluator::Senders& from, const Candidate& rollout);
  /// The software's part of it, which depends on no layout.
  Seconds handover_seconds(const Candidate& rollout, bool shared);

  /// Bytes of the role's fullest rank in a phase; the role's own phases or any other.
  MemoryUse memory(const Candidate& candidate, Phase phase);
  /// The same of a rank of a given stage, and the stage of the fullest rank.
  MemoryUse memory(const Candidate& candidate, Phase phase, int stage);
  int fullest_stage(const Candidate& candidate, Phase phase);
  /// Tokens of a replica's paged cache (PagedCache::tokens); 0 where the engine does not page.
  std::int64_t cache_tokens(const Candidate& rollout);

  /// Bytes that the busiest rank receives in a reshard from actor to rollout on the same ranks:
  /// what the exact ReshardPlan says, in closed form over the parameter table.
  Bytes reshard_bytes(const Candidate& actor, const Candidate& rollout);
  /// The same, with those of the busiest sender.
  BusiestBytes busiest_bytes(const Candidate& actor, const Candidate& rollout);

  /// Rows of the parameter table of a role's model.
  std::size_t tensors(Role role) const;

  /// Keeps a reference to this object. Candidates that exceed memory_limit (memory_limit.h) alone
  /// have no seconds.
  Evaluator evaluator();

 private:
  struct View;

  /// Of a reshard to a rollout in this view, whatever the layouts are and whether it is shared.
  Seconds least_software(int view);
  void add_views(const PlanRequest& request, ModelTables& tables);
  const View& seen_by(int view) const { return *views_[static_cast<std::size_t>(view)]; }
  View& seen_by(int view) { return *views_[static_cast<std::size_t>(view)]; }

  Deal deal_;
  std::unique_ptr<PackedSequences> packed_;
  std::vector<std::unique_ptr<View>> views_;
};

/// A call that runs no model (a rule's rewards, advantages): arithmetic of the host over the step's
/// sequences. 0.1 ms for 512 of them (tessera run, digits, 4 H200), and what the engine's software
/// takes where they are advantages.
Seconds host_call_seconds(const Call& call, const Workload& workload, const EngineTraits& traits,
                          const Calibration& calibration);

/// Seconds of the calls that run no model, by phase.
PhaseSeconds compute_call_seconds(const PlanRequest& request);

}  // namespace tessera
