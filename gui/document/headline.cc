// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/headline.h"

#include <QStringList>
#include <algorithm>

#include "gui/document/text.h"
#include "planner/explain/memory_fit.h"
#include "planner/plan/certified.h"
#include "planner/pricing/memory_limit.h"
#include "planner/request/plan_value.h"

namespace tessera::gui {
namespace {

QString fits_text(const Plan& plan, const std::optional<Calibration>& calibration) {
  if (!calibration) return "its constants are not here: whether it fits is not known";
  const PlanFit fit = fit_of(plan, *calibration);
  const Bytes limit = plan.cluster.groups.empty() ? usable_memory(plan, *calibration) : fit.device;
  return QString("fits with %1 (%2)")
      .arg(QString::fromStdString(fit_text(plan, fit.probability)), partText(fit.peak, limit));
}

QString largest_text(const Prediction& prediction) {
  const auto largest =
      std::max_element(prediction.phases_s.begin(), prediction.phases_s.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (largest == prediction.phases_s.end() || prediction.step_s <= 0) return {};
  return QString("%1 % in %2")
      .arg(100 * (largest->second / prediction.step_s), 0, 'f', 0)
      .arg(toText(name_of(largest->first)));
}

// Rows of the table count from 1, the plan's own.
QString rivals_text(const Plan& plan) {
  const Certificate& found = plan.certificate;
  if (const std::string why = why_not_certified(plan); !why.empty()) {
    return QString("not compared: the plan is %1").arg(QString::fromStdString(why));
  }
  if (found.runner_up.empty()) return "no other plan fits";
  const double behind = worse_by(plan, priced(plan, found.runner_up.front()));
  const bool tied = found.margin == 0 || behind <= 0 ||
                    (found.margin_deviations > 0 && found.margin_deviations < 1);
  return tied ? QString("tied with row 2") : QString("row 2: +%1 %").arg(100 * behind, 0, 'f', 1);
}

}  // namespace

QString Headline::text() const {
  QStringList parts{step, throughput, fits, largest, rivals};
  parts.removeAll(QString());
  return parts.join("  ");
}

Headline headline_of(const Plan& plan, const std::optional<Calibration>& calibration,
                     const Plan* best) {
  const Prediction& prediction = plan.prediction;
  Headline line;
  line.step = secondsText(prediction.step_s, prediction.step_error_s);
  line.throughput = countText(prediction.tokens_per_s_per_gpu) + " tok/s/GPU";
  line.fits = fits_text(plan, calibration);
  line.largest = largest_text(prediction);
  line.rivals =
      best == nullptr
          ? rivals_text(plan)
          : QString("%1 % behind row 1").arg(100 * worse_by(*best, priced(plan)), 0, 'f', 1);
  return line;
}

QString headline_of(const Infeasible& none) {
  if (none.shortages.empty()) {
    return "Nothing fits: " + (none.reasons.empty() ? QString("no reason is known")
                                                    : QString::fromStdString(none.reasons.front()));
  }
  const MemoryShortage& most = none.shortages.front();
  return QString("Nothing fits: rank %1 needs %2 in %3 (%4), %5 too much")
      .arg(most.rank)
      .arg(partText(most.needed, most.limit), toText(name_of(most.phase)),
           toText(name_of(most.role)), bytesText(most.missing()));
}

QString proof_text(const Plan& plan, double seconds) {
  const Certificate& found = plan.certificate;
  if (const std::string why = why_not_certified(plan); !why.empty()) {
    return QString("No search has proven this plan: it is %1.").arg(QString::fromStdString(why));
  }
  const QString took = seconds > 0 ? QString(" in %1").arg(secondsText(seconds)) : QString();
  return QString("Proven best of the space%1: %2 candidates priced, %3 branches cut, gap %4 %.")
      .arg(took, countText(static_cast<double>(found.evaluated)),
           countText(static_cast<double>(found.pruned)))
      .arg(100 * found.gap, 0, 'f', 2);
}

}  // namespace tessera::gui
