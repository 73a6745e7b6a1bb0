// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plans/plan_apart.h"

#include <QStringList>
#include <algorithm>
#include <cmath>
#include <optional>
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

using More = std::vector<std::pair<QString, double>>;  // by name, seconds

// In the unit of the largest of all.
QStringList said(const More& all, double largest) {
  QStringList texts;
  for (const auto& [name, more] : all) {
    texts << name + " " + (more < 0 ? "-" : "+") + secondsTextAs(std::abs(more), largest);
  }
  return texts;
}

// Phases that take longer in the slower plan: as many as make up nine tenths, but three at most.
More longer_phases(const Plan& fast, const Plan& slow) {
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
  More phases;
  for (const auto& [apart, phase] : more) {
    if (told >= 0.9 * all || phases.size() == 3) break;
    phases.emplace_back(toText(name_of(phase)), apart);
    told += apart;
  }
  return phases;
}

// What takes longer before what takes less: the first is the cause.
More causes(const NamedPlan& fast, const NamedPlan& slow) {
  More all;
  if (fast.priced == nullptr || slow.priced == nullptr) return all;
  for (const auto& [part, more] : parts_apart(fast.priced->parts, slow.priced->parts)) {
    all.emplace_back(part_text(part), more.value);
  }
  std::stable_partition(all.begin(), all.end(), [](const auto& each) { return each.second > 0; });
  return all;
}

// "B takes 12.83 +- 19.40 s longer than A", which may be nothing; in the unit of the largest part.
QString beginning(const NamedPlan& fast, const NamedPlan& slow, double apart, double largest) {
  std::optional<Seconds> deviation;
  if (fast.priced != nullptr && slow.priced != nullptr) {
    deviation = deviation_apart(*fast.priced, *slow.priced);
  }
  QString seconds = secondsTextAs(apart, largest);
  if (deviation && *deviation > 0) {
    const QString number = seconds.section(' ', 0, 0);
    seconds = QString("%1 +- %2").arg(number, secondsTextAs(deviation->value, largest));
  }
  QString text = Words::tr("%1 takes %2 longer than %3").arg(slow.name, seconds, fast.name);
  text[0] = text[0].toUpper();
  const bool tied = deviation && deviation->value > apart;
  return tied ? Words::tr("%1, less than the predictions may be off").arg(text) : text;
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
  if (fast.priced == nullptr || slow.priced == nullptr) return {};
  for (const auto& [part, more] : parts_apart(fast.priced->parts, slow.priced->parts)) {
    if (more > 0) return part_text(part) + " " + moreText(more);
  }
  return {};
}

QString apart_text(const NamedPlan& one, const NamedPlan& other) {
  const Seconds apart = other.plan->prediction.step_s - one.plan->prediction.step_s;
  if (apart.value == 0) return Words::tr("%1 and %2 take equally long.").arg(one.name, other.name);
  if (apart.value < 0) return apart_text(other, one);
  const More made_of = causes(one, other), longer = longer_phases(*one.plan, *other.plan);
  double largest = apart.value;
  for (const auto& [name, more] : made_of) largest = std::max(largest, std::abs(more));
  const QString begin = beginning(one, other, apart.value, largest);
  const QStringList phases = said(longer, largest);
  if (made_of.empty()) {
    return phases.isEmpty() ? Words::tr("%1: its phases wait for one another.").arg(begin)
                            : Words::tr("%1: %2.").arg(begin, phases.join(", "));
  }
  const QString why = Words::tr("%1: %2").arg(begin, said(made_of, largest).join(", "));
  return phases.isEmpty() ? Words::tr("%1.").arg(why)
                          : Words::tr("%1 (by phase: %2).").arg(why, phases.join(", "));
}

}  // namespace tessera::gui
