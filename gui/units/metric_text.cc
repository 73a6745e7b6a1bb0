// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/units/metric_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "gui/document/text.h"
#include "gui/document/words.h"

namespace tessera::gui {
namespace {

QString number(double value) { return QString::number(value, 'g', 4); }

bool ends(std::string_view metric, std::initializer_list<std::string_view> with) {
  return std::any_of(with.begin(), with.end(),
                     [&](std::string_view end) { return metric.ends_with(end); });
}

struct Unit {
  bool (*holds)(std::string_view metric);
  QString (*text)(double value);
};

// The first that holds counts.
constexpr std::array<Unit, 7> kUnits{{
    {[](std::string_view metric) {
       return metric.starts_with("timing_s/") || ends(metric, {"_s", "/seconds", "time_per_step"});
     },
     [](double value) { return secondsText(value); }},
    {[](std::string_view metric) { return ends(metric, {"bytes"}); },
     [](double value) { return bytesText(std::llround(value)); }},
    {[](std::string_view metric) { return ends(metric, {"_gb"}); },
     [](double value) { return number(value) + " GiB"; }},
    {[](std::string_view metric) { return ends(metric, {"gbps"}); },
     [](double value) { return number(value) + " GB/s"; }},
    {[](std::string_view metric) { return ends(metric, {"throughput"}); },
     [](double value) { return number(value) + " tokens/s/GPU"; }},
    {[](std::string_view metric) {
       return metric.starts_with("perf/mfu/") || ends(metric, {"share", "utilisation"});
     },
     [](double value) { return number(100 * value) + " %"; }},
    {[](std::string_view metric) {
       return ends(metric, {"_kl", "kl_loss", "kl_penalty"});
     },
     [](double value) { return Words::tr("%1 nats").arg(number(value)); }},
}};

}  // namespace

QString metricText(std::string_view metric, double value) {
  for (const Unit& unit : kUnits) {
    if (unit.holds(metric)) return unit.text(value);
  }
  return number(value);
}

}  // namespace tessera::gui
