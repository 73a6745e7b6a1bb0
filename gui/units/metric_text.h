// SPDX-License-Identifier: GPL-3.0-or-later
// A number of metrics.jsonl with its unit, which the metric's name tells (docs/commands/run.md).
//
// "8.21 s", "1.50 GiB", "97.0 %", "0.02 nats"; a plain number where the name tells none. Pure.
#pragma once

#include <QString>
#include <string_view>

namespace tessera::gui {

/// `value`: in the metric's own unit (seconds, bytes, GiB, fractions, ...).
QString metricText(std::string_view metric, double value);

}  // namespace tessera::gui
