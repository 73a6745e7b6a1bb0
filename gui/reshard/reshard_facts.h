// SPDX-License-Identifier: GPL-3.0-or-later
// How the weights of a plan travel from training to rollout: who sends whom how many bytes, and
// what every known method would cost.
//
// The bytes are those of the plan's own reshard (planner/plan/plan.h), of an engine that gathers
// whole tensors those of simulator/reshard/gathered_flows.h; the methods are those of
// `tessera reshard` (simulator/reshard/methods.h), the steps those in which a run's ranks read one
// another's memory; nothing is worked out here but sums. A plain value.
#pragma once

#include <QString>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cost_models/calibration.h"
#include "gui/document/shared_plan.h"
#include "simulator/reshard/methods.h"

namespace tessera::gui {

/// Bytes from one end to another, ranks or nodes; `from` == `to`: they stay.
struct Flow {
  int from = 0, to = 0;
  std::int64_t bytes = 0;
  bool operator==(const Flow&) const = default;
};

/// A part of the model (all of it, what lies before its layers, one layer, what lies behind), or of
/// the time in which it moves: a step.
struct ReshardPart {
  QString name;
  std::vector<Flow> flows;  // by `from`, then `to`
};

struct ReshardFacts {
  std::vector<ReshardPart> parts;  // the whole model first; empty: see `no_flows`
  QString no_flows;                // why there are none
  QString counted;                 // what flows are made of, where that is not their exact ranges
  /// In which a run moves all of it: of what is read from others, by
  /// cost_models/reshard/pull_steps.
  std::vector<ReshardPart> steps;
  QString no_steps;      // why there are none
  bool by_node = false;  // the ends of flows are nodes: there are too many ranks
  int ranks = 0, ranks_per_node = 1;
  std::vector<MethodCost> methods;
  std::optional<ReshardMethod> used;  // by the plan; nullopt: none of them

  /// The whole model, then the steps, then the parts of the model: as they are offered.
  std::vector<const ReshardPart*> choices() const;
  std::string csv, json;  // of the methods, as `tessera reshard` prints them
};

/// Beyond so many ranks flows are those between nodes.
inline constexpr int kMostFlowRanks = 64;

/// Throws Error where the plan has no reshard, or one that the methods do not know, and Stopped.
ReshardFacts reshard_facts(const Plan& plan, const Calibration& calibration,
                           const std::stop_token& stop = {});

}  // namespace tessera::gui
