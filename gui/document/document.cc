// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/document.h"

#include <QFileInfo>
#include <QStringList>
#include <algorithm>
#include <utility>

#include "gui/document/words.h"

namespace tessera::gui {
namespace {

bool fixes(const PlanQuery& question, const std::string& setting) {
  return std::find(question.fixed.begin(), question.fixed.end(), setting) != question.fixed.end();
}

bool is_freer(const PlanQuery& one, const PlanQuery& than) {
  PlanQuery same = one;
  same.fixed = than.fixed;
  const auto also = [&](const std::string& setting) { return fixes(than, setting); };
  return same == than && one.fixed.size() < than.fixed.size() &&
         std::all_of(one.fixed.begin(), one.fixed.end(), also);
}

}  // namespace

bool Document::stale() const {
  if (!plan) return false;
  return answered != question || none_fits.has_value() || !problems.empty();
}

std::vector<FreerAnswer> freer_than(const PlanQuery& question, std::vector<FreerAnswer> known) {
  std::erase_if(known,
                [&](const FreerAnswer& answer) { return !is_freer(answer.question, question); });
  return known;
}

QString fixed_beyond(const PlanQuery& question, const PlanQuery& freer) {
  QStringList settings;
  for (const std::string& setting : question.fixed) {
    if (!fixes(freer, setting)) settings << QString::fromStdString(setting);
  }
  return settings.join(' ');
}

QString title_of(const Document& document) {
  const QString name =
      document.file.isEmpty() ? Words::tr("unsaved plan") : QFileInfo(document.file).fileName();
  return name + (document.saved && document.valid() ? "" : "*");
}

}  // namespace tessera::gui
