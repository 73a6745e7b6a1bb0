// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step/memory_text.h"

#include <QStringList>
#include <algorithm>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/translations/said.h"

namespace tessera::gui {
namespace {

QString timeText(double ns) { return secondsText(ns * 1e-9); }

// "126.6 of the 133.0 GiB that plans may use".
QString ofLimit(std::int64_t bytes, const MemoryLimits& limits) {
  if (limits.usable <= 0) return bytesText(bytes);
  if (limits.usable > 100 * bytes) {
    return Words::tr("%1 of the %2 that plans may use")
        .arg(bytesText(bytes), bytesText(limits.usable));
  }
  return Words::tr("%1 of the %2 %3 that plans may use")
      .arg(partOf(bytes, limits.usable), partOf(limits.usable, limits.usable),
           unitOf(limits.usable));
}

// The two largest of what comes to what the rank always holds.
QString meeting(const MemorySteps& steps) {
  const std::vector<ClassBytes> growth = growth_at_peak(steps);
  if (growth.empty()) return Words::tr("It holds the same all the time.");
  // Of a class that the rank holds a part of all the time, as much as it holds then.
  const MemoryUse& use = steps.samples[steps.peak].use;
  const auto named = [&](const ClassBytes& one) {
    const std::int64_t all = memory_classes(use)[one.index].second.value;
    return QString("%1 (%2)").arg(
        className(one.index), all > one.bytes ? partText(one.bytes, all) : bytesText(one.bytes));
  };
  const QString held = bytesText(always_held(steps));
  if (growth.size() == 1)
    return Words::tr("There %1 come on top of the %2 that it always holds.")
        .arg(named(growth[0]), held);
  return Words::tr("There %1 and %2 meet, on top of the %3 that it always holds.")
      .arg(named(growth[0]), named(growth[1]), held);
}

}  // namespace

QString className(std::size_t index) { return said(memory_classes({})[index].first); }

QColor classColour(std::size_t index) {
  return colourOfMemory(toText(memory_classes({})[index].first));
}

QString peakText(const MemorySteps& steps, const MemoryLimits& limits) {
  if (steps.empty()) return Words::tr("Rank %1 has no role.").arg(steps.rank);
  const std::int64_t peak = steps.total(steps.peak);
  const QString where = steps.peak_phase == Phase::load
                            ? Words::tr("between phases")
                            : Words::tr("in %1").arg(toText(name_of(steps.peak_phase)));
  QString text = Words::tr("<b>%1 %2</b>, %3 into the step. ")
                     .arg(ofLimit(peak, limits), where,
                          timeText(static_cast<double>(steps.samples[steps.peak].time_ns)));
  if (limits.usable > 0 && peak > limits.usable) {
    text += Words::tr("<b>%1 too much.</b> ").arg(bytesText(peak - limits.usable));
  }
  return text + meeting(steps);
}

QString phaseText(const MemorySteps& steps, Phase phase) {
  const auto fullest = fullest_in(steps, phase);
  if (!fullest) return {};
  return Words::tr("In %1 at most %2.")
      .arg(toText(name_of(phase)), bytesText(steps.total(*fullest)));
}

QString momentText(const MemorySteps& steps, double ns) {
  const auto phase = phase_at(steps, ns);
  return Words::tr("rank %1 at %2, %3")
      .arg(steps.rank)
      .arg(timeText(ns),
           phase ? Words::tr("in %1").arg(toText(name_of(*phase))) : Words::tr("waiting"));
}

QString describe(const MemorySteps& steps, double ns) {
  if (steps.empty()) return {};
  const std::size_t sample = sample_at(steps, ns);
  std::vector<ClassBytes> classes;
  for (const std::size_t index : steps.classes) {
    const std::int64_t bytes = memory_classes(steps.samples[sample].use)[index].second.value;
    if (bytes > 0) classes.push_back({index, bytes});
  }
  std::stable_sort(classes.begin(), classes.end(),
                   [](const ClassBytes& a, const ClassBytes& b) { return a.bytes > b.bytes; });
  QStringList lines{momentText(steps, ns) + ": " + bytesText(steps.total(sample))};
  for (const ClassBytes& one : classes) {
    lines << QString("%1 %2").arg(bytesText(one.bytes), className(one.index));
  }
  return lines.join('\n');
}

}  // namespace tessera::gui
