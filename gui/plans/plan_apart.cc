// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plans/plan_apart.h"

#include <QStringList>
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

double seconds_of(const Plan& plan, Phase phase) {
  const auto found = plan.prediction.phases_s.find(phase);
  return found == plan.prediction.phases_s.end() ? 0 : found->second.value;
}

// Phases that take longer in the slower plan: as many as make up nine tenths, but three at most.
QStringList longer_phases(const Plan& fast, const Plan& slow) {
  std::vector<std::pair<double, Phase>> more;
  double all = 0, told = 0;
  for (const Phase phase : kEveryPhase) {
    const double apart = seconds_of(slow, phase) - seconds_of(fast, phase);
    if (apart <= 0) continue;
    more.emplace_back(apart, phase);
    all += apart;
  }
  std::stable_sort(more.begin(), more.end(),
                   [](const auto& left, const auto& right) { return left.first > right.first; });
  QStringList phases;
  for (const auto& [apart, phase] : more) {
    if (told >= 0.9 * all || phases.size() == 3) break;
    phases << toText(name_of(phase)) + " " + moreText(apart);
    told += apart;
  }
  return phases;
}

// What takes longer before what takes less: the first is the cause.
QStringList causes(const NamedPlan& fast, const NamedPlan& slow) {
  QStringList longer, shorter;
  if (fast.parts == nullptr || slow.parts == nullptr) return {};
  for (const auto& [part, more] : parts_apart(*fast.parts, *slow.parts)) {
    (more > 0 ? longer : shorter) << part_text(part) + " " + moreText(more);
  }
  return longer + shorter;
}

}  // namespace

QString part_text(StepPart part) {
  switch (part) {
    case StepPart::communication:
      return Words::tr("communication");
    case StepPart::bubble:
      return Words::tr("pipeline bubble");
    case StepPart::host:
      return Words::tr("host and copies");
    case StepPart::computation:
      break;
  }
  return Words::tr("computation");
}

QString moreText(double seconds) {
  return (seconds < 0 ? "-" : "+") + secondsText(std::abs(seconds));
}

QString largest_cause(const NamedPlan& fast, const NamedPlan& slow) {
  if (fast.parts == nullptr || slow.parts == nullptr) return {};
  for (const auto& [part, more] : parts_apart(*fast.parts, *slow.parts)) {
    if (more > 0) return part_text(part) + " " + moreText(more);
  }
  return {};
}

QString apart_text(const NamedPlan& one, const NamedPlan& other) {
  const Seconds apart = other.plan->prediction.step_s - one.plan->prediction.step_s;
  if (apart.value == 0) return Words::tr("%1 and %2 take equally long.").arg(one.name, other.name);
  if (apart.value < 0) return apart_text(other, one);
  QString begin =
      Words::tr("%1 takes %2 longer than %3").arg(other.name, secondsText(apart), one.name);
  begin[0] = begin[0].toUpper();
  const QStringList phases = longer_phases(*one.plan, *other.plan);
  const QStringList made_of = causes(one, other);
  if (made_of.isEmpty()) {
    return phases.isEmpty() ? Words::tr("%1: its phases wait for one another.").arg(begin)
                            : Words::tr("%1: %2.").arg(begin, phases.join(", "));
  }
  const QString why = Words::tr("%1: %2").arg(begin, made_of.join(", "));
  return phases.isEmpty() ? Words::tr("%1.").arg(why)
                          : Words::tr("%1 (by phase: %2).").arg(why, phases.join(", "));
}

}  // namespace tessera::gui
