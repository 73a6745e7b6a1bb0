// The reasons why nothing fits: the rank that comes closest, what is too much there, and the
// nearest fix.
//
// Plain values; bytes of a rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/spec/units.h"
#include "planner/engines/capabilities.h"
#include "planner/pricing/evaluate.h"
#include "planner/request/request.h"

namespace tessera {

/// The rank that comes closest to fitting, and what is too much there.
struct MemoryShortage {
  Role role = Role::actor;  // with most bytes on the rank in the phase
  Phase phase = Phase::gen;
  int rank = 0;
  std::string layout;        // of the role
  std::string gpu;           // type of the rank, where the cluster has several
  std::string tensor_class;  // the largest of the role: "weights", "optimizer", ...
  Bytes class_bytes;
  Bytes needed, limit;  // of all roles on the rank together

  Bytes missing() const { return needed - limit; }
};

/// What a fix changes about the request; neither: other hardware, or nothing is known to help.
struct RequestChange {
  std::optional<FixedSettings> fixed;  // instead of the request's
  std::int64_t nodes = 0;              // instead of the cluster's; 0 = as it is

  bool any() const { return fixed.has_value() || nodes > 0; }
};

struct Infeasible {
  std::vector<MemoryShortage> shortages;
  std::vector<std::string> reasons;  // one line each, shortages included
  std::string nearest_fix;           // empty: none was found
  RequestChange change;              // that the fix asks for
};

/// The reasons why nothing fits; no fix is looked for.
Infeasible why_infeasible(const PlanRequest& request, const Capabilities& capabilities,
                          CostEvaluator& costs);

/// The same, and the smallest single change that makes something fit.
Infeasible explain_infeasible(const PlanRequest& request, const Capabilities& capabilities,
                              CostEvaluator& costs);

}  // namespace tessera
