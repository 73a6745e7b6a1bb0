// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/document.h"

#include <QFileInfo>

#include "gui/document/words.h"

namespace tessera::gui {

bool Document::stale() const {
  if (!plan) return false;
  return answered != question || none_fits.has_value() || !problems.empty();
}

QString title_of(const Document& document) {
  const QString name =
      document.file.isEmpty() ? Words::tr("unsaved plan") : QFileInfo(document.file).fileName();
  return name + (document.saved && document.valid() ? "" : "*");
}

}  // namespace tessera::gui
