// Bytes and time of moving the actor's weights into the rollout's layout.
//
// Bytes of one rank. A ReshardPricer keeps what it has worked out and belongs to one
// thread.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cost_models/spec/units.h"
#include "planner/pricing/role/role_model.h"

namespace tessera {

/// Bytes of a reshard on the same ranks: of the rank that receives most, and of the one that sends
/// most.
struct BusiestBytes {
  Bytes received, sent;
};

/// Overlaps of training and generation shards, in elements, by [training tp rank][generation rank].
struct ShardOverlap {
  std::array<std::vector<std::vector<std::int64_t>>, kLayerKinds> layer;
  std::vector<std::vector<std::int64_t>> first, last, both;
};

class ReshardPricer {
 public:
  /// Keeps references to the three. `actor` is nullptr where the workload has none: then weights
  /// reach only a rollout on ranks of its own.
  ReshardPricer(const Assumptions& assumed, ModelParts* actor, ModelParts& rollout);

  /// On the same ranks: what the exact ReshardPlan says, in closed form over the parameter table.
  BusiestBytes bytes(const Candidate& actor, const Candidate& rollout);

  /// `shared`: the rollout is on the actor's ranks, else on ranks of its own.
  Seconds seconds(const Candidate& actor, const Candidate& rollout, bool shared);
  /// Of what all ranks of a rollout elsewhere receive, the part that the busiest rank of the actor
  /// sends, as busiest_link counts it: ranks of a stage send alike. 0 where receivers pass on what
  /// they have, and no sender decides.
  double busiest_share(const Candidate& actor);
  /// To a rollout on ranks of its own, from senders of whom the busiest sends this share.
  Seconds seconds_apart(double share, const Candidate& rollout);
  /// The software's part of it, which depends on no layout (handover_seconds).
  Seconds software(bool shared);

 private:
  /// All but the software's part.
  Seconds moving_seconds(const Candidate& actor, const Candidate& rollout);
  /// What a rollout on ranks of its own receives.
  struct Wanted {
    Traffic busiest, all;  // by one rank, by all of them
  };
  Wanted wanted_apart(const Candidate& rollout);
  bool passed_on() const;
  ReshardTravel travel() const;
  /// Where every rank gathers all.
  Seconds seconds_of_gather(const Candidate& actor, Seconds barriers);
  /// What a rank lacks of the weights, or of `adapters` alone.
  BusiestBytes lacking(const Candidate& actor, const Candidate& rollout, bool adapters);
  BusiestBytes cut_evenly(const Candidate& actor, const Candidate& rollout, bool adapters);
  const ShardOverlap& overlap(int training_tp, int rollout_tp, bool adapters);

  const Assumptions& assumed_;
  ModelParts* actor_;
  ModelParts& rollout_;
  std::array<std::optional<Seconds>, 2> software_;  // by `shared`
  using Cut = std::array<int, 3>;                   // training tp, rollout tp, whether of adapters
  std::map<Cut, ShardOverlap> overlaps_;
  // By actor tp, pp, rollout tp, order, whether of adapters.
  std::map<std::array<int, 5>, BusiestBytes> volumes_;
};

}  // namespace tessera
