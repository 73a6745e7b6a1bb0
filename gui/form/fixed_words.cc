// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/form/fixed_words.h"

#include "gui/document/text.h"
#include "planner/plan/plan.h"
#include "planner/request/settings.h"

namespace tessera::gui {

FixedWords sorted(const std::vector<std::string>& fixed, const DegreeGrid& grid) {
  FixedWords words;
  for (const std::string& text : fixed) {
    const QString word = QString::fromStdString(text);
    if (word.startsWith("placement=")) {
      words.placement = word.section('=', 1);
      continue;
    }
    bool known = false;
    for (const Role role : kEveryRole) {
      for (const Field field : every_field()) {
        const QString key = toText(name_of(role)) + "." + toText(name_of(field));
        if (word.section('=', 0, 0) != key || !grid.has({role, field})) continue;
        words.degrees[{role, field}] = word.section('=', 1);
        known = true;
      }
    }
    if (!known) words.others << word;
  }
  return words;
}

}  // namespace tessera::gui
