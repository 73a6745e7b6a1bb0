#include "planner/request/plan_constants.h"

#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "cost_models/fit/derived_calibration.h"

namespace tessera {
namespace {

Calibration own_constants(const Provenance& made) {
  Calibration calibration = made.constants.front();
  calibration.views.assign(made.constants.begin() + 1, made.constants.end());
  return calibration;
}

std::string why_other(const Provenance& made, const Calibration& found) {
  if (made.calibration_digest.empty()) {
    if (made.calibration.empty() || made.calibration == found.name) return {};
    return "the constants that the plan was made with (" + made.calibration +
           ") are not here: those of " + found.name + " take their place";
  }
  const std::string digest = digest_of(found);
  if (digest == made.calibration_digest) return {};
  return "the plan was made with other constants (" + made.calibration + ", digest " +
         made.calibration_digest + ") than those that it is judged with (" + found.name +
         ", digest " + digest + ")";
}

}  // namespace

std::string digest_of(const Calibration& calibration) {
  std::string text = to_json(calibration);
  for (const Calibration& view : calibration.views) text += to_json(view);
  return digest_text(XXH3_64bits(text.data(), text.size()));
}

void state_constants(Plan& plan, const Calibration& calibration) {
  Provenance& made = plan.provenance;
  made.calibration = calibration.name;
  made.calibration_digest = digest_of(calibration);
  made.constants.clear();
  Problems unheard;  // then the plan holds them
  const auto shipped = calibration_named(calibration.name, plan.cluster, unheard);
  if (shipped && digest_of(*shipped) == made.calibration_digest) return;
  made.constants.push_back(calibration);
  made.constants.front().views.clear();
  made.constants.insert(made.constants.end(), calibration.views.begin(), calibration.views.end());
}

std::optional<PlanConstants> constants_of(const Plan& plan, Problems& problems) {
  const Provenance& made = plan.provenance;
  auto found = made.constants.empty() ? calibration_named(made.calibration, plan.cluster, problems)
                                      : own_constants(made);
  if (!found) return std::nullopt;
  std::string other = why_other(made, *found);
  return PlanConstants{*std::move(found), std::move(other)};
}

}  // namespace tessera
