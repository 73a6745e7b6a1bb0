#include "planner/plan/certified.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"

namespace tessera {
namespace {

std::string digest_of(const Plan& plan) {
  const std::string text = to_json(plan);
  return digest_text(XXH3_64bits(text.data(), text.size()));
}

Plan without_labels(Plan plan) {
  plan.certificate.digest.clear();
  plan.environment.clear();
  for (auto& [key, model] : plan.models) model.path.clear();
  plan.provenance.tessera_version.clear();
  plan.provenance.created.clear();
  return plan;
}

}  // namespace

std::string certified_digest(const Plan& plan) { return digest_of(without_labels(plan)); }

Certified certified(const Plan& plan) {
  if (plan.certificate.digest.empty()) return Certified::not_searched;
  return plan.certificate.digest == certified_digest(plan) ? Certified::yes : Certified::edited;
}

std::string mapping_digest(const Plan& plan) {
  Plan bare = without_labels(plan);
  bare.cluster = {};
  bare.prediction = {};
  bare.certificate = {};
  bare.provenance = {};
  for (RolePlan& role : bare.roles) role.memory.clear();
  return digest_of(bare);
}

std::string run_digest(const Plan& plan) {
  Plan run = plan;
  for (PlannedReshard& pair : run.reshard) pair.transport = ReshardTransport::automatic;
  return mapping_digest(run);
}

std::uint32_t run_number(const Plan& plan) {
  return static_cast<std::uint32_t>(std::stoul(run_digest(plan).substr(0, 8), nullptr, 16));
}

std::string why_not_certified(const Plan& plan) {
  switch (certified(plan)) {
    case Certified::yes:
      break;
    case Certified::not_searched:
      return "not from a search";
    case Certified::edited:
      return "edited since its search";
  }
  return {};
}

}  // namespace tessera
