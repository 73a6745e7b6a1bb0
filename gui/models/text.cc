// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/text.h"

#include <QLocale>
#include <cmath>

#include "cost_models/documents/problem.h"

namespace tessera::gui {

QString secondsText(double seconds) {
  if (std::abs(seconds) >= 1) return QString::number(seconds, 'f', 2) + " s";
  if (std::abs(seconds) >= 1e-3) return QString::number(seconds * 1e3, 'f', 1) + " ms";
  return QString::number(seconds * 1e6, 'f', 1) + " us";
}

QString bytesText(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1LL << 30) return QString::number(value / (1LL << 30), 'f', 2) + " GiB";
  if (bytes >= 1LL << 20) return QString::number(value / (1LL << 20), 'f', 1) + " MiB";
  if (bytes >= 1LL << 10) return QString::number(value / (1LL << 10), 'f', 1) + " KiB";
  return QString::number(bytes) + " B";
}

QString countText(double count) { return QLocale(QLocale::English).toString(std::llround(count)); }

QString problemsText(const Problems& problems) {
  QString text;
  for (const Problem& problem : problems) {
    text += QString::fromStdString(to_string(problem)) + "\n";
  }
  return text.trimmed();
}

}  // namespace tessera::gui
